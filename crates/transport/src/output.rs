//! The outgoing side of a stream: one thread writes whole lines, so that messages never mix.
//!
//! Senders wait once too much is queued. The bound is in bytes and generous, because a client may well send
//! thousands of lines before it reads the first answer.

use std::{
    io::{self, Write},
    sync::Arc,
    thread,
    time::Duration,
};

use tokio::sync::{OwnedSemaphorePermit, Semaphore, mpsc, watch};

use crate::connection::{Output, OutputClosed};

/// How much may wait to be written before senders wait, in KiB.
const QUEUE_KIB: usize = 16 << 10;
/// How much is joined into one write, in bytes.
const WRITE_SIZE: usize = 64 << 10;

/// Lines on their way out.
pub(crate) struct OutputQueue {
    sender: mpsc::UnboundedSender<Queued>,
    room: Arc<Semaphore>,
    broken: watch::Receiver<bool>,
}

/// A line that waits, holding its share of the room.
struct Queued {
    line: Vec<u8>,
    share: OwnedSemaphorePermit,
}

impl OutputQueue {
    /// Starts the writing thread.
    pub(crate) fn start(target: impl Write + Send + 'static) -> io::Result<Self> {
        let (sender, receiver) = mpsc::unbounded_channel();
        let (broken_sender, broken) = watch::channel(false);
        let room = Arc::new(Semaphore::new(QUEUE_KIB));
        thread::Builder::new().name("mcp-output".to_owned()).spawn(move || {
            if let Err(error) = write_lines(target, receiver) {
                tracing::debug!(%error, "the client no longer reads");
            }
            broken_sender.send_replace(true);
        })?;
        Ok(Self { sender, room, broken })
    }

    /// Waits until everything queued is written, at most for `patience`.
    pub(crate) async fn flushed(&self, patience: Duration) {
        let drained = async {
            tokio::select! {
                _ = self.room.acquire_many(QUEUE_KIB as u32) => {}
                () = self.broken() => {}
            }
        };
        if tokio::time::timeout(patience, drained).await.is_err() {
            tracing::debug!("gave up on a client that does not read");
        }
    }
}

impl Output for OutputQueue {
    /// Queues one line, its break not included, and waits while the queue is full.
    async fn send(&self, line: Vec<u8>) -> Result<(), OutputClosed> {
        let kib = ((line.len() >> 10) + 1).min(QUEUE_KIB) as u32;
        let share = Arc::clone(&self.room).acquire_many_owned(kib).await.map_err(|_| OutputClosed)?;
        self.sender.send(Queued { line, share }).map_err(|_| OutputClosed)
    }

    /// Waits until nobody reads any more.
    async fn broken(&self) {
        let mut broken = self.broken.clone();
        // A closed channel means that the writer is gone, which is the same.
        let _ = broken.wait_for(|broken| *broken).await;
    }
}

fn write_lines(mut target: impl Write, mut receiver: mpsc::UnboundedReceiver<Queued>) -> io::Result<()> {
    let mut buffer = Vec::new();
    while let Some(first) = receiver.blocking_recv() {
        let mut shares = Vec::new();
        let mut next = Some(first);
        while let Some(queued) = next.take() {
            buffer.extend_from_slice(&queued.line);
            buffer.push(b'\n');
            shares.push(queued.share);
            if buffer.len() < WRITE_SIZE {
                next = receiver.try_recv().ok();
            }
        }
        target.write_all(&buffer)?;
        target.flush()?;
        buffer.clear();
        buffer.shrink_to(WRITE_SIZE);
        drop(shares);
    }
    Ok(())
}
