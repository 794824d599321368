//! What a tool may ask of the server besides memory, HTTP and resources.

use std::fmt::Display;

use serde::{de::DeserializeOwned, Deserialize, Serialize};
use serde_json::{json, Value};

use crate::{host, Amount, Error, Json, LogLevel, Result, Text};

/// Calls another tool with an object of arguments; gives its structured value, or its text. A number that a `Value` would
/// round is an error; see [`call_as`].
pub fn call(name: &str, arguments: impl Serialize) -> Result<Value> {
    call_as(name, arguments)
}

/// Calls another tool and reads its value as a type, such as [`Json`], which holds any number.
pub fn call_as<T: DeserializeOwned>(name: &str, arguments: impl Serialize) -> Result<T> {
    output_of(name, Json::new(arguments)?)?.read()
}

fn output_of(name: &str, arguments: Json) -> Result<Json> {
    #[derive(Serialize)]
    struct Params<'a> {
        name: &'a str,
        #[serde(skip_serializing_if = "Option::is_none")]
        arguments: Option<Json>,
    }
    #[derive(Deserialize)]
    struct Reply {
        output: Option<Json>,
    }
    let arguments = Some(arguments).filter(|arguments| arguments.text() != "null");
    let reply: Reply = host::request_as("tools/call", Params { name, arguments })?;
    reply.output.map_or_else(|| Json::new(()), Ok)
}

/// Lists tools, the best for a query first: `{"tools": [...]}`.
pub fn tools(query: impl Text) -> Result<Value> {
    host::request("tools/list", json!({ "query": query.text() }))
}

/// Writes to the log, at a [`Level`](crate::Level) or its name.
pub fn log(level: impl LogLevel, message: impl Display) -> Result<()> {
    log_text(level.level_name(), message.to_string())
}

fn log_text(level: String, message: String) -> Result<()> {
    host::notify("log", &json!({ "level": level, "message": message }).to_string())
}

/// Reports progress. `total` and `message` may be `None`.
pub fn progress(current: impl Amount, total: impl Amount, message: impl Text) -> Result<()> {
    progress_values(current.amount().unwrap_or_default(), total.amount(), message.text())
}

fn progress_values(current: f64, total: Option<f64>, message: Option<String>) -> Result<()> {
    host::notify("progress", &json!({ "current": current, "total": total, "message": message }).to_string())
}

/// Asks the user to fill in a form, given as JSON Schema; gives what was filled in. Declining is an error.
pub fn ask(message: &str, schema: impl Serialize) -> Result<Value> {
    ask_value(message, serde_json::to_value(schema)?)
}

fn ask_value(message: &str, schema: Value) -> Result<Value> {
    let params = json!({ "message": message, "requestedSchema": schema });
    let mut reply = host::request("elicitation/create", params)?;
    match reply["action"].as_str() {
        Some("accept") => Ok(reply["content"].take()),
        action => Err(Error::new(format!("The user did not answer ({})", action.unwrap_or("no action")))),
    }
}

/// Asks the client's model; gives its text.
pub fn sample(prompt: &str) -> Result<String> {
    let message = json!({ "role": "user", "content": { "type": "text", "text": prompt } });
    let reply = host::request("sampling/createMessage", json!({ "messages": [message], "maxTokens": 1024 }))?;
    let blocks = match &reply["content"] {
        Value::Array(blocks) => blocks.iter().collect(),
        block => vec![block],
    };
    let texts: Vec<&str> = blocks.iter().filter_map(|block| block["text"].as_str()).collect();
    if texts.is_empty() {
        return Err(Error::new("The model's answer holds no text"));
    }
    Ok(texts.join("\n"))
}
