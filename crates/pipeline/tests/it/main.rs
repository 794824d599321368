//! Pipelines as their callers see them: what creation refuses, what runs come to.

#![allow(
    clippy::unwrap_used,
    clippy::expect_used,
    clippy::panic,
    clippy::indexing_slicing,
    clippy::disallowed_methods,
    reason = "a test says so by failing, and reads its surroundings"
)]
#![allow(
    clippy::expect_used,
    clippy::panic,
    clippy::indexing_slicing,
    clippy::unwrap_used,
    reason = "this is a test, helpers included"
)]

mod creation;
mod running;
mod support;
