//! Reads a stream of server-sent events, bounded.

use std::time::Duration;

use reqwest::Response;

use super::MESSAGE_LENGTH;
use crate::error::LinkError;

/// One event.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub(crate) struct Event {
    /// Its name; `message` where it has none.
    pub(crate) name: String,
    /// Its data, lines joined.
    pub(crate) data: String,
}

/// Puts lines together to events.
#[derive(Debug, Default)]
struct Assembler {
    event: Event,
    has_data: bool,
    last_id: Option<String>,
    retry: Option<Duration>,
}

/// A stream of events.
pub(crate) struct EventStream {
    response: Response,
    buffer: Vec<u8>,
    /// How much of the buffer was looked through for the end of a line.
    searched: usize,
    assembler: Assembler,
}

impl EventStream {
    pub(crate) fn new(response: Response) -> Self {
        Self { response, buffer: Vec::new(), searched: 0, assembler: Assembler::default() }
    }

    /// The id of the last event, from which a broken stream can be taken up again.
    pub(crate) fn last_id(&self) -> Option<&str> {
        self.assembler.last_id.as_deref()
    }

    /// How long the server wants to be left alone before the stream is taken up again.
    pub(crate) fn retry(&self) -> Option<Duration> {
        self.assembler.retry
    }

    /// The next event; `None` at the end of the stream.
    pub(crate) async fn next(&mut self) -> Result<Option<Event>, LinkError> {
        loop {
            while let Some(line) = self.take_line() {
                if let Some(event) = self.assembler.take(&line) {
                    return Ok(Some(event));
                }
            }
            if self.buffer.len() + self.assembler.event.data.len() > MESSAGE_LENGTH {
                return Err(LinkError::Over(format!("The server sent an event of more than {MESSAGE_LENGTH} bytes")));
            }
            match self.response.chunk().await.map_err(super::clients::failure)? {
                Some(chunk) => self.buffer.extend_from_slice(&chunk),
                None => return Ok(None),
            }
        }
    }

    fn take_line(&mut self) -> Option<String> {
        let unseen = self.buffer.get(self.searched..)?;
        let Some(position) = unseen.iter().position(|byte| *byte == b'\n') else {
            self.searched = self.buffer.len();
            return None;
        };
        let end = self.searched + position;
        let line: Vec<u8> = self.buffer.drain(..=end).collect();
        self.searched = 0;
        let line = line.strip_suffix(b"\n").unwrap_or(&line);
        let line = line.strip_suffix(b"\r").unwrap_or(line);
        Some(String::from_utf8_lossy(line).into_owned())
    }
}

impl Assembler {
    /// Takes one line; gives an event when it is whole.
    fn take(&mut self, line: &str) -> Option<Event> {
        if line.is_empty() {
            let mut event = std::mem::take(&mut self.event);
            if !std::mem::take(&mut self.has_data) {
                return None;
            }
            if event.name.is_empty() {
                "message".clone_into(&mut event.name);
            }
            return Some(event);
        }
        let (field, value) = line.split_once(':').unwrap_or((line, ""));
        let value = value.strip_prefix(' ').unwrap_or(value);
        match field {
            "event" => value.clone_into(&mut self.event.name),
            "data" => {
                if self.has_data {
                    self.event.data.push('\n');
                }
                self.event.data.push_str(value);
                self.has_data = true;
            }
            "id" if !value.contains('\0') => self.last_id = Some(value.to_owned()),
            "retry" => self.retry = value.parse().ok().map(Duration::from_millis),
            _ => {}
        }
        None
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn lines_become_events() {
        let mut assembler = Assembler::default();
        let text = "\u{feff}: hello\nid: 7\nretry: 20\ndata:\n\nevent: endpoint\ndata: /x\n\n: ping\n\ndata: a\ndata:b\nid\n\ndata: left over\n";
        let events: Vec<Event> = text.lines().filter_map(|line| assembler.take(line)).collect();
        let event = |name: &str, data: &str| Event { name: name.to_owned(), data: data.to_owned() };
        assert_eq!(events, [event("message", ""), event("endpoint", "/x"), event("message", "a\nb")]);
        assert_eq!(assembler.last_id.as_deref(), Some(""));
        assert_eq!(assembler.retry, Some(Duration::from_millis(20)));
    }
}
