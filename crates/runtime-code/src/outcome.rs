//! What a run came to.

use serde::Serialize;
use serde_json::{Value, json};
use skillz_tool::{ErrorKind, ToolError};

/// One inner call.
#[derive(Debug, Clone, PartialEq, Serialize)]
pub struct CallRecord {
    /// The tool.
    pub tool: String,
    /// How long it took, in milliseconds.
    pub ms: f64,
    /// Whether it succeeded.
    pub ok: bool,
}

/// A program that ran to its end.
#[derive(Debug, Clone, PartialEq, Serialize)]
pub struct CodeResult {
    /// Its last expression, or what it returned.
    pub result: Value,
    /// What it printed.
    pub stdout: String,
    /// The tools it called, in the order in which the calls ended.
    pub calls: Vec<CallRecord>,
}

/// A program that did not.
#[derive(Debug, Clone, PartialEq)]
pub struct CodeFailure {
    /// What failed and why; says what to do next where there is something.
    pub error: ToolError,
    /// Where in the program it happened.
    pub traceback: Option<String>,
    /// What it had printed.
    pub stdout: String,
    /// The tools it had called.
    pub calls: Vec<CallRecord>,
}

impl CodeFailure {
    /// A program that never started.
    pub(crate) fn before_start(error: ToolError) -> Self {
        Self { error, traceback: None, stdout: String::new(), calls: Vec::new() }
    }
}

impl From<CodeFailure> for ToolError {
    /// The failure as one text: what failed, what was printed before, the traceback; and all of it as data.
    fn from(failure: CodeFailure) -> Self {
        let CodeFailure { mut error, traceback, stdout, calls } = failure;
        let mut output = String::new();
        if !stdout.trim().is_empty() {
            output.push_str("Printed before:\n");
            output.push_str(stdout.trim_end());
            output.push_str("\n\n");
        }
        output.push_str(traceback.as_deref().or(error.output.as_deref()).unwrap_or_default());
        error = error.with_output(output);
        error.with_data(json!({"stdout": stdout, "traceback": traceback, "calls": calls}))
    }
}

/// An error of one sort with a hint, for the many places that need one.
pub(crate) fn failed(kind: ErrorKind, message: impl Into<String>, hint: impl Into<String>) -> ToolError {
    ToolError::new(kind, message).with_hint(hint)
}
