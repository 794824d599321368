//! The one path of every publish: check, prepare, try the examples, put it on disk, tell everybody.
//!
//! Until the last step nothing is visible, and whatever fails leaves the old version in service.

use std::{fmt::Write, path::Path, sync::Arc, time::Instant};

use skillz_registry::{Expectation, Publication, breaks_callers};
use skillz_tool::{Draft, ErrorKind, Manifest, Origin, Prepared, SourceCode, Tool, ToolError, ToolKind, ToolName, Version};

use crate::{
    DeleteReport, ExampleCounts, PublishReport, PublishRequest, consent::TRIED, draft, engine::Engine, host::EngineHost,
    signature, tree::CallTree,
};

/// Most failing examples that the error's text shows.
const SHOWN_FAILURES: usize = 5;
/// The file beside a script's manifest that holds the exact versions of its dependencies.
const LOCK: &str = "lock";

impl Engine {
    /// Prepares, tries and publishes a new version of a tool. Dropping the future publishes nothing.
    pub async fn publish(&self, request: PublishRequest) -> Result<PublishReport, ToolError> {
        self.publish_with(request, None).await
    }

    /// As [`Self::publish`], from a folder with all files of the tool; it is copied, and stays as it is. Links are left
    /// out, and named in the report's notes. The request's source is [`SourceCode::Folder`].
    pub async fn publish_folder(&self, request: PublishRequest, folder: &Path) -> Result<PublishReport, ToolError> {
        self.publish_with(request, Some(folder)).await
    }

    async fn publish_with(&self, request: PublishRequest, folder: Option<&Path>) -> Result<PublishReport, ToolError> {
        let PublishRequest { manifest, source, origin, overwrite, dry_run, client } = request;
        let (name, current) = self.place_for(&manifest.name, overwrite, origin)?;
        draft::check(&manifest)?;
        let tree = Arc::new(CallTree::new(client));
        let (staging, links) = match folder {
            None => (self.registry().stage().await?, Vec::new()),
            Some(folder) => {
                let staged = self.registry().stage_folder(folder.to_owned()).await?;
                (staged.staging, staged.links)
            }
        };

        if manifest.tool_type == ToolKind::Script {
            keep_lock(current.as_deref(), staging.path()).await;
        }
        let started = Instant::now();
        let has_schema = manifest.input_schema.is_some();
        let prepared = self.prepare(&name, manifest, source, staging.path(), &tree).await?;
        let build_ms = u64::try_from(started.elapsed().as_millis()).unwrap_or(u64::MAX);
        let Prepared { manifest, size_bytes, mut notes } = prepared;
        notes.extend(links.iter().map(|link| format!("`{}` is a symbolic link, and was left out", link.display())));
        notes.extend(draft::check_schemas(&manifest)?);

        let kind = manifest.tool_type;
        let version = self.next_version(&name, current.as_deref(), &manifest).await;
        let (tried, examples) = self.try_version(name.clone(), version, staging.path(), manifest.clone(), &tree).await;
        if examples.failed > 0 {
            return Err(refused_by_examples(&name, &examples, current.as_deref()));
        }
        let is_script = kind == ToolKind::Script;
        let protocol = manifest.protocol.filter(|_| is_script);
        let made_schema = is_script && !has_schema && manifest.input_schema.is_some();
        let signature = made_schema.then(|| signature::python(&tried));
        let mut report = PublishReport {
            name: name.to_string(),
            version,
            kind,
            protocol,
            signature,
            size_bytes,
            build_ms,
            examples,
            dry_run,
            notes,
        };
        if dry_run {
            return Ok(report);
        }
        let expected = current.map_or(Expectation::Absent, |tool| Expectation::Current(tool.version));
        let publication = Publication { name, staging, manifest, origin, expected };
        let published = self.registry().publish(publication).await?;
        self.consents().adopt(&tried, &published);
        self.refresh();
        tracing::info!(tool = %published.name, version = %published.version, "Published");
        report.version = published.version;
        Ok(report)
    }

