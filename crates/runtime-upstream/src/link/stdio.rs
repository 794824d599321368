//! The pipes of a local server: lines of JSON out and in. What else it prints costs nothing and is bounded.

use std::{
    collections::VecDeque,
    sync::{Arc, Mutex, PoisonError},
    time::Duration,
};

use skillz_json::Value;
use skillz_process::{Child, Exit};
use tokio::{
    io::{AsyncRead, AsyncReadExt, AsyncWrite, AsyncWriteExt},
    sync::mpsc,
};
use tokio_util::sync::CancellationToken;

use super::{MESSAGE_LENGTH, Outgoing};
use crate::{
    connection::Connection,
    error::{LinkError, RequestError},
    secrets::Secrets,
};

/// Messages that may wait for a server that does not read.
const WAITING_MESSAGES: usize = 64;
/// How much is read at once; the size of a pipe on Linux.
const CHUNK: usize = 64 * 1024;
/// Bytes of stderr that are kept.
const TAIL: usize = 8 * 1024;
/// Bytes of a line that is no message which the log shows.
const SHOWN_NOISE: usize = 200;
/// How long a server may put its house in order after its stdin was closed.
const GRACE: Duration = Duration::from_millis(500);
/// How long the rest of stderr is waited for after the end.
const LAST_WORDS: Duration = Duration::from_millis(200);

/// The way to a process.
pub(crate) struct StdioLink(mpsc::Sender<Vec<u8>>);

impl StdioLink {
    pub(crate) async fn carry(&self, message: Outgoing<'_>) -> Result<(), LinkError> {
        let mut line = message.body;
        line.push(b'\n');
        self.0.send(line).await.map_err(|_| LinkError::Unsent("The server's process is gone".to_owned()))
    }
}

/// The last lines of a process's stderr. Clones share them.
#[derive(Clone, Default)]
pub(crate) struct Tail(Arc<Mutex<VecDeque<u8>>>);

impl Tail {
    fn add(&self, bytes: &[u8]) {
        let mut kept = self.0.lock().unwrap_or_else(PoisonError::into_inner);
        let bytes = bytes.get(bytes.len().saturating_sub(TAIL)..).unwrap_or_default();
        let excess = (kept.len() + bytes.len()).saturating_sub(TAIL);
        kept.drain(..excess);
        kept.extend(bytes);
    }

    /// The text, from the beginning of a line where the first one was cut.
    pub(crate) fn text(&self) -> String {
        let bytes: Vec<u8> = self.0.lock().unwrap_or_else(PoisonError::into_inner).iter().copied().collect();
        let text = String::from_utf8_lossy(&bytes);
        let whole = if bytes.len() < TAIL { &*text } else { text.split_once('\n').map_or(&*text, |(_, rest)| rest) };
        whole.trim().to_owned()
    }
}

/// A process with its pipes, to be driven by a task of its own.
pub(crate) struct Pipes {
    child: Child,
    outgoing: mpsc::Receiver<Vec<u8>>,
    tail: Tail,
    secrets: Secrets,
}

impl Pipes {
    pub(crate) fn new(child: Child, tail: Tail, secrets: Secrets) -> (StdioLink, Self) {
        let (sender, outgoing) = mpsc::channel(WAITING_MESSAGES);
        (StdioLink(sender), Self { child, outgoing, tail, secrets })
    }

    /// Moves messages until the process ends, or until `stop`; closes the connection then. When this is dropped, the
    /// process and all that it started die.
    pub(crate) async fn drive(mut self, connection: Arc<Connection>, stop: CancellationToken) {
        let (stdin, stdout, stderr) = (self.child.stdin.take(), self.child.stdout.take(), self.child.stderr.take());
        let reading = async {
            if let Some(stdout) = stdout {
                read_messages(stdout, &connection, &self.secrets).await;
            }
        };
        let tail = self.tail.clone();
        let erring = async {
            if let Some(stderr) = stderr {
                read_errors(stderr, &tail).await;
            }
        };
        let writing = async {
            if let Some(stdin) = stdin {
                write_messages(stdin, &mut self.outgoing).await;
            }
            std::future::pending::<()>().await;
        };
        let mut erring = std::pin::pin!(erring);
        let mut errors_done = false;
        let exit = {
            let child = &mut self.child;
            let mut ending = std::pin::pin!(async {
                tokio::select! {
                    () = reading => None,
                    () = writing => None,
                    exit = child.wait() => exit.ok(),
                    () = stop.cancelled() => None,
                }
            });
            loop {
                tokio::select! {
                    exit = &mut ending => break exit,
                    () = &mut erring, if !errors_done => errors_done = true,
                }
            }
        };
        if stop.is_cancelled() {
            connection.close(LinkError::Over("The server was stopped".to_owned()));
            self.child.end(GRACE).await;
            return;
        }
        // Its stdout may be closed a moment before it ends.
        let exit = match exit {
            Some(exit) => Some(exit),
            None => tokio::time::timeout(GRACE, self.child.wait()).await.ok().and_then(Result::ok),
        };
        if !errors_done {
            let _ = tokio::time::timeout(LAST_WORDS, erring).await;
        }
        connection.close(LinkError::Over(describe(exit)));
        self.child.kill().await;
    }
}

