//! `delete_tool`: takes a tool out of service; its versions stay in the trash.

use serde::Deserialize;

use super::{Builtin, BuiltinCall, BuiltinOutcome, BuiltinReply, Hints};

pub(super) static BUILTIN: Builtin = Builtin::new(
    "delete_tool",
    "Delete a tool; `version` rollback brings it back",
    r#"{"type":"object","properties":{"tool_name":{"type":"string"}},"required":["tool_name"]}"#,
    Hints::Destroys,
    |call| Box::pin(run(call)),
);

#[derive(Debug, Deserialize)]
struct Arguments {
    tool_name: String,
}

async fn run(call: BuiltinCall) -> BuiltinOutcome {
    let Arguments { tool_name } = call.read(&BUILTIN)?;
    BuiltinReply::of(&call.engine.delete(&tool_name).await?)
}
