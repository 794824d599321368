//! Bytes to MCP sessions: newline-delimited JSON-RPC over stdio, and HTTP.
//!
//! A transport takes any rmcp server handler and keeps it connected, whatever a client sends. It knows
//! nothing of tools; what a message means is the handler's business.
#![warn(missing_docs)]

mod batch;
mod connection;
mod decode;
mod http;
mod lines;
mod output;
mod shutdown;
mod stdio;

pub use http::{BoundHttp, HttpError, HttpSettings, MetricsSource, serve_http};
pub use shutdown::termination;
pub use stdio::{StdioError, serve_pipes, serve_stdio};
