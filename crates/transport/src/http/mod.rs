//! MCP over HTTP: Streamable HTTP of both kinds of protocol at `/mcp`, the older `/sse` and `/message`, and
//! `/health` and `/metrics` for operators.
//!
//! Plain hyper, HTTP/1.1. TLS is the business of a proxy in front.

mod access;
mod body;
mod listener;
mod metrics;
mod reply;
mod route;
mod sessions;
mod settings;
mod sse;
mod streamable;

pub use listener::{BoundHttp, serve_http};
pub use settings::{HttpError, HttpSettings, MetricsSource};
