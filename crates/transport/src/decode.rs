//! One JSON text to MCP messages, or to the error that answers it.
//!
//! The method picks the type of the parameters, so a mistake in them is told as what it is (-32602 with the
//! field at fault) and large arguments are not tried against every other method first.

use rmcp::model::{
    ClientJsonRpcMessage, ClientNotification, ClientRequest, ClientResult, CustomNotification, CustomRequest, CustomResult,
    ErrorData, Extensions, GetExtensions, InitializedNotification, JsonRpcMessage, Notification, NotificationMetaObject,
    PingRequest, Request, RequestId, RequestMetaObject, RequestOptionalParam, RootsListChangedNotification,
};
use serde::{
    Deserialize,
    de::{DeserializeOwned, IgnoredAny},
};
use serde_json::{Map, Value};
use skillz_json::{Fault, ParseError, wire};

/// Most levels of a message: those of a value, and of what is around it.
const MOST_DEPTH: usize = skillz_json::MOST_DEPTH + 3;
/// Where a request of the stateless protocol says so.
const PROTOCOL_VERSION: &str = "io.modelcontextprotocol/protocolVersion";

/// Why a message was refused, and whom to tell.
#[derive(Debug, Clone, PartialEq)]
pub(crate) struct Refusal {
    /// The request's id, where one could be read.
    pub(crate) id: Option<RequestId>,
    /// The error for the client.
    pub(crate) error: ErrorData,
}

/// What one line holds.
#[derive(Debug)]
pub(crate) enum Decoded {
    /// One message.
    Message(Box<ClientJsonRpcMessage>),
    /// Several in an array.
    Batch(Vec<Result<ClientJsonRpcMessage, Refusal>>),
    /// A message that asks for no answer and cannot be used.
    Nothing,
}

impl Refusal {
    fn invalid(id: Option<RequestId>, message: impl Into<String>) -> Self {
        Self { id, error: ErrorData::invalid_request(message.into(), None) }
    }

    /// The refusal as a JSON-RPC error response; `id` is null where there is none.
    pub(crate) fn into_value(self) -> Value {
        serde_json::json!({"jsonrpc": "2.0", "id": self.id.map(RequestId::into_json_value), "error": self.error})
    }
}

/// Reads one line.
pub(crate) fn decode_line(line: &[u8]) -> Result<Decoded, Refusal> {
    let value = read(line)?;
    let Value::Array(elements) = value else { return decode_value(value) };
    if elements.is_empty() {
        return Err(Refusal::invalid(None, "The batch is empty"));
    }
    let mut batch = Vec::with_capacity(elements.len());
    for element in elements {
        match decode_value(element) {
            Ok(Decoded::Message(message)) => batch.push(Ok(*message)),
            Ok(_) => {}
            Err(refusal) => batch.push(Err(refusal)),
        }
    }
    Ok(Decoded::Batch(batch))
}

/// A text as values that keep their numbers on the way through the SDK, which would round them.
pub(crate) fn read(line: &[u8]) -> Result<Value, Refusal> {
    let line = line.strip_prefix(b"\xef\xbb\xbf").unwrap_or(line);
    let Ok(text) = std::str::from_utf8(line) else { return Err(unreadable(line, "The message is not UTF-8".to_owned())) };
    let (value, faults) = skillz_json::parse_within(text, MOST_DEPTH).map_err(|error| unreadable(line, explain(&error)))?;
    let mut value = wire::enter(value);
    refuse_faulty_arguments(&mut value, &faults);
    Ok(value)
}

/// Puts what is wrong with arguments in their place, so that whoever takes the call can say it: members of one name, and
/// whole numbers of more digits than are kept.
fn refuse_faulty_arguments(message: &mut Value, faults: &[Fault]) {
    let faults: Vec<String> = faults
        .iter()
        .filter_map(|fault| Some(format!("`{}`: {}", fault.path.strip_prefix("/params/arguments")?, fault.message)))
        .collect();
    if let (false, Some(arguments)) = (faults.is_empty(), message.pointer_mut("/params/arguments")) {
        *arguments = wire::enter_refusal(faults.join("\n- "));
    }
}

fn explain(error: &ParseError) -> String {
    if error.is_out_of_bounds {
        format!("The message nests deeper than {MOST_DEPTH} levels")
    } else {
        format!("The message is not valid JSON: {error}")
    }
}

/// The error for a text that cannot be read, with the request's id where it can be found.
fn unreadable(line: &[u8], reason: String) -> Refusal {
    /// Skipped values are not built, so any depth and any escape passes here.
    #[derive(Deserialize)]
    struct Envelope {
        #[serde(default)]
        id: Option<RequestId>,
        #[expect(dead_code, reason = "tells a request from a response")]
        method: IgnoredAny,
    }
    let id = serde_json::from_slice::<Envelope>(line).ok().and_then(|envelope| envelope.id);
    Refusal { id, error: ErrorData::parse_error(reason, None) }
}

