//! What can be done with the memory, as values: a local file carries them out on its own thread, and a
//! server by URL would do so where it is asked.

use async_trait::async_trait;
use libsql::{Connection, params};
use skillz_json::{Map, Value};
use skillz_tool::MemoryStats;

use crate::{expiry::now, failure::Failure, limits, prefix};

/// One thing to do on a connection. May be run again after a failure, so it keeps its input.
#[async_trait]
pub(crate) trait Operation: Send + Sync + 'static {
    /// What comes of it.
    type Output: Send + 'static;

    /// Does it. On [`Failure::Invalid`] nothing may have been written.
    async fn run(&self, connection: &Connection) -> Result<Self::Output, Failure>;
}

/// Reads a live entry.
pub(crate) struct Get {
    pub(crate) namespace: String,
    pub(crate) key: String,
}

/// Writes an entry.
pub(crate) struct Set {
    pub(crate) namespace: String,
    pub(crate) key: String,
    pub(crate) value: String,
    pub(crate) expires_at: Option<f64>,
}

/// Merges an object into an entry; without a new expiry the old one stays.
pub(crate) struct Update {
    pub(crate) namespace: String,
    pub(crate) key: String,
    pub(crate) patch: Map<String, Value>,
    pub(crate) expires_at: Option<f64>,
}

/// Lists keys in order.
pub(crate) struct List {
    pub(crate) namespace: String,
    pub(crate) prefix: String,
    pub(crate) after: Option<String>,
    pub(crate) limit: usize,
}

/// Deletes an entry.
pub(crate) struct Delete {
    pub(crate) namespace: String,
    pub(crate) key: String,
}

/// Deletes a namespace.
pub(crate) struct Clear {
    pub(crate) namespace: String,
}

/// Measures one namespace, or all.
pub(crate) struct Stats {
    pub(crate) namespace: Option<String>,
}

#[async_trait]
impl Operation for Get {
    type Output = Option<Value>;

    async fn run(&self, connection: &Connection) -> Result<Self::Output, Failure> {
        Ok(read(connection, &self.namespace, &self.key).await?.map(|(value, _)| value))
    }
}

#[async_trait]
impl Operation for Set {
    type Output = ();

    async fn run(&self, connection: &Connection) -> Result<(), Failure> {
        write(connection, &self.namespace, &self.key, &self.value, self.expires_at).await
    }
}

#[async_trait]
impl Operation for Update {
    type Output = Value;

    async fn run(&self, connection: &Connection) -> Result<Value, Failure> {
        let (mut merged, expires_at) = match read(connection, &self.namespace, &self.key).await? {
            Some((Value::Object(members), expires_at)) => (members, expires_at),
            Some(_) => {
                return Err(Failure::Invalid(format!(
                    "The value of `{}` is no object, so nothing can be merged into it. Replace it with `store`",
                    self.key
                )));
            }
            None => (Map::new(), None),
        };
        merged.extend(self.patch.iter().map(|(name, value)| (name.clone(), value.clone())));
        let merged = Value::Object(merged);
        let text = limits::serialise_value(&self.key, &merged).map_err(|error| Failure::Invalid(error.to_string()))?;
        write(connection, &self.namespace, &self.key, &text, self.expires_at.or(expires_at)).await?;
        Ok(merged)
    }
}

#[async_trait]
impl Operation for List {
    type Output = Vec<String>;

    async fn run(&self, connection: &Connection) -> Result<Vec<String>, Failure> {
        let limit = i64::try_from(self.limit).unwrap_or(i64::MAX);
        let mut rows = connection
            .query(
                // Read as text, a key would end at a NUL.
                "SELECT CAST(key AS BLOB) FROM memory
                 WHERE namespace = ?1 AND key >= ?2 AND (?3 IS NULL OR key < ?3) AND (?4 IS NULL OR key > ?4)
                   AND (expires_at IS NULL OR expires_at > ?5)
                 ORDER BY key LIMIT ?6",
                params![
                    self.namespace.as_str(),
                    self.start(),
                    prefix::upper_bound(&self.prefix),
                    self.after.as_deref(),
                    now(),
                    limit
                ],
            )
            .await?;
        let mut keys = Vec::new();
        while let Some(row) = rows.next().await? {
            keys.push(String::from_utf8_lossy(&row.get::<Vec<u8>>(0)?).into_owned());
        }
        Ok(keys)
    }
}

