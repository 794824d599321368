//! Opens a local database file so that several processes can share it.

use std::{
    future::Future,
    path::{Path, PathBuf},
    pin::pin,
    task::{Context, Poll, Waker},
    thread,
    time::{Duration, Instant},
};

use libsql::{Builder, Connection};

use crate::{failure::Failure, migrations::Migrations};

/// How long the database itself waits for a lock before it gives the turn back.
const LOCK_WAIT: Duration = Duration::from_millis(500);
/// How long an operation waits for its turn in all. Transactions take milliseconds, so more means that
/// a process hangs with the lock in its hands.
const PATIENCE: Duration = Duration::from_mins(1);

/// Most memory for pages of one connection, in KiB: entries are small, and the system keeps the file's pages too.
const CACHE_KIBIBYTES: u32 = 256;

/// How much an acknowledged write must survive.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum Durability {
    /// Power failure and `kill -9`.
    Full,
    /// `kill -9`; the last moments may be lost with the power.
    Relaxed,
}

/// A database file that is not open yet.
#[derive(Debug, Clone)]
pub(crate) struct DatabaseFile {
    pub(crate) path: PathBuf,
    pub(crate) migrations: Migrations,
    pub(crate) durability: Durability,
}

impl DatabaseFile {
    /// Opens the file, makes it if it is missing, and brings its schema up to date. Blocks.
    pub(crate) fn open(&self) -> Result<Connection, Failure> {
        if let Some(folder) = self.path.parent() {
            std::fs::create_dir_all(folder).map_err(|error| Failure::Unusable(format!("its folder cannot be made: {error}")))?;
        }
        let connection = connect(&self.path)?;
        with_patience(|| finish(self.set_up(&connection)))?;
        Ok(connection)
    }

    async fn set_up(&self, connection: &Connection) -> Result<(), Failure> {
        // Switching to WAL needs the file for itself for a moment and does not wait for it; whoever comes
        // second finds it switched.
        connection.query("PRAGMA journal_mode = WAL", ()).await?.next().await?;
        let synchronous = match self.durability {
            Durability::Full => "FULL",
            Durability::Relaxed => "NORMAL",
        };
        connection.execute_batch(&format!("PRAGMA synchronous = {synchronous}; PRAGMA cache_size = -{CACHE_KIBIBYTES}")).await?;
        self.migrations.apply(connection).await
    }
}

/// Opens a connection without touching what is in the file.
pub(crate) fn connect(path: &Path) -> Result<Connection, Failure> {
    let database = finish(async { Ok(Builder::new_local(path).build().await?) })?;
    let connection = database.connect()?;
    connection.busy_timeout(LOCK_WAIT)?;
    Ok(connection)
}

/// Repeats an attempt while others hold the lock.
pub(crate) fn with_patience<T>(mut attempt: impl FnMut() -> Result<T, Failure>) -> Result<T, Failure> {
    let started = Instant::now();
    let mut pause = Duration::from_millis(1);
    loop {
        match attempt() {
            Err(failure) if failure.is_busy() && started.elapsed() < PATIENCE => {
                thread::sleep(pause);
                pause = (pause * 2).min(Duration::from_millis(50));
            }
            outcome => return outcome,
        }
    }
}

/// Runs a future of a local database, which is ready at the first poll: its functions block instead of waiting.
pub(crate) fn finish<T>(future: impl Future<Output = Result<T, Failure>>) -> Result<T, Failure> {
    match pin!(future).poll(&mut Context::from_waker(Waker::noop())) {
        Poll::Ready(outcome) => outcome,
        Poll::Pending => Err(Failure::Unusable("a local database was asked to wait for the network".to_owned())),
    }
}
