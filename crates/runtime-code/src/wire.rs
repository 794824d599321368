//! Messages over the pipes of a child, so that any wait can be given up at any moment.

use std::{collections::VecDeque, io};

use serde::Serialize;
use tokio::io::{AsyncRead, AsyncReadExt, AsyncWrite, AsyncWriteExt};

use crate::message::{FromWorker, checked_length, encode};

/// How much is read at once.
const CHUNK: usize = 64 << 10;

/// Both directions of a child. Messages that were half read or half written when somebody looked away go on later.
pub(crate) struct Wire {
    writer: Box<dyn AsyncWrite + Send + Unpin>,
    reader: Box<dyn AsyncRead + Send + Unpin>,
    incoming: Vec<u8>,
    outgoing: VecDeque<u8>,
}

impl Wire {
    pub(crate) fn new(writer: Box<dyn AsyncWrite + Send + Unpin>, reader: Box<dyn AsyncRead + Send + Unpin>) -> Self {
        Self { writer, reader, incoming: Vec::new(), outgoing: VecDeque::new() }
    }

    /// Queues a message; [`Wire::next`] sends it.
    pub(crate) fn send(&mut self, message: &impl Serialize) -> io::Result<()> {
        self.outgoing.extend(encode(message)?);
        Ok(())
    }

    /// Whether all that was queued is sent, so that the child can be used for something else.
    pub(crate) fn is_clear(&self) -> bool {
        self.outgoing.is_empty() && self.incoming.is_empty()
    }

    /// The next message, `None` when the child has closed its end. Sends what is queued meanwhile: a child that waits
    /// until its own output is read must not stand in the way of its input.
    pub(crate) async fn next(&mut self) -> io::Result<Option<FromWorker>> {
        loop {
            if let Some(message) = self.take()? {
                return Ok(Some(message));
            }
            let old_length = self.incoming.len();
            self.incoming.reserve(CHUNK);
            let (chunk, _) = self.outgoing.as_slices();
            tokio::select! {
                read = self.reader.read_buf(&mut self.incoming) => if read? == 0 {
                    return if old_length == 0 { Ok(None) } else { Err(io::ErrorKind::UnexpectedEof.into()) };
                },
                written = self.writer.write(chunk), if !chunk.is_empty() => {
                    let written = written?;
                    self.outgoing.drain(..written);
                    if self.outgoing.is_empty() {
                        self.writer.flush().await?;
                    }
                }
            }
        }
    }

    /// Takes a whole message off what was read.
    fn take(&mut self) -> io::Result<Option<FromWorker>> {
        let Some((prefix, rest)) = self.incoming.split_first_chunk::<4>() else { return Ok(None) };
        let length = checked_length(*prefix)?;
        let Some(bytes) = rest.get(..length) else { return Ok(None) };
        let message = serde_json::from_slice(bytes)?;
        self.incoming.drain(..length + 4);
        Ok(Some(message))
    }
}
