//! What a running tool may ask of the server.

use async_trait::async_trait;
use serde::{Deserialize, Serialize};
use skillz_json::{Map, Value};

use crate::ToolError;

/// Severity of a log message (RFC 5424, as in MCP).
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Default, Serialize, Deserialize)]
#[serde(rename_all = "lowercase")]
#[expect(missing_docs, reason = "the names are the standard's")]
pub enum LogLevel {
    Debug,
    #[default]
    Info,
    Notice,
    Warning,
    Error,
    Critical,
    Alert,
    Emergency,
}

/// How far a piece of work has come.
#[derive(Debug, Clone, PartialEq, Default)]
pub struct Progress {
    /// Grows with each report.
    pub current: f64,
    /// What `current` grows to, where it is known.
    pub total: Option<f64>,
    /// What is going on.
    pub message: Option<String>,
}

/// What the user did with a question.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "lowercase")]
pub enum AnswerAction {
    /// Sent the form.
    Accept,
    /// Said no.
    Decline,
    /// Closed it.
    Cancel,
}

/// The user's answer to a question.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
pub struct Answer {
    /// What the user did.
    pub action: AnswerAction,
    /// What was filled in, with [`AnswerAction::Accept`].
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub content: Option<Value>,
}

/// The server, as seen by one running call. Each request is made in that call's name: its memory is the
/// tool's own, an inner call runs one level deeper under its own permissions, progress carries the client's
/// token. Requests that wait for the client stop the call's clock. Dropping a future gives the request up.
#[async_trait]
pub trait Host: Send + Sync {
    /// Calls another tool; gives its structured value, or its text.
    async fn call_tool(&self, name: &str, arguments: Map<String, Value>) -> Result<Value, ToolError>;

    /// Lists tools as `{"tools": [...]}`, the best first where there is a query.
    async fn list_tools(&self, query: Option<&str>) -> Result<Value, ToolError>;

    /// Describes one tool in full.
    async fn describe_tool(&self, name: &str) -> Result<Value, ToolError>;

    /// Reads a key of the tool's memory.
    async fn memory_get(&self, key: &str) -> Result<Option<Value>, ToolError>;

    /// Writes a key of the tool's memory, for `ttl_seconds` where given.
    async fn memory_set(&self, key: &str, value: Value, ttl_seconds: Option<f64>) -> Result<(), ToolError>;

    /// Lists the keys of the tool's memory that start with `prefix`.
    async fn memory_list(&self, prefix: &str) -> Result<Vec<String>, ToolError>;

    /// Deletes a key of the tool's memory; says whether it was there.
    async fn memory_delete(&self, key: &str) -> Result<bool, ToolError>;

    /// Lists resources in MCP's form.
    async fn list_resources(&self) -> Result<Value, ToolError>;

    /// Reads a resource in MCP's form.
    async fn read_resource(&self, uri: &str) -> Result<Value, ToolError>;

    /// Asks the user (MCP elicitation).
    async fn ask_user(&self, message: &str, schema: Value) -> Result<Answer, ToolError>;

    /// Asks the client's model (MCP sampling); parameters and result are MCP's.
    async fn sample(&self, parameters: Value) -> Result<Value, ToolError>;

    /// Workspace roots as `{"roots": [...]}`.
    async fn roots(&self) -> Result<Value, ToolError>;

    /// The client session that the call was made in; `None` where that cannot be told.
    fn session(&self) -> Option<u64> {
        None
    }

    /// Reports progress, if the client asked for it.
    fn progress(&self, progress: Progress);

    /// Writes to the log.
    fn log(&self, level: LogLevel, message: &str, data: Option<Value>);
}
