//! A host for unit tests that are not about the host.

use async_trait::async_trait;
use skillz_json::{Map, Value};
use skillz_tool::{Answer, Host, LogLevel, Progress, ToolError};

/// Refuses every request and hears nothing.
pub(crate) struct SilentHost;

fn refused<T>() -> Result<T, ToolError> {
    Err(ToolError::internal("This host does nothing"))
}

#[async_trait]
impl Host for SilentHost {
    async fn call_tool(&self, _name: &str, _arguments: Map<String, Value>) -> Result<Value, ToolError> {
        refused()
    }

    async fn list_tools(&self, _query: Option<&str>) -> Result<Value, ToolError> {
        refused()
    }

    async fn describe_tool(&self, _name: &str) -> Result<Value, ToolError> {
        refused()
    }

    async fn memory_get(&self, _key: &str) -> Result<Option<Value>, ToolError> {
        refused()
    }

    async fn memory_set(&self, _key: &str, _value: Value, _ttl_seconds: Option<f64>) -> Result<(), ToolError> {
        refused()
    }

    async fn memory_list(&self, _prefix: &str) -> Result<Vec<String>, ToolError> {
        refused()
    }

    async fn memory_delete(&self, _key: &str) -> Result<bool, ToolError> {
        refused()
    }

    async fn list_resources(&self) -> Result<Value, ToolError> {
        refused()
    }

    async fn read_resource(&self, _uri: &str) -> Result<Value, ToolError> {
        refused()
    }

    async fn ask_user(&self, _message: &str, _schema: Value) -> Result<Answer, ToolError> {
        refused()
    }

    async fn sample(&self, _parameters: Value) -> Result<Value, ToolError> {
        refused()
    }

    async fn roots(&self) -> Result<Value, ToolError> {
        refused()
    }

    fn progress(&self, _progress: Progress) {}

    fn log(&self, _level: LogLevel, _message: &str, _data: Option<Value>) {}
}
