//! What can go wrong inside the database, before it becomes a sentence for the caller.

use std::path::Path;

use skillz_tool::StoreError;

/// Another connection holds the lock.
const SQLITE_BUSY: i32 = 5;
/// Another connection of this process holds the lock.
const SQLITE_LOCKED: i32 = 6;
const SQLITE_READONLY: i32 = 8;
const SQLITE_IOERR: i32 = 10;
/// The file's pages contradict each other.
const SQLITE_CORRUPT: i32 = 11;
const SQLITE_FULL: i32 = 13;
const SQLITE_CANTOPEN: i32 = 14;
/// The file is something else, or encrypted.
const SQLITE_NOTADB: i32 = 26;

/// Why an operation did not happen. None of its writes has.
#[derive(Debug, thiserror::Error)]
pub(crate) enum Failure {
    /// What the caller asked for cannot be done; the text is for the caller.
    #[error("{0}")]
    Invalid(String),
    /// The file cannot be used; the text says why and what to do.
    #[error("{0}")]
    Unusable(String),
    /// The database refused.
    #[error(transparent)]
    Database(#[from] libsql::Error),
}

impl Failure {
    /// Whether waiting may help.
    pub(crate) fn is_busy(&self) -> bool {
        matches!(self.code(), Some(SQLITE_BUSY | SQLITE_LOCKED))
    }

    /// The primary result code of the database.
    fn code(&self) -> Option<i32> {
        match self {
            Self::Database(libsql::Error::SqliteFailure(code, _)) => Some(code & 0xff),
            _ => None,
        }
    }

    /// The sentence for the caller; names the file and what to do.
    pub(crate) fn into_store_error(self, path: &Path) -> StoreError {
        let file = path.display();
        let code = self.code();
        let cause = match &self {
            Self::Database(libsql::Error::SqliteFailure(_, message)) => message.clone(),
            other => other.to_string(),
        };
        match self {
            Self::Invalid(message) => return StoreError::Invalid(message),
            Self::Unusable(message) => return StoreError::Failed(format!("The database `{file}` cannot be used: {message}")),
            Self::Database(_) => {}
        }
        let text = match code {
            Some(SQLITE_CORRUPT | SQLITE_NOTADB) => format!(
                "The database `{file}` is damaged ({cause}). Move it away, with `{file}-wal` and `{file}-shm` where they exist, \
                 and the next use starts an empty one; or put a backup in its place. Nothing was deleted, and everything else goes on"
            ),
            Some(SQLITE_BUSY | SQLITE_LOCKED) => {
                format!(
                    "The database `{file}` was locked by another process for too long ({cause}). Find it with `fuser {file}`, then try again"
                )
            }
            Some(SQLITE_FULL) => format!("The disk of `{file}` is full, so nothing was written. Free some space and try again"),
            Some(SQLITE_READONLY | SQLITE_CANTOPEN) => {
                format!(
                    "The database `{file}` cannot be opened for writing ({cause}). Check the permissions of the file and its folder"
                )
            }
            Some(SQLITE_IOERR) => {
                format!("Reading or writing `{file}` failed ({cause}). Check the disk, and whether the file was removed")
            }
            _ => format!("The database `{file}` refused: {cause}"),
        };
        StoreError::Failed(text)
    }
}
