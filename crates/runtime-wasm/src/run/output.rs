//! What a guest prints: kept up to the call's limit, and its stderr passed on line by line.

use std::{
    pin::Pin,
    sync::{
        Arc, Mutex, PoisonError,
        atomic::{AtomicU64, Ordering},
    },
    task::{Context, Poll},
};

use tokio::io::AsyncWrite;
use wasmtime_wasi::{
    cli::{IsTerminal, StdoutStream},
    p2::{OutputStream, Pollable, StreamError, StreamResult},
};

use super::log_lines::LogLines;

/// Bytes of stderr kept for the text of a failure.
const STDERR_TAIL: usize = 64 << 10;
/// Most bytes taken in one write. A guest's writes come in pieces of 4 KiB anyway.
const PERMIT: usize = 64 << 10;

/// Both output streams of one guest.
pub(crate) struct GuestOutput {
    limit: u64,
    written: AtomicU64,
    stdout: Mutex<Vec<u8>>,
    stderr: Mutex<Stderr>,
}

struct Stderr {
    tail: Vec<u8>,
    lines: LogLines,
}

/// The guest printed more than it may.
#[derive(Debug, thiserror::Error)]
#[error("The output is longer than {limit} bytes")]
pub(crate) struct OutputTooLong {
    /// The limit, in bytes.
    pub(crate) limit: u64,
}

/// Which of the two streams.
#[derive(Clone, Copy)]
enum Target {
    Stdout,
    Stderr,
}

/// One stream, as the WASI implementation wants it.
#[derive(Clone)]
pub(crate) struct GuestStream {
    output: Arc<GuestOutput>,
    target: Target,
}

impl GuestOutput {
    pub(crate) fn new(limit: u64, lines: LogLines) -> Arc<Self> {
        let stderr = Stderr { tail: Vec::new(), lines };
        Arc::new(Self { limit, written: AtomicU64::new(0), stdout: Mutex::default(), stderr: Mutex::new(stderr) })
    }

    pub(crate) fn stdout_stream(self: &Arc<Self>) -> GuestStream {
        GuestStream { output: Arc::clone(self), target: Target::Stdout }
    }

    pub(crate) fn stderr_stream(self: &Arc<Self>) -> GuestStream {
        GuestStream { output: Arc::clone(self), target: Target::Stderr }
    }

    /// Takes all that was printed to stdout.
    pub(crate) fn take_stdout(&self) -> Vec<u8> {
        std::mem::take(&mut self.stdout.lock().unwrap_or_else(PoisonError::into_inner))
    }

    /// The last part of stderr; an unfinished last line goes to the log now.
    pub(crate) fn finish_stderr(&self) -> String {
        let mut stderr = self.stderr.lock().unwrap_or_else(PoisonError::into_inner);
        stderr.lines.finish();
        let start = stderr.tail.len().saturating_sub(STDERR_TAIL);
        String::from_utf8_lossy(stderr.tail.get(start..).unwrap_or_default()).into_owned()
    }

    fn write(&self, target: Target, bytes: &[u8]) -> Result<(), OutputTooLong> {
        let written = self.written.fetch_add(bytes.len() as u64, Ordering::Relaxed) + bytes.len() as u64;
        let too_long = written > self.limit;
        let room = if too_long { bytes.len().saturating_sub((written - self.limit) as usize) } else { bytes.len() };
        let kept = bytes.get(..room).unwrap_or_default();
        match target {
            Target::Stdout => self.stdout.lock().unwrap_or_else(PoisonError::into_inner).extend_from_slice(kept),
            Target::Stderr => self.stderr.lock().unwrap_or_else(PoisonError::into_inner).write(kept),
        }
        if too_long { Err(OutputTooLong { limit: self.limit }) } else { Ok(()) }
    }
}

impl Stderr {
    fn write(&mut self, bytes: &[u8]) {
        self.lines.write(bytes);
        self.tail.extend_from_slice(bytes);
        // Cut seldom, so that a flood costs one copy for each tail's length.
        if self.tail.len() > 2 * STDERR_TAIL {
            let surplus = self.tail.len() - STDERR_TAIL;
            self.tail.drain(..surplus);
        }
    }
}

impl IsTerminal for GuestStream {
    fn is_terminal(&self) -> bool {
        false
    }
}

impl StdoutStream for GuestStream {
    fn async_stream(&self) -> Box<dyn AsyncWrite + Send + Sync> {
        Box::new(self.clone())
    }

    fn p2_stream(&self) -> Box<dyn OutputStream> {
        Box::new(self.clone())
    }
}

impl OutputStream for GuestStream {
    fn write(&mut self, bytes: bytes::Bytes) -> StreamResult<()> {
        // A trap, not an error code: a program that ignores write errors must end too.
        self.output.write(self.target, &bytes).map_err(|error| StreamError::Trap(error.into()))
    }

    fn flush(&mut self) -> StreamResult<()> {
        Ok(())
    }

    fn check_write(&mut self) -> StreamResult<usize> {
        Ok(PERMIT)
    }
}

#[async_trait::async_trait]
impl Pollable for GuestStream {
    async fn ready(&mut self) {}
}

impl AsyncWrite for GuestStream {
    fn poll_write(self: Pin<&mut Self>, _: &mut Context<'_>, bytes: &[u8]) -> Poll<std::io::Result<usize>> {
        Poll::Ready(self.output.write(self.target, bytes).map(|()| bytes.len()).map_err(std::io::Error::other))
    }

    fn poll_flush(self: Pin<&mut Self>, _: &mut Context<'_>) -> Poll<std::io::Result<()>> {
        Poll::Ready(Ok(()))
    }

    fn poll_shutdown(self: Pin<&mut Self>, _: &mut Context<'_>) -> Poll<std::io::Result<()>> {
        Poll::Ready(Ok(()))
    }
}
