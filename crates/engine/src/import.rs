//! `import_tool`: fetches a source, finds the tools and skills in it, and publishes each on the one path of every publish.
//!
//! Nothing of a source is trusted: a dry run only reads, permissions are told, and policy holds as for any other tool.

use std::sync::{
    Arc,
    atomic::{AtomicU32, Ordering},
};

use serde::Deserialize;
use skillz_json::{Map, Value, json};
use skillz_registry::{DiscoveredSkill, DiscoveredTool, Discovery};
use skillz_tool::{ErrorKind, FetchRequest, Fetched, Origin, Progress, SourceCode, ToolError, ToolKind};

use crate::{
    ClientPort, PublishRequest, draft,
    engine::Engine,
    import_report::{self, Refusal, Report},
};

/// What to import.
#[derive(Debug, Clone, PartialEq, Eq, Default, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct ImportRequest {
    /// A git URL, `gist:<id>`, an archive, a `SKILL.md`, or a folder.
    pub source: String,
    /// A branch, tag or commit.
    #[serde(default, rename = "ref")]
    pub reference: Option<String>,
    /// A folder within the source.
    #[serde(default)]
    pub path: Option<String>,
    /// Replace tools and skills of the same names.
    #[serde(default)]
    pub overwrite: bool,
    /// Tell what would come, and run and publish nothing.
    #[serde(default)]
    pub dry_run: bool,
}

/// One import on its way.
struct Import<'a> {
    engine: &'a Engine,
    client: &'a Arc<dyn ClientPort>,
    overwrite: bool,
    provenance: Map<String, Value>,
}

impl Engine {
    /// Imports tools and skills, as `import_tool` answers. What cannot be imported does not keep the rest from it; if
    /// nothing can, that is the failure.
    pub async fn import(&self, request: ImportRequest, client: Arc<dyn ClientPort>) -> Result<Value, ToolError> {
        let Some(fetcher) = self.fetcher().cloned() else {
            return Err(ToolError::new(ErrorKind::Unavailable, "This server has nothing to fetch sources with"));
        };
        let ImportRequest { source, reference, path, overwrite, dry_run } = request;
        let allowed_folders = client.is_remote().then(|| self.settings().roots.clone());
        tell(client.as_ref(), 0.0, None, "Fetching");
        let fetch = FetchRequest { source, reference, path, allowed_folders };
        let (steps, listener) = (AtomicU32::new(0), Arc::clone(&client));
        let progress = Arc::new(move |message: &str| {
            let step = steps.fetch_add(1, Ordering::Relaxed) + 1;
            // Clients drop progress that does not grow, and publishing counts from 1.
            tell(listener.as_ref(), f64::from(step.min(900)) / 1_000.0, None, message);
        });
        let fetched = fetcher.fetch(fetch, progress).await?;
        let Fetched { directory, provenance, name, notes, guard } = fetched;
        let searched = directory.clone();
        let found = tokio::task::spawn_blocking(move || Discovery::of(&searched, &name)).await.map_err(ToolError::internal)?;
        let from = provenance.get("from").and_then(Value::as_str).unwrap_or("the source").to_owned();
        let found = found.map_err(|error| ToolError::invalid(format!("`{from}` cannot be searched for tools: {error}")))?;
        if found.tools.is_empty() && found.skills.is_empty() && found.faults.is_empty() {
            return Err(nothing_found(&from));
        }
        let import = Import { engine: self, client: &client, overwrite, provenance };
        let report = if dry_run { import.look(&found) } else { import.publish(&found).await };
        drop(guard);
        report.answer(&from, import.provenance, notes, dry_run)
    }
}

