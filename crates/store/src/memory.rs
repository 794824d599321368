//! The tools' memory.

use std::path::{Path, PathBuf};

use async_trait::async_trait;
use serde_json::{Map, Value};
use skillz_tool::{MemoryStats, MemoryStore, StoreError};

/// Where the memory is kept.
#[derive(Debug, Clone)]
pub enum MemoryLocation {
    /// A local database file, shared by every server of one home.
    File(PathBuf),
    /// A libSQL server.
    Remote {
        /// `libsql://`, `http://` or `https://`.
        url: String,
        /// Its access token.
        token: Option<String>,
    },
}

/// What was taken over from Skillz 0.8.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default)]
pub struct LegacyImport {
    /// Entries taken over.
    pub imported: u64,
    /// Entries left out: expired, too large, or there already.
    pub skipped: u64,
}

/// The tools' memory on libSQL. Opened at the first use.
#[derive(Debug)]
pub struct LibsqlMemory {}

#[expect(clippy::unused_async, clippy::todo, unused_variables, clippy::needless_pass_by_value, reason = "the signatures come first")]
impl LibsqlMemory {
    /// A memory at `location`; does no IO yet.
    pub fn new(location: MemoryLocation) -> Self {
        todo!()
    }

    /// Takes over the memory of Skillz 0.8, once: later calls give `None`, and so does a missing file.
    /// The old file stays as it is.
    pub async fn import_legacy(&self, path: &Path) -> Result<Option<LegacyImport>, StoreError> {
        todo!()
    }
}

#[async_trait]
#[expect(clippy::todo, reason = "the signatures come first")]
impl MemoryStore for LibsqlMemory {
    async fn get(&self, _namespace: &str, _key: &str) -> Result<Option<Value>, StoreError> {
        todo!()
    }
    async fn set(&self, _namespace: &str, _key: &str, _value: &Value, _ttl_seconds: Option<f64>) -> Result<Option<f64>, StoreError> {
        todo!()
    }
    async fn update(&self, _namespace: &str, _key: &str, _patch: &Map<String, Value>, _ttl: Option<f64>) -> Result<Value, StoreError> {
        todo!()
    }
    async fn list(&self, _namespace: &str, _prefix: &str, _after: Option<&str>, _limit: usize) -> Result<Vec<String>, StoreError> {
        todo!()
    }
    async fn delete(&self, _namespace: &str, _key: &str) -> Result<bool, StoreError> {
        todo!()
    }
    async fn clear(&self, _namespace: &str) -> Result<u64, StoreError> {
        todo!()
    }
    async fn stats(&self, _namespace: Option<&str>) -> Result<Vec<MemoryStats>, StoreError> {
        todo!()
    }
}
