//! Pipelines as their callers see them: what creation refuses, what runs come to.

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
