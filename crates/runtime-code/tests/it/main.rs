//! Programs as their callers see them, through real workers and real interpreters.

#![allow(
    clippy::expect_used,
    clippy::panic,
    clippy::indexing_slicing,
    clippy::unwrap_used,
    reason = "this is a test, helpers included"
)]

mod escapes;
mod javascript;
mod limits;
mod process;
mod python;
mod support;

skillz_process::helper_entry!();
skillz_runtime_code::worker_entry!();
