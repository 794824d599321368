//! What the server remembers: the tools' memory and the call history, both on libSQL.
//!
//! The only crate that knows the database. Files are opened at the first use, so that a server that
//! is never asked for memory never touches them.
#![warn(missing_docs)]

mod database;
mod expiry;
mod failure;
mod history;
mod legacy;
mod limits;
mod memory;
mod migrations;
mod operation;
mod prefix;
mod worker;

pub use history::{HistorySettings, LibsqlHistory};
pub use memory::{LegacyImport, LibsqlMemory, MemoryLocation};
