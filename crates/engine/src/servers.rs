//! `import_mcp`: other servers, as far as the operator's policy lets clients import them. Keeping them running is the
//! business of whatever implements [`Upstreams`].

use std::sync::Arc;

use skillz_json::{Value, json};
use skillz_tool::{AnswerAction, ErrorKind, ServerDefinition, Tool, ToolError, ToolKind, Upstreams};

use crate::{ClientPort, DeleteReport, PolicyMode, engine::Engine, wish::wish};

/// What to do with imported servers.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default, serde::Deserialize)]
#[serde(rename_all = "lowercase")]
pub enum ServerAction {
    /// Imports one.
    #[default]
    Add,
    /// Takes one away.
    Remove,
    /// All, or one, with their states.
    List,
    /// Takes over what has changed at one.
    Refresh,
}

/// What a client wants of imported servers.
#[derive(Debug, Clone, Default)]
pub struct ServerRequest {
    /// What to do.
    pub action: ServerAction,
    /// The server; only the list does without.
    pub name: Option<String>,
    /// How it is reached; for adding.
    pub definition: ServerDefinition,
    /// Replace a server of that name.
    pub overwrite: bool,
}

impl Engine {
    /// Adds, removes, lists and refreshes imported servers, as the built-in `import_mcp` answers.
    pub async fn import_server(&self, request: ServerRequest, client: Arc<dyn ClientPort>) -> Result<Value, ToolError> {
        let Some(upstreams) = self.upstreams() else {
            return Err(ToolError::new(ErrorKind::Unavailable, "This server cannot import other servers"));
        };
        let ServerRequest { action, name, definition, overwrite } = request;
        let name = match (action, name) {
            (ServerAction::List, name) => return Ok(self.with_served_names(upstreams, upstreams.list(name.as_deref())?)),
            (_, Some(name)) => name,
            (_, None) => {
                return Err(ToolError::invalid("`import_mcp` needs the `name` of the server, except with `action: \"list\"`"));
            }
        };
        let answer = match action {
            ServerAction::Add => {
                upstreams.ready().await;
                let replaces = overwrite && !is_unknown(upstreams, &name);
                let allowed = self.allow_change(&name, "replaced", client.as_ref());
                let is_free =
                    allowed.is_ok() && (client.is_operator() || self.settings().policy.servers != Some(PolicyMode::Ask));
                if replaces {
                    allowed?;
                }
                self.allow_server(&name, &definition, replaces, client.as_ref()).await?;
                // One that came meanwhile is replaced only by whoever needs nobody's leave for that.
                upstreams.add(&name, definition, replaces || (overwrite && is_free)).await?
            }
            ServerAction::Remove => {
                self.allow_change(&name, "removed", client.as_ref())?;
                upstreams.remove(&name).await?
            }
            ServerAction::Refresh => {
                self.allow_change(&name, "refreshed", client.as_ref())?;
                upstreams.refresh(&name).await?
            }
            ServerAction::List => upstreams.list(Some(&name))?,
        };
        self.refresh();
        Ok(self.with_served_names(upstreams, answer))
    }

    /// Decides whether a client may change what is imported already. Whoever has the command line of this machine is the
    /// operator.
    fn allow_change(&self, name: &str, change: &str, client: &dyn ClientPort) -> Result<(), ToolError> {
        let mode = self.settings().policy.servers;
        if client.is_operator() || mode == Some(PolicyMode::Declared) {
            return Ok(());
        }
        let refusal = |reason: &str, hint: &str| {
            let message = format!("The imported server `{name}` was not {change}: {reason}");
            Err(ToolError::new(ErrorKind::Denied, message).with_hint(hint))
        };
        if mode == Some(PolicyMode::Deny) {
            return refusal(
                "the operator's policy (`[policy] servers = \"deny\"`) refuses all changes of imported servers",
                "The operator can use `skillz servers` on the server's machine, or change `[policy] servers` in its `config.toml`",
            );
        }
        if client.is_remote() {
            return refusal(
                "clients that come over HTTP may not change servers that are there already",
                "Use `skillz servers` on the server's machine, or let the operator set `[policy] servers = \"declared\"` in its `config.toml`",
            );
        }
        Ok(())
    }

