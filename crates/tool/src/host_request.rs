//! Host requests in their wire form, JSON-RPC methods, the same for scripts, WASM and code.

use serde::{Deserialize, de::DeserializeOwned};
use skillz_json::{Map, Value, json};

use crate::{Answer, ErrorKind, Host, LogLevel, Progress, ToolError};

/// Why a request failed, with its JSON-RPC code.
#[derive(Debug, Clone, PartialEq)]
pub struct HostRequestError {
    /// JSON-RPC 2.0 error code.
    pub code: i64,
    /// What failed, and why.
    pub message: String,
    /// Machine-readable detail.
    pub data: Option<Value>,
}

const METHOD_NOT_FOUND: i64 = -32601;
const INVALID_PARAMS: i64 = -32602;
/// Of the range that JSON-RPC leaves to servers: the request was understood and failed.
const REQUEST_FAILED: i64 = -32000;

#[derive(Deserialize)]
struct MemoryKey {
    key: String,
}

#[derive(Deserialize)]
struct MemorySet {
    key: String,
    value: Value,
    #[serde(default)]
    ttl: Option<f64>,
}

#[derive(Deserialize)]
struct MemoryList {
    #[serde(default)]
    prefix: Option<String>,
}

#[derive(Deserialize)]
struct ResourceRead {
    uri: String,
}

#[derive(Deserialize)]
struct ToolsCall {
    name: String,
    #[serde(default)]
    arguments: Option<Map<String, Value>>,
}

#[derive(Deserialize)]
struct ToolsList {
    #[serde(default)]
    query: Option<String>,
}

#[derive(Deserialize)]
struct ToolsDescribe {
    name: String,
}

#[derive(Deserialize)]
struct Elicitation {
    message: String,
    #[serde(rename = "requestedSchema")]
    schema: Value,
}

#[derive(Deserialize)]
struct LogMessage {
    #[serde(default)]
    level: LogLevel,
    #[serde(default)]
    message: Option<String>,
    #[serde(default)]
    data: Option<Value>,
}

#[derive(Deserialize)]
struct ProgressMessage {
    #[serde(alias = "progress")]
    current: f64,
    #[serde(default)]
    total: Option<f64>,
    #[serde(default)]
    message: Option<String>,
}

/// Carries out one request of a running tool.
pub async fn dispatch_request(host: &dyn Host, method: &str, params: Value) -> Result<Value, HostRequestError> {
    match method {
        "memory/get" => {
            let MemoryKey { key } = read(method, params)?;
            let value = host.memory_get(&key).await?;
            Ok(json!({"found": value.is_some(), "value": value}))
        }
        "memory/set" => {
            let MemorySet { key, value, ttl } = read(method, params)?;
            host.memory_set(&key, value, ttl).await?;
            Ok(json!({"success": true}))
        }
        "memory/list" => {
            let MemoryList { prefix } = read(method, params)?;
            Ok(json!({"keys": host.memory_list(prefix.as_deref().unwrap_or_default()).await?}))
        }
        "memory/delete" => {
            let MemoryKey { key } = read(method, params)?;
            Ok(json!({"deleted": host.memory_delete(&key).await?}))
        }
        "resources/list" => Ok(host.list_resources().await?),
        "resources/read" => {
            let ResourceRead { uri } = read(method, params)?;
            Ok(host.read_resource(&uri).await?)
        }
        "tools/call" => {
            let ToolsCall { name, arguments } = read(method, params)?;
            Ok(json!({"output": host.call_tool(&name, arguments.unwrap_or_default()).await?}))
        }
        "tools/list" => {
            let ToolsList { query } = read(method, params)?;
            Ok(host.list_tools(query.as_deref()).await?)
        }
        "tools/describe" => {
            let ToolsDescribe { name } = read(method, params)?;
            Ok(host.describe_tool(&name).await?)
        }
        "elicitation/create" => {
            let Elicitation { message, schema } = read(method, params)?;
            let Answer { action, content } = host.ask_user(&message, schema).await?;
            Ok(json!({"action": action, "content": content}))
        }
        "sampling/createMessage" => Ok(host.sample(params).await?),
        "roots/list" => Ok(host.roots().await?),
        _ => Err(HostRequestError {
            code: METHOD_NOT_FOUND,
            message: format!("There is no host request `{}`", method.chars().take(80).collect::<String>()),
            data: None,
        }),
    }
}

/// Takes one notification of a running tool. Says whether it was one: unknown or malformed ones are dropped.
/// Stream chunks (`stream`, `stream/chunk`) are the runtime's own business and not taken here.
pub fn dispatch_notification(host: &dyn Host, method: &str, params: Value) -> bool {
    match method {
        "log" | "logging/message" | "notifications/message" => {
            let Ok(LogMessage { level, message, data }) = skillz_json::from_value(params) else { return false };
            host.log(level, message.as_deref().unwrap_or_default(), data);
            true
        }
        "progress" | "notifications/progress" => {
            let Ok(ProgressMessage { current, total, message }) = skillz_json::from_value(params) else { return false };
            host.progress(Progress { current, total, message });
            true
        }
        _ => false,
    }
}

/// Reads the parameters of a method; absent ones count as an empty object.
fn read<T: DeserializeOwned>(method: &str, params: Value) -> Result<T, HostRequestError> {
    let params = if params.is_null() { Value::Object(Map::new()) } else { params };
    skillz_json::from_value(params).map_err(|error| HostRequestError {
        code: INVALID_PARAMS,
        message: format!("The params of `{method}` are wrong: {error}"),
        data: None,
    })
}

impl From<ToolError> for HostRequestError {
    fn from(error: ToolError) -> Self {
        let code = if error.kind == ErrorKind::InvalidInput { INVALID_PARAMS } else { REQUEST_FAILED };
        Self { code, message: error.text(), data: error.data }
    }
}
