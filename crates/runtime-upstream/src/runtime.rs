//! Carries calls of imported tools out.

use std::sync::{
    Arc,
    atomic::{AtomicBool, Ordering},
};

use async_trait::async_trait;
use skillz_json::{Map, Value};
use skillz_tool::{
    CallClock, Draft, ErrorKind, Host, McpContent, Output, Prepared, Tool, ToolCall, ToolError, ToolOutcome, ToolRuntime,
};
use tokio_util::sync::CancellationToken;

use crate::{
    client,
    connection::RunningCall,
    error::{LinkError, RequestError},
    server::Server,
    servers::ImportedServers,
    tool,
};

/// What a stateless server says of itself with each result; it is nothing of the tool's.
const SERVER_INFO: &str = "io.modelcontextprotocol/serverInfo";

/// The runtime of imported tools.
pub struct UpstreamRuntime {
    servers: ImportedServers,
}

impl UpstreamRuntime {
    /// A runtime that calls tools of these servers.
    pub fn new(servers: ImportedServers) -> Self {
        Self { servers }
    }
}

#[async_trait]
impl ToolRuntime for UpstreamRuntime {
    async fn prepare(&self, draft: Draft, _host: Arc<dyn Host>) -> Result<Prepared, ToolError> {
        let message =
            format!("`{}` cannot be made here: tools of the kind `mcp` come with an imported server", draft.manifest.name);
        Err(ToolError::new(ErrorKind::Unavailable, message).with_hint("Import the server with `import_mcp`"))
    }

    async fn call(&self, call: ToolCall, host: Arc<dyn Host>) -> Result<ToolOutcome, ToolError> {
        let (server, original) = self.place(&call.tool)?;
        let running = RunningCall {
            session: host.session(),
            host,
            capabilities: call.context.capabilities,
            wants_progress: call.context.progress_token.is_some(),
            ended: CancellationToken::new(),
        };
        let _ended = running.ended.clone().drop_guard();
        let running = Arc::new(running);
        let is_asked = AtomicBool::new(false);
        tokio::select! {
            biased;
            outcome = attempt(&server, original, &call, &running, &is_asked) => outcome,
            () = expiry(&call.clock) => Err(if is_asked.load(Ordering::Relaxed) { timed_out(&call, &server) } else { never_up(&call, &server) }),
        }
    }

    fn retire(&self, _tool: &Tool) {}
}

impl UpstreamRuntime {
    fn place<'t>(&self, tool: &'t Tool) -> Result<(Arc<Server>, &'t str), ToolError> {
        let Some((server, original)) = tool::place(tool) else {
            let message = format!("The manifest of `{}` does not name its server in `mcp_server`", tool.name);
            return Err(ToolError::new(ErrorKind::Config, message));
        };
        let found = self.servers.server(server).ok_or_else(|| {
            let message = format!("`{}` belongs to the server `{server}`, which is not imported any more", tool.name);
            ToolError::new(ErrorKind::Unavailable, message).with_hint("Import it again with `import_mcp`")
        })?;
        Ok((found, original))
    }
}

/// Calls the tool. A request that never reached the server is made once more, as after a restart of the server.
/// `is_asked` tells whether the server may have been asked.
async fn attempt(
    server: &Arc<Server>,
    original: &str,
    call: &ToolCall,
    running: &Arc<RunningCall>,
    is_asked: &AtomicBool,
) -> Result<ToolOutcome, ToolError> {
    let mut may_repeat = true;
    loop {
        let connection = server.connection().await?;
        is_asked.store(true, Ordering::Relaxed);
        match client::call_tool(&connection, original, &call.arguments, running).await {
            Ok(result) => return outcome(call.tool.name.as_str(), result),
            Err(RequestError::Link(error)) if may_repeat && error.may_repeat() => {
                tracing::debug!(server = %server.name, %error, "A call is made once more");
                may_repeat = false;
                is_asked.store(false, Ordering::Relaxed);
            }
            Err(error) => return Err(failure(call.tool.name.as_str(), server, &error)),
        }
    }
}

