//! Sources as they are in the world: git servers, web servers, archives of friends and enemies. Nothing leaves this machine.

#![allow(
    clippy::unwrap_used,
    clippy::expect_used,
    clippy::panic,
    clippy::indexing_slicing,
    clippy::disallowed_methods,
    reason = "a test fails by them, and starts servers of its own"
)]

mod archives;
mod gists;
mod hostile;
mod repositories;
mod support;
mod web;

skillz_process::helper_entry!();
