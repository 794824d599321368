//! One line of the JSON-RPC that scripts speak.

use serde::{Deserialize, Deserializer, Serialize};
use skillz_json::Value;

/// What a line that a script printed is.
#[derive(Debug, Clone, PartialEq)]
pub(crate) enum Line {
    /// A host request, with the id to answer with.
    Request { id: Value, method: String, params: Value },
    /// A notification.
    Notification { method: String, params: Value },
    /// The reply to the call.
    Reply(Reply),
    /// Anything else: printed text.
    Text,
}

/// The script's reply to the call.
#[derive(Debug, Clone, PartialEq)]
pub(crate) struct Reply {
    /// The result, or the error.
    pub(crate) result: Result<Value, ReplyError>,
    /// The worker says that it must not be used again.
    pub(crate) spent: bool,
}

/// `error` of a reply. Lenient, since scripts write it by hand.
#[derive(Debug, Clone, PartialEq, Deserialize)]
pub(crate) struct ReplyError {
    #[serde(default)]
    pub(crate) message: Option<String>,
    #[serde(default)]
    pub(crate) data: Option<Value>,
}

#[derive(Deserialize)]
struct Message {
    jsonrpc: String,
    #[serde(default, deserialize_with = "present")]
    id: Option<Value>,
    #[serde(default)]
    method: Option<String>,
    #[serde(default)]
    params: Value,
    #[serde(default, deserialize_with = "present")]
    result: Option<Value>,
    #[serde(default)]
    error: Option<Value>,
    #[serde(default)]
    spent: bool,
}

/// The id that every call has.
pub(crate) const CALL_ID: u64 = 1;

/// A value as a line of JSON. Values of ours and what holds them always serialise.
pub(crate) fn line(value: &impl Serialize) -> Vec<u8> {
    let mut line = serde_json::to_vec(value).unwrap_or_default();
    line.push(b'\n');
    line
}

/// Reads one line. What is no JSON-RPC 2.0, or the reply to something that was not asked, is text.
pub(crate) fn parse(line: &[u8]) -> Line {
    let trimmed = line.trim_ascii();
    // Most printed lines are no messages; they are told apart without parsing.
    if !trimmed.starts_with(b"{") || !contains(trimmed, b"\"jsonrpc\"") {
        return Line::Text;
    }
    let message: Message = match serde_json::from_slice(trimmed) {
        Ok(message) => message,
        Err(_) => match serde_json::from_str(&String::from_utf8_lossy(trimmed)) {
            Ok(message) => message,
            Err(_) => return Line::Text,
        },
    };
    if message.jsonrpc != "2.0" {
        return Line::Text;
    }
    match (message.method, message.id) {
        // The call itself, printed back by a program such as `cat`.
        (Some(method), _) if method == "execute" => Line::Text,
        (Some(method), Some(id)) => Line::Request { id, method, params: message.params },
        (Some(method), None) => Line::Notification { method, params: message.params },
        (None, id) if is_call_id(id.as_ref()) => reply(message.result, message.error, message.spent),
        (None, _) => Line::Text,
    }
}

/// What is wrong with a line that is meant as the reply to the call and is no JSON.
pub(crate) fn broken_reply(line: &[u8]) -> Option<serde_json::Error> {
    let line = line.trim_ascii();
    let is_meant = line.starts_with(b"{") && contains(line, b"\"jsonrpc\"") && contains(line, b"\"id\"");
    if !is_meant || !(contains(line, b"\"result\"") || contains(line, b"\"error\"")) {
        return None;
    }
    serde_json::from_slice::<Value>(line).err()
}

fn reply(result: Option<Value>, error: Option<Value>, spent: bool) -> Line {
    let result = match (error, result) {
        (Some(Value::Null) | None, Some(result)) => Ok(result),
        (Some(Value::String(message)), _) => Err(ReplyError { message: Some(message), data: None }),
        (Some(error), _) => {
            Err(skillz_json::from_value(error.clone()).unwrap_or(ReplyError { message: None, data: Some(error) }))
        }
        (None, None) => return Line::Text,
    };
    Line::Reply(Reply { result, spent })
}

/// Scripts send the id back as they got it, as text, as a float, or not at all.
fn is_call_id(id: Option<&Value>) -> bool {
    match id {
        None | Some(Value::Null) => true,
        Some(Value::Number(number)) => number.as_f64().is_some_and(|number| (number - CALL_ID as f64).abs() < f64::EPSILON),
        Some(Value::String(text)) => text.trim() == "1",
        Some(_) => false,
    }
}

fn contains(haystack: &[u8], needle: &[u8]) -> bool {
    haystack.windows(needle.len()).any(|window| window == needle)
}

/// Keeps an explicit `null` apart from an absent field.
fn present<'de, D: Deserializer<'de>>(deserializer: D) -> Result<Option<Value>, D::Error> {
    Value::deserialize(deserializer).map(Some)
}

#[cfg(test)]
mod tests {
    use skillz_json::json;

    use super::*;

    fn result(line: &str) -> Result<Value, Option<String>> {
        match parse(line.as_bytes()) {
            Line::Reply(reply) => reply.result.map_err(|error| error.message),
            other => panic!("{line} is {other:?}"),
        }
    }

    #[test]
    fn replies_are_taken_in_every_form_that_scripts_write() {
        for id in ["1", "\"1\"", "1.0", "null"] {
            assert_eq!(result(&format!(r#"{{"jsonrpc":"2.0","id":{id},"result":{{"a":1}}}}"#)), Ok(json!({"a": 1})));
        }
        assert_eq!(result(r#" {"result": null, "jsonrpc": "2.0"} "#), Ok(Value::Null));
        assert_eq!(result(r#"{"jsonrpc":"2.0","id":1,"result":5,"error":null}"#), Ok(json!(5)));
        assert_eq!(result(r#"{"jsonrpc":"2.0","id":1,"error":{"code":-1,"message":"no"}}"#), Err(Some("no".into())));
        assert_eq!(result(r#"{"jsonrpc":"2.0","id":1,"error":"no"}"#), Err(Some("no".into())));
        assert_eq!(result(r#"{"jsonrpc":"2.0","id":1,"error":[1]}"#), Err(None));
    }

    #[test]
    fn requests_keep_their_ids_and_the_rest_is_text() {
        let line = r#"{"jsonrpc":"2.0","id":"a7","method":"memory/get","params":{"key":"k"}}"#;
        let request = Line::Request { id: json!("a7"), method: "memory/get".into(), params: json!({"key": "k"}) };
        assert_eq!(parse(line.as_bytes()), request);
        let line = r#"{"jsonrpc":"2.0","method":"log","params":{"message":"m"}}"#;
        assert!(matches!(parse(line.as_bytes()), Line::Notification { .. }));
        for text in [
            "",
            "hello",
            "{",
            "{}",
            "[1]",
            "{\"jsonrpc\":\"1.0\",\"id\":1,\"result\":1}",
            "{\"jsonrpc\":\"2.0\",\"id\":7,\"result\":1}",
            "{\"jsonrpc\":\"2.0\"}",
            "{\"result\":1,\"id\":1}",
            "{\"jsonrpc\":\"2.0\",\"id\":1,\"method\":\"execute\",\"params\":{}}",
            "x {\"jsonrpc\":\"2.0\",\"id\":1,\"result\":1}",
            "{\"jsonrpc\":",
        ] {
            assert_eq!(parse(text.as_bytes()), Line::Text, "{text}");
        }
        assert!(matches!(parse(b"{\"jsonrpc\":\"2.0\",\"id\":1,\"result\":\"\xff\"}"), Line::Reply(_)));
    }
}