fn decode_value(value: Value) -> Result<Decoded, Refusal> {
    let Value::Object(mut object) = value else {
        return Err(Refusal::invalid(None, "A JSON-RPC message is an object (or, in protocol 2025-03-26, an array of objects)"));
    };
    let (method, result, error) = (object.remove("method"), object.remove("result"), object.remove("error"));
    let id = match object.remove("id") {
        None => None,
        Some(id) => match serde_json::from_value::<RequestId>(id) {
            Ok(id) => Some(id),
            // A null id is what a peer answers with to a message it could not read: nobody waits for that.
            Err(_) if method.is_none() => return Ok(Decoded::Nothing),
            Err(_) => return Err(Refusal::invalid(None, "The `id` of a request is a string or a whole number")),
        },
    };
    if object.get("jsonrpc").and_then(Value::as_str) != Some("2.0") {
        return if method.is_some() || id.is_none() {
            Err(Refusal::invalid(id, "The message lacks `\"jsonrpc\": \"2.0\"`"))
        } else {
            Ok(Decoded::Nothing)
        };
    }
    let message = match (method, id, result, error) {
        (Some(Value::String(method)), Some(id), None, None) => {
            let params = params_of(&mut object).map_err(|error| Refusal { id: Some(id.clone()), error })?;
            let request = decode_request(&method, params).map_err(|error| Refusal { id: Some(id.clone()), error })?;
            JsonRpcMessage::request(request, id)
        }
        (Some(Value::String(method)), None, None, None) => {
            let Ok(params) = params_of(&mut object) else { return Ok(Decoded::Nothing) };
            let Some(notification) = decode_notification(&method, params) else { return Ok(Decoded::Nothing) };
            JsonRpcMessage::notification(notification)
        }
        (None, Some(id), Some(result), None) => {
            JsonRpcMessage::response(ClientResult::CustomResult(CustomResult::new(result)), id)
        }
        (None, Some(id), None, Some(error)) => {
            let error = serde_json::from_value(error)
                .unwrap_or_else(|error| ErrorData::internal_error(format!("The client's error is malformed: {error}"), None));
            JsonRpcMessage::error(error, Some(id))
        }
        (None, None, ..) => {
            return Err(Refusal::invalid(None, "The message is neither a request nor a notification nor a response"));
        }
        (_, id, ..) => return Err(Refusal::invalid(id, "The message mixes the fields of a request and of a response")),
    };
    Ok(Decoded::Message(Box::new(message)))
}

/// Takes `params`, which are an object, null or absent.
fn params_of(object: &mut Map<String, Value>) -> Result<Option<Map<String, Value>>, ErrorData> {
    match object.remove("params") {
        None | Some(Value::Null) => Ok(None),
        Some(Value::Object(params)) => Ok(Some(params)),
        Some(_) => Err(ErrorData::invalid_params("`params` is an object in MCP", None)),
    }
}

/// Parameters without `_meta`, which travels in the message's extensions.
struct Params {
    rest: Option<Map<String, Value>>,
    meta: Option<Map<String, Value>>,
}

impl Params {
    fn split(params: Option<Map<String, Value>>) -> Result<Self, String> {
        let Some(mut rest) = params else { return Ok(Self { rest: None, meta: None }) };
        let meta = match rest.shift_remove("_meta") {
            None | Some(Value::Null) => None,
            Some(Value::Object(meta)) => Some(meta),
            Some(_) => return Err("`_meta` is an object".to_owned()),
        };
        Ok(Self { rest: Some(rest), meta })
    }

    fn read<T: DeserializeOwned>(&mut self) -> Result<T, String> {
        serde_json::from_value(Value::Object(self.rest.take().unwrap_or_default())).map_err(|error| error.to_string())
    }

    fn read_optional<T: DeserializeOwned>(&mut self) -> Result<Option<T>, String> {
        if self.rest.is_none() {
            return Ok(None);
        }
        self.read().map(Some)
    }
}

fn decode_request(method: &str, params: Option<Map<String, Value>>) -> Result<ClientRequest, ErrorData> {
    let wrong = |reason: String| ErrorData::invalid_params(format!("The params of `{method}` are wrong: {reason}"), None);
    let mut params = Params::split(params).map_err(wrong)?;
    let built = build_request(method, &mut params);
    // The stateless protocol has fewer methods, so what this one's parameters should be is not known here.
    let stateless = params.meta.as_ref().is_some_and(|meta| meta.contains_key(PROTOCOL_VERSION));
    let mut request = match built {
        Err(_) if stateless && !matches!(method, "tools/call" | "prompts/get" | "resources/read") => {
            ClientRequest::from(CustomRequest::new(method, None))
        }
        built => built.map_err(wrong)?,
    };
    if let Some(meta) = params.meta {
        request.extensions_mut().insert(RequestMetaObject::from(meta));
    }
    Ok(request)
}

