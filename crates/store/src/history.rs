//! The call history.

use std::{path::PathBuf, time::Duration};

use async_trait::async_trait;
use skillz_tool::{CallRecord, HistoryStore, StoreError};

/// Where the history is kept, and how much of it.
#[derive(Debug, Clone)]
pub struct HistorySettings {
    /// The database file.
    pub path: PathBuf,
    /// Most entries kept.
    pub max_entries: u64,
    /// How long entries are kept.
    pub max_age: Duration,
}

impl HistorySettings {
    /// 100,000 entries, 30 days.
    pub fn new(path: PathBuf) -> Self {
        Self { path, max_entries: 100_000, max_age: Duration::from_secs(30 * 24 * 60 * 60) }
    }
}

/// The call history on libSQL. Opened at the first use.
#[derive(Debug)]
pub struct LibsqlHistory {}

#[expect(clippy::todo, unused_variables, clippy::needless_pass_by_value, reason = "the signatures come first")]
impl LibsqlHistory {
    /// A history; does no IO yet. Call [`HistoryStore::flush`] before the process ends.
    pub fn new(settings: HistorySettings) -> Self {
        todo!()
    }
}

#[async_trait]
#[expect(clippy::todo, reason = "the signatures come first")]
impl HistoryStore for LibsqlHistory {
    fn record(&self, _record: CallRecord) {
        todo!()
    }
    async fn recent(&self, _tool_name: Option<&str>, _only_failed: bool, _limit: usize) -> Result<Vec<CallRecord>, StoreError> {
        todo!()
    }
    async fn flush(&self) {
        todo!()
    }
}
