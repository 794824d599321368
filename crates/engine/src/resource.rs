//! Resources as running tools see them.

use async_trait::async_trait;
use skillz_json::Value;
use skillz_tool::ToolError;

/// The server's resources, for the host requests `resources/list` and `resources/read`. Results of calls and
/// the history are never asked for.
#[async_trait]
pub trait ResourceSource: Send + Sync {
    /// All resources in MCP's form, `{"resources": [...]}`.
    fn list(&self) -> Value;
    /// One resource in MCP's form, `{"contents": [...]}`.
    async fn read(&self, uri: &str) -> Result<Value, ToolError>;
}
