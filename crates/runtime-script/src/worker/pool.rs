//! Hands out warm workers, bounds how many there are, and ends those that nobody needs.
//!
//! A call takes an idle worker of its tool, or waits a moment for one to come back, or starts one. Where all places are
//! taken, the worker that has been idle longest gives way. Inner calls never wait for a place: their caller holds one.

use std::{
    collections::{HashMap, VecDeque},
    sync::{
        Arc, Mutex, PoisonError, Weak,
        atomic::{AtomicBool, AtomicUsize, Ordering},
    },
    time::{Duration, Instant},
};

use skillz_tool::{Grants, NetworkPermission, Tool, ToolCall};
use tokio::sync::{OwnedSemaphorePermit, Semaphore, oneshot};

use super::process::Worker;
use crate::settings::ScriptBounds;

/// How long a call waits for a busy worker before another one is started: most calls are shorter than a start.
const PATIENCE: Duration = Duration::from_millis(10);

/// How many calls of its own tool the last worker of a tool serves while calls of other tools wait for a place.
const MOST_BEFORE_OTHERS: u32 = 16;

/// What a worker is for: it must never serve a call that may do less, or other things.
#[derive(Debug, Clone, PartialEq, Eq, Hash)]
pub(crate) struct WorkerKey {
    directory: std::path::PathBuf,
    hash: String,
    grants: String,
    data_directory: std::path::PathBuf,
    memory_bytes: u64,
    max_processes: u32,
    environment: Option<String>,
    /// Where it starts, where that is not its own folder.
    root: Option<std::path::PathBuf>,
}

impl WorkerKey {
    pub(crate) fn new(call: &ToolCall, environment: Option<String>) -> Self {
        Self {
            directory: call.tool.directory.clone(),
            hash: call.tool.hash.clone(),
            grants: grants_key(&call.grants),
            data_directory: call.context.data_directory.clone(),
            memory_bytes: call.limits.memory_bytes,
            max_processes: call.limits.max_processes,
            environment,
            root: call.tool.manifest.working_directory.is_some().then(|| call.context.roots.first().cloned()).flatten(),
        }
    }

    fn is_of(&self, tool: &Tool) -> bool {
        self.directory == tool.directory && self.hash == tool.hash
    }
}

/// All grants as one text; it holds secrets, so that it is never shown.
fn grants_key(grants: &Grants) -> String {
    let network = match &grants.network {
        NetworkPermission::All(all) => all.to_string(),
        NetworkPermission::Hosts(hosts) => format!("{hosts:?}"),
    };
    let variables: Vec<(&str, &str)> =
        grants.environment.iter().map(|variable| (variable.name.as_str(), variable.value.as_str())).collect();
    format!("{network} {:?} {variables:?}", grants.folders)
}

/// The pool. Cheap to clone.
#[derive(Clone)]
pub(crate) struct Pool {
    shared: Arc<Shared>,
}

struct Shared {
    bounds: ScriptBounds,
    places: Arc<Semaphore>,
    /// Calls that wait for a place: a worker that comes back gives way to them.
    waiting: AtomicUsize,
    groups: Mutex<HashMap<WorkerKey, Arc<Group>>>,
    reaper_runs: AtomicBool,
}

/// The workers of one key.
struct Group {
    slots: Arc<Semaphore>,
    retired: AtomicBool,
    /// Workers that are there or being started.
    live: AtomicUsize,
    state: Mutex<GroupState>,
}

#[derive(Default)]
struct GroupState {
    /// Those idle longest first.
    idle: Vec<Seated>,
    queue: VecDeque<oneshot::Sender<Seated>>,
}

/// A worker with the places it takes.
struct Seated {
    worker: Worker,
    /// `None` for the worker of an inner call, which is not kept beyond the bounds.
    seat: Option<Seat>,
    /// Calls served while others waited for a place.
    served_before_others: u32,
    _live: Live,
}

/// Counts a worker for as long as it exists.
struct Live(Arc<Group>);

impl Live {
    fn new(group: &Arc<Group>) -> Self {
        group.live.fetch_add(1, Ordering::AcqRel);
        Self(Arc::clone(group))
    }
}

impl Drop for Live {
    fn drop(&mut self) {
        self.0.live.fetch_sub(1, Ordering::AcqRel);
    }
}

struct Seat {
    _slot: OwnedSemaphorePermit,
    _place: OwnedSemaphorePermit,
}

/// A worker on loan. Dropped, it ends; [`Loan::put_back`] keeps it.
pub(crate) struct Loan {
    pool: Pool,
    group: Arc<Group>,
    seated: Option<Seated>,
}

/// What a call got.
pub(crate) enum Lent {
    /// A warm worker.
    Warm(Box<Loan>),
    /// Room for a new one.
    Vacancy(Vacancy),
}

/// Room for one more worker.
pub(crate) struct Vacancy {
    pool: Pool,
    group: Arc<Group>,
    seat: Option<Seat>,
    live: Live,
}

