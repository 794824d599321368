//! What the transports do with whatever clients send, with a handler that only echoes.

mod fuzz;
mod http;
mod http_support;
mod stdio;
