//! The history's table: batches in, the newest entries out, old entries away.

use std::time::Duration;

use libsql::{Connection, Row, params};
use skillz_tool::{CallRecord, StoreError};

use super::Query;
use crate::{
    database::{DatabaseFile, finish, with_patience},
    expiry::now,
    failure::Failure,
};

/// Records kept in memory while the file cannot be written; older ones are given up.
const WAITING: usize = 10_000;
/// Records between two trims.
const TRIM_AFTER: u64 = 1_000;

/// The open history.
pub(super) struct Log {
    file: DatabaseFile,
    max_entries: u64,
    max_age: Duration,
    connection: Option<Connection>,
    written_since_trim: u64,
    /// A failure is told once, not with each batch.
    complained: bool,
}

impl Log {
    pub(super) fn new(file: DatabaseFile, max_entries: u64, max_age: Duration) -> Self {
        // The first batch of a process trims too.
        Self { file, max_entries, max_age, connection: None, written_since_trim: TRIM_AFTER, complained: false }
    }

    /// Writes the records and empties the list; what cannot be written stays in it.
    pub(super) fn write(&mut self, records: &mut Vec<CallRecord>) {
        if records.is_empty() {
            return;
        }
        match self.try_write(records) {
            Ok(()) => {
                records.clear();
                self.complained = false;
            }
            Err(failure) => {
                self.connection = None;
                if !self.complained {
                    tracing::warn!(error = %failure.into_store_error(&self.file.path), "calls are not recorded for now");
                    self.complained = true;
                }
                let excess = records.len().saturating_sub(WAITING);
                records.drain(..excess);
            }
        }
    }

    fn try_write(&mut self, records: &[CallRecord]) -> Result<(), Failure> {
        self.written_since_trim += records.len() as u64;
        let trim = self.written_since_trim >= TRIM_AFTER;
        let (max_entries, max_age) = (self.max_entries, self.max_age);
        let connection = self.open()?;
        with_patience(|| {
            finish(async {
                let transaction = connection.transaction_with_behavior(libsql::TransactionBehavior::Immediate).await?;
                for record in records {
                    insert(&transaction, record).await?;
                }
                if trim {
                    remove_old(&transaction, max_entries, max_age).await?;
                }
                Ok(transaction.commit().await?)
            })
        })?;
        if trim {
            self.written_since_trim = 0;
        }
        Ok(())
    }

    /// The newest entries first.
    pub(super) fn recent(&mut self, query: &Query) -> Result<Vec<CallRecord>, StoreError> {
        let outcome = self.open().and_then(|connection| with_patience(|| finish(select(connection, query))));
        outcome.map_err(|failure| {
            self.connection = None;
            failure.into_store_error(&self.file.path)
        })
    }

    fn open(&mut self) -> Result<&Connection, Failure> {
        let connection = match self.connection.take() {
            Some(connection) => connection,
            None => self.file.open()?,
        };
        Ok(self.connection.insert(connection))
    }
}

async fn insert(connection: &Connection, record: &CallRecord) -> Result<(), Failure> {
    let bytes = |number: u64| i64::try_from(number).unwrap_or(i64::MAX);
    connection
        .execute(
            "INSERT INTO calls (call_id, parent_id, tool_name, version, started_at, duration_ms, status, error, argument_bytes, result_bytes)
             VALUES (?1, ?2, ?3, ?4, ?5, ?6, ?7, ?8, ?9, ?10)",
            params![
                record.call_id.as_str(),
                record.parent_id.as_deref(),
                record.tool_name.as_str(),
                record.version.as_str(),
                record.started_at,
                record.duration_ms,
                record.status.as_str(),
                record.error.as_deref(),
                bytes(record.argument_bytes),
                bytes(record.result_bytes)
            ],
        )
        .await?;
    Ok(())
}

async fn remove_old(connection: &Connection, max_entries: u64, max_age: Duration) -> Result<(), Failure> {
    let max_entries = i64::try_from(max_entries).unwrap_or(i64::MAX);
    connection.execute("DELETE FROM calls WHERE started_at < ?1", params![now() - max_age.as_secs_f64()]).await?;
    // Numbers have no gaps worth speaking of, so counting back from the newest is as good as counting.
    connection.execute("DELETE FROM calls WHERE id <= (SELECT max(id) FROM calls) - ?1", params![max_entries]).await?;
    Ok(())
}

async fn select(connection: &Connection, query: &Query) -> Result<Vec<CallRecord>, Failure> {
    let failed = if query.only_failed { "AND status <> 'ok'" } else { "" };
    let mut rows = connection
        .query(
            &format!(
                "SELECT call_id, parent_id, tool_name, version, started_at, duration_ms, status, error, argument_bytes, result_bytes
                 FROM calls WHERE (?1 IS NULL OR tool_name = ?1) {failed} ORDER BY id DESC LIMIT ?2"
            ),
            params![query.tool_name.as_deref(), i64::try_from(query.limit).unwrap_or(i64::MAX)],
        )
        .await?;
    let mut records = Vec::new();
    while let Some(row) = rows.next().await? {
        records.push(record_of(&row)?);
    }
    Ok(records)
}

fn record_of(row: &Row) -> Result<CallRecord, Failure> {
    let (argument_bytes, result_bytes): (i64, i64) = (row.get(8)?, row.get(9)?);
    Ok(CallRecord {
        call_id: row.get(0)?,
        parent_id: row.get(1)?,
        tool_name: row.get(2)?,
        version: row.get(3)?,
        started_at: row.get(4)?,
        duration_ms: row.get(5)?,
        status: row.get(6)?,
        error: row.get(7)?,
        argument_bytes: u64::try_from(argument_bytes).unwrap_or(0),
        result_bytes: u64::try_from(result_bytes).unwrap_or(0),
    })
}
