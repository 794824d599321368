//! Lines over pipes: read without losing anything when a wait is cancelled, written without ever blocking a reader.

use std::{collections::VecDeque, io};

use skillz_process::{ChildInput, ChildOutput};
use tokio::io::{AsyncReadExt, AsyncWriteExt};

/// How much is read at once; the size of a pipe on Linux.
const CHUNK: usize = 64 * 1024;

/// Reads lines of any length.
pub(crate) struct LineReader {
    reader: Option<Box<dyn ChildOutput>>,
    buffer: Vec<u8>,
    /// Bytes before this one hold no line break.
    searched: usize,
    /// Bytes before this one have been given out.
    start: usize,
}

impl LineReader {
    pub(crate) fn new(reader: Option<Box<dyn ChildOutput>>) -> Self {
        Self { reader, buffer: Vec::new(), searched: 0, start: 0 }
    }

    /// Whether the end was reached and everything given out.
    pub(crate) fn is_done(&self) -> bool {
        self.reader.is_none() && self.start == self.buffer.len()
    }

    /// Reads more; gives how many bytes came, 0 at the end. May be cancelled.
    pub(crate) async fn fill(&mut self) -> usize {
        let Some(reader) = &mut self.reader else { return 0 };
        if self.start > 0 {
            self.buffer.drain(..self.start);
            self.searched -= self.start;
            self.start = 0;
        }
        self.buffer.reserve(CHUNK);
        if let Ok(count @ 1..) = reader.read_buf(&mut self.buffer).await {
            return count;
        }
        // A read error is the end, as a broken pipe is one.
        self.reader = None;
        0
    }

    /// Reads whatever lies in the pipe, and nothing that comes later; gives how many bytes that were.
    pub(crate) async fn fill_with_what_is_there(&mut self) -> usize {
        let mut count = 0;
        while self.reader.as_ref().and_then(|reader| reader.waiting()).is_some_and(|waiting| waiting > 0) {
            count += self.fill().await;
        }
        count
    }

    /// All that has been read and not given out.
    pub(crate) fn take_all(&mut self) -> &[u8] {
        let start = std::mem::replace(&mut self.start, self.buffer.len());
        self.searched = self.buffer.len();
        self.buffer.get(start..).unwrap_or_default()
    }

    /// The next whole line with its line break, if one has been read; at the end also what is left without one.
    pub(crate) fn take_line(&mut self) -> Option<&[u8]> {
        let rest = self.buffer.get(self.searched..)?;
        let end = match rest.iter().position(|byte| *byte == b'\n') {
            Some(position) => self.searched + position + 1,
            None if self.reader.is_none() && self.start < self.buffer.len() => self.buffer.len(),
            None => {
                self.searched = self.buffer.len();
                return None;
            }
        };
        let start = std::mem::replace(&mut self.start, end);
        self.searched = end;
        self.buffer.get(start..end)
    }
}

/// Writes lines in order; what does not fit into the pipe waits here.
pub(crate) struct LineWriter {
    writer: Option<Box<dyn ChildInput>>,
    pending: VecDeque<u8>,
    close_when_empty: bool,
    /// The other side is gone; what it never read can still be counted.
    is_broken: bool,
}

impl LineWriter {
    pub(crate) fn new(writer: Option<Box<dyn ChildInput>>) -> Self {
        Self { writer, pending: VecDeque::new(), close_when_empty: false, is_broken: false }
    }

    /// Queues bytes; they are dropped once the other side has closed the pipe.
    pub(crate) fn push(&mut self, bytes: &[u8]) {
        if self.writer.is_some() {
            self.pending.extend(bytes);
        }
    }

    /// Bytes that the other side has not read, whether it is still there or not; `None` where nobody can tell.
    pub(crate) fn unread(&self) -> Option<usize> {
        Some(self.pending.len() + self.writer.as_ref()?.unread()?)
    }

    /// Whether there is something to write.
    pub(crate) fn has_pending(&self) -> bool {
        self.writer.is_some() && !self.is_broken && !self.pending.is_empty()
    }

    /// Closes the pipe once everything queued is written.
    pub(crate) fn close(&mut self) {
        self.close_when_empty = true;
        if self.pending.is_empty() {
            self.writer = None;
        }
    }

    /// Writes some of what is queued. May be cancelled. An error means that the other side is gone.
    pub(crate) async fn advance(&mut self) -> io::Result<()> {
        let Some(writer) = &mut self.writer else { return Ok(()) };
        let (first, _) = self.pending.as_slices();
        if !first.is_empty() {
            match writer.write(first).await {
                Ok(count) => drop(self.pending.drain(..count)),
                Err(error) => {
                    self.is_broken = true;
                    return Err(error);
                }
            }
        }
        if self.pending.is_empty() && self.close_when_empty {
            self.writer = None;
        }
        Ok(())
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[tokio::test]
    async fn lines_come_whole_whatever_the_pieces() {
        let (mut writer, reader) = tokio::net::unix::pipe::pipe().unwrap();
        let sent = tokio::spawn(async move { writer.write_all("a\n\nlonger line \u{fc}\nrest".as_bytes()).await });
        let mut reader = LineReader::new(Some(Box::new(reader)));
        let mut lines = Vec::new();
        while !reader.is_done() {
            reader.fill().await;
            while let Some(line) = reader.take_line() {
                lines.push(String::from_utf8(line.to_vec()).unwrap());
            }
        }
        sent.await.unwrap().unwrap();
        assert_eq!(lines, ["a\n", "\n", "longer line \u{fc}\n", "rest"]);
    }

    #[tokio::test]
    async fn a_closed_reader_is_told_and_forgotten() {
        let (writer, reader) = tokio::net::unix::pipe::pipe().unwrap();
        let mut writer = LineWriter::new(Some(Box::new(writer)));
        writer.push(b"read\n");
        writer.advance().await.unwrap();
        assert_eq!(writer.unread(), Some(5));
        let mut bytes = [0; 4];
        reader.readable().await.unwrap();
        assert_eq!(reader.try_read(&mut bytes).unwrap(), 4);
        drop(reader);
        writer.push(b"x\n");
        assert!(writer.advance().await.is_err());
        assert_eq!(writer.unread(), Some(3), "what it never read can still be counted");
        writer.push(b"more");
        assert!(!writer.has_pending());
    }
}
