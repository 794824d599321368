//! The built-in `version`: looks at, compares and restores versions, of deleted tools too.

use std::sync::Arc;

use skillz_json::{Value, json};
use skillz_registry::{Publication, RegistryError, VersionEntry, VersionList};
use skillz_tool::{ErrorKind, Origin, Tool, ToolError, ToolName, Version};

use crate::{ClientPort, VersionAction, engine::Engine, list::object, publish::list_failures, tree::CallTree};

/// Longest source shown by `info`, in bytes.
const SHOWN_SOURCE: usize = 50_000;

impl Engine {
    /// Looks at, compares and restores versions, as the built-in `version` answers.
    pub async fn versions(
        &self,
        action: VersionAction,
        tool_name: &str,
        client: Arc<dyn ClientPort>,
    ) -> Result<Value, ToolError> {
        if let Some(tool) = self.imported_tool(tool_name) {
            return self.imported_version(&tool, action).await;
        }
        let list = self.version_list(tool_name).await?;
        match action {
            VersionAction::List => Ok(listed(&list)),
            VersionAction::Info { version } => self.version_info(&list, version.as_deref()).await,
            VersionAction::Diff { version, to } => self.version_diff(&list, version.as_deref(), to.as_deref()).await,
            VersionAction::Rollback { version } => self.rollback(&list, version.as_deref(), client).await,
        }
    }

    /// An imported tool has the one version that its server has now.
    async fn imported_version(&self, tool: &Tool, action: VersionAction) -> Result<Value, ToolError> {
        let entry = json!({"version": tool.version, "hash": tool.hash, "origin": Origin::Import});
        match action {
            VersionAction::List => Ok(json!({"tool_name": tool.name.as_str(), "current": tool.version, "versions": [entry]})),
            VersionAction::Info { version } if version.as_ref().is_none_or(|version| *version == tool.version.to_string()) => {
                let mut info = self.full(tool).await;
                info.extend(object(json!({"current": true, "origin": Origin::Import})));
                Ok(Value::Object(info))
            }
            VersionAction::Info { .. } | VersionAction::Diff { .. } | VersionAction::Rollback { .. } => {
                let message = format!("`{}` is a tool of an imported server, which keeps no earlier versions here", tool.name);
                Err(ToolError::invalid(message)
                    .with_hint("`import_mcp` with `action: \"list\"` shows what has changed at the server"))
            }
        }
    }

    async fn version_list(&self, tool_name: &str) -> Result<VersionList, ToolError> {
        let Ok(name) = ToolName::for_existing(tool_name) else { return Err(self.unknown_tool(tool_name)) };
        match self.registry().versions(&name).await {
            Ok(list) if list.versions.is_empty() => Err(self.unknown_tool(tool_name)),
            Ok(list) => Ok(list),
            Err(RegistryError::UnknownTool { .. }) => Err(self.unknown_tool(tool_name)),
            Err(error) => Err(error.into()),
        }
    }

    async fn version_info(&self, list: &VersionList, version: Option<&str>) -> Result<Value, ToolError> {
        let entry = match version {
            Some(version) => find(list, version)?,
            None => newest(list)?,
        };
        let current = self.view().callables.get(&list.name).map(|callable| Arc::clone(&callable.tool));
        let tool = match current.filter(|tool| tool.version == entry.version) {
            Some(tool) => tool,
            None => self.registry().tool_version(&list.name, entry.version).await?,
        };
        let mut info = self.full(&tool).await;
        let is_current = list.current == Some(entry.version);
        info.extend(object(json!({"current": is_current, "time": entry.time, "hash": entry.hash, "origin": entry.origin})));
        if let Ok(path) = tool.source_path()
            && let Ok(source) = tokio::fs::read_to_string(path).await
        {
            let end = source.floor_char_boundary(SHOWN_SOURCE);
            info.insert("source_code".to_owned(), json!(source.get(..end).unwrap_or_default()));
            if end < source.len() {
                info.insert("source_code_bytes".to_owned(), json!(source.len()));
            }
        }
        Ok(Value::Object(info))
    }

