//! Work that may wait: Cranelift takes its time, so it runs on one thread of low priority, one module after another.

use std::{
    sync::{
        Mutex, PoisonError,
        mpsc::{self, Sender},
    },
    thread,
};

type Job = Box<dyn FnOnce() + Send>;

/// The thread, started with its first job. It ends, after the job at hand, when this is dropped.
#[derive(Default)]
pub(crate) struct Background {
    jobs: Mutex<Option<Sender<Job>>>,
}

impl Background {
    /// Runs a job when those before it are done.
    pub(crate) fn run(&self, job: impl FnOnce() + Send + 'static) {
        let mut jobs = self.jobs.lock().unwrap_or_else(PoisonError::into_inner);
        if jobs.is_none() {
            *jobs = start();
        }
        if let Some(jobs) = &*jobs {
            // Fails only if the thread panicked; modules then stay with the code they have.
            let _ = jobs.send(Box::new(job));
        }
    }
}

fn start() -> Option<Sender<Job>> {
    let (sender, receiver) = mpsc::channel::<Job>();
    let started = thread::Builder::new().name("wasm-compiler".into()).spawn(move || {
        lower_priority();
        for job in receiver {
            job();
        }
    });
    started.inspect_err(|error| tracing::warn!(%error, "Modules are not optimised: no thread for it")).ok()?;
    Some(sender)
}

#[cfg(target_os = "linux")]
fn lower_priority() {
    // On Linux the priority is a thread's own.
    if let Err(error) = rustix::process::setpriority_process(Some(rustix::thread::gettid()), 19) {
        tracing::debug!(%error, "The compiler thread keeps its priority");
    }
}

#[cfg(not(target_os = "linux"))]
fn lower_priority() {}
