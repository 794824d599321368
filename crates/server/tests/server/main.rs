//! MCP sessions of every protocol over a real engine and registry.

mod changes;
mod support;
mod talking;
mod tools;
