//! The server as one running call sees it.
//!
//! Every request is made in that call's name: memory is the tool's own, inner calls run one level deeper under
//! their own permissions, progress carries the client's token. While the client is asked, the clocks of the call
//! and of all that wait for it stand still.

use std::{borrow::Cow, fmt::Write, path::Path, sync::Arc};

use async_trait::async_trait;
use skillz_json::{Map, Value, json};
use skillz_tool::{
    Answer, BUILTIN_NAMES, ClientCapabilities, ErrorKind, Host, LogLevel, PauseGuard, Progress, StoreError, ToolError,
};

use crate::{
    ListRequest,
    call::Invocation,
    callable::Callable,
    engine::Engine,
    record::CallLog,
    secrets::Secrets,
    tree::{CallTree, Frame},
};

/// Most keys of a tool's memory that one request lists.
const MOST_KEYS: usize = 10_000;

/// The server, as seen by one running call, by code that calls tools, or by a tool in the making.
pub(crate) struct EngineHost {
    engine: Engine,
    tree: Arc<CallTree>,
    /// Whose memory it is, and who logs.
    name: Arc<str>,
    /// Absent while a tool is made: then there is nothing to call from.
    frame: Option<Arc<Frame>>,
    callable: Option<Arc<Callable>>,
    /// The only tools that may be called, where that is restricted.
    only: Option<Vec<String>>,
}

impl EngineHost {
    /// The host of a running tool.
    pub(crate) fn of_call(engine: Engine, tree: Arc<CallTree>, callable: Arc<Callable>, frame: Arc<Frame>) -> Self {
        Self { engine, tree, name: Arc::clone(&callable.name), frame: Some(frame), callable: Some(callable), only: None }
    }

    /// The host of a tool that is being made: progress and log only.
    pub(crate) fn of_publish(engine: Engine, tree: Arc<CallTree>, name: &str) -> Self {
        Self { engine, tree, name: name.into(), frame: None, callable: None, only: None }
    }

    /// The host of a program that is no tool and calls tools, perhaps just some.
    pub(crate) fn of_program(engine: Engine, tree: Arc<CallTree>, frame: Arc<Frame>, only: Option<Vec<String>>) -> Self {
        Self { engine, tree, name: Arc::clone(&frame.name), frame: Some(frame), callable: None, only }
    }

    fn secrets(&self) -> Secrets<'_> {
        Secrets(self.callable.as_ref().map_or(&[], |callable| &callable.wishes.environment))
    }

    fn pause(&self) -> Vec<PauseGuard> {
        self.frame.as_ref().map(|frame| frame.pause()).unwrap_or_default()
    }

    async fn call_builtin(&self, name: &str, arguments: Map<String, Value>) -> Result<Value, ToolError> {
        if name != "list_tools" {
            let message =
                format!("`{}` cannot call `{name}`: of the server's own tools, tools may call `list_tools` only", self.name);
            return Err(ToolError::new(ErrorKind::Denied, message)
                .with_hint("Host requests give a tool its memory; the rest is for clients"));
        }
        let request: ListRequest = skillz_json::from_value(Value::Object(arguments))
            .map_err(|error| ToolError::invalid(format!("The arguments of `list_tools` are wrong: {error}")))?;
        self.engine.list(request).await
    }

    fn check_allowed(&self, name: &str) -> Result<(), ToolError> {
        match &self.only {
            Some(only) if !only.iter().any(|allowed| allowed == name) => {
                let message = format!("This program may not call `{name}`: its `tools` names {}", quoted(only));
                Err(ToolError::new(ErrorKind::Denied, message)
                    .with_hint(format!("Add `{name}` to `tools`, or leave `tools` out")))
            }
            _ => Ok(()),
        }
    }
}

