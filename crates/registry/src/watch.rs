//! Follows what others do in the tools folder: other servers, editors, git.
//!
//! Changes are gathered until they pause, then the tools concerned are looked at once. Where the system cannot
//! watch (its limit of watches is used up, the folder is away), the folder is looked at each second instead.

use std::{
    collections::{BTreeMap, BTreeSet},
    path::{Path, PathBuf},
    sync::{
        Arc, PoisonError, Weak,
        mpsc::{self, Receiver, RecvTimeoutError, Sender},
    },
    thread,
    time::{Duration, Instant},
};

use notify::{
    Event, EventKind, RecommendedWatcher, RecursiveMode, Watcher,
    event::{AccessKind, AccessMode},
};

use crate::shared::Shared;

/// How long changes must pause before they are looked at: editors write a file in several steps.
const DEBOUNCE: Duration = Duration::from_millis(200);
/// How long changes of a tool wait at most while other tools keep changing: others' publishes show within a second.
const LONGEST_WAIT: Duration = Duration::from_millis(600);
/// How long a tool waits at most while its own files keep changing.
const LONGEST_UNREST: Duration = Duration::from_secs(2);
/// How often the folder is looked at where it cannot be watched.
const POLL: Duration = Duration::from_secs(1);

/// Longest sleep while nothing happens.
const IDLE: Duration = Duration::from_hours(1);

/// Keeps watching for as long as it lives.
#[derive(Debug)]
pub(crate) struct Watching {
    stop: Sender<Message>,
}

impl Drop for Watching {
    fn drop(&mut self) {
        // A thread that has ended needs no telling.
        let _ = self.stop.send(Message::Stop);
    }
}

enum Message {
    /// Something happened to a tool.
    Changed(String),
    /// Something happened that the system cannot name: look at everything.
    Everything,
    /// The folder that was watched is gone.
    Gone,
    /// The system cannot watch any more.
    Lost(String),
    /// The registry is gone.
    Stop,
}

/// Starts watching; the tools must have been loaded.
pub(crate) fn start(shared: &Arc<Shared>) {
    let (sender, queue) = mpsc::channel();
    let mut watching = shared.watcher.lock().unwrap_or_else(PoisonError::into_inner);
    let weak = Arc::downgrade(shared);
    let events = sender.clone();
    let started = thread::Builder::new().name("watch tools".to_owned()).spawn(move || follow(&weak, &queue, &events));
    match started {
        Ok(_) => *watching = Some(Watching { stop: sender }),
        Err(error) => tracing::warn!(%error, "the tools folder is not watched; changes show after a restart"),
    }
}

/// Tools with changes that have not been looked at.
#[derive(Default)]
struct Pending {
    tools: BTreeMap<String, Unrest>,
    everything: bool,
}

/// When a tool's files changed.
struct Unrest {
    first: Instant,
    last: Instant,
}

/// The system's watcher, or why there is none.
struct Watched {
    watcher: Option<RecommendedWatcher>,
    /// The system has refused, and would refuse again.
    given_up: bool,
}

fn follow(shared: &Weak<Shared>, queue: &Receiver<Message>, events: &Sender<Message>) {
    let mut watched = Watched::start(shared, events);
    let mut pending = Pending { everything: true, ..Pending::default() };
    let mut next_poll = Instant::now() + POLL;
    loop {
        let due = pending.due(Instant::now());
        let wait = match (&watched.watcher, due) {
            (_, Some(due)) => due.saturating_duration_since(Instant::now()),
            (Some(_), None) => IDLE,
            (None, None) => next_poll.saturating_duration_since(Instant::now()),
        };
        match queue.recv_timeout(wait) {
            Ok(Message::Stop) | Err(RecvTimeoutError::Disconnected) => return,
            Ok(message) => pending.add(message, &mut watched),
            Err(RecvTimeoutError::Timeout) => {}
        }
        let Some(shared_now) = shared.upgrade() else { return };
        let now = Instant::now();
        if watched.watcher.is_none() && now >= next_poll {
            next_poll = now + POLL;
            watched.try_again(&shared_now, shared, events);
            shared_now.refresh_all();
        }
        if pending.due(now).is_some_and(|due| due <= now) {
            pending.look(&shared_now, &mut watched, now);
        }
    }
}

impl Pending {
    fn add(&mut self, message: Message, watched: &mut Watched) {
        let now = Instant::now();
        match message {
            Message::Changed(name) => {
                self.tools.entry(name).and_modify(|unrest| unrest.last = now).or_insert(Unrest { first: now, last: now });
            }
            Message::Everything => self.everything = true,
            Message::Gone => watched.watcher = None,
            Message::Lost(reason) => watched.give_up(&reason),
            Message::Stop => {}
        }
    }