    /// Moves a tool with all its versions to the trash.
    pub async fn delete(&self, name: &str) -> Result<DeleteReport, ToolError> {
        let view = self.view();
        if let Some(report) = self.hide_imported(name).await {
            return report;
        }
        let is_there = view.callables.contains_key(name) || view.catalog.broken().iter().any(|broken| broken.name == name);
        let tool_name = match ToolName::for_existing(name) {
            Ok(tool_name) if is_there => tool_name,
            _ => return Err(self.unknown_tool(name)),
        };
        let removed = self.registry().delete(&tool_name).await?;
        self.refresh();
        if let Some(tool) = &removed {
            self.discard(tool).await;
        }
        // Without a list the deletion still stands.
        let versions_kept = self.registry().versions(&tool_name).await.map_or(1, |list| list.versions.len());
        let restore = match removed {
            Some(tool) => format!("version(action: \"rollback\", tool_name: \"{name}\", version: \"{}\")", tool.version),
            None => "Its folder could not be loaded; it lies in `.trash` of the tools folder, to be repaired by hand".to_owned(),
        };
        Ok(DeleteReport { deleted: name.to_owned(), versions_kept, restore })
    }

    /// Has the runtime remove what only the deleted tool needed.
    async fn discard(&self, tool: &Tool) {
        if let Some(runtime) = self.runtimes().get(&tool.kind()) {
            let others: Vec<Arc<Tool>> = self.catalog().tools().filter(|other| other.kind() == tool.kind()).cloned().collect();
            runtime.discard(tool, &others).await;
        }
    }

    /// Has the runtime of a draft's kind make it callable.
    pub(crate) async fn prepare(
        &self,
        name: &ToolName,
        mut manifest: Manifest,
        source: SourceCode,
        directory: &Path,
        tree: &Arc<CallTree>,
    ) -> Result<Prepared, ToolError> {
        name.as_str().clone_into(&mut manifest.name);
        let kind = manifest.tool_type;
        let Some(runtime) = self.runtimes().get(&kind) else {
            let message = format!("`{name}` cannot be made: this server has no runtime for tools of its kind ({kind:?})");
            return Err(ToolError::new(ErrorKind::Unavailable, message));
        };
        let host = Arc::new(EngineHost::of_publish(self.clone(), Arc::clone(tree), name.as_str()));
        let draft = Draft { manifest, source, directory: directory.to_owned() };
        runtime.prepare(draft, host).await
    }

    /// Runs the examples of a version that is not published. Its hash is its own, so that nothing kept for it is
    /// ever taken for the version that others see; and whatever was kept for it is let go of, also if the future is
    /// dropped.
    pub(crate) async fn try_version(
        &self,
        name: ToolName,
        version: Version,
        directory: &Path,
        manifest: Manifest,
        tree: &Arc<CallTree>,
    ) -> (Arc<Tool>, ExampleCounts) {
        let hash = format!("{TRIED}{}", uuid::Uuid::new_v4().simple());
        let tool = Arc::new(Tool::new(name, version, directory.to_owned(), manifest, hash));
        let tried = Tried { engine: self, tool: &tool };
        let callable = Arc::new(self.make_callable(Arc::clone(&tool)));
        let examples = self.try_examples(&callable, tree).await;
        drop(tried);
        (tool, examples)
    }

    /// The version that a manifest will get. The registry has the last word.
    async fn next_version(&self, name: &ToolName, current: Option<&Tool>, manifest: &Manifest) -> Version {
        let asked: Option<Version> = manifest.version.as_ref().and_then(|version| version.parse().ok());
        // Deleted tools count too: their numbering goes on.
        let Some(highest) = self.registry().highest_version(name).await else { return asked.unwrap_or(Version::FIRST) };
        asked.filter(|asked| *asked > highest).unwrap_or_else(|| {
            let old = current.map(|tool| tool.manifest.input_schema.as_ref());
            highest.next(old.is_some_and(|old| breaks_callers(old, manifest.input_schema.as_ref())))
        })
    }

