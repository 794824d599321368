//! `call_tool`: any tool by name, for clients whose tool list is not up to date.

use serde::Deserialize;
use skillz_engine::{CallFailure, CallRequest};
use skillz_json::Value;
use skillz_tool::{BUILTIN_NAMES, ErrorKind, ToolError};

use super::{Builtin, BuiltinCall, BuiltinOutcome, BuiltinReply, Hints};

pub(super) static BUILTIN: Builtin = Builtin::new(
    "call_tool",
    "Call a tool by name, also one that your tool list does not show (yet)",
    r#"{"type":"object","properties":{
        "tool_name":{"type":"string"},
        "arguments":{"type":"object"},
        "version":{"type":"string","description":"An older version"}
    },"required":["tool_name"]}"#,
    Hints::OpenWorld,
    |call| Box::pin(run(call)),
);

#[derive(Debug, Deserialize)]
#[expect(clippy::struct_field_names, reason = "the names are the protocol's")]
struct Arguments {
    tool_name: String,
    #[serde(default)]
    arguments: Value,
    #[serde(default)]
    version: Option<String>,
}

async fn run(call: BuiltinCall) -> BuiltinOutcome {
    let Arguments { tool_name, arguments, version } = call.read(&BUILTIN)?;
    if BUILTIN_NAMES.contains(&tool_name.as_str()) {
        return Err(ToolError::invalid(format!("`{tool_name}` is one of the server's own tools; call it directly")));
    }
    let request = CallRequest { tool_name, version, arguments, client: call.client };
    match call.engine.call(request).await {
        Ok(reply) => Ok(BuiltinReply::Tool(Box::new(reply))),
        Err(CallFailure::UnknownTool { message }) => Err(ToolError::new(ErrorKind::NotFound, message)),
    }
}
