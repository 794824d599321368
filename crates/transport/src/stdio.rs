//! One MCP session over a pair of byte streams: stdin and stdout of a server that a client started.
//!
//! Lines are read where the runtime waits, or by a thread where it cannot wait for them; what does not fit into the pipe at once
//! is written by a thread. Between them the service loop runs the handler.

use std::{
    io::{self, Read, Write},
    os::fd::{AsFd, BorrowedFd},
    sync::{Arc, LazyLock},
    thread,
    time::Duration,
};

use rmcp::{
    ServerHandler,
    model::{ClientJsonRpcMessage, ErrorData},
};
use rustix::event::PollFlags;
use tokio::{
    io::{Interest, unix::AsyncFd},
    sync::mpsc,
};
use tokio_util::sync::CancellationToken;

use crate::{
    connection::{Connection, Incoming, OutputClosed, incoming, serve, take_line},
    decode::Refusal,
    lines::{LINE_LENGTH, Line, LineReader},
    output::{OutputQueue, is_ready},
    shutdown::termination,
};

/// The handles that lend their descriptors for as long as the process lives.
static STDIN: LazyLock<io::Stdin> = LazyLock::new(io::stdin);
static STDOUT: LazyLock<io::Stdout> = LazyLock::new(io::stdout);

/// How long the last lines may take to be written.
const FLUSH_PATIENCE: Duration = Duration::from_millis(500);

/// The streams could not be served.
#[derive(Debug, thiserror::Error)]
pub enum StdioError {
    /// A thread that reads or writes could not be started.
    #[error("Could not start a thread for stdin or stdout")]
    Thread(#[source] io::Error),
}

/// Serves one session over stdin and stdout, until stdin ends or the process is asked to end.
pub async fn serve_stdio<H: ServerHandler + Clone>(handler: H) -> Result<(), StdioError> {
    let stop = CancellationToken::new();
    let signalled = stop.clone();
    let signals = tokio::spawn(async move {
        termination().await;
        signalled.cancel();
    });
    // Unlocked handles: a lock would be held by the threads for ever, and nothing else may print anyway.
    let served = serve_standard_streams(handler, stop).await;
    signals.abort();
    served
}

async fn serve_standard_streams<H: ServerHandler + Clone>(handler: H, stop: CancellationToken) -> Result<(), StdioError> {
    let output = OutputQueue::start(io::stdout(), Some(STDOUT.as_fd())).map_err(StdioError::Thread)?;
    let connection = Arc::new(Connection::new(output));
    #[expect(unsafe_code, reason = "the descriptor is borrowed for ever, which the type cannot say")]
    // SAFETY: stdin stays open for as long as the process lives, and nothing else is put in its place.
    let followed = unsafe { AsyncFd::register_with_interest(STDIN.as_fd(), Interest::READABLE) };
    let incoming = match followed {
        Ok(input) => follow(input, Arc::clone(&connection)),
        // A file, for example, which is always ready.
        Err(_) => read_messages(io::stdin(), Arc::clone(&connection)).map_err(StdioError::Thread)?,
    };
    serve(handler, Arc::clone(&connection), incoming, stop).await;
    connection.output.flushed(FLUSH_PATIENCE).await;
    Ok(())
}

/// Reads messages where the runtime waits for them, which saves the way over a thread. The descriptor's flags stay as they
/// are, since others may share it: it is read from only when something is there.
fn follow(input: AsyncFd<BorrowedFd<'static>>, connection: Arc<Connection<OutputQueue>>) -> Incoming {
    let (sender, receiver) = incoming();
    tokio::spawn(async move {
        let _ended = connection.ended.clone().drop_guard();
        let mut lines = LineReader::new(WhenReady(STDIN.as_fd()));
        loop {
            let taken = match lines.next_line() {
                Ok(Line::End) => return,
                Ok(line) => take(line, &connection, &sender).await,
                Err(error) if error.kind() == io::ErrorKind::WouldBlock => {
                    let Ok(mut ready) = input.readable().await else { return };
                    if !is_ready(STDIN.as_fd(), PollFlags::IN) {
                        ready.clear_ready();
                    }
                    Ok(())
                }
                Err(error) => return tracing::debug!(%error, "stdin broke"),
            };
            if taken.is_err() {
                return;
            }
        }
    });
    receiver
}

/// Reads what is there, and says `WouldBlock` where nothing is.
struct WhenReady(BorrowedFd<'static>);

impl Read for WhenReady {
    fn read(&mut self, buffer: &mut [u8]) -> io::Result<usize> {
        if !is_ready(self.0, PollFlags::IN) {
            return Err(io::ErrorKind::WouldBlock.into());
        }
        Ok(rustix::io::read(self.0, buffer)?)
    }
}

/// Serves one session over any pair of streams, until `reader` ends, `writer` breaks, or `stop` is cancelled.
/// Reading and writing happen on threads of their own; one that is stuck in a system call is left behind.
pub async fn serve_pipes<H: ServerHandler + Clone>(
    handler: H,
    reader: impl Read + Send + 'static,
    writer: impl Write + Send + 'static,
    stop: CancellationToken,
) -> Result<(), StdioError> {
    let output = OutputQueue::start(writer, None).map_err(StdioError::Thread)?;
    let connection = Arc::new(Connection::new(output));
    let incoming = read_messages(reader, Arc::clone(&connection)).map_err(StdioError::Thread)?;
    serve(handler, Arc::clone(&connection), incoming, stop).await;
    connection.output.flushed(FLUSH_PATIENCE).await;
    Ok(())
}

async fn take(
    line: Line<'_>,
    connection: &Connection<OutputQueue>,
    sender: &mpsc::Sender<ClientJsonRpcMessage>,
) -> Result<(), OutputClosed> {
    match line {
        Line::Text(line) => take_line(line, connection, sender).await,
        Line::TooLong { length } => {
            let message = format!("The message has {length} bytes; at most {LINE_LENGTH} are read");
            connection.refuse(Refusal { id: None, error: ErrorData::invalid_request(message, None) }).await
        }
        Line::End => Ok(()),
    }
}

/// Starts the thread that reads.
fn read_messages(reader: impl Read + Send + 'static, connection: Arc<Connection<OutputQueue>>) -> io::Result<Incoming> {
    let (sender, receiver) = incoming();
    let runtime = tokio::runtime::Handle::current();
    thread::Builder::new().name("mcp-input".to_owned()).spawn(move || {
        let _ended = connection.ended.clone().drop_guard();
        let mut lines = LineReader::new(reader);
        loop {
            let taken = match lines.next_line() {
                Ok(Line::End) => return,
                Ok(line) => runtime.block_on(take(line, &connection, &sender)),
                Err(error) => return tracing::debug!(%error, "stdin broke"),
            };
            if taken.is_err() {
                return;
            }
        }
    })?;
    Ok(receiver)
}