    /// Whether a tool of that name may be published, and what it would replace.
    pub(crate) fn place_for(
        &self,
        name: &str,
        overwrite: bool,
        origin: Origin,
    ) -> Result<(ToolName, Option<Arc<Tool>>), ToolError> {
        let view = self.view();
        if let Some(broken) = view.catalog.broken().iter().find(|broken| broken.name == name && !broken.in_service) {
            let message = format!("`{name}` is there already, cannot be loaded, and is not overwritten: {broken}");
            return Err(ToolError::new(ErrorKind::Config, message).with_hint(format!(
                "Repair the file, take it away with `delete_tool(tool_name: \"{name}\")`, or choose another name"
            )));
        }
        let Some(current) = view.callables.get(name).map(|callable| Arc::clone(&callable.tool)) else {
            // A tool that was made elsewhere keeps its name, as it would if its folder were copied by hand.
            let allowed = if origin == Origin::Import { ToolName::for_existing(name) } else { ToolName::for_new(name) };
            return match allowed {
                Ok(name) => Ok((name, None)),
                Err(error) => Err(ToolError::invalid(error.to_string())),
            };
        };
        if self.imported_tool(name).is_some() {
            let message = format!("`{name}` is a tool of an imported server, which is not overwritten; nothing was changed");
            return Err(ToolError::invalid(message).with_hint("Choose another name, or take the tool away with `delete_tool`"));
        }
        if !overwrite {
            let kind = kind_name(current.kind());
            let message = format!("There is a tool `{name}` already ({kind}, version {}); nothing was changed", current.version);
            return Err(ToolError::invalid(message).with_hint(
                "Pass `overwrite: true` to publish a new version of it (the old one stays available), or choose another name",
            ));
        }
        Ok((current.name.clone(), Some(current)))
    }
}

/// Hands what a script's dependencies resolved to on to its next version, unless that brings its own: where they stay equal,
/// nothing is installed again. Without it they are resolved anew.
async fn keep_lock(current: Option<&Tool>, directory: &Path) {
    let Some(current) = current.filter(|current| current.kind() == ToolKind::Script) else { return };
    let lock = directory.join(LOCK);
    if !tokio::fs::try_exists(&lock).await.unwrap_or(true) {
        let _ = tokio::fs::copy(current.directory.join(LOCK), lock).await;
    }
}

/// A version on trial; its runtime lets go of it when the trial ends, however it ends.
struct Tried<'a> {
    engine: &'a Engine,
    tool: &'a Tool,
}

impl Drop for Tried<'_> {
    fn drop(&mut self) {
        self.engine.retire(self.tool);
    }
}

fn refused_by_examples(name: &ToolName, examples: &ExampleCounts, current: Option<&Tool>) -> ToolError {
    let total = examples.passed + examples.failed;
    let stays =
        current.map_or_else(|| "nothing was published".to_owned(), |tool| format!("version {} stays in service", tool.version));
    let mut message = format!("{} of {total} examples of `{name}` did not hold, so {stays}:", examples.failed);
    message.push_str(&list_failures(examples));
    ToolError::failed(message)
        .with_hint("Correct the code, or the example if it is wrong, and try again")
        .with_data(skillz_json::json!({"examples": examples}))
}

/// The failing examples, each with what was expected and what came.
pub(crate) fn list_failures(examples: &ExampleCounts) -> String {
    let mut list = String::new();
    for failure in examples.failures.iter().take(SHOWN_FAILURES) {
        let description = failure.description.as_ref().map_or_else(String::new, |description| format!(" ({description})"));
        let arguments = serde_json::to_string(&failure.arguments).unwrap_or_default();
        let arguments = arguments.get(..arguments.floor_char_boundary(300)).unwrap_or_default();
        let _ = write!(
            list,
            "\n- example {}{description} with {arguments}\n  expected: {}\n  actual: {}",
            failure.index, failure.expected, failure.actual
        );
    }
    if examples.failures.len() > SHOWN_FAILURES {
        let _ = write!(list, "\n- and {} more", examples.failures.len() - SHOWN_FAILURES);
    }
    list
}

pub(crate) fn kind_name(kind: ToolKind) -> &'static str {
    match kind {
        ToolKind::Wasm => "wasm",
        ToolKind::Script => "script",
        ToolKind::Pipeline => "pipeline",
        ToolKind::Mcp => "mcp",
    }
}