fn describe(exit: Option<Exit>) -> String {
    match exit {
        Some(Exit::Code(code)) => format!("The server's process ended with exit code {code}"),
        Some(Exit::Signal(signal)) => format!("The server's process was killed by signal {signal}"),
        Some(Exit::MemoryLimit) => "The server's process used more memory than a confined one may".to_owned(),
        Some(Exit::ProcessLimit) => "The server started more processes than a confined one may".to_owned(),
        None => "The server closed its stdout".to_owned(),
    }
}

async fn write_messages(mut stdin: Box<dyn AsyncWrite + Send + Unpin>, outgoing: &mut mpsc::Receiver<Vec<u8>>) {
    while let Some(line) = outgoing.recv().await {
        if stdin.write_all(&line).await.is_err() || stdin.flush().await.is_err() {
            return;
        }
    }
}

async fn read_errors(mut stderr: Box<dyn AsyncRead + Send + Unpin>, tail: &Tail) {
    let mut chunk = vec![0; CHUNK];
    while let Ok(count @ 1..) = stderr.read(&mut chunk).await {
        tail.add(chunk.get(..count).unwrap_or_default());
    }
}

async fn read_messages(mut stdout: Box<dyn AsyncRead + Send + Unpin>, connection: &Arc<Connection>, secrets: &Secrets) {
    let mut lines = Lines::default();
    let mut chunk = vec![0; CHUNK];
    while let Ok(count @ 1..) = stdout.read(&mut chunk).await {
        let mut rest = chunk.get(..count).unwrap_or_default();
        while let Some(end) = rest.iter().position(|byte| *byte == b'\n') {
            lines.add(rest.get(..end).unwrap_or_default());
            take_line(&lines.take(), connection, secrets);
            rest = rest.get(end + 1..).unwrap_or_default();
        }
        lines.add(rest);
    }
    take_line(&lines.take(), connection, secrets);
}

/// A line in the making. Of one that is too long the beginning is kept, which may tell whose answer it was.
#[derive(Default)]
struct Lines {
    bytes: Vec<u8>,
    is_cut: bool,
}

/// A whole line.
struct Line {
    bytes: Vec<u8>,
    is_cut: bool,
}

impl Lines {
    fn add(&mut self, bytes: &[u8]) {
        if self.bytes.len() + bytes.len() > MESSAGE_LENGTH {
            self.is_cut = true;
            self.bytes.truncate(SHOWN_NOISE);
        }
        if !self.is_cut {
            self.bytes.extend_from_slice(bytes);
        }
    }

    fn take(&mut self) -> Line {
        Line { bytes: std::mem::take(&mut self.bytes), is_cut: std::mem::take(&mut self.is_cut) }
    }
}

fn take_line(line: &Line, connection: &Arc<Connection>, secrets: &Secrets) {
    let text = line.bytes.trim_ascii();
    if text.is_empty() {
        return;
    }
    if line.is_cut {
        tracing::warn!("A line of more than {MESSAGE_LENGTH} bytes was dropped");
        if let Some(id) = id_in(text) {
            let reason = format!("The server's answer is longer than {MESSAGE_LENGTH} bytes and was dropped");
            connection.fail(id, RequestError::Senseless(reason));
        }
        return;
    }
    if text.starts_with(b"{") || text.starts_with(b"[") {
        let parsed = match std::str::from_utf8(text) {
            Ok(text) => serde_json::from_str::<Value>(text),
            Err(_) => serde_json::from_str(&String::from_utf8_lossy(text)),
        };
        if let Ok(message) = parsed {
            connection.receive(message, None);
            return;
        }
    }
    let shown = String::from_utf8_lossy(text.get(..text.len().min(SHOWN_NOISE)).unwrap_or_default()).into_owned();
    tracing::debug!(target: "skillz::upstream", bytes = text.len(), "printed: {}", secrets.hide(&shown));
}

/// The id near the beginning of a message that is too long to be read.
fn id_in(head: &[u8]) -> Option<u64> {
    let head = String::from_utf8_lossy(head);
    let (_, rest) = head.split_once("\"id\"")?;
    let rest = rest.trim_start().strip_prefix(':')?.trim_start();
    let end = rest.find(|character: char| !character.is_ascii_digit()).unwrap_or(rest.len());
    rest.get(..end)?.parse().ok()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn lines_are_bounded_and_tell_whose_they_were() {
        let mut lines = Lines::default();
        lines.add(b"{\"jsonrpc\":\"2.0\", \"id\" : 12,\"result\":\"");
        for _ in 0..=MESSAGE_LENGTH / CHUNK {
            lines.add(&vec![b'x'; CHUNK]);
        }
        let line = lines.take();
        assert!(line.is_cut && line.bytes.len() <= SHOWN_NOISE);
        assert_eq!(id_in(&line.bytes), Some(12));
        lines.add(b"{}");
        assert!(!lines.take().is_cut, "the next line is a new one");
    }

    #[test]
    fn the_tail_keeps_the_last_lines() {
        let tail = Tail::default();
        for number in 0..10_000 {
            tail.add(format!("line {number}\n").as_bytes());
        }
        let text = tail.text();
        assert!(text.len() <= TAIL && text.starts_with("line ") && text.ends_with("line 9999"), "{text}");
    }
}
