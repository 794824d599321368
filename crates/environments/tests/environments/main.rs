//! Environments made by the real installers.
#![allow(
    clippy::unwrap_used,
    clippy::expect_used,
    clippy::panic,
    clippy::indexing_slicing,
    clippy::disallowed_methods,
    reason = "a test that cannot go on should say so, and finds its installers as a user does"
)]

mod install;
mod support;

skillz_process::helper_entry!();
