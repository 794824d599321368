//! What the engine keeps, as traits: the database stands behind them.

use async_trait::async_trait;
use serde::{Deserialize, Serialize};
use skillz_json::{Map, Value};

/// A store could not do what was asked.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
pub enum StoreError {
    /// The caller's key, value or time to live breaks a limit; the text says which.
    #[error("{0}")]
    Invalid(String),
    /// The database failed; the text says how.
    #[error("The store failed: {0}")]
    Failed(String),
}

/// A key and its value.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
pub struct MemoryEntry {
    /// The key.
    pub key: String,
    /// The value.
    pub value: Value,
    /// When it expires, in Unix seconds.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub expires_at: Option<f64>,
}

/// How much one namespace holds.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub struct MemoryStats {
    /// The namespace, a tool's name.
    pub tool_name: String,
    /// Live entries.
    pub entries: u64,
    /// Bytes of keys and values.
    pub bytes: u64,
}

/// Key-value memory, a namespace for each tool. Keys have 1 to 512 bytes, values up to 1 MB as JSON.
#[async_trait]
pub trait MemoryStore: Send + Sync {
    /// Reads a live entry.
    async fn get(&self, namespace: &str, key: &str) -> Result<Option<Value>, StoreError>;
    /// Writes an entry durably; gives the expiry in Unix seconds where there is one.
    async fn set(&self, namespace: &str, key: &str, value: &Value, ttl_seconds: Option<f64>) -> Result<Option<f64>, StoreError>;
    /// Merges `patch` into the stored object, in one transaction; an absent entry counts as `{}`. Gives the merged object.
    async fn update(
        &self,
        namespace: &str,
        key: &str,
        patch: &Map<String, Value>,
        ttl_seconds: Option<f64>,
    ) -> Result<Value, StoreError>;
    /// Keys that start with `prefix` and come after `after`, in order, at most `limit`.
    async fn list(&self, namespace: &str, prefix: &str, after: Option<&str>, limit: usize) -> Result<Vec<String>, StoreError>;
    /// Deletes an entry; says whether it was there.
    async fn delete(&self, namespace: &str, key: &str) -> Result<bool, StoreError>;
    /// Deletes all entries of a namespace; says how many there were.
    async fn clear(&self, namespace: &str) -> Result<u64, StoreError>;
    /// Sizes of one namespace, or of all.
    async fn stats(&self, namespace: Option<&str>) -> Result<Vec<MemoryStats>, StoreError>;
}

/// One line of the history. Arguments and results are not kept: they may hold secrets.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
pub struct CallRecord {
    /// Identifies the call.
    pub call_id: String,
    /// The call that made this one, if a tool did.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub parent_id: Option<String>,
    /// The tool called.
    pub tool_name: String,
    /// The version called.
    pub version: String,
    /// When it started, in Unix seconds.
    pub started_at: f64,
    /// How long it took, in milliseconds, queueing included.
    pub duration_ms: f64,
    /// `ok`, `failed`, `timed_out`, `cancelled`, `denied`, `invalid`.
    pub status: String,
    /// First sentence of the failure, where there is one.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub error: Option<String>,
    /// Size of the arguments as JSON, in bytes.
    pub argument_bytes: u64,
    /// Size of the result, in bytes.
    pub result_bytes: u64,
}

/// The call log. Recording never blocks a call: entries are written in batches and may lag by a second.
#[async_trait]
pub trait HistoryStore: Send + Sync {
    /// Takes an entry; returns at once.
    fn record(&self, record: CallRecord);
    /// The newest entries first, of one tool where named, only failures where asked.
    async fn recent(&self, tool_name: Option<&str>, only_failed: bool, limit: usize) -> Result<Vec<CallRecord>, StoreError>;
    /// Waits until everything recorded so far is on disk.
    async fn flush(&self);
}
