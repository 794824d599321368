//! `memory`: what tools keep between calls, and a place of the client's own beside it.

use serde::Deserialize;
use skillz_json::{Value, json};
use skillz_tool::{ErrorKind, MemoryStore, StoreError, ToolError};

use super::{Builtin, BuiltinCall, BuiltinOutcome, BuiltinReply, Hints};

pub(super) static BUILTIN: Builtin = Builtin::new(
    "memory",
    "Durable key-value memory, a namespace for each tool (`tool_name`; without it your own). `ttl` in seconds; update merges objects; \
     list pages: give its `next_key` as `key`",
    r#"{"type":"object","properties":{
        "action":{"enum":["store","get","update","list","delete","stats","clear"]},
        "tool_name":{"type":"string"},
        "key":{"type":"string"},
        "value":{},
        "ttl":{"type":"number"},
        "prefix":{"type":"string"}
    },"required":["action"]}"#,
    Hints::Destroys,
    |call| Box::pin(run(call)),
);

/// The namespace of callers that name no tool. No tool can have this name.
const OWN_NAMESPACE: &str = "@client";
/// Keys on one page.
const PAGE: usize = 500;
/// Longest namespace, in bytes: that of a tool's name.
const NAMESPACE_LENGTH: usize = 64;

#[derive(Debug, Deserialize)]
struct Arguments {
    action: Action,
    #[serde(default)]
    tool_name: Option<String>,
    #[serde(default)]
    key: Option<String>,
    /// `null` is a value, absence is none.
    #[serde(default, deserialize_with = "present")]
    value: Option<Value>,
    #[serde(default)]
    ttl: Option<f64>,
    #[serde(default)]
    prefix: Option<String>,
}

#[derive(Debug, Clone, Copy, Deserialize)]
#[serde(rename_all = "lowercase")]
enum Action {
    Store,
    Get,
    Update,
    List,
    Delete,
    Stats,
    Clear,
}

async fn run(call: BuiltinCall) -> BuiltinOutcome {
    let arguments: Arguments = call.read(&BUILTIN)?;
    perform(call.engine.memory().as_ref(), arguments).await.map(BuiltinReply::Value)
}

async fn perform(memory: &dyn MemoryStore, arguments: Arguments) -> Result<Value, ToolError> {
    let Arguments { action, tool_name, key, value, ttl, prefix } = arguments;
    let namespace = tool_name.as_deref().unwrap_or(OWN_NAMESPACE);
    if namespace.is_empty() || namespace.len() > NAMESPACE_LENGTH {
        return Err(ToolError::invalid("`tool_name` has 1 to 64 bytes"));
    }
    let missing = |what: &str| ToolError::invalid(format!("`memory` with this action needs `{what}`"));
    let key = || key.as_deref().ok_or_else(|| missing("key"));
    match action {
        Action::Store => {
            let value = value.as_ref().ok_or_else(|| missing("value"))?;
            let expires_at = memory.set(namespace, key()?, value, ttl).await.map_err(failure)?;
            Ok(match expires_at {
                Some(expires_at) => json!({"stored": true, "expires_at": expires_at}),
                None => json!({"stored": true}),
            })
        }
        Action::Get => {
            let value = memory.get(namespace, key()?).await.map_err(failure)?;
            Ok(json!({"found": value.is_some(), "value": value}))
        }
        Action::Update => {
            let Some(Value::Object(patch)) = &value else {
                return Err(ToolError::invalid(
                    "`memory` with this action needs an object as `value`, which is merged into the stored one",
                ));
            };
            let merged = memory.update(namespace, key()?, patch, ttl).await.map_err(failure)?;
            Ok(json!({"updated": true, "value": merged}))
        }
        Action::List => {
            let prefix = prefix.as_deref().unwrap_or_default();
            let mut keys = memory.list(namespace, prefix, key().ok(), PAGE + 1).await.map_err(failure)?;
            let more = keys.len() > PAGE;
            keys.truncate(PAGE);
            Ok(match keys.last() {
                Some(last) if more => json!({"keys": keys, "next_key": last}),
                _ => json!({"keys": keys}),
            })
        }
        Action::Delete => Ok(json!({"deleted": memory.delete(namespace, key()?).await.map_err(failure)?})),
        Action::Stats => Ok(json!({"tools": memory.stats(tool_name.as_deref()).await.map_err(failure)?})),
        Action::Clear => Ok(json!({"cleared": memory.clear(namespace).await.map_err(failure)?})),
    }
}

#[expect(clippy::needless_pass_by_value, reason = "it maps errors")]
fn failure(error: StoreError) -> ToolError {
    let kind = match error {
        StoreError::Invalid(_) => ErrorKind::InvalidInput,
        StoreError::Failed(_) => ErrorKind::Internal,
    };
    ToolError::new(kind, error.to_string())
}

fn present<'de, D: serde::Deserializer<'de>>(deserializer: D) -> Result<Option<Value>, D::Error> {
    Value::deserialize(deserializer).map(Some)
}
