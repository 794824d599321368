//! What a server asks of its client (elicitation, sampling, roots, ping), answered by the client whose call it belongs
//! to; and what this side says of itself.

#![allow(clippy::implicit_hasher, reason = "the map is the connection's own")]

use std::sync::{Arc, PoisonError};

use skillz_json::{Map, Value, json};
use skillz_tool::{ClientCapabilities, LogLevel, ToolError};
use tokio_util::sync::CancellationToken;

use crate::connection::{Connection, RunningCall, SeveralClients, related};

const METHOD_NOT_FOUND: i64 = -32_601;
const INVALID_PARAMS: i64 = -32_602;
const INTERNAL_ERROR: i64 = -32_603;

/// A refusal as JSON-RPC has it.
type Refusal = (i64, String);

/// What this side can do, whichever client it will be for.
pub(crate) fn capabilities() -> Value {
    json!({"elicitation": {"form": {}, "url": {}}, "sampling": {}, "roots": {}})
}

/// Who this side is.
pub(crate) fn client_info() -> Value {
    json!({"name": "skillz", "title": "Skillz", "version": env!("CARGO_PKG_VERSION")})
}

/// What each request to a stateless server carries.
pub(crate) fn who_asks(version: &str) -> [(String, Value); 3] {
    let key = |name: &str| format!("io.modelcontextprotocol/{name}");
    [(key("protocolVersion"), json!(version)), (key("clientInfo"), client_info()), (key("clientCapabilities"), capabilities())]
}

/// Answers a server's request in a task of its own.
pub(crate) fn take(connection: &Arc<Connection>, message: Map<String, Value>, carrier: Option<u64>) {
    let connection = Arc::clone(connection);
    let withdrawn = CancellationToken::new();
    let id = message.get("id").cloned().unwrap_or_default();
    let questions = &connection.questions;
    questions.lock().unwrap_or_else(PoisonError::into_inner).insert(id.to_string(), withdrawn.clone());
    tokio::spawn(async move {
        let method = message.get("method").and_then(Value::as_str).unwrap_or_default();
        let params = message.get("params").cloned().unwrap_or_default();
        let answer = tokio::select! {
            answer = respond(&connection, method, &params, carrier) => Some(answer),
            () = withdrawn.cancelled() => None,
        };
        connection.questions.lock().unwrap_or_else(PoisonError::into_inner).remove(&id.to_string());
        let answer = match answer {
            None => return,
            Some(Ok(result)) => json!({"jsonrpc": "2.0", "id": id, "result": result}),
            Some(Err((code, text))) => json!({"jsonrpc": "2.0", "id": id, "error": {"code": code, "message": text}}),
        };
        if let Err(error) = connection.answer(&answer).await {
            tracing::debug!(%error, "An answer did not reach the server");
        }
    });
}

async fn respond(connection: &Connection, method: &str, params: &Value, carrier: Option<u64>) -> Result<Value, Refusal> {
    let needed = match method {
        "ping" => return Ok(json!({})),
        "elicitation/create" => ClientCapabilities { elicitation: true, sampling: false },
        "sampling/createMessage" => ClientCapabilities { elicitation: false, sampling: true },
        "roots/list" => ClientCapabilities::default(),
        _ => return Err((METHOD_NOT_FOUND, format!("This client does not know the method `{method}`"))),
    };
    match connection.call_for(related(params, carrier), needed) {
        Err(SeveralClients) => {
            let reason = "belongs to none of the running calls by its `_meta`, and it cannot be told whose call it is, since several \
                          clients have calls under way";
            Err((INTERNAL_ERROR, format!("`{method}` {reason}")))
        }
        Ok(Some(call)) => ask(&call, method, params).await,
        // Some servers take roots for all that they may touch; nobody's are not everybody's.
        Ok(None) if method == "roots/list" => Ok(json!({"roots": []})),
        Ok(None) => {
            Err((INTERNAL_ERROR, format!("`{method}` needs a running call, whose client is then asked, and there is none")))
        }
    }
}

/// Asks the client of a call what a server wants to know, for as long as the call goes on.
pub(crate) async fn ask(call: &RunningCall, method: &str, params: &Value) -> Result<Value, Refusal> {
    let asked = async {
        let answer = match method {
            "elicitation/create" => {
                let (message, schema) = form(params).map_err(|reason| (INVALID_PARAMS, reason))?;
                let answer = call.host.ask_user(&message, schema).await;
                answer.and_then(|answer| skillz_json::to_value(answer).map_err(ToolError::internal))
            }
            "sampling/createMessage" => call.host.sample(params.clone()).await,
            "roots/list" => call.host.roots().await,
            _ => return Err((METHOD_NOT_FOUND, format!("This client does not know the method `{method}`"))),
        };
        answer.map_err(|error| (INTERNAL_ERROR, error.text()))
    };
    tokio::select! {
        answer = asked => answer,
        () = call.ended.cancelled() => Err((INTERNAL_ERROR, "The call that this belongs to is over".to_owned())),
    }
}

/// What the user is asked. An address to open is shown as a form without fields, which every client that asks can show.
fn form(params: &Value) -> Result<(String, Value), String> {
    let message = params.get("message").and_then(Value::as_str).unwrap_or_default().to_owned();
    match params.get("mode").and_then(Value::as_str) {
        None | Some("form") => {
            let schema = params.get("requestedSchema").cloned();
            Ok((message, schema.unwrap_or_else(|| json!({"type": "object", "properties": {}}))))
        }
        Some("url") => {
            let address = params.get("url").and_then(Value::as_str).ok_or("A question of the mode `url` needs a `url`")?;
            let message = format!("{message}\n\nOpen this address, if you trust it, and then accept: {address}");
            Ok((message, json!({"type": "object", "properties": {}})))
        }
        Some(other) => Err(format!("This client does not know the mode `{other}` of `elicitation/create`")),
    }
}

/// Passes a log message on to the client of a call, or into the log where there is none.
pub(crate) fn log(call: Option<&RunningCall>, params: &Value) {
    let level = params.get("level").cloned().and_then(|level| skillz_json::from_value(level).ok()).unwrap_or(LogLevel::Info);
    let data = params.get("data").cloned();
    match (call, data) {
        (Some(call), Some(Value::String(text))) => call.host.log(level, &text, None),
        (Some(call), data) => call.host.log(level, "", data),
        (None, data) => tracing::debug!(target: "skillz::upstream", ?level, data = data.map(|data| data.to_string()), "said"),
    }
}
