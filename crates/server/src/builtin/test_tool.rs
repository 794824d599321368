//! `test_tool`: runs the examples that are stored with tools.

use serde::Deserialize;

use super::{Builtin, BuiltinCall, BuiltinOutcome, BuiltinReply, Hints};

pub(super) static BUILTIN: Builtin = Builtin::new(
    "test_tool",
    "Run the stored examples of a tool, or of all tools",
    r#"{"type":"object","properties":{"tool_name":{"type":"string"}}}"#,
    Hints::OpenWorld,
    |call| Box::pin(run(call)),
);

#[derive(Debug, Deserialize)]
struct Arguments {
    #[serde(default)]
    tool_name: Option<String>,
}

async fn run(call: BuiltinCall) -> BuiltinOutcome {
    let Arguments { tool_name } = call.read(&BUILTIN)?;
    call.engine.test(tool_name.as_deref(), call.client).await.map(BuiltinReply::Value)
}
