//! What a script prints for people: forwarded to the log line by line, within bounds, and its end kept for failures.

use std::{collections::VecDeque, sync::Arc};

use skillz_tool::{Host, LogLevel};

/// Most lines of one call that reach the log.
const MOST_LINES: usize = 1_000;
/// Most bytes of one line that reach the log.
const LINE_LENGTH: usize = 4_000;
/// How much of the end is kept: more than a failure's text shows.
const TAIL: usize = 16 * 1024;

/// Forwards lines to the log.
pub(crate) struct LogForwarder {
    host: Arc<dyn Host>,
    lines: usize,
}

impl LogForwarder {
    pub(crate) fn new(host: Arc<dyn Host>) -> Self {
        Self { host, lines: 0 }
    }

    /// Logs one line; blank ones are left out, and so are those beyond the bound, which is told once.
    pub(crate) fn line(&mut self, line: &[u8]) {
        let text = String::from_utf8_lossy(line);
        let text = text.trim_end();
        if text.is_empty() || self.lines > MOST_LINES {
            return;
        }
        self.lines += 1;
        if self.lines > MOST_LINES {
            self.host.log(LogLevel::Notice, "The tool printed more lines; they are left out of the log", None);
            return;
        }
        let shown = text.get(..text.floor_char_boundary(LINE_LENGTH)).unwrap_or(text);
        self.host.log(LogLevel::Info, shown, None);
    }
}

/// The last part of a stream.
#[derive(Debug, Default)]
pub(crate) struct Tail {
    bytes: VecDeque<u8>,
}

impl Tail {
    pub(crate) fn add(&mut self, bytes: &[u8]) {
        let kept = bytes.get(bytes.len().saturating_sub(TAIL)..).unwrap_or_default();
        let excess = (self.bytes.len() + kept.len()).saturating_sub(TAIL);
        self.bytes.drain(..excess);
        self.bytes.extend(kept);
    }

    pub(crate) fn text(&self) -> String {
        let (first, second) = self.bytes.as_slices();
        String::from_utf8_lossy(&[first, second].concat()).into_owned()
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_tail_is_the_end() {
        let mut tail = Tail::default();
        tail.add(b"begin");
        tail.add(&vec![b'x'; TAIL - 3]);
        tail.add(b"end");
        let text = tail.text();
        assert_eq!(text.len(), TAIL);
        assert!(text.ends_with("end") && !text.contains('b'));
        tail.add(&vec![b'y'; 3 * TAIL]);
        assert_eq!(tail.text(), "y".repeat(TAIL));
    }
}
