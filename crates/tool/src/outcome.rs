//! What a run produced, before it is shaped for whoever asked.

use skillz_json::Value;

use crate::McpContent;

/// What a tool gave back.
#[derive(Debug, Clone, PartialEq)]
pub enum Output {
    /// A value the tool returned as such (JSON-RPC reply, return value of a function).
    Value(Value),
    /// All that a program printed; the call path decides whether it is JSON or text.
    Printed(String),
    /// MCP content from another server, passed on as it is.
    Content(McpContent),
}

/// A successful run.
#[derive(Debug, Clone, PartialEq)]
pub struct ToolOutcome {
    /// What the tool gave back.
    pub output: Output,
    /// Sentences for the reader of the result, such as "Bytes that are not UTF-8 were replaced".
    pub notes: Vec<String>,
}

impl ToolOutcome {
    /// A run that returned `value`.
    pub fn value(value: Value) -> Self {
        Self { output: Output::Value(value), notes: Vec::new() }
    }

    /// A run that printed `text`.
    pub fn printed(text: impl Into<String>) -> Self {
        Self { output: Output::Printed(text.into()), notes: Vec::new() }
    }
}
