//! The tools' memory: checks what it is given, and hands it to the database's threads.

use std::path::{Path, PathBuf};

use async_trait::async_trait;
use skillz_json::{Map, Value};
use skillz_tool::{MemoryStats, MemoryStore, StoreError};

use crate::{
    database::{DatabaseFile, Durability},
    legacy,
    limits::{check_key, check_prefix, expiry_of, serialise_value},
    migrations,
    operation::{Clear, Delete, Get, List, Operation, Set, Stats, Update},
    worker::{Role, Worker},
};

/// Where the memory is kept.
#[derive(Debug, Clone)]
pub enum MemoryLocation {
    /// A local database file, shared by every server of one home.
    File(PathBuf),
    /// A libSQL server. Not built in yet: every operation fails with a sentence that says so.
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
    /// Entries left out: expired, beyond a limit, or there already.
    pub skipped: u64,
}

/// The tools' memory on libSQL. Opened at the first use; dropping it ends its threads.
#[derive(Debug)]
pub struct LibsqlMemory {
    backend: Backend,
}

#[derive(Debug)]
enum Backend {
    /// Readers never wait for writers, so each has a connection of its own.
    File {
        reader: Worker,
        writer: Worker,
    },
    Remote {
        url: String,
    },
}

impl LibsqlMemory {
    /// A memory at `location`; does no IO yet.
    pub fn new(location: MemoryLocation) -> Self {
        let backend = match location {
            MemoryLocation::File(path) => {
                let file = DatabaseFile { path, migrations: migrations::MEMORY, durability: Durability::Full };
                Backend::File { reader: Worker::new(file.clone(), Role::Reader), writer: Worker::new(file, Role::Writer) }
            }
            MemoryLocation::Remote { url, token: _ } => Backend::Remote { url },
        };
        Self { backend }
    }

    /// Takes over the memory of Skillz 0.8, once: later calls give `None`, and so does a missing file.
    /// The old file stays as it is, and entries that are there already win over it.
    ///
    /// # Errors
    ///
    /// Where the old file cannot be understood; nothing is taken over then, and it is tried again the next time.
    pub async fn import_legacy(&self, path: &Path) -> Result<Option<LegacyImport>, StoreError> {
        if !tokio::fs::try_exists(path).await.unwrap_or(false) {
            return Ok(None);
        }
        let name = path.display().to_string();
        if self.read(legacy::Seen { path: name.clone() }).await? {
            return Ok(None);
        }
        let file = path.to_owned();
        let entries = tokio::task::spawn_blocking(move || legacy::read(&file))
            .await
            .map_err(|error| StoreError::Failed(format!("Reading `{name}` was cut off: {error}")))??;
        self.write(legacy::TakeOver { path: name, entries }).await
    }

    async fn read<O: Operation>(&self, operation: O) -> Result<O::Output, StoreError> {
        match &self.backend {
            Backend::File { reader, .. } => reader.run(operation).await,
            Backend::Remote { url } => Err(no_remote(url)),
        }
    }

    async fn write<O: Operation>(&self, operation: O) -> Result<O::Output, StoreError> {
        match &self.backend {
            Backend::File { writer, .. } => writer.run(operation).await,
            Backend::Remote { url } => Err(no_remote(url)),
        }
    }
}

fn no_remote(url: &str) -> StoreError {
    // A URL may hold a password before its host.
    let host = url.rsplit('@').next().unwrap_or_default();
    StoreError::Failed(format!(
        "Memory on a libSQL server (`{host}`) is not part of this build yet. Unset `SKILLZ_MEMORY_URL` to use the file `memory.db`"
    ))
}

#[async_trait]
impl MemoryStore for LibsqlMemory {
    async fn get(&self, namespace: &str, key: &str) -> Result<Option<Value>, StoreError> {
        check_key(key)?;
        self.read(Get { namespace: namespace.to_owned(), key: key.to_owned() }).await
    }

    async fn set(&self, namespace: &str, key: &str, value: &Value, ttl_seconds: Option<f64>) -> Result<Option<f64>, StoreError> {
        check_key(key)?;
        let value = serialise_value(key, value)?;
        let expires_at = expiry_of(ttl_seconds)?;
        self.write(Set { namespace: namespace.to_owned(), key: key.to_owned(), value, expires_at }).await?;
        Ok(expires_at)
    }

    async fn update(
        &self,
        namespace: &str,
        key: &str,
        patch: &Map<String, Value>,
        ttl_seconds: Option<f64>,
    ) -> Result<Value, StoreError> {
        check_key(key)?;
        let expires_at = expiry_of(ttl_seconds)?;
        self.write(Update { namespace: namespace.to_owned(), key: key.to_owned(), patch: patch.clone(), expires_at }).await
    }

    async fn list(&self, namespace: &str, prefix: &str, after: Option<&str>, limit: usize) -> Result<Vec<String>, StoreError> {
        check_prefix(prefix)?;
        let list = List { namespace: namespace.to_owned(), prefix: prefix.to_owned(), after: after.map(str::to_owned), limit };
        self.read(list).await
    }

    async fn delete(&self, namespace: &str, key: &str) -> Result<bool, StoreError> {
        check_key(key)?;
        self.write(Delete { namespace: namespace.to_owned(), key: key.to_owned() }).await
    }

    async fn clear(&self, namespace: &str) -> Result<u64, StoreError> {
        self.write(Clear { namespace: namespace.to_owned() }).await
    }

    async fn stats(&self, namespace: Option<&str>) -> Result<Vec<MemoryStats>, StoreError> {
        self.read(Stats { namespace: namespace.map(str::to_owned) }).await
    }
}
