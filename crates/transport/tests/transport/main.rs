//! What the transports do with whatever clients send, with a handler that only echoes.

#![allow(clippy::unwrap_used, clippy::expect_used, clippy::panic, clippy::indexing_slicing, reason = "a test says so by failing")]

mod fuzz;
mod http;
mod http_support;
mod stdio;
