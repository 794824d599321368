//! `list_tools`: what there is, and the best tool for a task.

use super::{Builtin, BuiltinCall, BuiltinOutcome, BuiltinReply, Hints};

pub(super) static BUILTIN: Builtin = Builtin::new(
    "list_tools",
    "List the tools made here, or find them: `query` says in plain words what you need, best match first",
    r#"{"type":"object","properties":{
        "query":{"type":"string"},
        "kind":{"enum":["wasm","script","pipeline","mcp"]},
        "tag":{"type":"string"},
        "detail":{"enum":["names","summary","signature","full"]},
        "limit":{"type":"integer"},
        "cursor":{"type":"string"}
    }}"#,
    Hints::ReadOnly,
    |call| Box::pin(run(call)),
);

async fn run(call: BuiltinCall) -> BuiltinOutcome {
    let request = call.read(&BUILTIN)?;
    call.engine.list(request).await.map(BuiltinReply::Value)
}
