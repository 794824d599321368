//! The one error of the call path.

use std::fmt;

use skillz_json::Value;

/// Longest text of a failure that reaches a model, in bytes.
const TEXT_LENGTH: usize = 4_000;

/// What sort of failure it is; picks the exit code and the protocol's form.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum ErrorKind {
    /// No such tool, version, resource or key.
    NotFound,
    /// The caller's arguments are wrong.
    InvalidInput,
    /// A permission or the operator's policy stands against it.
    Denied,
    /// The tool ran and failed: exit code, exception, trap.
    Failed,
    /// The tool ran out of time.
    TimedOut,
    /// The tool broke a limit other than time.
    LimitExceeded,
    /// The caller gave up.
    Cancelled,
    /// Something on this machine is missing: an interpreter, a sandbox, a toolchain.
    Unavailable,
    /// A broken manifest, schema or setting.
    Config,
    /// A fault of the server itself.
    Internal,
}

/// A failure, told to a reader who has no other context: what failed and why, the tool's own last words,
/// and what to do next.
#[derive(Debug, Clone, PartialEq)]
pub struct ToolError {
    /// What sort of failure it is.
    pub kind: ErrorKind,
    /// What failed, on what, and why. One or more sentences.
    pub message: String,
    /// The last lines that the tool itself wrote (stderr, or stdout where that is empty).
    pub output: Option<String>,
    /// What to do next.
    pub hint: Option<String>,
    /// Machine-readable detail, such as a list of faults.
    pub data: Option<Value>,
}

impl ToolError {
    /// A failure with a message only.
    pub fn new(kind: ErrorKind, message: impl Into<String>) -> Self {
        Self { kind, message: message.into(), output: None, hint: None, data: None }
    }

    /// A failure of kind [`ErrorKind::Failed`].
    pub fn failed(message: impl Into<String>) -> Self {
        Self::new(ErrorKind::Failed, message)
    }

    /// A failure of kind [`ErrorKind::InvalidInput`].
    pub fn invalid(message: impl Into<String>) -> Self {
        Self::new(ErrorKind::InvalidInput, message)
    }

    /// A failure of kind [`ErrorKind::Internal`].
    pub fn internal(message: impl fmt::Display) -> Self {
        Self::new(ErrorKind::Internal, message.to_string())
    }

    /// Adds the tool's own last lines; empty output is left out.
    #[must_use]
    pub fn with_output(mut self, output: impl Into<String>) -> Self {
        let output = output.into();
        self.output = (!output.trim().is_empty()).then_some(output);
        self
    }

    /// Adds what to do next.
    #[must_use]
    pub fn with_hint(mut self, hint: impl Into<String>) -> Self {
        self.hint = Some(hint.into());
        self
    }

    /// Adds machine-readable detail.
    #[must_use]
    pub fn with_data(mut self, data: Value) -> Self {
        self.data = Some(data);
        self
    }

    /// The whole text for a model, at most 4,000 bytes: of long output the last lines are kept.
    pub fn text(&self) -> String {
        let hint = self.hint.as_deref().map(|hint| keep_first(hint, TEXT_LENGTH / 4));
        let reserved = hint.as_ref().map_or(0, |hint| hint.len() + 2);
        let mut text = keep_first(&self.message, TEXT_LENGTH - reserved);
        if let Some(output) = &self.output {
            let room = TEXT_LENGTH.saturating_sub(text.len() + reserved + 2);
            let tail = keep_last(output.trim_end(), room);
            if !tail.is_empty() {
                text.push_str("\n\n");
                text.push_str(&tail);
            }
        }
        if let Some(hint) = hint {
            text.push_str("\n\n");
            text.push_str(&hint);
        }
        text
    }
}

/// The first `limit` bytes of `text` at most, cut between characters, with a mark where something was cut.
fn keep_first(text: &str, limit: usize) -> String {
    if text.len() <= limit {
        return text.to_owned();
    }
    let end = text.floor_char_boundary(limit.saturating_sub(4));
    format!("{} ...", text.get(..end).unwrap_or_default())
}

/// The last whole lines of `text` within `limit` bytes, with a mark where something was cut.
fn keep_last(text: &str, limit: usize) -> String {
    if text.len() <= limit {
        return text.to_owned();
    }
    if limit < 16 {
        return String::new();
    }
    let start = text.ceil_char_boundary(text.len() - (limit - 4));
    let tail = text.get(start..).unwrap_or_default();
    let tail = tail.split_once('\n').map_or(tail, |(_, rest)| if rest.is_empty() { tail } else { rest });
    format!("...\n{tail}")
}

impl fmt::Display for ToolError {
    fn fmt(&self, formatter: &mut fmt::Formatter<'_>) -> fmt::Result {
        formatter.write_str(&self.text())
    }
}

impl std::error::Error for ToolError {}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn text_keeps_message_tail_and_hint_within_the_bound() {
        let lines: String = (0..2_000).map(|number| format!("line {number}\n")).collect();
        let text = ToolError::failed("`x` ended with exit code 3").with_output(lines).with_hint("Fix it").text();
        assert!(text.len() <= TEXT_LENGTH);
        assert!(text.starts_with("`x` ended with exit code 3\n\n...\nline "));
        assert!(text.ends_with("line 1999\n\nFix it"));
        let text = ToolError::failed("ü".repeat(9_000)).with_output("é".repeat(9_000)).with_hint("h".repeat(9_000)).text();
        assert!(text.len() <= TEXT_LENGTH, "{}", text.len());
    }
}