impl Import<'_> {
    /// What would come; runs nothing.
    fn look(&self, found: &Discovery) -> Report {
        let mut report = Report::of_faults(found);
        for tool in &found.tools {
            let checked = self.engine.place_for(tool.name.as_str(), self.overwrite, Origin::Import).and_then(|(_, current)| {
                draft::check(&tool.manifest)?;
                Ok(current)
            });
            match checked {
                Ok(current) => {
                    let mut entry = import_report::of_tool(tool, self.engine.skills());
                    entry.insert("examples".to_owned(), json!(tool.manifest.examples.len()));
                    if let Some(current) = current {
                        entry.insert("replaces".to_owned(), json!(current.version));
                    }
                    report.tools.push(entry);
                }
                Err(error) => report.refused.push(Refusal::of_tool(tool, error)),
            }
        }
        for skill in &found.skills {
            let is_there = self.engine.skills().get(&skill.skill.name).is_some();
            if is_there && !self.overwrite {
                report.refused.push(Refusal::of_skill(skill, skill_exists(skill)));
                continue;
            }
            let mut entry = import_report::of_skill(skill);
            if is_there {
                entry.insert("replaces".to_owned(), json!(true));
            }
            report.skills.push(entry);
        }
        report
    }

    async fn publish(&self, found: &Discovery) -> Report {
        let mut report = Report::of_faults(found);
        // Skills first: tools may say that they need them.
        for skill in &found.skills {
            match self.put_skill(skill).await {
                Ok(entry) => report.skills.push(entry),
                Err(error) => report.refused.push(Refusal::of_skill(skill, error)),
            }
        }
        if !report.skills.is_empty() {
            self.engine.note_change();
        }
        // Pipelines come last, since they may chain what comes with them, other pipelines too.
        let (mut pipelines, tools): (Vec<_>, Vec<_>) =
            found.tools.iter().partition(|tool| tool.manifest.tool_type == ToolKind::Pipeline);
        let total = f64::from(u32::try_from(found.tools.len()).unwrap_or(u32::MAX));
        let mut done = 1.0;
        for tool in tools {
            tell(self.client.as_ref(), done, Some(total + 1.0), &format!("Importing {}", tool.name));
            done += 1.0;
            match self.put_tool(tool).await {
                Ok(entry) => report.tools.push(entry),
                Err(error) => report.refused.push(Refusal::of_tool(tool, error)),
            }
        }
        while !pipelines.is_empty() {
            let mut left = Vec::new();
            let before = pipelines.len();
            for tool in pipelines {
                match self.put_tool(tool).await {
                    Ok(entry) => report.tools.push(entry),
                    Err(error) => left.push((tool, error)),
                }
            }
            if left.len() == before {
                report.refused.extend(left.into_iter().map(|(tool, error)| Refusal::of_tool(tool, error)));
                break;
            }
            pipelines = left.into_iter().map(|(tool, _)| tool).collect();
        }
        report
    }

    async fn put_tool(&self, tool: &DiscoveredTool) -> Result<Map<String, Value>, ToolError> {
        let mut manifest = tool.manifest.clone();
        manifest.source = Some(Value::Object(self.source_of(&tool.path)));
        let request = PublishRequest {
            manifest,
            source: SourceCode::Folder,
            origin: Origin::Import,
            overwrite: self.overwrite,
            dry_run: false,
            client: Arc::clone(self.client),
        };
        let before = self.engine.view().callables.get(tool.name.as_str()).map(|callable| callable.tool.version);
        let published = self.engine.publish_folder(request, &tool.folder).await?;
        let mut entry = import_report::of_tool(tool, self.engine.skills());
        entry.insert("version".to_owned(), json!(published.version));
        entry.insert("examples".to_owned(), json!({"passed": published.examples.passed, "failed": published.examples.failed}));
        if let Some(before) = before {
            entry.insert("replaces".to_owned(), json!(before));
        }
        if !published.notes.is_empty() {
            entry.insert("notes".to_owned(), json!(published.notes));
        }
        Ok(entry)
    }

    /// Copies the skill's folder, and may wait for another server's turn: both beside the threads that serve clients.
    async fn put_skill(&self, skill: &DiscoveredSkill) -> Result<Map<String, Value>, ToolError> {
        let (shelf, own, overwrite) = (self.engine.skills().clone(), skill.clone(), self.overwrite);
        let source = self.source_of(&skill.path);
        let put = tokio::task::spawn_blocking(move || {
            if shelf.get(&own.skill.name).is_some() && !overwrite {
                return Err(skill_exists(&own));
            }
            Ok(shelf.put(&own, &source, overwrite)?)
        });
        put.await.map_err(ToolError::internal)??;
        Ok(import_report::of_skill(skill))
    }

    /// Where one tool or skill came from: the source, and its folder in it.
    fn source_of(&self, folder: &str) -> Map<String, Value> {
        let mut source = self.provenance.clone();
        if !folder.is_empty() {
            let path = match source.get("path").and_then(Value::as_str) {
                Some(path) => format!("{path}/{folder}"),
                None => folder.to_owned(),
            };
            source.insert("path".to_owned(), json!(path));
        }
        source
    }
}

fn skill_exists(skill: &DiscoveredSkill) -> ToolError {
    ToolError::invalid(format!("There is a skill `{}` already; nothing was changed", skill.skill.name))
        .with_hint("Pass `overwrite: true` to replace it")
}

fn nothing_found(from: &str) -> ToolError {
    ToolError::new(ErrorKind::NotFound, format!("`{from}` holds no tool and no skill")).with_hint(
        "A tool is a folder with a `manifest.json`, a skill one with a `SKILL.md`; `path` names a folder of the source",
    )
}

fn tell(client: &dyn ClientPort, current: f64, total: Option<f64>, message: &str) {
    if client.progress_token().is_some() {
        client.progress(Progress { current, total, message: Some(message.to_owned()) });
    }
}