fn required<M: Default, P: DeserializeOwned>(params: &mut Params) -> Result<Request<M, P>, String> {
    params.read().map(Request::new)
}

fn optional<M: Default, P: DeserializeOwned>(params: &mut Params) -> Result<RequestOptionalParam<M, P>, String> {
    Ok(RequestOptionalParam { method: M::default(), params: params.read_optional()?, extensions: Extensions::default() })
}

fn build_request(method: &str, params: &mut Params) -> Result<ClientRequest, String> {
    Ok(match method {
        "initialize" => ClientRequest::InitializeRequest(required(params)?),
        "server/discover" => ClientRequest::DiscoverRequest(required(params)?),
        "ping" => ClientRequest::from(PingRequest::default()),
        "tools/list" => ClientRequest::ListToolsRequest(optional(params)?),
        "tools/call" => ClientRequest::CallToolRequest(required(params)?),
        "resources/list" => ClientRequest::ListResourcesRequest(optional(params)?),
        "resources/templates/list" => ClientRequest::ListResourceTemplatesRequest(optional(params)?),
        "resources/read" => ClientRequest::ReadResourceRequest(required(params)?),
        "resources/subscribe" => ClientRequest::SubscribeRequest(required(params)?),
        "resources/unsubscribe" => ClientRequest::UnsubscribeRequest(required(params)?),
        "resources/directory/read" => ClientRequest::ReadResourceDirectoryRequest(required(params)?),
        "subscriptions/listen" => ClientRequest::SubscriptionsListenRequest(required(params)?),
        "prompts/list" => ClientRequest::ListPromptsRequest(optional(params)?),
        "prompts/get" => ClientRequest::GetPromptRequest(required(params)?),
        "completion/complete" => ClientRequest::CompleteRequest(required(params)?),
        "logging/setLevel" => ClientRequest::SetLevelRequest(required(params)?),
        "tasks/get" => ClientRequest::GetTaskRequest(required(params)?),
        "tasks/update" => ClientRequest::UpdateTaskRequest(required(params)?),
        "tasks/cancel" => ClientRequest::CancelTaskRequest(required(params)?),
        "skills/list" => ClientRequest::ListSkillsRequest(optional(params)?),
        "skills/get" => ClientRequest::GetSkillRequest(required(params)?),
        _ => ClientRequest::from(CustomRequest::new(method, params.rest.take().map(Value::Object))),
    })
}

/// `None` for a known notification whose parameters make no sense: there is nobody to tell.
fn decode_notification(method: &str, params: Option<Map<String, Value>>) -> Option<ClientNotification> {
    let mut params = Params::split(params).ok()?;
    let mut notification = match method {
        "notifications/cancelled" => ClientNotification::CancelledNotification(Notification::new(params.read().ok()?)),
        "notifications/progress" => ClientNotification::ProgressNotification(Notification::new(params.read().ok()?)),
        "notifications/initialized" => ClientNotification::from(InitializedNotification::default()),
        "notifications/roots/list_changed" => ClientNotification::from(RootsListChangedNotification::default()),
        _ => ClientNotification::from(CustomNotification::new(method, params.rest.take().map(Value::Object))),
    };
    if let Some(meta) = params.meta {
        notification.extensions_mut().insert(NotificationMetaObject::from(meta));
    }
    Some(notification)
}

#[cfg(test)]
mod tests {
    use serde_json::json;

    use super::*;

    fn refused(line: &[u8]) -> (i32, Value, String) {
        let refusal = decode_line(line).expect_err(&String::from_utf8_lossy(line));
        let value = refusal.into_value();
        let code = value["error"]["code"].as_i64().expect("a code") as i32;
        (code, value["id"].clone(), value["error"]["message"].as_str().expect("a message").to_owned())
    }

