//! What every command gets: settings, and a way to print.

use std::{future::Future, io::IsTerminal, sync::Arc};

use anyhow::Context as _;
use skillz_config::Resolved;
use skillz_engine::{ClientPort, Engine};

use crate::{arguments::OutputFormat, printer::Printer, progress::TerminalClient, report::Failure, wire};

pub(crate) struct Context {
    pub(crate) resolved: Resolved,
    pub(crate) printer: Printer,
}

impl Context {
    pub(crate) fn new(resolved: Resolved, output: OutputFormat) -> Self {
        Self { resolved, printer: Printer::new(output) }
    }

    /// Whoever stands behind a call from the command line: progress and log lines show on a terminal.
    pub(crate) fn client(&self) -> Arc<dyn ClientPort> {
        Arc::new(TerminalClient::new(std::io::stderr().is_terminal()))
    }

    /// Runs a command that needs the engine, until it is done or the user gives up. Nothing that it started
    /// outlives it, and the history is on disk afterwards. What was edited by hand is taken in first.
    pub(crate) fn with_engine<F, R>(&self, command: F) -> anyhow::Result<()>
    where
        F: FnOnce(Engine) -> R,
        R: Future<Output = anyhow::Result<()>>,
    {
        self.with_engine_as_it_is(|engine| async move {
            engine.settle().await;
            command(engine).await
        })
    }

    /// The same for commands that only look: they build nothing.
    pub(crate) fn with_engine_as_it_is<F, R>(&self, command: F) -> anyhow::Result<()>
    where
        F: FnOnce(Engine) -> R,
        R: Future<Output = anyhow::Result<()>>,
    {
        runtime()?.block_on(async {
            let parts = wire::parts(&self.resolved, wire::Purpose::OneCommand)?;
            parts.take_over_old_memory().await;
            parts.engine.ready().await;
            let ending = parts.ending();
            let outcome = tokio::select! {
                outcome = command(parts.engine) => outcome,
                () = skillz_transport::termination() => Err(Failure::gave_up().into()),
            };
            ending.await;
            outcome
        })
    }
}

/// The async runtime of a command: one thread is enough, and starts faster.
pub(crate) fn runtime() -> anyhow::Result<tokio::runtime::Runtime> {
    tokio::runtime::Builder::new_current_thread().enable_all().build().context("The async runtime could not be started")
}
