//! The engine on a real registry, with a runtime whose tools are one line of instructions.

#![allow(
    clippy::expect_used,
    clippy::panic,
    clippy::indexing_slicing,
    clippy::needless_pass_by_value,
    reason = "this is a test, helpers included"
)]

mod call;
mod code;
mod follow;
mod host;
mod import;
mod list;
mod pipeline;
mod policy;
mod publish;
mod servers;
mod support;
mod versions;