    #[test]
    fn what_cannot_be_read_is_refused_with_the_id_where_there_is_one() {
        let deep =
            format!(r#"{{"jsonrpc":"2.0","id":7,"method":"tools/call","params":{}1{}}}"#, "[".repeat(5_000), "]".repeat(5_000));
        for (line, code, id, message) in [
            (&b"hello"[..], -32700, Value::Null, "not valid JSON"),
            (b"{", -32700, Value::Null, "not valid JSON"),
            (b"\xff\xfe{}", -32700, Value::Null, "not UTF-8"),
            (b"{\"jsonrpc\":\"2.0\",\"id\":1,\"method\":\"ping\",\"x\":\"\xff\"}", -32700, json!(1), "not UTF-8"),
            (deep.as_bytes(), -32700, json!(7), "131 levels"),
            (b"1", -32600, Value::Null, "is an object"),
            (b"null", -32600, Value::Null, "is an object"),
            (b"[]", -32600, Value::Null, "empty"),
            (b"{}", -32600, Value::Null, "jsonrpc"),
            (br#"{"id":1,"method":"ping"}"#, -32600, json!(1), "jsonrpc"),
            (br#"{"jsonrpc":"2.0"}"#, -32600, Value::Null, "neither"),
            (br#"{"jsonrpc":"2.0","id":null,"method":"ping"}"#, -32600, Value::Null, "`id`"),
            (br#"{"jsonrpc":"2.0","id":1.5,"method":"ping"}"#, -32600, Value::Null, "`id`"),
            (br#"{"jsonrpc":"2.0","id":{},"method":"ping"}"#, -32600, Value::Null, "`id`"),
            (br#"{"jsonrpc":"2.0","id":1,"method":2}"#, -32600, json!(1), "mixes"),
            (br#"{"jsonrpc":"2.0","id":1,"method":"ping","result":{}}"#, -32600, json!(1), "mixes"),
            (br#"{"jsonrpc":"2.0","id":1,"method":"tools/call","params":[1]}"#, -32602, json!(1), "`params`"),
            (br#"{"jsonrpc":"2.0","id":1,"method":"tools/call","params":{}}"#, -32602, json!(1), "missing field `name`"),
            (br#"{"jsonrpc":"2.0","id":1,"method":"tools/call"}"#, -32602, json!(1), "missing field `name`"),
            (
                br#"{"jsonrpc":"2.0","id":1,"method":"tools/call","params":{"name":"x","arguments":[1]}}"#,
                -32602,
                json!(1),
                "tools/call",
            ),
            (
                br#"{"jsonrpc":"2.0","id":1,"method":"tools/call","params":{"name":"x","arguments":"s"}}"#,
                -32602,
                json!(1),
                "tools/call",
            ),
            (br#"{"jsonrpc":"2.0","id":1,"method":"tools/list","params":{"_meta":3}}"#, -32602, json!(1), "_meta"),
            (br#"{"jsonrpc":"2.0","id":1,"method":"initialize","params":{}}"#, -32602, json!(1), "protocolVersion"),
        ] {
            let (seen_code, seen_id, seen_message) = refused(line);
            let shown = String::from_utf8_lossy(line.get(..80.min(line.len())).expect("in bounds"));
            assert_eq!((seen_code, &seen_id), (code, &id), "{shown}");
            assert!(seen_message.contains(message), "{shown}: {seen_message}");
        }
    }

    #[test]
    fn messages_nobody_waits_for_are_dropped() {
        for line in [
            &br#"{"jsonrpc":"2.0","method":"notifications/progress","params":{"x":1}}"#[..],
            br#"{"jsonrpc":"2.0","method":"notifications/cancelled","params":[1]}"#,
            br#"{"jsonrpc":"2.0","id":null,"error":{"code":-32700,"message":"x"}}"#,
            br#"{"id":4,"result":{}}"#,
        ] {
            assert!(matches!(decode_line(line), Ok(Decoded::Nothing)), "{}", String::from_utf8_lossy(line));
        }
    }

    #[test]
    fn a_call_keeps_its_numbers_and_its_meta() {
        let line = br#"{"jsonrpc":"2.0","id":1,"method":"tools/call","params":{"_meta":{"progressToken":"p"},"name":"x","arguments":{"n":9007199254740993}}}"#;
        let Ok(Decoded::Message(message)) = decode_line(line) else { panic!("decodes") };
        let ClientJsonRpcMessage::Request(request) = *message else { panic!("a request") };
        let ClientRequest::CallToolRequest(call) = request.request else { panic!("a call") };
        assert_eq!(call.params.arguments.as_ref().expect("given")["n"], json!(9_007_199_254_740_993_i64));
        assert!(call.extensions.get::<RequestMetaObject>().expect("given").get_progress_token().is_some());
        let null = br#"{"jsonrpc":"2.0","id":1,"method":"tools/call","params":{"name":"x","arguments":null}}"#;
        assert!(matches!(decode_line(null), Ok(Decoded::Message(_))));
    }

    #[test]
    fn a_batch_is_read_element_by_element() {
        let line = br#"[{"jsonrpc":"2.0","id":1,"method":"ping"},{"jsonrpc":"2.0","method":"notifications/initialized"},5]"#;
        let Ok(Decoded::Batch(batch)) = decode_line(line) else { panic!("a batch") };
        assert_eq!(batch.len(), 3);
        assert!(batch[0].is_ok() && batch[1].is_ok() && batch[2].is_err());
    }
}
