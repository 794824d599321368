//! The way in: turns a command into a running, confined, limited tree.

use std::{path::PathBuf, sync::Arc};

use skillz_sandbox::SandboxKind;
use tokio::sync::OnceCell;

use crate::{Child, Command, ProcessError, SandboxReport, backend};

/// Starts processes. Cheap to clone; clones share one helper process, which is started at the first use.
#[derive(Debug, Clone)]
pub struct Launcher {
    shared: Arc<Shared>,
}

#[derive(Debug)]
struct Shared {
    backend: backend::Backend,
    sandbox: SandboxKind,
    report: OnceCell<SandboxReport>,
}

impl Launcher {
    /// A launcher that re-executes `program` (the skillz binary) as its helper and confines by `sandbox`.
    /// Starts nothing yet.
    pub fn new(program: PathBuf, sandbox: SandboxKind) -> Self {
        let shared = Shared { backend: backend::Backend::new(program), sandbox, report: OnceCell::new() };
        Self { shared: Arc::new(shared) }
    }

    /// The sandbox asked for.
    pub fn sandbox(&self) -> SandboxKind {
        self.shared.sandbox
    }

    /// Starts the helper process ahead of its first use and has it prepare for a confined tool without a network, so that
    /// the first call pays for neither. Takes a millisecond or two.
    pub fn warm_up(&self) -> Result<(), ProcessError> {
        self.shared.backend.warm_up(self.shared.sandbox)
    }

    /// Ends the helper process and waits until it is gone, for at most a second. For a server that ends in good order:
    /// without it the helper ends a moment after the server, as somebody else's child.
    pub async fn close(&self) {
        self.shared.backend.close().await;
    }

    /// Starts a command. Cancelled half-way, whatever was started dies.
    pub async fn spawn(&self, command: Command) -> Result<Child, ProcessError> {
        self.shared.backend.spawn(self.shared.sandbox, command, false).await
    }

    /// Starts a command with a [`crate::HostLine`] beside its standard streams, where the operating system has a way.
    pub async fn spawn_with_host(&self, command: Command) -> Result<Child, ProcessError> {
        self.shared.backend.spawn(self.shared.sandbox, command, true).await
    }

    /// Tries the sandbox once and says what it and the limits are worth here. Later calls get the same answer at no cost.
    pub async fn probe(&self) -> &SandboxReport {
        self.shared.report.get_or_init(|| self.shared.backend.probe(self.shared.sandbox)).await
    }
}
