//! The threads on which guests run, apart from those of the protocol: a loop in a guest delays no message by more than
//! its first slice.

use std::{
    future::Future,
    pin::Pin,
    sync::OnceLock,
    task::{Context, Poll},
};

use skillz_tool::ToolError;
use tokio::{
    runtime::{Builder, Handle, Runtime},
    task::{JoinError, JoinHandle},
};

/// How many guests a thread runs between two looks at timers and sockets. Each may take a whole tick.
const EVENT_INTERVAL: u32 = 4;
/// Threads for loading and compiling modules, and for guests' files.
const BLOCKING_THREADS: usize = 16;

/// A runtime of its own, started with the first guest.
pub(crate) struct GuestThreads {
    cores: usize,
    runtime: OnceLock<Result<Runtime, String>>,
}

/// A task that ends when this is dropped.
pub(crate) struct OwnedTask<T>(JoinHandle<T>);

impl GuestThreads {
    pub(crate) fn new(cores: usize) -> Self {
        Self { cores: cores.max(1), runtime: OnceLock::new() }
    }

    /// Starts a future on the guests' threads.
    pub(crate) fn spawn<F>(&self, future: F) -> Result<OwnedTask<F::Output>, ToolError>
    where
        F: Future<Output: Send + 'static> + Send + 'static,
    {
        Ok(OwnedTask(self.handle()?.spawn(future)))
    }

    /// Runs work that occupies its thread, such as compiling.
    pub(crate) fn spawn_blocking<T: Send + 'static>(
        &self,
        work: impl FnOnce() -> T + Send + 'static,
    ) -> Result<OwnedTask<T>, ToolError> {
        Ok(OwnedTask(self.handle()?.spawn_blocking(work)))
    }

    /// Runs work that nobody waits for.
    pub(crate) fn detach_blocking(&self, work: impl FnOnce() + Send + 'static) -> Result<(), ToolError> {
        self.handle()?.spawn_blocking(work);
        Ok(())
    }

    fn handle(&self) -> Result<&Handle, ToolError> {
        let runtime = self.runtime.get_or_init(|| {
            // The queue of new guests is looked at before every turn: a quick call overtakes those that loop.
            Builder::new_multi_thread()
                .worker_threads(self.cores)
                .max_blocking_threads(BLOCKING_THREADS)
                .global_queue_interval(1)
                .event_interval(EVENT_INTERVAL)
                .thread_name("wasm-guest")
                .enable_all()
                .build()
                .map_err(|error| error.to_string())
        });
        match runtime {
            Ok(runtime) => Ok(runtime.handle()),
            Err(error) => Err(ToolError::internal(format!("The threads for WASM tools could not be started: {error}"))),
        }
    }
}

impl Drop for GuestThreads {
    fn drop(&mut self) {
        // Dropping a runtime waits, which is not allowed inside another one.
        if let Some(Ok(runtime)) = self.runtime.take() {
            runtime.shutdown_background();
        }
    }
}

impl<T> Future for OwnedTask<T> {
    type Output = Result<T, JoinError>;

    fn poll(mut self: Pin<&mut Self>, context: &mut Context<'_>) -> Poll<Self::Output> {
        Pin::new(&mut self.0).poll(context)
    }
}

impl<T> Drop for OwnedTask<T> {
    fn drop(&mut self) {
        self.0.abort();
    }
}
