//! Exceptions as their reader sees them: lines of the program as it was written.

use std::fmt::Write;

use monty_types::{MontyException, StackFrame};

use super::{FILE_NAME, prepare::Prepared};
use crate::message::{Failure, FailureKind, TOOL_ERROR, last_line, with_line};

/// Frames shown; of deeper stacks the outermost and innermost half.
const MOST_FRAMES: usize = 12;

/// An exception with its traceback, in the program's own lines. A tool's failure is told of as a real Python tells it.
pub(crate) fn failure(error: &MontyException, kind: FailureKind, prepared: &Prepared, source: &str, is_refusal: bool) -> Failure {
    let summary = error.summary();
    let summary = match summary.strip_prefix("RuntimeError") {
        Some(rest) if is_refusal => format!("{TOOL_ERROR}{rest}"),
        _ => summary,
    };
    let frames: Vec<Frame<'_>> = error.traceback().iter().filter_map(|frame| Frame::read(frame, prepared, source)).collect();
    if frames.is_empty() {
        return Failure::new(kind, summary);
    }
    let mut text = "Traceback (most recent call last):\n".to_owned();
    let half = MOST_FRAMES / 2;
    for (index, frame) in frames.iter().enumerate() {
        if frames.len() > MOST_FRAMES && index == half {
            let _ = writeln!(text, "  ... {} more frames ...", frames.len() - MOST_FRAMES);
        }
        if frames.len() <= MOST_FRAMES || index < half || index >= frames.len() - half {
            let _ = writeln!(text, "  File \"{FILE_NAME}\", line {}, in {}\n    {}", frame.line, frame.function, frame.text);
        }
    }
    text.push_str(last_line(&summary));
    let message = frames.last().map_or(summary.clone(), |frame| with_line(&summary, frame.line));
    Failure { traceback: Some(text), ..Failure::new(kind, message) }
}

struct Frame<'a> {
    line: u32,
    function: &'a str,
    text: &'a str,
}

impl<'a> Frame<'a> {
    /// The frame in the program's own lines; those of the helpers are left out.
    fn read(frame: &'a StackFrame, prepared: &Prepared, source: &'a str) -> Option<Self> {
        let line = frame.start.line.checked_sub(prepared.prelude_lines).filter(|line| *line > 0)?;
        let text = source.lines().nth(line as usize - 1).unwrap_or_default().trim();
        Some(Self { line, function: frame.frame_name.as_deref().unwrap_or("<module>"), text })
    }
}