#[async_trait]
impl Host for EngineHost {
    async fn call_tool(&self, name: &str, arguments: Map<String, Value>) -> Result<Value, ToolError> {
        let Some(frame) = &self.frame else {
            return Err(ToolError::new(
                ErrorKind::Unavailable,
                format!("`{name}` cannot be called while `{}` is being made", self.name),
            ));
        };
        if BUILTIN_NAMES.contains(&name) {
            return self.call_builtin(name, arguments).await;
        }
        self.check_allowed(name)?;
        let callable = self.engine.find(name, None).await?;
        let arguments = Value::Object(arguments);
        let call_id = self.engine.next_call_id();
        let log = if frame.is_recorded {
            let parent = Some(frame.call_id.as_str()).filter(|id| !id.is_empty());
            CallLog::open(self.engine.history(), &callable.tool, &call_id, parent, arguments.written_length() as u64)
        } else {
            CallLog::off(self.engine.history())
        };
        let invocation = Invocation {
            callable: &callable,
            arguments,
            tree: &self.tree,
            caller: Some(frame),
            call_id,
            recorded: frame.is_recorded,
            steps: None,
        };
        self.engine.value(invocation, log).await
    }

    async fn list_tools(&self, query: Option<&str>) -> Result<Value, ToolError> {
        Ok(self.engine.tools_for_tools(query, self.only.as_deref()))
    }

    async fn describe_tool(&self, name: &str) -> Result<Value, ToolError> {
        self.check_allowed(name)?;
        self.engine.describe(name).await
    }

    async fn memory_get(&self, key: &str) -> Result<Option<Value>, ToolError> {
        self.engine.memory().get(&self.name, key).await.map_err(memory_error)
    }

    async fn memory_set(&self, key: &str, value: Value, ttl_seconds: Option<f64>) -> Result<(), ToolError> {
        self.engine.memory().set(&self.name, key, &value, ttl_seconds).await.map(drop).map_err(memory_error)
    }

    async fn memory_list(&self, prefix: &str) -> Result<Vec<String>, ToolError> {
        self.engine.memory().list(&self.name, prefix, None, MOST_KEYS).await.map_err(memory_error)
    }

    async fn memory_delete(&self, key: &str) -> Result<bool, ToolError> {
        self.engine.memory().delete(&self.name, key).await.map_err(memory_error)
    }

    async fn list_resources(&self) -> Result<Value, ToolError> {
        let Some(resources) = self.engine.resources() else { return Ok(json!({"resources": []})) };
        let mut list = resources.list();
        if let Some(Value::Array(entries)) = list.get_mut("resources") {
            entries.retain(|entry| entry.get("uri").and_then(Value::as_str).is_some_and(|uri| !is_private(uri)));
        }
        Ok(list)
    }

    async fn read_resource(&self, uri: &str) -> Result<Value, ToolError> {
        if is_private(uri) {
            let message = format!("`{uri}` belongs to the client: tools read neither the results of other calls nor the history");
            return Err(ToolError::new(ErrorKind::Denied, message));
        }
        match self.engine.resources() {
            Some(resources) => resources.read(uri).await,
            None => Err(ToolError::new(ErrorKind::NotFound, format!("There is no resource `{uri}`"))),
        }
    }

    fn session(&self) -> Option<u64> {
        self.tree.client().session()
    }

    async fn ask_user(&self, message: &str, schema: Value) -> Result<Answer, ToolError> {
        if !self.tree.capabilities.elicitation {
            self.tree.client().refused(ClientCapabilities { elicitation: true, sampling: false });
            return Err(ToolError::new(ErrorKind::Unavailable, "This client cannot ask the user (it has no elicitation)")
                .with_hint("Let the tool take the answer as an argument instead"));
        }
        let _pause = self.pause();
        self.tree.client().ask_user(message, schema).await
    }

    async fn sample(&self, parameters: Value) -> Result<Value, ToolError> {
        if !self.tree.capabilities.sampling {
            self.tree.client().refused(ClientCapabilities { elicitation: false, sampling: true });
            return Err(ToolError::new(
                ErrorKind::Unavailable,
                "This client does not let tools ask its model (it has no sampling)",
            )
            .with_hint("Let the tool return what the model is to work on instead"));
        }
        let _pause = self.pause();
        self.tree.client().sample(parameters).await
    }