    /// When to look: as soon as everything has been at rest, or something has waited long enough.
    fn due(&self, now: Instant) -> Option<Instant> {
        if self.everything {
            return Some(now);
        }
        let at_rest = self.tools.values().map(|unrest| unrest.last + DEBOUNCE).max()?;
        let patience =
            self.tools.values().filter(|unrest| !unrest.is_active(now)).map(|unrest| unrest.first + LONGEST_WAIT).min();
        let unrest = self.tools.values().map(|unrest| unrest.first + LONGEST_UNREST).min();
        [Some(at_rest), patience, unrest].into_iter().flatten().min()
    }

    fn look(&mut self, shared: &Shared, watched: &mut Watched, now: Instant) {
        let names = if std::mem::take(&mut self.everything) {
            self.tools.clear();
            shared.names()
        } else {
            let is_ready = |unrest: &Unrest| !unrest.is_active(now) || now >= unrest.first + LONGEST_UNREST;
            let ready = self.tools.iter().filter(|(_, unrest)| is_ready(unrest));
            ready.map(|(name, _)| name.clone()).collect()
        };
        self.tools.retain(|name, _| !names.contains(name));
        // Watched first: what changes after the look is then told.
        let watched_before = watched.renew_each(shared, &names);
        shared.refresh(names.iter().map(String::as_str));
        // New folders within a tool are watched only now, so what they hold is looked at once more.
        let grown: BTreeSet<String> = names
            .into_iter()
            .zip(watched_before)
            .filter(|(name, before)| shared.watched_folders(name) != *before)
            .map(|(name, _)| name)
            .collect();
        if !grown.is_empty() {
            watched.renew_each(shared, &grown);
            shared.refresh(grown.iter().map(String::as_str));
        }
    }
}

impl Unrest {
    fn is_active(&self, now: Instant) -> bool {
        now < self.last + DEBOUNCE
    }
}

impl Watched {
    fn start(shared: &Weak<Shared>, events: &Sender<Message>) -> Self {
        let mut watched = Self { watcher: None, given_up: false };
        if let Some(shared_now) = shared.upgrade() {
            watched.try_again(&shared_now, shared, events);
        }
        watched
    }

    fn try_again(&mut self, shared: &Shared, weak: &Weak<Shared>, events: &Sender<Message>) {
        if self.given_up {
            return;
        }
        // The folder may not be there before the first tool is; a folder that cannot be made is looked for each second.
        let _ = std::fs::create_dir_all(shared.layout.tools());
        let (weak, events) = (weak.clone(), events.clone());
        let watcher = notify::recommended_watcher(move |event| {
            let Some(shared) = weak.upgrade() else { return };
            for message in messages(&shared, event) {
                // The thread that listens ends first when the server ends.
                let _ = events.send(message);
            }
        });
        let started = watcher.and_then(|mut watcher| {
            watcher.watch(shared.layout.tools(), RecursiveMode::NonRecursive)?;
            Ok(watcher)
        });
        match started {
            Ok(watcher) => {
                self.watcher = Some(watcher);
                self.renew_all(shared);
            }
            Err(error) => tracing::debug!(%error, "the tools folder cannot be watched"),
        }
    }

    fn give_up(&mut self, reason: &str) {
        self.watcher = None;
        if !std::mem::replace(&mut self.given_up, true) {
            tracing::warn!(reason, "the tools folder cannot be watched; it is looked at each second instead");
        }
    }

    fn renew_all(&mut self, shared: &Shared) {
        self.renew_each(shared, &shared.names());
    }

    /// Gives the folders that are watched for each tool.
    fn renew_each(&mut self, shared: &Shared, names: &BTreeSet<String>) -> Vec<Vec<PathBuf>> {
        let folders: Vec<_> = names.iter().map(|name| shared.watched_folders(name)).collect();
        folders.iter().flatten().for_each(|folder| self.renew(folder));
        folders
    }

    /// Watches a folder. A publish replaces it, and the watch goes with the old one: so it is made anew after
    /// every change, when all that happened to the old one has been told.
    fn renew(&mut self, folder: &Path) {
        let Some(watcher) = &mut self.watcher else { return };
        // Not watched so far, mostly.
        let _ = watcher.unwatch(folder);
        match watcher.watch(folder, RecursiveMode::NonRecursive) {
            Err(error) if folder.exists() => {
                self.give_up(&format!("{error}; raise `fs.inotify.max_user_watches` to watch again after a restart"));
            }
            // Gone is gone.
            _ => {}
        }
    }
}

fn messages(shared: &Shared, event: notify::Result<Event>) -> Vec<Message> {
    let event = match event {
        Ok(event) => event,
        Err(error) => return vec![Message::Lost(error.to_string())],
    };
    if event.need_rescan() {
        return vec![Message::Everything];
    }
    // Reading is no change, and looking at the folder reads it.
    if matches!(event.kind, EventKind::Access(access) if access != AccessKind::Close(AccessMode::Write)) {
        return Vec::new();
    }
    if event.kind.is_remove() && event.paths.iter().any(|path| path == shared.layout.tools()) {
        return vec![Message::Gone];
    }
    event.paths.iter().filter_map(|path| shared.name_of(path)).map(Message::Changed).collect()
}
