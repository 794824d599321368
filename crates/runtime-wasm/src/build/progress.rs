//! Tells whoever waits for a build what it is at. Each report counts one step more, since progress may only grow.

use std::sync::atomic::{AtomicU64, Ordering};

use skillz_tool::{Host, Progress};

/// The reports of one build.
pub(crate) struct BuildProgress<'a> {
    host: &'a dyn Host,
    steps: AtomicU64,
}

impl<'a> BuildProgress<'a> {
    pub(crate) fn new(host: &'a dyn Host) -> Self {
        Self { host, steps: AtomicU64::new(0) }
    }

    pub(crate) fn report(&self, message: impl Into<String>) {
        let step = self.steps.fetch_add(1, Ordering::Relaxed) + 1;
        self.host.progress(Progress { current: step as f64, total: None, message: Some(message.into()) });
    }
}
