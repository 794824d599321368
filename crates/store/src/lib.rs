//! What the server remembers: the tools' memory and the call history, both on libSQL.
//!
//! The only crate that knows the database. Files are opened at the first use, so that a server that
//! is never asked for memory never touches them.
#![warn(missing_docs)]

mod history;
mod memory;

pub use history::{HistorySettings, LibsqlHistory};
pub use memory::{LegacyImport, LibsqlMemory, MemoryLocation};
