//! Requests that the SDK takes for unknown: those that are, and known ones whose parameters make no sense.

#![expect(deprecated, reason = "older clients still use what the newest protocol has dropped")]

use rmcp::{
    ErrorData,
    model::{
        CallToolRequestParams, CompleteRequestParams, CustomRequest, ErrorCode, GetPromptRequestParams,
        ReadResourceRequestParams, SetLevelRequestParams,
    },
};
use serde_json::{Value, json};

use crate::schema_form::Form;

/// Methods of the protocol that have parameters.
const METHODS: [&str; 19] = [
    "completion/complete",
    "initialize",
    "logging/setLevel",
    "prompts/get",
    "prompts/list",
    "resources/list",
    "resources/read",
    "resources/subscribe",
    "resources/templates/list",
    "resources/unsubscribe",
    "server/discover",
    "skills/get",
    "skills/list",
    "subscriptions/listen",
    "tasks/cancel",
    "tasks/get",
    "tasks/update",
    "tools/call",
    "tools/list",
];

/// Methods that the newest protocol has dropped.
const DROPPED: [&str; 5] = ["initialize", "logging/setLevel", "ping", "resources/subscribe", "resources/unsubscribe"];

/// The error for such a request.
pub(crate) fn refusal(request: CustomRequest, form: Form) -> ErrorData {
    let CustomRequest { method, params, .. } = request;
    let known = METHODS.contains(&method.as_str()) && !(form == Form::Modern && DROPPED.contains(&method.as_str()));
    if known {
        return ErrorData::invalid_params(malformed(&method, params), None);
    }
    let shown: String = method.chars().take(80).collect();
    ErrorData::new(ErrorCode::METHOD_NOT_FOUND, format!("There is no method `{shown}`"), None)
}

/// What is wrong with parameters that the SDK could not read.
fn malformed(method: &str, params: Option<Value>) -> String {
    let params = params.unwrap_or_else(|| json!({}));
    let reason = match method {
        "tools/call" => serde_json::from_value::<CallToolRequestParams>(params).err(),
        "prompts/get" => serde_json::from_value::<GetPromptRequestParams>(params).err(),
        "resources/read" => serde_json::from_value::<ReadResourceRequestParams>(params).err(),
        "completion/complete" => serde_json::from_value::<CompleteRequestParams>(params).err(),
        "logging/setLevel" => serde_json::from_value::<SetLevelRequestParams>(params).err(),
        _ => None,
    };
    match reason {
        Some(reason) => format!("The params of `{method}` are wrong: {reason}"),
        None => format!("The params of `{method}` are wrong"),
    }
}
