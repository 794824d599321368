//! Worker processes, kept warm between runs.

use std::{
    ffi::OsString,
    path::PathBuf,
    sync::{Arc, Mutex, PoisonError, Weak},
    time::{Duration, Instant},
};

use skillz_process::{Child, Command, Drained, Exit, Keep, OutputExceeded, ProcessError, ProcessLimits, drain};
use tokio::{
    sync::{OwnedSemaphorePermit, Semaphore},
    task::JoinHandle,
};

use crate::{request::CodeSettings, wire::Wire, worker::WORKER_ARGUMENT};

/// Idle workers end after this time.
const IDLE_TIME: Duration = Duration::from_mins(5);
/// A worker ends after so many runs: whatever an interpreter leaves behind goes with it.
const MOST_RUNS: u32 = 500;
/// How much of a worker's stderr is kept, in bytes.
const STDERR_KEPT: usize = 4 << 10;
/// Workers kept idle; more are ended when they are done.
const MOST_IDLE: usize = 4;

/// All workers.
pub(crate) struct Pool {
    settings: Arc<CodeSettings>,
    idle: Mutex<Vec<Idle>>,
    places: Arc<Semaphore>,
}

struct Idle {
    worker: Worker,
    since: Instant,
}

/// A worker process. Dropping it ends the process.
pub(crate) struct Worker {
    pub(crate) wire: Wire,
    child: Child,
    stderr: JoinHandle<Result<Drained, OutputExceeded>>,
    runs: u32,
}

/// A worker in use, with the place that it takes.
pub(crate) struct Lease {
    pub(crate) worker: Worker,
    _place: OwnedSemaphorePermit,
}

impl Pool {
    /// A pool without workers.
    pub(crate) fn new(settings: Arc<CodeSettings>) -> Self {
        let places = Arc::new(Semaphore::new(settings.workers.max(1)));
        Self { settings, idle: Mutex::default(), places }
    }

    /// A worker for one run: an idle one, else a new one, when there is a place for it.
    pub(crate) async fn lease(&self) -> Result<Lease, ProcessError> {
        let place = Arc::clone(&self.places).acquire_owned().await.map_err(|error| ProcessError::Launcher(error.to_string()))?;
        let idle = self.idle().pop();
        let worker = match idle {
            Some(idle) => idle.worker,
            None => self.start().await?,
        };
        Ok(Lease { worker, _place: place })
    }

    /// Takes a worker back after a run that went well.
    pub(crate) fn give_back(self: &Arc<Self>, lease: Lease) {
        let mut worker = lease.worker;
        worker.runs += 1;
        if worker.runs >= MOST_RUNS || !worker.wire.is_clear() {
            return;
        }
        let mut idle = self.idle();
        if idle.len() >= MOST_IDLE {
            return;
        }
        idle.push(Idle { worker, since: Instant::now() });
        if idle.len() == 1 {
            tokio::spawn(end_idle(Arc::downgrade(self)));
        }
    }

    async fn start(&self) -> Result<Worker, ProcessError> {
        let command = Command {
            program: self.settings.program.clone(),
            arguments: vec![OsString::from(WORKER_ARGUMENT)],
            environment: Vec::new(),
            directory: PathBuf::from("/"),
            // The worker confines itself, more tightly than any policy for programs could.
            policy: None,
            limits: ProcessLimits::default(),
        };
        let mut child = self.settings.launcher.spawn(command).await?;
        let (Some(stdin), Some(stdout), Some(stderr)) = (child.stdin.take(), child.stdout.take(), child.stderr.take()) else {
            return Err(ProcessError::Launcher("a worker was started without its pipes".to_owned()));
        };
        let stderr = tokio::spawn(drain(stderr, Keep::Tail(STDERR_KEPT), None));
        Ok(Worker { wire: Wire::new(stdin, stdout), child, stderr, runs: 0 })
    }

    fn idle(&self) -> std::sync::MutexGuard<'_, Vec<Idle>> {
        self.idle.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

impl Worker {
    /// Whether it has served a run before.
    pub(crate) fn is_used(&self) -> bool {
        self.runs > 0
    }

    /// How a worker that broke off has ended, and what it last wrote to stderr.
    pub(crate) async fn epitaph(mut self) -> (Option<Exit>, String) {
        let exit = self.child.wait().await.ok();
        let stderr = self.stderr.await.ok().and_then(Result::ok).unwrap_or_default();
        (exit, String::from_utf8_lossy(&stderr.bytes).trim().to_owned())
    }
}

/// Ends workers that have been idle for long; stops when none is left.
async fn end_idle(pool: Weak<Pool>) {
    loop {
        tokio::time::sleep(IDLE_TIME / 4).await;
        let Some(pool) = pool.upgrade() else { return };
        let mut idle = pool.idle();
        idle.retain(|idle| idle.since.elapsed() < IDLE_TIME);
        if idle.is_empty() {
            return;
        }
    }
}