    /// Decides whether a client may import a server; asks the user where the policy says so.
    async fn allow_server(
        &self,
        name: &str,
        definition: &ServerDefinition,
        replaces: bool,
        client: &dyn ClientPort,
    ) -> Result<(), ToolError> {
        if client.is_operator() {
            return Ok(());
        }
        let policy = self.settings().policy;
        let variables = definition.variables();
        let what = wish(definition, replaces);
        let modes = [policy.servers, (!variables.is_empty()).then_some(policy.environment)];
        if modes.contains(&Some(PolicyMode::Deny)) {
            let key = if policy.servers == Some(PolicyMode::Deny) { "servers" } else { "env" };
            let message = format!(
                "`{name}` was not imported: it {what}, and the operator's policy (`[policy] {key} = \"deny\"`) refuses that"
            );
            return Err(ToolError::new(ErrorKind::Denied, message)
                .with_hint(format!("The operator can change `[policy] {key}` in the server's `config.toml`")));
        }
        let reaches_far = definition.command.is_some() || !variables.is_empty();
        if client.is_remote() && reaches_far && policy.servers != Some(PolicyMode::Declared) {
            let message = format!("`{name}` was not imported: it {what}, which clients that come over HTTP may not ask for");
            return Err(ToolError::new(ErrorKind::Denied, message).with_hint(
                "Import it by `url` without variables, add it with `skillz servers add` on the server's machine, or let the operator set \
                 `[policy] servers = \"declared\"` in the server's `config.toml`",
            ));
        }
        if modes.contains(&Some(PolicyMode::Ask)) {
            ask(name, &what, client).await?;
        }
        Ok(())
    }

    /// The tool of that name, if it belongs to an imported server.
    pub(crate) fn imported_tool(&self, name: &str) -> Option<Arc<Tool>> {
        let tool = Arc::clone(&self.view().callables.get(name)?.tool);
        let is_imported = tool.kind() == ToolKind::Mcp && self.registry().snapshot().get(name).is_none();
        is_imported.then_some(tool)
    }

    /// Hides a tool of an imported server; `None` where `name` is no such tool.
    pub(crate) async fn hide_imported(&self, name: &str) -> Option<Result<DeleteReport, ToolError>> {
        let upstreams = self.upstreams()?;
        let tool = self.imported_tool(name)?;
        if let Err(error) = upstreams.hide(&tool).await {
            return Some(Err(error));
        }
        self.refresh();
        let server = server_of(&tool);
        let restore =
            format!("import_mcp(action: \"add\", name: \"{server}\", overwrite: true, ...) offers all of its tools again");
        Some(Ok(DeleteReport { deleted: name.to_owned(), versions_kept: 0, restore }))
    }

    /// Where a tool on disk has taken an imported tool's name, lists tell the name that the imported one has now.
    fn with_served_names(&self, upstreams: &Arc<dyn Upstreams>, mut answer: Value) -> Value {
        let view = self.view();
        let own = upstreams.tools().tools;
        let served = |name: &str| {
            let tool = own.get(own.binary_search_by(|tool| tool.name.as_str().cmp(name)).ok()?)?;
            if view.catalog.get(name).is_some_and(|now| Arc::ptr_eq(now, tool)) {
                return None;
            }
            let is_it =
                |other: &&Arc<Tool>| other.kind() == ToolKind::Mcp && other.manifest.mcp_server == tool.manifest.mcp_server;
            view.offered().find(is_it).map(|tool| tool.name.to_string())
        };
        let rename = |entry: &mut Value| {
            for name in entry.get_mut("tools").and_then(Value::as_array_mut).into_iter().flatten() {
                if let Some(now) = name.as_str().and_then(served) {
                    *name = Value::String(now);
                }
            }
        };
        rename(&mut answer);
        answer.get_mut("servers").and_then(Value::as_array_mut).into_iter().flatten().for_each(rename);
        answer
    }
}

/// The imported server that a tool belongs to.
fn server_of(tool: &Tool) -> &str {
    tool.manifest.mcp_server.as_ref().and_then(|place| place.get("server")).and_then(Value::as_str).unwrap_or_default()
}

/// Whether there is no server of that name. One whose file cannot be read is there.
fn is_unknown(upstreams: &Arc<dyn Upstreams>, name: &str) -> bool {
    upstreams.list(Some(name)).is_err_and(|error| error.kind == ErrorKind::NotFound)
}

async fn ask(name: &str, what: &str, client: &dyn ClientPort) -> Result<(), ToolError> {
    let refusal = |reason: &str| {
        ToolError::new(
            ErrorKind::Denied,
            format!("`{name}` was not imported: it {what}, which needs the user's consent, and {reason}"),
        )
    };
    if !client.capabilities().elicitation {
        return Err(refusal("this client cannot ask the user (it has no elicitation)").with_hint(
            "The operator can set `[policy]` and `servers = \"declared\"` (for variables `env = \"declared\"`) in the server's `config.toml`",
        ));
    }
    let schema = json!({
        "type": "object",
        "properties": {"allow": {"type": "boolean", "title": "Allow", "description": "Import this server"}},
        "required": ["allow"],
    });
    let answer = client.ask_user(&format!("The server `{name}` is to be imported; it {what}. Allow it?"), schema).await?;
    let unticked = answer.content.as_ref().and_then(|content| content.get("allow")) == Some(&Value::Bool(false));
    if answer.action == AnswerAction::Accept && !unticked { Ok(()) } else { Err(refusal("the user declined")) }
}