    async fn roots(&self) -> Result<Value, ToolError> {
        let _pause = self.pause();
        let roots = self.tree.roots(self.engine.settings()).await;
        let roots: Vec<Value> = roots
            .iter()
            .map(|root| json!({"uri": file_uri(root), "name": root.file_name().map_or_else(String::new, |name| name.to_string_lossy().into_owned())}))
            .collect();
        Ok(json!({"roots": roots}))
    }

    fn progress(&self, progress: Progress) {
        self.tree.progress(self.frame.as_ref().map_or(1, |frame| frame.depth), progress);
    }

    fn log(&self, level: LogLevel, message: &str, data: Option<Value>) {
        let secrets = self.secrets();
        let message = secrets.hide(message);
        tracing::debug!(target: "skillz::tool", tool = %self.name, ?level, "{message}");
        let data = data.map(|data| match secrets.hide(&data.to_string()) {
            Cow::Borrowed(_) => data,
            Cow::Owned(hidden) => serde_json::from_str(&hidden).unwrap_or(Value::String(hidden)),
        });
        self.tree.client().log(level, &self.name, &message, data);
    }
}

fn memory_error(error: StoreError) -> ToolError {
    match error {
        StoreError::Invalid(reason) => ToolError::invalid(reason),
        StoreError::Failed(_) => ToolError::internal(error),
    }
}

/// Whether a resource is the client's alone, however its address is written.
fn is_private(uri: &str) -> bool {
    let plain = decode(uri.trim()).to_ascii_lowercase();
    let Some(path) = plain.strip_prefix("skillz:") else { return false };
    let first = path.split(['/', '?', '#']).find(|part| !part.is_empty() && *part != ".");
    matches!(first, Some("results" | "history"))
}

/// Resolves percent escapes of ASCII characters, until there are none: `%2568` hides `%68`.
fn decode(text: &str) -> String {
    let mut decoded = text.to_owned();
    for _ in 0..8 {
        let mut next = String::with_capacity(decoded.len());
        let mut rest = decoded.as_str();
        while let Some((before, after)) = rest.split_once('%') {
            next.push_str(before);
            let byte = after.get(..2).and_then(|digits| u8::from_str_radix(digits, 16).ok()).filter(u8::is_ascii);
            next.push(byte.map_or('%', char::from));
            rest = if byte.is_some() { after.get(2..).unwrap_or_default() } else { after };
        }
        next.push_str(rest);
        if next == decoded {
            break;
        }
        decoded = next;
    }
    decoded
}

/// The `file:` address of a folder.
fn file_uri(path: &Path) -> String {
    let mut uri = "file://".to_owned();
    for byte in path.as_os_str().as_encoded_bytes() {
        if byte.is_ascii_alphanumeric() || matches!(byte, b'/' | b'-' | b'_' | b'.' | b'~') {
            uri.push(char::from(*byte));
        } else {
            let _ = write!(uri, "%{byte:02X}");
        }
    }
    uri
}

fn quoted(names: &[String]) -> String {
    if names.is_empty() {
        return "none".to_owned();
    }
    names.iter().map(|name| format!("`{name}`")).collect::<Vec<_>>().join(", ")
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn results_and_history_are_private_however_they_are_written() {
        for uri in [
            "skillz://results/abc",
            "skillz://history",
            "skillz://history?failed=1",
            "SKILLZ://Results/abc",
            "skillz:///results/abc",
            "skillz://%68istory",
            "skillz://%2568istory",
            "skillz:results/abc",
            " skillz://results/x",
            "skillz://./results/x",
        ] {
            assert!(is_private(uri), "{uri}");
        }
        for uri in ["skillz://guide", "skillz://tools/history", "file:///results", "skillz://tools/x/files/results/a"] {
            assert!(!is_private(uri), "{uri}");
        }
    }

    #[test]
    fn folders_have_addresses() {
        assert_eq!(file_uri(Path::new("/home/me/my project")), "file:///home/me/my%20project");
        assert_eq!(file_uri(Path::new("/ü#?")), "file:///%C3%BC%23%3F");
    }
}
