//! One MCP session over a pair of byte streams: stdin and stdout of a server that a client started.
//!
//! A thread reads and decodes lines, a thread writes them; between them the service loop runs the handler.

use std::{
    io::{self, Read, Write},
    sync::Arc,
    thread,
    time::Duration,
};

use rmcp::{ServerHandler, model::ErrorData};
use tokio_util::sync::CancellationToken;

use crate::{
    connection::{Connection, Incoming, incoming, serve, take_line},
    decode::Refusal,
    lines::{LINE_LENGTH, Line, LineReader},
    output::OutputQueue,
    shutdown::termination,
};

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
    let served = serve_pipes(handler, io::stdin(), io::stdout(), stop).await;
    signals.abort();
    served
}

/// Serves one session over any pair of streams, until `reader` ends, `writer` breaks, or `stop` is cancelled.
/// Reading and writing happen on threads of their own; one that is stuck in a system call is left behind.
pub async fn serve_pipes<H: ServerHandler + Clone>(
    handler: H,
    reader: impl Read + Send + 'static,
    writer: impl Write + Send + 'static,
    stop: CancellationToken,
) -> Result<(), StdioError> {
    let output = OutputQueue::start(writer).map_err(StdioError::Thread)?;
    let connection = Arc::new(Connection::new(output));
    let incoming = read_messages(reader, Arc::clone(&connection)).map_err(StdioError::Thread)?;
    serve(handler, Arc::clone(&connection), incoming, stop).await;
    connection.output.flushed(FLUSH_PATIENCE).await;
    Ok(())
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
                Ok(Line::Text(line)) => runtime.block_on(take_line(line, &connection, &sender)),
                Ok(Line::TooLong { length }) => {
                    let message = format!("The message has {length} bytes; at most {LINE_LENGTH} are read");
                    runtime.block_on(connection.refuse(Refusal { id: None, error: ErrorData::invalid_request(message, None) }))
                }
                Ok(Line::End) => return,
                Err(error) => return tracing::debug!(%error, "stdin broke"),
            };
            if taken.is_err() {
                return;
            }
        }
    })?;
    Ok(receiver)
}
