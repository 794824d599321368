//! Lines of a byte stream, each of bounded length.
//!
//! A line that is too long is read to its end and thrown away, so that the stream stays in step.

use std::io::{self, BufRead, BufReader, Read};

/// Longest line that is kept, in bytes. The largest honest messages carry sources or modules in base64;
/// a bound keeps one line from taking all memory.
pub(crate) const LINE_LENGTH: usize = 32 << 20;
/// How much of a buffer is kept for the next line, in bytes.
const KEPT_CAPACITY: usize = 64 << 10;
/// Size of one read.
const READ_SIZE: usize = 64 << 10;

/// What a stream gave.
#[derive(Debug, PartialEq, Eq)]
pub(crate) enum Line<'a> {
    /// One line without its break; never blank.
    Text(&'a [u8]),
    /// A line longer than [`LINE_LENGTH`], which was skipped.
    TooLong {
        /// How long it was, in bytes.
        length: usize,
    },
    /// The stream has ended.
    End,
}

/// Reads lines from a stream.
pub(crate) struct LineReader<R> {
    source: BufReader<R>,
    line: Vec<u8>,
    /// How long the line is so far, with what was thrown away; `None` between lines.
    length: Option<usize>,
    limit: usize,
}

impl<R: Read> LineReader<R> {
    /// Reads lines of at most [`LINE_LENGTH`] bytes.
    pub(crate) fn new(source: R) -> Self {
        Self::with_limit(source, LINE_LENGTH)
    }

    fn with_limit(source: R, limit: usize) -> Self {
        Self { source: BufReader::with_capacity(READ_SIZE, source), line: Vec::new(), length: None, limit }
    }

    /// Waits for the next line that is not blank. A last line without a break counts.
    pub(crate) fn next_line(&mut self) -> io::Result<Line<'_>> {
        loop {
            let length = self.read_line()?;
            let Some(length) = length else { return Ok(Line::End) };
            if length > self.limit {
                return Ok(Line::TooLong { length });
            }
            if !self.line.trim_ascii().is_empty() {
                return Ok(Line::Text(self.line.trim_ascii()));
            }
        }
    }

    /// Fills `line`; gives the true length of what was there, or `None` at the end. After an error such as `WouldBlock` it goes
    /// on where it stopped.
    fn read_line(&mut self) -> io::Result<Option<usize>> {
        if self.length.is_none() {
            self.line.clear();
            self.line.shrink_to(KEPT_CAPACITY);
        }
        loop {
            let mut length = self.length.unwrap_or(0);
            let buffer = match self.source.fill_buf() {
                Ok(buffer) => buffer,
                Err(error) if error.kind() == io::ErrorKind::Interrupted => continue,
                Err(error) => return Err(error),
            };
            if buffer.is_empty() {
                self.length = None;
                return Ok((length > 0).then_some(length));
            }
            let end = buffer.iter().position(|byte| *byte == b'\n');
            let part = buffer.get(..end.unwrap_or(buffer.len())).unwrap_or_default();
            length += part.len();
            if length > self.limit {
                self.line = Vec::new();
            } else {
                self.line.extend_from_slice(part);
            }
            let consumed = part.len() + usize::from(end.is_some());
            self.source.consume(consumed);
            self.length = end.is_none().then_some(length);
            if end.is_some() {
                return Ok(Some(length));
            }
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn all(input: &[u8], limit: usize) -> Vec<String> {
        let mut reader = LineReader::with_limit(input, limit);
        let mut lines = Vec::new();
        loop {
            match reader.next_line().expect("slices do not fail") {
                Line::Text(text) => lines.push(String::from_utf8_lossy(text).into_owned()),
                Line::TooLong { length } => lines.push(format!("<{length}>")),
                Line::End => return lines,
            }
        }
    }

    #[test]
    fn lines_come_without_breaks_and_blank_ones_not_at_all() {
        assert_eq!(all(b"a\r\n\n  \n b \nlast", 10), ["a", "b", "last"]);
        assert_eq!(all(b"", 10), Vec::<String>::new());
        assert_eq!(all(b"\n\n", 10), Vec::<String>::new());
    }

    #[test]
    fn a_long_line_is_skipped_whole() {
        let long = "x".repeat(200_000);
        assert_eq!(all(format!("a\n{long}\nb\n").as_bytes(), 100), ["a", "<200000>", "b"]);
        assert_eq!(all(long.as_bytes(), 100), ["<200000>"]);
        assert_eq!(all(b"12345\n123456\n", 5), ["12345", "<6>"]);
    }
}
