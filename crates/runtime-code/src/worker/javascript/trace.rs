//! Stack traces as their reader sees them: lines of the program as it was written.

use std::fmt::Write;

use crate::message::last_line;

use super::{
    Description, FILE_NAME,
    prepare::{Position, Prepared},
};

/// Lines shown of a stack.
const MOST_LINES: usize = 12;

/// A stack trace.
pub(crate) struct Traceback {
    pub(crate) text: String,
    /// The innermost line of the program.
    pub(crate) line: Option<u32>,
}

/// The trace of an exception, without the helpers' own frames.
pub(crate) fn traceback(description: &Description, prepared: &Prepared, source: &str) -> Option<Traceback> {
    let frames: Vec<(String, u32)> =
        description.stack.lines().filter_map(|line| frame(line, prepared)).take(MOST_LINES).collect();
    let line = frames.first().map(|(_, line)| *line)?;
    let mut text = last_line(&description.message).to_owned();
    for (function, line) in &frames {
        let code = source.lines().nth(*line as usize - 1).unwrap_or_default().trim();
        let _ = write!(text, "\n    at {function} ({FILE_NAME}:{line})\n        {code}");
    }
    Some(Traceback { text, line: Some(line) })
}

/// Reads a line such as `    at name (code.js:3:5)`; gives the function and the line in the program.
fn frame(line: &str, prepared: &Prepared) -> Option<(String, u32)> {
    let line = line.trim().strip_prefix("at ")?;
    let place = line.rfind(FILE_NAME)?;
    let function = line.get(..place)?.trim_end_matches(['(', ' ']).trim();
    let mut numbers = line.get(place + FILE_NAME.len()..)?.trim_matches([':', ')']).split(':').map(str::parse::<u32>);
    let (line, column) = (numbers.next()?.ok()?, numbers.next().and_then(Result::ok).unwrap_or(1));
    let function = if function.is_empty() { "<anonymous>" } else { function };
    Some((function.to_owned(), source_line(&prepared.positions, line, column)))
}

/// The line of the program that a place in the prepared text comes from; both count from 1.
fn source_line(positions: &[Position], line: u32, column: u32) -> u32 {
    let on_line = positions.iter().filter(|position| position.line + 1 == line);
    let nearest = on_line.filter(|position| position.column < column).max_by_key(|position| position.column);
    nearest.map_or(line, |position| position.source_line + 1)
}
