//! The databases' schemas, as numbered steps that are applied once each, in order.

use libsql::{Connection, TransactionBehavior};

use crate::failure::Failure;

/// The steps of one database; `PRAGMA user_version` counts those applied. Steps are only ever added.
#[derive(Debug, Clone, Copy)]
pub(crate) struct Migrations(&'static [&'static str]);

/// The tools' memory.
pub(crate) const MEMORY: Migrations =
    Migrations(&[include_str!("migrations/memory/001_memory.sql"), include_str!("migrations/memory/002_takeovers.sql")]);

/// The call history.
pub(crate) const HISTORY: Migrations = Migrations(&[include_str!("migrations/history/001_calls.sql")]);

impl Migrations {
    /// Brings a database up to date. Processes that start together take turns: the check is made again
    /// under the write lock.
    pub(crate) async fn apply(self, connection: &Connection) -> Result<(), Failure> {
        if applied(connection).await? == self.0.len() {
            return Ok(());
        }
        let transaction = connection.transaction_with_behavior(TransactionBehavior::Immediate).await?;
        let done = applied(&transaction).await?;
        if done > self.0.len() {
            return Err(Failure::Unusable(
                "it was made by a newer version of Skillz; start that version, or use another home".to_owned(),
            ));
        }
        for step in self.0.iter().skip(done) {
            transaction.execute_batch(step).await?;
        }
        transaction.execute_batch(&format!("PRAGMA user_version = {}", self.0.len())).await?;
        transaction.commit().await?;
        Ok(())
    }
}

async fn applied(connection: &Connection) -> Result<usize, Failure> {
    let mut rows = connection.query("PRAGMA user_version", ()).await?;
    let count: i64 = match rows.next().await? {
        Some(row) => row.get(0)?,
        None => 0,
    };
    Ok(usize::try_from(count).unwrap_or(0))
}
