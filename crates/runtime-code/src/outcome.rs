//! What a run came to.

use serde::Serialize;
use skillz_json::{Map, Value, json};
use skillz_tool::{ErrorKind, ToolError};

use crate::request::CodeRequest;

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

/// Calls that are listed; a program may make thousands, and each line of the list costs its reader.
const MOST_LISTED: usize = 50;

/// Adds the first calls to an answer, and how many more there were.
fn list_calls(answer: &mut Map<String, Value>, calls: &[CallRecord]) {
    let listed = calls.get(..MOST_LISTED).unwrap_or(calls);
    answer.insert("calls".to_owned(), json!(listed));
    if calls.len() > MOST_LISTED {
        answer.insert("calls_omitted".to_owned(), json!(calls.len() - MOST_LISTED));
    }
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
    /// Whether an embedded interpreter ran it, which differs from a real one in places.
    pub is_embedded: bool,
}

impl From<CodeResult> for Value {
    /// What a client gets: `{result, stdout, calls, calls_omitted, runtime}`; the last two where there were many calls, and
    /// where the program ran embedded.
    fn from(result: CodeResult) -> Self {
        let CodeResult { result, stdout, calls, is_embedded } = result;
        let mut answer = Map::from_iter([("result".to_owned(), result), ("stdout".to_owned(), Self::from(stdout))]);
        list_calls(&mut answer, &calls);
        if is_embedded {
            answer.insert("runtime".to_owned(), Self::from("embedded"));
        }
        Self::Object(answer)
    }
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
        let mut data = Map::from_iter([("stdout".to_owned(), json!(stdout)), ("traceback".to_owned(), json!(traceback))]);
        list_calls(&mut data, &calls);
        error.with_data(Value::Object(data))
    }
}

/// Its time was up, while it waited for these tools.
pub(crate) fn timed_out(request: &CodeRequest, late: &[String]) -> ToolError {
    let waiting = if late.is_empty() { String::new() } else { format!(" while it waited for `{}`", late.join("`, `")) };
    let message = format!("The program was stopped after its limit of {}{waiting}", request.seconds());
    failed(ErrorKind::TimedOut, message, "Set a longer `timeout` (in seconds), or let it do less at a time")
}

/// It needed more memory than it may have.
pub(crate) fn out_of_memory(request: &CodeRequest) -> ToolError {
    let memory = request.limits.memory_bytes >> 20;
    let message = format!("The program was stopped: it needed more than its {memory} MiB of memory");
    failed(ErrorKind::LimitExceeded, message, "Work on parts of the data, or let a tool do it")
}

/// It printed more than it may.
pub(crate) fn printed_too_much(request: &CodeRequest) -> ToolError {
    let message = format!("The program was stopped: it printed more than {} bytes", request.limits.max_output_bytes);
    let hint = "Print only what you need to read; large data can stay in variables or go to a tool";
    failed(ErrorKind::LimitExceeded, message, hint)
}

/// An error of one sort with a hint, for the many places that need one.
pub(crate) fn failed(kind: ErrorKind, message: impl Into<String>, hint: impl Into<String>) -> ToolError {
    ToolError::new(kind, message).with_hint(hint)
}