impl Pool {
    pub(crate) fn new(bounds: ScriptBounds) -> Self {
        let shared = Shared {
            bounds,
            places: Arc::new(Semaphore::new(bounds.workers.max(1))),
            waiting: AtomicUsize::new(0),
            groups: Mutex::default(),
            reaper_runs: AtomicBool::new(false),
        };
        Self { shared: Arc::new(shared) }
    }

    /// Gives a warm worker, or room to start one. Waits in order where there is neither, unless the call is an inner one.
    pub(crate) async fn lend(&self, key: &WorkerKey, is_inner: bool) -> Lent {
        let group = self.group(key);
        if let Some(seated) = Self::take_idle(&group) {
            return Lent::Warm(Box::new(self.loan(group, seated)));
        }
        if is_inner {
            let seat = self.try_seat(&group);
            return Lent::Vacancy(self.vacancy(group, seat));
        }
        let (sender, mut receiver) = oneshot::channel();
        let has_busy_ones = {
            let mut state = group.state();
            state.queue.push_back(sender);
            group.live.load(Ordering::Acquire) > 0
        };
        let seat = async {
            if has_busy_ones {
                tokio::time::sleep(PATIENCE).await;
            }
            self.seat(&group).await
        };
        tokio::select! {
            biased;
            Ok(seated) = &mut receiver => Lent::Warm(Box::new(self.loan(group, seated))),
            seat = seat => match receiver.try_recv() {
                // One came back at the same moment; the seat is given up.
                Ok(seated) => Lent::Warm(Box::new(self.loan(group, seated))),
                Err(_) => Lent::Vacancy(self.vacancy(group, Some(seat))),
            },
        }
    }

    /// Room for a worker that nobody waits for yet, unless one is ready or the bounds are reached.
    pub(crate) fn vacancy_for_spare(&self, key: &WorkerKey) -> Option<Vacancy> {
        let group = self.group(key);
        if !group.state().idle.is_empty() {
            return None;
        }
        let seat = self.try_seat(&group)?;
        Some(self.vacancy(group, Some(seat)))
    }

    /// Ends the workers of a tool version: idle ones now, busy ones after their call.
    pub(crate) fn retire(&self, tool: &Tool) {
        let retired: Vec<Arc<Group>> = {
            let mut groups = self.groups();
            let keys: Vec<WorkerKey> = groups.keys().filter(|key| key.is_of(tool)).cloned().collect();
            keys.iter().filter_map(|key| groups.remove(key)).collect()
        };
        for group in retired {
            group.retired.store(true, Ordering::Release);
            let idle = std::mem::take(&mut group.state().idle);
            drop(idle);
        }
    }

    /// Idle workers and all workers. For tests and for `doctor`.
    pub(crate) fn count(&self) -> (usize, usize) {
        let groups: Vec<Arc<Group>> = self.groups().values().cloned().collect();
        groups
            .iter()
            .fold((0, 0), |(idle, live), group| (idle + group.state().idle.len(), live + group.live.load(Ordering::Acquire)))
    }

    fn group(&self, key: &WorkerKey) -> Arc<Group> {
        let mut groups = self.groups();
        let per_tool = self.shared.bounds.workers_per_tool.max(1);
        Arc::clone(groups.entry(key.clone()).or_insert_with(|| {
            Arc::new(Group {
                slots: Arc::new(Semaphore::new(per_tool)),
                retired: AtomicBool::new(false),
                live: AtomicUsize::new(0),
                state: Mutex::default(),
            })
        }))
    }

    /// The idle worker that was used last, since its memory is warmest. Dead ones are thrown away.
    fn take_idle(group: &Group) -> Option<Seated> {
        loop {
            let mut seated = group.state().idle.pop()?;
            if seated.worker.exit().is_none() {
                return Some(seated);
            }
        }
    }

    async fn seat(&self, group: &Group) -> Seat {
        // A closed semaphore does not happen: both live as long as the pool.
        let slot = acquire(&group.slots).await;
        let place = if let Ok(place) = Arc::clone(&self.shared.places).try_acquire_owned() {
            place
        } else {
            let _waiting = Waiting::new(&self.shared.waiting);
            self.evict_one();
            acquire(&self.shared.places).await
        };
        Seat { _slot: slot, _place: place }
    }

    fn try_seat(&self, group: &Group) -> Option<Seat> {
        let slot = Arc::clone(&group.slots).try_acquire_owned().ok()?;
        let place = Arc::clone(&self.shared.places).try_acquire_owned().ok()?;
        Some(Seat { _slot: slot, _place: place })
    }

    /// Ends the worker that has been idle longest.
    fn evict_one(&self) {
        let groups: Vec<Arc<Group>> = self.groups().values().cloned().collect();
        let oldest = groups.iter().filter_map(|group| {
            let since = group.state().idle.first().map(|seated| seated.worker.idle_since)?;
            Some((since, group))
        });
        if let Some((_, group)) = oldest.min_by_key(|(since, _)| *since) {
            let evicted = {
                let mut state = group.state();
                (!state.idle.is_empty()).then(|| state.idle.remove(0))
            };
            drop(evicted);
        }
    }