impl List {
    /// Where the range starts: later pages need not pass over the earlier ones.
    fn start(&self) -> &str {
        match &self.after {
            Some(after) if after.as_str() > self.prefix.as_str() => after,
            _ => &self.prefix,
        }
    }
}

#[async_trait]
impl Operation for Delete {
    type Output = bool;

    async fn run(&self, connection: &Connection) -> Result<bool, Failure> {
        // An expired entry goes too, but was not there as far as anybody could see.
        let live = read(connection, &self.namespace, &self.key).await?.is_some();
        connection
            .execute("DELETE FROM memory WHERE namespace = ?1 AND key = ?2", params![self.namespace.as_str(), self.key.as_str()])
            .await?;
        Ok(live)
    }
}

#[async_trait]
impl Operation for Clear {
    type Output = u64;

    async fn run(&self, connection: &Connection) -> Result<u64, Failure> {
        let expired = connection
            .execute(
                "DELETE FROM memory WHERE namespace = ?1 AND expires_at IS NOT NULL AND expires_at <= ?2",
                params![self.namespace.as_str(), now()],
            )
            .await?;
        tracing::trace!(expired, "expired entries went with the namespace");
        Ok(connection.execute("DELETE FROM memory WHERE namespace = ?1", params![self.namespace.as_str()]).await?)
    }
}

#[async_trait]
impl Operation for Stats {
    type Output = Vec<MemoryStats>;

    async fn run(&self, connection: &Connection) -> Result<Vec<MemoryStats>, Failure> {
        let mut rows = connection
            .query(
                "SELECT namespace, count(*), sum(bytes) FROM memory
                 WHERE (?1 IS NULL OR namespace = ?1) AND (expires_at IS NULL OR expires_at > ?2)
                 GROUP BY namespace ORDER BY namespace",
                params![self.namespace.as_deref(), now()],
            )
            .await?;
        let mut stats = Vec::new();
        while let Some(row) = rows.next().await? {
            let (entries, bytes): (i64, i64) = (row.get(1)?, row.get(2)?);
            stats.push(MemoryStats {
                tool_name: row.get(0)?,
                entries: u64::try_from(entries).unwrap_or(0),
                bytes: u64::try_from(bytes).unwrap_or(0),
            });
        }
        Ok(stats)
    }
}

/// A live entry's value and expiry.
async fn read(connection: &Connection, namespace: &str, key: &str) -> Result<Option<(Value, Option<f64>)>, Failure> {
    let mut rows = connection
        .query(
            "SELECT value, expires_at FROM memory
             WHERE namespace = ?1 AND key = ?2 AND (expires_at IS NULL OR expires_at > ?3)",
            params![namespace, key, now()],
        )
        .await?;
    let Some(row) = rows.next().await? else { return Ok(None) };
    let text: String = row.get(0)?;
    let value = serde_json::from_str(&text)
        .map_err(|error| Failure::Invalid(format!("The stored value of `{key}` is no JSON ({error}). Store it anew")))?;
    Ok(Some((value, row.get(1)?)))
}

/// Writes an entry, whatever was there.
pub(crate) async fn write(
    connection: &Connection,
    namespace: &str,
    key: &str,
    value: &str,
    expires_at: Option<f64>,
) -> Result<(), Failure> {
    let bytes = i64::try_from(key.len() + value.len()).unwrap_or(i64::MAX);
    connection
        .execute(
            "INSERT INTO memory (namespace, key, expires_at, bytes, updated_at, value) VALUES (?1, ?2, ?3, ?4, ?5, ?6)
             ON CONFLICT (namespace, key) DO UPDATE SET
                 expires_at = excluded.expires_at, bytes = excluded.bytes, updated_at = excluded.updated_at, value = excluded.value",
            params![namespace, key, expires_at, bytes, now(), value],
        )
        .await?;
    Ok(())
}
