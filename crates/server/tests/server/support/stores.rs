//! Memory and history that live as long as the test.

use std::{
    collections::BTreeMap,
    sync::{Mutex, PoisonError},
};

use async_trait::async_trait;
use skillz_json::{Map, Value};
use skillz_tool::{CallRecord, HistoryStore, MemoryStats, MemoryStore, StoreError};

#[derive(Default)]
pub(crate) struct Memory {
    entries: Mutex<BTreeMap<(String, String), Value>>,
}

impl Memory {
    fn with<T>(&self, act: impl FnOnce(&mut BTreeMap<(String, String), Value>) -> T) -> T {
        act(&mut self.entries.lock().unwrap_or_else(PoisonError::into_inner))
    }
}

#[async_trait]
impl MemoryStore for Memory {
    async fn get(&self, namespace: &str, key: &str) -> Result<Option<Value>, StoreError> {
        Ok(self.with(|entries| entries.get(&(namespace.to_owned(), key.to_owned())).cloned()))
    }

    async fn set(&self, namespace: &str, key: &str, value: &Value, ttl: Option<f64>) -> Result<Option<f64>, StoreError> {
        self.with(|entries| entries.insert((namespace.to_owned(), key.to_owned()), value.clone()));
        Ok(ttl.map(|ttl| ttl + 1_000.0))
    }

    async fn update(
        &self,
        namespace: &str,
        key: &str,
        patch: &Map<String, Value>,
        _ttl: Option<f64>,
    ) -> Result<Value, StoreError> {
        self.with(|entries| {
            let entry = entries.entry((namespace.to_owned(), key.to_owned())).or_insert_with(|| Value::Object(Map::new()));
            let Value::Object(object) = entry else {
                return Err(StoreError::Invalid("The stored value is no object".to_owned()));
            };
            object.extend(patch.clone());
            Ok(entry.clone())
        })
    }

    async fn list(&self, namespace: &str, prefix: &str, after: Option<&str>, limit: usize) -> Result<Vec<String>, StoreError> {
        Ok(self.with(|entries| {
            let keys =
                entries.keys().filter(|(space, key)| space == namespace && key.starts_with(prefix)).map(|(_, key)| key.clone());
            keys.filter(|key| after.is_none_or(|after| key.as_str() > after)).take(limit).collect()
        }))
    }

    async fn delete(&self, namespace: &str, key: &str) -> Result<bool, StoreError> {
        Ok(self.with(|entries| entries.remove(&(namespace.to_owned(), key.to_owned())).is_some()))
    }

    async fn clear(&self, namespace: &str) -> Result<u64, StoreError> {
        Ok(self.with(|entries| {
            let before = entries.len();
            entries.retain(|(space, _), _| space != namespace);
            (before - entries.len()) as u64
        }))
    }

    async fn stats(&self, namespace: Option<&str>) -> Result<Vec<MemoryStats>, StoreError> {
        Ok(self.with(|entries| {
            let mut stats: BTreeMap<String, MemoryStats> = BTreeMap::new();
            for ((space, key), value) in entries.iter().filter(|((space, _), _)| namespace.is_none_or(|wanted| wanted == space)) {
                let empty = MemoryStats { tool_name: space.clone(), entries: 0, bytes: 0 };
                let stat = stats.entry(space.clone()).or_insert(empty);
                stat.entries += 1;
                stat.bytes += (key.len() + value.to_string().len()) as u64;
            }
            stats.into_values().collect()
        }))
    }
}

#[derive(Default)]
pub(crate) struct History {
    records: Mutex<Vec<CallRecord>>,
}

#[async_trait]
impl HistoryStore for History {
    fn record(&self, record: CallRecord) {
        self.records.lock().unwrap_or_else(PoisonError::into_inner).push(record);
    }

    async fn recent(&self, tool_name: Option<&str>, only_failed: bool, limit: usize) -> Result<Vec<CallRecord>, StoreError> {
        let records = self.records.lock().unwrap_or_else(PoisonError::into_inner);
        let fits = |record: &&CallRecord| {
            tool_name.is_none_or(|name| record.tool_name == name) && (!only_failed || record.status != "ok")
        };
        Ok(records.iter().rev().filter(fits).take(limit).cloned().collect())
    }

    async fn flush(&self) {}
}