    async fn version_diff(&self, list: &VersionList, from: Option<&str>, to: Option<&str>) -> Result<Value, ToolError> {
        let to = match to {
            Some(to) => find(list, to)?,
            None => newest(list)?,
        };
        let from = match from {
            Some(from) => find(list, from)?,
            None => before(list, to.version)?,
        };
        let diff = self.registry().diff(&list.name, from.version, to.version).await?;
        Ok(json!({"tool_name": list.name.as_str(), "from": from.version, "to": to.version, "diff": diff}))
    }

    /// Makes an older version the current one, as a new entry. Examples that do not hold only warn: whoever goes
    /// back usually does so in need.
    async fn rollback(&self, list: &VersionList, version: Option<&str>, client: Arc<dyn ClientPort>) -> Result<Value, ToolError> {
        let chosen = match (version, list.current) {
            (Some(version), _) => find(list, version)?,
            (None, Some(current)) => before(list, current)?,
            (None, None) => newest(list)?,
        };
        if list.current == Some(chosen.version) {
            return Err(ToolError::invalid(format!("Version {} of `{}` is the current one already", chosen.version, list.name)));
        }
        let staged = self.registry().stage_version(&list.name, chosen.version).await?;
        let tree = Arc::new(CallTree::new(client));
        let (tried, examples) =
            self.try_version(list.name.clone(), chosen.version, staged.staging.path(), staged.manifest.clone(), &tree).await;
        let publication = Publication {
            name: list.name.clone(),
            staging: staged.staging,
            manifest: staged.manifest,
            origin: Origin::Rollback,
            expected: staged.expected,
        };
        let published = self.registry().publish(publication).await?;
        self.consents().adopt(&tried, &published);
        self.refresh();
        let mut answer = object(json!({
            "tool_name": list.name.as_str(), "version": published.version, "restored": chosen.version, "previous": list.current,
            "examples": {"passed": examples.passed, "failed": examples.failed},
        }));
        if examples.failed > 0 {
            let warning = format!("{} examples do not hold in this version:{}", examples.failed, list_failures(&examples));
            answer.insert("warning".to_owned(), json!(warning));
        }
        Ok(Value::Object(answer))
    }
}

fn listed(list: &VersionList) -> Value {
    let versions: Vec<Value> = list
        .versions
        .iter()
        .map(|entry| json!({"version": entry.version, "time": entry.time, "hash": entry.hash, "origin": entry.origin}))
        .collect();
    let mut answer = object(json!({"tool_name": list.name.as_str(), "current": list.current, "versions": versions}));
    if list.current.is_none() {
        answer.insert("deleted".to_owned(), json!(true));
    }
    Value::Object(answer)
}

fn find<'a>(list: &'a VersionList, version: &str) -> Result<&'a VersionEntry, ToolError> {
    let version: Version =
        version.parse().map_err(|error: skillz_tool::ParseVersionError| ToolError::invalid(error.to_string()))?;
    list.versions.iter().find(|entry| entry.version == version).ok_or_else(|| {
        let known: Vec<String> = list.versions.iter().take(20).map(|entry| entry.version.to_string()).collect();
        let message = format!("`{}` has no version {version}; it has {}", list.name, known.join(", "));
        ToolError::new(ErrorKind::NotFound, message)
    })
}

/// The current version; of a deleted tool the newest.
fn newest(list: &VersionList) -> Result<&VersionEntry, ToolError> {
    let current = list.versions.iter().find(|entry| Some(entry.version) == list.current);
    let newest = || list.versions.iter().max_by_key(|entry| entry.version);
    current.or_else(newest).ok_or_else(|| ToolError::new(ErrorKind::NotFound, format!("`{}` has no versions", list.name)))
}

/// The newest version older than `version`.
fn before(list: &VersionList, version: Version) -> Result<&VersionEntry, ToolError> {
    list.versions.iter().filter(|entry| entry.version < version).max_by_key(|entry| entry.version).ok_or_else(|| {
        let message = format!("`{}` has no version before {version}", list.name);
        ToolError::new(ErrorKind::NotFound, message)
            .with_hint("Name the version that you mean; `version(action: \"list\", ...)` shows them")
    })
}
