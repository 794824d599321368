//! `import_mcp`: tools of other MCP servers, which are then tools like all others.

use std::collections::BTreeMap;

use serde::{Deserialize, Deserializer, de::Error};
use skillz_engine::{ServerAction, ServerRequest};
use skillz_json::{Map, Value};
use skillz_tool::ServerDefinition;

use super::{Builtin, BuiltinCall, BuiltinOutcome, BuiltinReply, Hints};

pub(super) static BUILTIN: Builtin = Builtin::new(
    "import_mcp",
    "Add another MCP server (`command` or `url`); its tools become <name>_<tool>. `$VAR` in env and headers is expanded; pin holds \
     changed tools back until refresh",
    r#"{"type":"object","properties":{
        "name":{"type":"string"},
        "command":{"type":"string"},
        "args":{"type":"array","items":{"type":"string"}},
        "env":{"type":"object"},
        "url":{"type":"string"},
        "headers":{"type":"object"},
        "description":{"type":"string"},
        "pin":{"type":"boolean"},
        "sandbox":{"type":"boolean"},
        "overwrite":{"type":"boolean"},
        "action":{"enum":["add","remove","list","refresh"]}
    },"required":["name"]}"#,
    Hints::OpenWorld,
    |call| Box::pin(run(call)),
);

#[derive(Deserialize)]
struct Arguments {
    /// Every action needs it but the list, which shows all servers without it.
    #[serde(default)]
    name: Option<String>,
    #[serde(default)]
    command: Option<String>,
    #[serde(default)]
    args: Vec<String>,
    #[serde(default, deserialize_with = "texts")]
    env: BTreeMap<String, String>,
    #[serde(default)]
    url: Option<String>,
    #[serde(default, deserialize_with = "texts")]
    headers: BTreeMap<String, String>,
    #[serde(default)]
    description: Option<String>,
    #[serde(default)]
    pin: bool,
    #[serde(default)]
    sandbox: bool,
    #[serde(default)]
    overwrite: bool,
    #[serde(default)]
    action: ServerAction,
}

async fn run(call: BuiltinCall) -> BuiltinOutcome {
    let arguments: Arguments = call.read(&BUILTIN)?;
    let request = ServerRequest {
        action: arguments.action,
        name: arguments.name,
        definition: ServerDefinition {
            command: arguments.command,
            args: arguments.args,
            env: arguments.env,
            url: arguments.url,
            headers: arguments.headers,
            description: arguments.description,
            pin: arguments.pin,
            sandbox: arguments.sandbox,
        },
        overwrite: arguments.overwrite,
    };
    call.engine.import_server(request, call.client).await.map(BuiltinReply::Value)
}

/// An object of texts; models write numbers and switches without quotes.
fn texts<'de, D: Deserializer<'de>>(deserializer: D) -> Result<BTreeMap<String, String>, D::Error> {
    let members = Map::<String, Value>::deserialize(deserializer)?;
    let texts = members.into_iter().map(|(name, value)| match value {
        Value::String(text) => Ok((name, text)),
        Value::Number(_) | Value::Bool(_) => Ok((name, value.to_string())),
        // The value may be a secret, so it is not shown.
        _ => Err(D::Error::custom(format!("the value of `{name}` is no text"))),
    });
    texts.collect()
}
