//! When entries end: checked at each read, and swept from the file now and then.

use std::time::{Duration, Instant, SystemTime, UNIX_EPOCH};

use libsql::Connection;

use crate::failure::Failure;

/// How often a writing process looks for expired entries; they are invisible before, so this is housekeeping.
const SWEEP_INTERVAL: Duration = Duration::from_mins(1);
/// Entries removed in one go, so that a sweep never holds others up for long.
const SWEEP_ENTRIES: i64 = 500;

/// The wall clock in Unix seconds: it is shared by all processes and outlives restarts.
pub(crate) fn now() -> f64 {
    SystemTime::now().duration_since(UNIX_EPOCH).unwrap_or_default().as_secs_f64()
}

/// Remembers when the last sweep was.
#[derive(Debug, Default)]
pub(crate) struct Sweeper {
    last: Option<Instant>,
}

impl Sweeper {
    /// Whether a sweep is due; counts it as done.
    pub(crate) fn is_due(&mut self) -> bool {
        if self.last.is_some_and(|last| last.elapsed() < SWEEP_INTERVAL) {
            return false;
        }
        self.last = Some(Instant::now());
        true
    }
}

/// Removes some expired entries.
pub(crate) async fn sweep(connection: &Connection) -> Result<u64, Failure> {
    let removed = connection
        .execute(
            "DELETE FROM memory WHERE rowid IN (SELECT rowid FROM memory WHERE expires_at IS NOT NULL AND expires_at <= ?1 LIMIT ?2)",
            (now(), SWEEP_ENTRIES),
        )
        .await?;
    Ok(removed)
}