/// Reads a result. What stands in it goes on as it is.
fn outcome(name: &str, result: Value) -> Result<ToolOutcome, ToolError> {
    let Value::Object(mut result) = result else {
        return Err(ToolError::failed(format!("The server's result of `{name}` is no object")));
    };
    let content = match result.shift_remove("content") {
        Some(Value::Array(content)) => content,
        _ => Vec::new(),
    };
    let mut meta = result.shift_remove("_meta");
    if let Some(Value::Object(members)) = &mut meta {
        members.shift_remove(SERVER_INFO);
    }
    let content = McpContent {
        content,
        structured_content: result.shift_remove("structuredContent").filter(|value| !value.is_null()),
        is_error: result.get("isError").and_then(Value::as_bool).unwrap_or(false),
        meta: meta.filter(|meta| meta.as_object().is_some_and(|members: &Map<String, Value>| !members.is_empty())),
    };
    Ok(ToolOutcome { output: Output::Content(content), notes: Vec::new() })
}

fn failure(name: &str, server: &Server, error: &RequestError) -> ToolError {
    let reason = server.secrets.hide(&error.to_string());
    match error {
        RequestError::Answered { .. } => ToolError::failed(format!("`{name}` failed. {reason}")),
        RequestError::Senseless(_) => ToolError::failed(format!("`{name}` gave no usable result. {reason}")),
        RequestError::Link(link) => {
            let message = format!("`{name}` was not finished: the imported server `{}` is lost. {reason}", server.name);
            let hint =
                link.hint().unwrap_or("The server is started again by itself; look at what the call did before calling again");
            let kind = if matches!(link, LinkError::Refused { .. }) { ErrorKind::Failed } else { ErrorKind::Unavailable };
            ToolError::new(kind, message).with_output(server.last_words()).with_hint(hint)
        }
    }
}

fn timed_out(call: &ToolCall, server: &Server) -> ToolError {
    let message = format!(
        "`{}` ran longer than its limit of {} ms and was cancelled at the imported server `{}`",
        call.tool.name,
        call.limits.timeout.as_millis(),
        server.name
    );
    ToolError::new(ErrorKind::TimedOut, message)
        .with_hint("Give it less to do; `import_mcp` with `action: \"list\"` shows how the server does")
}

fn never_up(call: &ToolCall, server: &Server) -> ToolError {
    let message = format!(
        "`{}` was not run: the imported server `{}` did not come up within the call's limit of {} ms. Nothing was done",
        call.tool.name,
        server.name,
        call.limits.timeout.as_millis()
    );
    ToolError::new(ErrorKind::Unavailable, message)
        .with_output(server.last_words())
        .with_hint("Call again later; `import_mcp` with `action: \"list\"` shows how the server does")
}

/// Waits until a call's time is up.
async fn expiry(clock: &CallClock) {
    loop {
        let remaining = clock.remaining();
        if remaining.is_zero() {
            return;
        }
        // While the clock stands still this looks again from time to time.
        tokio::time::sleep(remaining).await;
    }
}

#[cfg(test)]
mod tests {
    use skillz_json::json;

    use super::*;

    #[test]
    fn results_go_on_as_they_are() {
        let result = json!({
            "content": [{"type": "text", "text": "a", "annotations": {"audience": ["user"]}, "new": 1}], "structuredContent": {"n": 1},
            "isError": true, "resultType": "complete", "_meta": {"k": "v", SERVER_INFO: {"name": "s"}},
        });
        let Output::Content(content) = outcome("x", result).expect("a result").output else { panic!("no content") };
        assert_eq!(content.content, [json!({"type": "text", "text": "a", "annotations": {"audience": ["user"]}, "new": 1})]);
        assert_eq!(content.structured_content, Some(json!({"n": 1})));
        assert_eq!(content.meta, Some(json!({"k": "v"})));
        assert!(content.is_error);
        let Output::Content(empty) = outcome("x", json!({})).expect("a result").output else { panic!("no content") };
        assert!(empty.content.is_empty() && empty.meta.is_none() && !empty.is_error);
        assert!(outcome("x", json!("text")).is_err());
    }
}
