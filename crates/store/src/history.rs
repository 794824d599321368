//! The call history: one thread takes records as they come and writes them in batches.

use std::{
    path::PathBuf,
    sync::{
        Mutex, PoisonError,
        mpsc::{self, Receiver, RecvTimeoutError, Sender},
    },
    thread,
    time::{Duration, Instant},
};

use async_trait::async_trait;
use skillz_tool::{CallRecord, HistoryStore, StoreError};
use tokio::sync::oneshot;

use self::log::Log;
use crate::{
    database::{DatabaseFile, Durability},
    migrations,
};

mod log;

/// How long records are collected before they are written.
const COLLECT: Duration = Duration::from_millis(250);
/// Records in one transaction.
const BATCH: usize = 1_000;
/// How long a dropped history may take to write what it holds.
const LAST_WRITE: Duration = Duration::from_secs(3);

/// Where the history is kept, and how much of it.
#[derive(Debug, Clone)]
pub struct HistorySettings {
    /// The database file.
    pub path: PathBuf,
    /// Most entries kept.
    pub max_entries: u64,
    /// How long entries are kept.
    pub max_age: Duration,
}

impl HistorySettings {
    /// 100,000 entries, 30 days.
    pub fn new(path: PathBuf) -> Self {
        Self { path, max_entries: 100_000, max_age: Duration::from_hours(30 * 24) }
    }
}

/// The call history on libSQL. Opened at the first record; dropping it writes what it still holds.
#[derive(Debug)]
pub struct LibsqlHistory {
    settings: HistorySettings,
    thread: Mutex<Option<Writer>>,
}

#[derive(Debug)]
struct Writer {
    sender: Sender<Message>,
    /// Disconnects when the thread has ended.
    ended: Receiver<()>,
}

enum Message {
    Record(CallRecord),
    Flush(oneshot::Sender<()>),
    Recent(Query, oneshot::Sender<Result<Vec<CallRecord>, StoreError>>),
}

/// Which entries are asked for.
struct Query {
    tool_name: Option<String>,
    only_failed: bool,
    limit: usize,
}

impl LibsqlHistory {
    /// A history; does no IO yet. Await [`HistoryStore::flush`] before the process ends.
    pub fn new(settings: HistorySettings) -> Self {
        Self { settings, thread: Mutex::new(None) }
    }

    fn send(&self, message: Message) {
        let mut thread = self.thread.lock().unwrap_or_else(PoisonError::into_inner);
        if thread.is_none() {
            *thread = Writer::start(&self.settings);
        }
        let Some(writer) = thread.as_ref() else { return };
        if writer.sender.send(message).is_err() {
            // The thread died of a panic; the next message starts another.
            *thread = None;
        }
    }
}

impl Writer {
    fn start(settings: &HistorySettings) -> Option<Self> {
        let (sender, queue) = mpsc::channel();
        let (alive, ended) = mpsc::channel();
        let file = DatabaseFile { path: settings.path.clone(), migrations: migrations::HISTORY, durability: Durability::Relaxed };
        let mut log = Log::new(file, settings.max_entries, settings.max_age);
        let started = thread::Builder::new().name("history".to_owned()).spawn(move || {
            let _alive: Sender<()> = alive;
            serve(&mut log, &queue);
        });
        match started {
            Ok(_) => Some(Self { sender, ended }),
            Err(error) => {
                tracing::warn!(%error, "no thread for the history could be started; calls are not recorded");
                None
            }
        }
    }
}

impl Drop for LibsqlHistory {
    fn drop(&mut self) {
        let thread = self.thread.get_mut().unwrap_or_else(PoisonError::into_inner).take();
        if let Some(Writer { sender, ended }) = thread {
            drop(sender);
            // Gives `Disconnected` as soon as everything is written.
            let _ = ended.recv_timeout(LAST_WRITE);
        }
    }
}

/// Writes whatever comes, until the other end is gone and everything is written.
fn serve(log: &mut Log, queue: &Receiver<Message>) {
    let mut records = Vec::new();
    let mut deadline: Option<Instant> = None;
    loop {
        let message = match deadline {
            None => queue.recv().map_err(|_| RecvTimeoutError::Disconnected),
            Some(deadline) => queue.recv_timeout(deadline.saturating_duration_since(Instant::now())),
        };
        match message {
            Ok(Message::Record(record)) => {
                records.push(record);
                deadline.get_or_insert_with(|| Instant::now() + COLLECT);
                if records.len() < BATCH {
                    continue;
                }
                log.write(&mut records);
            }
            Ok(Message::Flush(done)) => {
                log.write(&mut records);
                // Whoever waited may have given up.
                let _ = done.send(());
            }
            Ok(Message::Recent(query, reply)) => {
                log.write(&mut records);
                let _ = reply.send(log.recent(&query));
            }
            Err(RecvTimeoutError::Timeout) => log.write(&mut records),
            Err(RecvTimeoutError::Disconnected) => return log.write(&mut records),
        }
        // What could not be written is tried again a little later.
        deadline = (!records.is_empty()).then(|| Instant::now() + COLLECT);
    }
}

#[async_trait]
impl HistoryStore for LibsqlHistory {
    fn record(&self, record: CallRecord) {
        self.send(Message::Record(record));
    }

    async fn recent(&self, tool_name: Option<&str>, only_failed: bool, limit: usize) -> Result<Vec<CallRecord>, StoreError> {
        let (reply, answer) = oneshot::channel();
        self.send(Message::Recent(Query { tool_name: tool_name.map(str::to_owned), only_failed, limit }, reply));
        answer.await.unwrap_or_else(|_| Err(StoreError::Failed("The history's thread ended early".to_owned())))
    }

    async fn flush(&self) {
        if self.thread.lock().unwrap_or_else(PoisonError::into_inner).is_none() {
            return;
        }
        let (done, answer) = oneshot::channel();
        self.send(Message::Flush(done));
        // The thread answers, or has ended and with it everything there was to wait for.
        let _ = answer.await;
    }
}
