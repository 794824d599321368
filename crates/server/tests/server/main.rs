//! MCP sessions of every protocol over a real engine and registry.

#![allow(clippy::unwrap_used, clippy::expect_used, clippy::panic, clippy::indexing_slicing, reason = "a test says so by failing")]

mod changes;
mod support;
mod talking;
mod tools;