    fn loan(&self, group: Arc<Group>, seated: Seated) -> Loan {
        Loan { pool: self.clone(), group, seated: Some(seated) }
    }

    fn vacancy(&self, group: Arc<Group>, seat: Option<Seat>) -> Vacancy {
        let live = Live::new(&group);
        Vacancy { pool: self.clone(), group, seat, live }
    }

    /// Starts the task that ends idle workers, unless it runs. It ends when there is none left.
    fn watch_idle(&self) {
        if self.shared.reaper_runs.swap(true, Ordering::AcqRel) {
            return;
        }
        let shared = Arc::downgrade(&self.shared);
        tokio::spawn(async move {
            let mut pause = Duration::ZERO;
            loop {
                tokio::time::sleep(pause).await;
                match Shared::end_idle(&shared) {
                    Some(next) => pause = next,
                    None => return,
                }
            }
        });
    }

    fn groups(&self) -> std::sync::MutexGuard<'_, HashMap<WorkerKey, Arc<Group>>> {
        self.shared.groups.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

impl Shared {
    /// Ends what has been idle too long. Gives the time until the next one is due; `None` where none is idle.
    fn end_idle(shared: &Weak<Self>) -> Option<Duration> {
        let shared = shared.upgrade()?;
        let pool = Pool { shared: Arc::clone(&shared) };
        let limit = shared.bounds.worker_idle;
        let now = Instant::now();
        let mut next = None;
        let mut ended = Vec::new();
        let mut groups = pool.groups();
        groups.retain(|_, group| {
            let mut state = group.state();
            while state.idle.first().is_some_and(|seated| now.duration_since(seated.worker.idle_since) >= limit) {
                ended.push(state.idle.remove(0));
            }
            if let Some(first) = state.idle.first() {
                let due = limit.saturating_sub(now.duration_since(first.worker.idle_since));
                next = Some(next.map_or(due, |earliest: Duration| earliest.min(due)));
            }
            // A group that a call holds is kept, so that both mean the same one.
            !state.idle.is_empty() || Arc::strong_count(group) > 1
        });
        if next.is_none() {
            // Said under the lock, so that a worker that comes back now starts the task again.
            shared.reaper_runs.store(false, Ordering::Release);
        }
        drop(groups);
        drop(ended);
        next
    }
}

impl Group {
    fn state(&self) -> std::sync::MutexGuard<'_, GroupState> {
        self.state.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

impl Vacancy {
    /// Seats a worker that was started.
    pub(crate) fn fill(self, worker: Worker) -> Loan {
        let Self { pool, group, seat, live } = self;
        Loan { pool, group, seated: Some(Seated { worker, seat, served_before_others: 0, _live: live }) }
    }
}

impl Loan {
    /// The worker.
    pub(crate) fn worker(&mut self) -> Option<&mut Worker> {
        self.seated.as_mut().map(|seated| &mut seated.worker)
    }

    /// Gives the worker to the next call that waits, or keeps it warm; ends it where its version was retired, where it
    /// was more than the bounds allow, or where others wait for its place.
    pub(crate) fn put_back(mut self) {
        let Some(mut seated) = self.seated.take() else { return };
        seated.worker.idle_since = Instant::now();
        let others_wait = self.pool.shared.waiting.load(Ordering::Acquire) > 0;
        seated.served_before_others = if others_wait { seated.served_before_others + 1 } else { 0 };
        let is_in_excess = seated.seat.is_none() || self.group.retired.load(Ordering::Acquire);
        let gives_way =
            others_wait && (self.group.live.load(Ordering::Acquire) > 1 || seated.served_before_others > MOST_BEFORE_OTHERS);
        if is_in_excess || gives_way {
            return;
        }
        let mut state = self.group.state();
        while let Some(next) = state.queue.pop_front() {
            match next.send(seated) {
                Ok(()) => return,
                Err(back) => seated = back,
            }
        }
        if others_wait {
            drop(state);
            return;
        }
        state.idle.push(seated);
        drop(state);
        self.pool.watch_idle();
    }
}

/// Counts a call that waits for a place.
struct Waiting<'a>(&'a AtomicUsize);

impl<'a> Waiting<'a> {
    fn new(count: &'a AtomicUsize) -> Self {
        count.fetch_add(1, Ordering::AcqRel);
        Self(count)
    }
}

impl Drop for Waiting<'_> {
    fn drop(&mut self) {
        self.0.fetch_sub(1, Ordering::AcqRel);
    }
}

async fn acquire(semaphore: &Arc<Semaphore>) -> OwnedSemaphorePermit {
    match Arc::clone(semaphore).acquire_owned().await {
        Ok(permit) => permit,
        // Semaphores of the pool are never closed.
        Err(_) => std::future::pending().await,
    }
}
