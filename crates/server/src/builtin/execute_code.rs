//! `execute_code`: a program that calls tools as functions.

use super::{Builtin, BuiltinCall, BuiltinOutcome, BuiltinReply, Hints};

pub(super) static BUILTIN: Builtin = Builtin::new(
    "execute_code",
    "Run a program that calls tools as functions: Python `word_count(text=\"a b\")`, JavaScript `await word_count({text: \"a b\"})`. \
     Only what it prints and its last expression come back, so loop and filter here. `skillz.search(\"...\")`, \
     `skillz.describe(\"name\")` find tools",
    r#"{"type":"object","properties":{
        "code":{"type":"string"},
        "language":{"enum":["python","javascript","typescript"]},
        "tools":{"type":"array","items":{"type":"string"},"description":"Allow only these"},
        "timeout":{"type":"number","description":"Seconds"},
        "runtime":{"enum":["auto","embedded","process"]},
        "dependencies":{"type":"array","items":{"type":"string"}},
        "permissions":{"type":"object","description":"As a tool's"}
    },"required":["code"]}"#,
    Hints::OpenWorld,
    |call| Box::pin(run(call)),
);

async fn run(call: BuiltinCall) -> BuiltinOutcome {
    let request = call.read(&BUILTIN)?;
    call.engine.execute_code(request, call.client).await.map(BuiltinReply::Value)
}
