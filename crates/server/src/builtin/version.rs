//! `version`: the versions of a tool, what changed between them, and the way back.

use serde::Deserialize;
use skillz_engine::VersionAction;

use super::{Builtin, BuiltinCall, BuiltinOutcome, BuiltinReply, Hints};

pub(super) static BUILTIN: Builtin = Builtin::new(
    "version",
    "Versions of a tool: list, info, diff (`version` to `to`), rollback (deleted tools too)",
    r#"{"type":"object","properties":{
        "action":{"enum":["list","info","diff","rollback"]},
        "tool_name":{"type":"string"},
        "version":{"type":"string"},
        "to":{"type":"string"}
    },"required":["action","tool_name"]}"#,
    Hints::Changes,
    |call| Box::pin(run(call)),
);

#[derive(Debug, Deserialize)]
struct Arguments {
    action: Action,
    tool_name: String,
    #[serde(default)]
    version: Option<String>,
    #[serde(default)]
    to: Option<String>,
}

#[derive(Debug, Deserialize)]
#[serde(rename_all = "lowercase")]
enum Action {
    List,
    Info,
    Diff,
    Rollback,
}

async fn run(call: BuiltinCall) -> BuiltinOutcome {
    let Arguments { action, tool_name, version, to } = call.read(&BUILTIN)?;
    let action = match action {
        Action::List => VersionAction::List,
        Action::Info => VersionAction::Info { version },
        Action::Diff => VersionAction::Diff { version, to },
        Action::Rollback => VersionAction::Rollback { version },
    };
    call.engine.versions(action, &tool_name, call.client).await.map(BuiltinReply::Value)
}
