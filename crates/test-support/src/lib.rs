//! What sessions through the real binary are tested with: a server process, its pipes, its process tree.
//!
//! Everything here waits for events with a deadline and panics with what it saw instead. It is used by tests and
//! benches only, never by the product.
#![warn(missing_docs)]
#![expect(clippy::expect_used, clippy::panic, clippy::indexing_slicing, reason = "a test that cannot go on says so by panicking")]

mod damage;
mod home;
mod process_tree;
mod server;
mod snapshot;
mod waiting;

pub use damage::{Damage, fuzz_duration};
pub use home::Home;
pub use process_tree::{
    children, descendants, is_alive, open_files, resident_bytes, threads, wait_until_gone, with_argument, zombies,
};
pub use server::{DEADLINE, Era, Run, TestServer, fixture, http_upstream, run, upstream};
pub use snapshot::{filters, redacted};
pub use waiting::{json_lines, until};
