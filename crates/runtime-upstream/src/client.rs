//! What is said to a server: the greeting in whichever way it knows, the list of its tools, calls.

use std::{collections::HashSet, sync::Arc};

use skillz_json::{Map, Value, json};

use crate::{
    connection::{Connection, Era, RunningCall},
    error::{LinkError, RequestError},
    known::KnownTool,
    question,
};

/// The newest version with a handshake; the server answers with the one that it speaks.
const NEWEST_HANDSHAKE: &str = "2025-11-25";
/// The stateless version.
const STATELESS: &str = "2026-07-28";
/// Most pages of a list of tools.
const MOST_PAGES: usize = 100;
/// Most tools of a server.
const MOST_TOOLS: usize = 10_000;
/// Most times that one call may ask for input.
const MOST_ROUNDS: usize = 10;
const METHOD_NOT_FOUND: i64 = -32_601;

/// What a server says of itself.
#[derive(Debug, Clone, Default, PartialEq)]
pub(crate) struct Greeting {
    /// The version spoken.
    pub(crate) protocol: String,
    /// Name and version, where it tells.
    pub(crate) server: Option<Value>,
    capabilities: Value,
}

impl Greeting {
    /// Whether it tells of changes of its tools, to those who listen.
    pub(crate) fn tells_of_changes(&self) -> bool {
        self.capabilities.pointer("/tools/listChanged") == Some(&Value::Bool(true))
    }
}

/// Greets a server: with a handshake, which nearly all know; without one where it wants none.
pub(crate) async fn greet(connection: &Arc<Connection>) -> Result<Greeting, RequestError> {
    let params = object(json!({
        "protocolVersion": NEWEST_HANDSHAKE, "capabilities": question::capabilities(), "clientInfo": question::client_info(),
    }));
    let error = match connection.request("initialize", params, None).await {
        Ok(result) => return shake_hands(connection, &result).await,
        Err(error @ RequestError::Answered { .. }) => error,
        Err(error) => return Err(error),
    };
    connection.set_era(Era::Stateless(STATELESS.to_owned()));
    let Ok(result) = connection.request("server/discover", Map::new(), None).await else { return Err(error) };
    let server = result.pointer("/_meta/io.modelcontextprotocol~1serverInfo").or_else(|| result.get("serverInfo")).cloned();
    let capabilities = result.get("capabilities").cloned().unwrap_or_default();
    Ok(Greeting { protocol: STATELESS.to_owned(), server, capabilities })
}

async fn shake_hands(connection: &Arc<Connection>, result: &Value) -> Result<Greeting, RequestError> {
    let Some(protocol) = result.get("protocolVersion").and_then(Value::as_str) else {
        return Err(RequestError::Senseless("The server's answer to `initialize` names no `protocolVersion`".to_owned()));
    };
    connection.set_era(Era::Handshake(protocol.to_owned()));
    connection.notify("notifications/initialized", Map::new()).await?;
    Ok(Greeting {
        protocol: protocol.to_owned(),
        server: result.get("serverInfo").cloned(),
        capabilities: result.get("capabilities").cloned().unwrap_or_default(),
    })
}

/// Lists a server's tools, page by page. One that has no name is left out; a page that comes again ends the list.
pub(crate) async fn list_tools(connection: &Arc<Connection>) -> Result<Vec<KnownTool>, RequestError> {
    let mut tools: Vec<KnownTool> = Vec::new();
    let mut names: HashSet<String> = HashSet::new();
    let mut cursors: Vec<String> = Vec::new();
    for _ in 0..MOST_PAGES {
        let params = cursors.last().map(|cursor| object(json!({"cursor": cursor}))).unwrap_or_default();
        let mut page = match connection.request("tools/list", params, None).await {
            Err(RequestError::Answered { code: METHOD_NOT_FOUND, .. }) => break,
            page => page?,
        };
        let Some(Value::Array(listed)) = page.get_mut("tools").map(Value::take) else {
            return Err(RequestError::Senseless("The server's answer to `tools/list` holds no array `tools`".to_owned()));
        };
        for tool in listed.into_iter().filter_map(KnownTool::read) {
            if names.insert(tool.name.clone()) {
                tools.push(tool);
            }
        }
        let next = page.get("nextCursor").and_then(Value::as_str).filter(|cursor| !cursor.is_empty());
        let Some(next) = next.filter(|next| cursors.iter().all(|cursor| cursor != next)) else { break };
        if tools.len() >= MOST_TOOLS {
            break;
        }
        cursors.push(next.to_owned());
    }
    tools.truncate(MOST_TOOLS);
    connection.link().learn(&tools);
    Ok(tools)
}

/// Calls a tool, and answers whatever a stateless server wants to know on the way.
pub(crate) async fn call_tool(
    connection: &Arc<Connection>,
    tool: &str,
    arguments: &Map<String, Value>,
    call: &Arc<RunningCall>,
) -> Result<Value, RequestError> {
    let first = object(json!({"name": tool, "arguments": arguments}));
    if !matches!(connection.era(), Some(Era::Stateless(_))) {
        return connection.request("tools/call", first, Some(call)).await;
    }
    let mut params = first.clone();
    for round in 0..=MOST_ROUNDS {
        let result = connection.request("tools/call", params, Some(call)).await.map_err(|error| match error {
            // Whoever made this call once more would ask the user again.
            RequestError::Link(error) if round > 0 => RequestError::Link(LinkError::Over(error.to_string())),
            error => error,
        })?;
        if result.get("resultType").and_then(Value::as_str) != Some("input_required") {
            return Ok(result);
        }
        let mut answers = Map::new();
        for (name, request) in result.get("inputRequests").and_then(Value::as_object).into_iter().flatten() {
            let method = request.get("method").and_then(Value::as_str).unwrap_or_default();
            let asked = request.get("params").unwrap_or(&Value::Null);
            let answer = question::ask(call, method, asked).await;
            let answer = answer.map_err(|(code, message)| RequestError::Answered { code, message, data: None })?;
            answers.insert(name.clone(), answer);
        }
        params = first.clone();
        params.insert("inputResponses".to_owned(), Value::Object(answers));
        if let Some(state) = result.get("requestState") {
            params.insert("requestState".to_owned(), state.clone());
        }
    }
    Err(RequestError::Senseless(format!("The server asked for input more than {MOST_ROUNDS} times")))
}

/// Listens to a stateless server's notes that its tools have changed, until the stream ends.
pub(crate) async fn listen(connection: &Arc<Connection>) -> Result<(), RequestError> {
    let params = object(json!({"notifications": {"toolsListChanged": true}}));
    connection.request("subscriptions/listen", params, None).await.map(drop)
}

/// Whether the way that was tried is the wrong one for this server, so that the older one is worth a try.
pub(crate) fn wants_older_transport(error: &RequestError) -> bool {
    matches!(error, RequestError::Link(LinkError::Refused { status: 400 | 404 | 405 | 406 | 415 | 501, .. }))
}

fn object(value: Value) -> Map<String, Value> {
    match value {
        Value::Object(members) => members,
        _ => Map::new(),
    }
}
