//! The outgoing side of a stream: one thread writes whole lines, so that messages never mix. Where nothing waits and a short
//! line fits into the pipe, whoever sends it writes it, which saves the way over the thread.
//!
//! Senders wait once too much is queued. The bound is in bytes and generous, because a client may well send
//! thousands of lines before it reads the first answer.

use std::{
    io::{self, Write},
    os::fd::{AsFd, BorrowedFd},
    sync::{Arc, Mutex, PoisonError},
    thread,
    time::Duration,
};

use rustix::event::{PollFd, PollFlags, Timespec, poll};

use tokio::sync::{OwnedSemaphorePermit, Semaphore, mpsc, watch};

use crate::connection::{Output, OutputClosed};

/// How much may wait to be written before senders wait, in KiB.
const QUEUE_KIB: usize = 16 << 10;
/// How much is joined into one write, in bytes.
const WRITE_SIZE: usize = 64 << 10;

/// A pipe that can be written to takes this many bytes without blocking (`PIPE_BUF`, POSIX).
const PIPE_BUFFER: usize = 4096;

/// Where lines go.
type Target = Arc<Mutex<Box<dyn Write + Send>>>;

/// Lines on their way out.
pub(crate) struct OutputQueue {
    target: Target,
    /// The target's descriptor, where it can be asked whether it has room.
    descriptor: Option<BorrowedFd<'static>>,
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
    pub(crate) fn start(target: impl Write + Send + 'static, descriptor: Option<BorrowedFd<'static>>) -> io::Result<Self> {
        let target: Target = Arc::new(Mutex::new(Box::new(target)));
        let written = Arc::clone(&target);
        let (sender, receiver) = mpsc::unbounded_channel();
        let (broken_sender, broken) = watch::channel(false);
        let room = Arc::new(Semaphore::new(QUEUE_KIB));
        thread::Builder::new().name("mcp-output".to_owned()).spawn(move || {
            if let Err(error) = write_lines(&written, receiver) {
                tracing::debug!(%error, "the client no longer reads");
            }
            broken_sender.send_replace(true);
        })?;
        Ok(Self { target, descriptor, sender, room, broken })
    }

    /// Writes a line at once, if nothing else waits and it cannot block. `share` is the line's own part of the room.
    fn write_now(&self, line: &mut Vec<u8>, share: &OwnedSemaphorePermit) -> bool {
        let is_alone = || self.room.available_permits() + share.num_permits() == QUEUE_KIB;
        let Some(descriptor) = self.descriptor.filter(|_| line.len() < PIPE_BUFFER && is_alone()) else { return false };
        let Ok(mut target) = self.target.try_lock() else { return false };
        if !is_ready(descriptor, PollFlags::OUT) {
            return false;
        }
        line.push(b'\n');
        if target.write_all(line).and_then(|()| target.flush()).is_ok() {
            return true;
        }
        // The thread will find the same, and say so.
        line.pop();
        false
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
    async fn send(&self, mut line: Vec<u8>) -> Result<(), OutputClosed> {
        let kib = ((line.len() >> 10) + 1).min(QUEUE_KIB) as u32;
        let share = Arc::clone(&self.room).acquire_many_owned(kib).await.map_err(|_| OutputClosed)?;
        if self.write_now(&mut line, &share) {
            return Ok(());
        }
        self.sender.send(Queued { line, share }).map_err(|_| OutputClosed)
    }

    /// Waits until nobody reads any more.
    async fn broken(&self) {
        let mut broken = self.broken.clone();
        // A closed channel means that the writer is gone, which is the same.
        let _ = broken.wait_for(|broken| *broken).await;
    }
}

/// Whether a descriptor can be read from, or written to, without waiting.
pub(crate) fn is_ready(descriptor: impl AsFd, flags: PollFlags) -> bool {
    let mut asked = [PollFd::new(&descriptor, flags)];
    poll(&mut asked, Some(&Timespec::default())).is_ok_and(|count| count > 0)
}

fn write_lines(target: &Mutex<Box<dyn Write + Send>>, mut receiver: mpsc::UnboundedReceiver<Queued>) -> io::Result<()> {
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
        {
            let mut target = target.lock().unwrap_or_else(PoisonError::into_inner);
            target.write_all(&buffer)?;
            target.flush()?;
        }
        buffer.clear();
        buffer.shrink_to(WRITE_SIZE);
        drop(shares);
    }
    Ok(())
}
