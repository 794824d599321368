//! What is told of an imported server: its state, its tools, what has changed. Names of secrets, never their values.

use skillz_json::{Map, Value, json};
use skillz_tool::{Tool, UpstreamTools};
use tokio::time::Instant;

use crate::{
    secrets::shown_url,
    server::{Phase, Server},
    tool,
};

/// Bytes of a server's stderr that a list shows.
const SHOWN_OUTPUT: usize = 2_000;
/// A server that has not answered for this long is worth a word.
const SLOW_SECONDS: u64 = 5;

/// One server as lists show it.
pub(crate) fn entry(server: &Server, all: &UpstreamTools) -> Value {
    let mut entry = Map::new();
    let mut add = |field: &str, value: Value| {
        let is_empty = value.is_null()
            || value == json!(false)
            || value.as_array().is_some_and(Vec::is_empty)
            || value.as_str().is_some_and(str::is_empty);
        if !is_empty {
            entry.insert(field.to_owned(), value);
        }
    };
    add("name", json!(server.name));
    let phases = server.phases();
    match &*phases.borrow() {
        Phase::Idle => add("state", json!("not started")),
        Phase::Connecting { since } => {
            add("state", json!("connecting"));
            add("seconds", json!(since.elapsed().as_secs()));
        }
        Phase::Ready { connection, greeting, listed, .. } => {
            add("state", json!(if *listed { "ready" } else { "listing tools" }));
            add("transport", json!(connection.link().name()));
            add("protocol", json!(greeting.protocol));
            add("server", greeting.server.clone().unwrap_or_default());
        }
        Phase::Down { failure, retry_at, failures } => {
            add("state", json!("down"));
            add("error", json!(failure.reason));
            add("hint", json!(failure.hint));
            add("failures", json!(failures));
            add("retry_in_seconds", json!(retry_at.saturating_duration_since(Instant::now()).as_secs()));
        }
        Phase::Stopped => add("state", json!("stopped")),
    }
    let definition = &server.definition;
    let file = server.file().clone();
    add("description", json!(file.definition.description));
    add("command", json!(definition.command));
    add("args", json!(server.secrets.shown_arguments(&definition.args)));
    add("url", json!(definition.url.as_deref().map(shown_url)));
    add("env", json!(definition.env.keys().collect::<Vec<_>>()));
    add("headers", json!(definition.headers.keys().collect::<Vec<_>>()));
    add("pin", json!(file.definition.pin));
    add("sandbox", json!(definition.sandbox));
    add("note", json!(withheld(server)));
    add("changed", json!(file.known.changed));
    add("hidden", json!(file.known.hidden));
    let output = server.last_words();
    let start = output.ceil_char_boundary(output.len().saturating_sub(SHOWN_OUTPUT));
    add("stderr", json!(output.get(start..)));
    let own = all.tools.iter().filter(|tool| is_of(tool, &server.name));
    entry.insert("tools".to_owned(), own.map(|tool| json!(tool.name.as_str())).collect());
    Value::Object(entry)
}

/// Which arguments a confined server does not see, though it is given them.
fn withheld(server: &Server) -> Option<String> {
    let places: Vec<String> = server.withheld().iter().map(|place| format!("`{}`", place.display())).collect();
    let reason = "in the sandbox, since the data folder of Skillz and the whole of the user's home are for no server";
    (!places.is_empty()).then(|| format!("Not opened {reason}: {}", places.join(", ")))
}

/// A sentence where a server is not to be had.
pub(crate) fn warning(server: &Server) -> Option<String> {
    let name = &server.name;
    let phases = server.phases();
    match &*phases.borrow() {
        Phase::Down { failure, .. } => Some(format!("The imported server `{name}` is down: {}", failure.reason)),
        Phase::Connecting { since } if since.elapsed().as_secs() >= SLOW_SECONDS => {
            Some(format!("The imported server `{name}` has not answered for {} s", since.elapsed().as_secs()))
        }
        _ => None,
    }
}

/// Why a server's tools may be missing.
pub(crate) fn absence(server: &Server) -> Option<String> {
    let name = &server.name;
    let phases = server.phases();
    match &*phases.borrow() {
        Phase::Down { failure, .. } => Some(format!("The imported server `{name}` is down: {}", failure.reason)),
        Phase::Connecting { .. } | Phase::Ready { listed: false, .. } => {
            Some(format!("The imported server `{name}` has not told its tools yet; they appear when it does"))
        }
        _ => None,
    }
}

fn is_of(tool: &Tool, server: &str) -> bool {
    tool::place(tool).is_some_and(|(name, _)| name == server)
}
