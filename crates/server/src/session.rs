//! What the server keeps of one client's session. Sessions are apart: nothing here reaches another client.

use std::{
    collections::{BTreeMap, VecDeque},
    sync::{
        Mutex, MutexGuard, PoisonError,
        atomic::{AtomicU64, Ordering},
    },
};

use skillz_tool::LogLevel;
use tokio_util::task::AbortOnDropHandle;

/// Streams being opened at once that are remembered.
const OPENING: usize = 64;

/// The number of the next session. 0 is the only one of a server that serves one client.
static NEXT_NUMBER: AtomicU64 = AtomicU64::new(1);

/// Where clients sit.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default)]
pub enum ClientOrigin {
    /// On this machine, having started the server itself.
    #[default]
    Local,
    /// Perhaps on another machine.
    Remote,
}

/// One client's session. Dropping it ends what was kept going for it.
#[derive(Default)]
pub(crate) struct Session {
    pub(crate) origin: ClientOrigin,
    /// Tells it from all others of this process.
    pub(crate) number: u64,
    state: Mutex<State>,
}

struct State {
    log_level: LogLevel,
    /// The change counter at the time of `initialize`: what comes after has to be told.
    seen_changes: u64,
    /// Follows the engine's changes for this client.
    follower: Option<AbortOnDropHandle<()>>,
    /// Resources subscribed to in the older protocols, with the state that the client knows.
    subscriptions: BTreeMap<String, Option<String>>,
    /// The change counter at the time each stream that is being opened was accepted, before it is told so.
    opening: VecDeque<u64>,
}

impl Default for State {
    fn default() -> Self {
        Self {
            log_level: LogLevel::Info,
            seen_changes: 0,
            follower: None,
            subscriptions: BTreeMap::new(),
            opening: VecDeque::new(),
        }
    }
}

impl Session {
    pub(crate) fn new(origin: ClientOrigin) -> Self {
        Self { origin, number: NEXT_NUMBER.fetch_add(1, Ordering::Relaxed), state: Mutex::default() }
    }

    fn lock(&self) -> MutexGuard<'_, State> {
        self.state.lock().unwrap_or_else(PoisonError::into_inner)
    }

    /// The least severe log messages this client wants.
    pub(crate) fn log_level(&self) -> LogLevel {
        self.lock().log_level
    }

    pub(crate) fn set_log_level(&self, level: LogLevel) {
        self.lock().log_level = level;
    }

    /// Notes how far the client's knowledge goes.
    pub(crate) fn opened(&self, changes: u64) {
        self.lock().seen_changes = changes;
    }

    /// How far the client's knowledge went when the session was opened.
    pub(crate) fn seen_changes(&self) -> u64 {
        self.lock().seen_changes
    }

    /// Keeps the task that follows changes for this client; it ends with the session.
    pub(crate) fn follow(&self, follower: AbortOnDropHandle<()>) {
        self.lock().follower = Some(follower);
    }

    pub(crate) fn subscribe(&self, uri: String, state: Option<String>) {
        self.lock().subscriptions.insert(uri, state);
    }

    pub(crate) fn unsubscribe(&self, uri: &str) {
        self.lock().subscriptions.remove(uri);
    }

    /// Subscribed resources whose state is not what the client knows; afterwards it counts as told.
    pub(crate) fn changed_subscriptions(&self, state_of: impl Fn(&str) -> Option<String>) -> Vec<String> {
        let mut state = self.lock();
        let mut changed = Vec::new();
        for (uri, known) in &mut state.subscriptions {
            let now = state_of(uri);
            if now != *known {
                *known = now;
                changed.push(uri.clone());
            }
        }
        changed
    }

    /// Notes the change counter for a stream that is about to be acknowledged.
    pub(crate) fn stream_accepted(&self, changes: u64) {
        let mut state = self.lock();
        if state.opening.len() == OPENING {
            state.opening.pop_front();
        }
        state.opening.push_back(changes);
    }

    /// The oldest of those counters: a stream that takes another's only tells of a change once too often.
    pub(crate) fn stream_opened(&self) -> Option<u64> {
        self.lock().opening.pop_front()
    }
}
