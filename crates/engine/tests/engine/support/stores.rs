//! Stores in memory.

use std::{
    collections::BTreeMap,
    sync::{Mutex, PoisonError},
};

use async_trait::async_trait;
use skillz_json::{Map, Value};
use skillz_tool::{CallRecord, HistoryStore, MemoryStats, MemoryStore, StoreError};

/// Memory without expiry.
#[derive(Default)]
pub(crate) struct MemoryInMemory(Mutex<BTreeMap<(String, String), Value>>);

/// A history that can be looked at.
#[derive(Default)]
pub(crate) struct HistoryInMemory(Mutex<Vec<CallRecord>>);

impl HistoryInMemory {
    /// Everything recorded so far, the oldest first.
    pub(crate) fn records(&self) -> Vec<CallRecord> {
        self.0.lock().unwrap_or_else(PoisonError::into_inner).clone()
    }

    /// The only record of a tool.
    pub(crate) fn only(&self, tool_name: &str) -> CallRecord {
        let mut records = self.records();
        records.retain(|record| record.tool_name == tool_name);
        assert_eq!(records.len(), 1, "{records:?}");
        records.remove(0)
    }
}

#[async_trait]
impl HistoryStore for HistoryInMemory {
    fn record(&self, record: CallRecord) {
        self.0.lock().unwrap_or_else(PoisonError::into_inner).push(record);
    }

    async fn recent(&self, _tool_name: Option<&str>, _only_failed: bool, _limit: usize) -> Result<Vec<CallRecord>, StoreError> {
        Ok(self.records())
    }

    async fn flush(&self) {}
}

#[async_trait]
impl MemoryStore for MemoryInMemory {
    async fn get(&self, namespace: &str, key: &str) -> Result<Option<Value>, StoreError> {
        let entries = self.0.lock().unwrap_or_else(PoisonError::into_inner);
        Ok(entries.get(&(namespace.to_owned(), key.to_owned())).cloned())
    }

    async fn set(&self, namespace: &str, key: &str, value: &Value, _ttl: Option<f64>) -> Result<Option<f64>, StoreError> {
        if key.is_empty() {
            return Err(StoreError::Invalid("The key is empty".to_owned()));
        }
        let mut entries = self.0.lock().unwrap_or_else(PoisonError::into_inner);
        entries.insert((namespace.to_owned(), key.to_owned()), value.clone());
        Ok(None)
    }

    async fn update(&self, _: &str, _: &str, patch: &Map<String, Value>, _: Option<f64>) -> Result<Value, StoreError> {
        Ok(Value::Object(patch.clone()))
    }

    async fn list(&self, namespace: &str, prefix: &str, _after: Option<&str>, limit: usize) -> Result<Vec<String>, StoreError> {
        let entries = self.0.lock().unwrap_or_else(PoisonError::into_inner);
        Ok(entries
            .keys()
            .filter(|(own, key)| own == namespace && key.starts_with(prefix))
            .map(|(_, key)| key.clone())
            .take(limit)
            .collect())
    }

    async fn delete(&self, namespace: &str, key: &str) -> Result<bool, StoreError> {
        let mut entries = self.0.lock().unwrap_or_else(PoisonError::into_inner);
        Ok(entries.remove(&(namespace.to_owned(), key.to_owned())).is_some())
    }

    async fn clear(&self, namespace: &str) -> Result<u64, StoreError> {
        let mut entries = self.0.lock().unwrap_or_else(PoisonError::into_inner);
        let before = entries.len();
        entries.retain(|(own, _), _| own != namespace);
        Ok((before - entries.len()) as u64)
    }

    async fn stats(&self, _namespace: Option<&str>) -> Result<Vec<MemoryStats>, StoreError> {
        Ok(Vec::new())
    }
}
