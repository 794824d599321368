//! Cuts a guest's stderr into lines for the log, with bounds that a flood cannot break.

use std::sync::Arc;

use skillz_tool::{Host, LogLevel};

/// Lines of one call that reach the log; each costs a message to the client.
const MAX_LINES: usize = 500;
/// Longest line, in bytes; the rest of a longer one is left out.
const MAX_LINE: usize = 4 << 10;

/// A log of lines, of one guest.
pub(crate) struct LogLines {
    host: Arc<dyn Host>,
    line: Vec<u8>,
    sent: usize,
}

impl LogLines {
    pub(crate) fn new(host: Arc<dyn Host>) -> Self {
        Self { host, line: Vec::new(), sent: 0 }
    }

    pub(crate) fn write(&mut self, bytes: &[u8]) {
        if self.sent > MAX_LINES {
            return;
        }
        for piece in bytes.split_inclusive(|byte| *byte == b'\n') {
            let room = MAX_LINE.saturating_sub(self.line.len());
            self.line.extend_from_slice(piece.get(..room).unwrap_or(piece));
            if piece.ends_with(b"\n") {
                self.finish();
            }
        }
    }

    /// Sends an unfinished line.
    pub(crate) fn finish(&mut self) {
        let line = std::mem::take(&mut self.line);
        let text = String::from_utf8_lossy(&line);
        let text = text.trim_end();
        if text.is_empty() || self.sent > MAX_LINES {
            return;
        }
        self.sent += 1;
        if self.sent > MAX_LINES {
            let note = format!("The tool wrote more than {MAX_LINES} lines to stderr; the rest is left out");
            return self.host.log(LogLevel::Notice, &note, None);
        }
        self.host.log(LogLevel::Info, text, None);
    }
}
