//! Scripts with the real interpreters, prepared and called the way the engine does it.
#![allow(
    clippy::unwrap_used,
    clippy::expect_used,
    clippy::panic,
    clippy::indexing_slicing,
    clippy::disallowed_methods,
    reason = "a test that cannot go on should say so, and finds its interpreters as a user does"
)]

mod confined;
mod dependencies;
mod function;
mod helper_api;
mod process;
mod programs;
mod schemas;
mod sharing;
mod support;
mod values;
mod workers;

skillz_process::helper_entry!();
