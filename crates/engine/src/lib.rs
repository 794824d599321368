//! The heart: one path for every call, whoever makes it, and one path for every publish.
//!
//! A call goes find → check arguments → check permissions → run under limits → shape the result → record.
//! A publish goes prepare (compile, install) → run the examples → put it on disk → tell everybody.
//! The engine knows tools, runtimes and stores as traits; of MCP, HTTP, databases and WASM it knows nothing.
#![warn(missing_docs)]

mod client;
mod request;

pub use client::{ClientPort, NoClient};
pub use request::{CallFailure, CallReply, CallRequest, DeleteReport, ExampleCounts, PublishReport, PublishRequest};
