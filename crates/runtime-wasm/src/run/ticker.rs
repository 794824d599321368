//! The epoch's clock: while guests run, each engine's epoch grows every millisecond, at which running guests
//! yield their thread. With no guest about, the thread sleeps.

use std::{
    sync::{
        Arc, Mutex, OnceLock, PoisonError,
        atomic::{AtomicBool, AtomicUsize, Ordering},
    },
    thread::{self, Thread},
    time::Duration,
};

use wasmtime::{Engine, EngineWeak};

/// The longest that a guest keeps its thread while others wait, and so what a cancel may take.
const TICK: Duration = Duration::from_millis(1);
/// Ticks without a guest until the thread sleeps. Calls that follow each other closely never have to wake it.
const IDLE_TICKS: u32 = 50;

#[derive(Default)]
struct Shared {
    running: AtomicUsize,
    parked: AtomicBool,
    closed: AtomicBool,
    engines: Mutex<Vec<EngineWeak>>,
}

/// Owns the ticking thread, which starts with the first guest and ends with this value.
#[derive(Default)]
pub(crate) struct Ticker {
    shared: Arc<Shared>,
    thread: OnceLock<Option<Thread>>,
}

/// Keeps the epochs growing for as long as it lives.
pub(crate) struct Running(Arc<Ticker>);

/// A running guest that waits, and needs no epochs for as long as this lives.
pub(crate) struct Waiting(Arc<Ticker>);

impl Ticker {
    /// Lets the epoch of `engine` grow too.
    pub(crate) fn watch(&self, engine: &Engine) {
        self.shared.engines.lock().unwrap_or_else(PoisonError::into_inner).push(engine.weak());
    }

    /// Says that a guest runs from now on.
    pub(crate) fn enter(self: &Arc<Self>) -> Running {
        self.start_one();
        Running(Arc::clone(self))
    }

    /// Says that a guest waits for something outside.
    pub(crate) fn wait(self: &Arc<Self>) -> Waiting {
        self.shared.running.fetch_sub(1, Ordering::SeqCst);
        Waiting(Arc::clone(self))
    }

    /// How many guests run.
    pub(crate) fn running(&self) -> usize {
        self.shared.running.load(Ordering::SeqCst)
    }

    fn start_one(&self) {
        self.shared.running.fetch_add(1, Ordering::SeqCst);
        let thread = self.thread.get_or_init(|| self.start());
        if self.shared.parked.load(Ordering::SeqCst)
            && let Some(thread) = thread
        {
            thread.unpark();
        }
    }

    fn start(&self) -> Option<Thread> {
        let shared = Arc::clone(&self.shared);
        let started = thread::Builder::new().name("wasm-ticker".into()).spawn(move || tick(&shared));
        match started {
            Ok(handle) => Some(handle.thread().clone()),
            Err(error) => {
                tracing::error!(%error, "The thread that interrupts guests could not be started");
                None
            }
        }
    }
}

impl Drop for Ticker {
    fn drop(&mut self) {
        self.shared.closed.store(true, Ordering::SeqCst);
        if let Some(Some(thread)) = self.thread.get() {
            thread.unpark();
        }
    }
}

impl Drop for Running {
    fn drop(&mut self) {
        self.0.shared.running.fetch_sub(1, Ordering::SeqCst);
    }
}

impl Drop for Waiting {
    fn drop(&mut self) {
        self.0.start_one();
    }
}

fn tick(shared: &Shared) {
    let mut idle = 0;
    while !shared.closed.load(Ordering::SeqCst) {
        idle = if shared.running.load(Ordering::SeqCst) == 0 { idle + 1 } else { 0 };
        if idle > IDLE_TICKS {
            park(shared);
            idle = 0;
        }
        thread::sleep(TICK);
        let mut engines = shared.engines.lock().unwrap_or_else(PoisonError::into_inner);
        engines.retain(|engine| engine.upgrade().inspect(Engine::increment_epoch).is_some());
    }
}

fn park(shared: &Shared) {
    shared.parked.store(true, Ordering::SeqCst);
    // Whoever enters after the store above unparks; whoever entered before it shows in the count.
    while shared.running.load(Ordering::SeqCst) == 0 && !shared.closed.load(Ordering::SeqCst) {
        thread::park();
    }
    shared.parked.store(false, Ordering::SeqCst);
}
