//! `skillz` and `skillz serve`: the server itself.

use anyhow::Context as _;
use skillz_config::Transport;
use skillz_server::SkillzServer;

use crate::{
    context::Context,
    report::{Failure, Status},
    wire,
};

/// Threads for messages and the engine; guests, databases and scripts have threads and processes of their own.
const THREADS: usize = 2;

pub(crate) fn run(context: Context) -> anyhow::Result<()> {
    let threads = std::thread::available_parallelism().map_or(THREADS, |cores| cores.get().min(THREADS));
    let runtime = tokio::runtime::Builder::new_multi_thread()
        .worker_threads(threads)
        .enable_all()
        .build()
        .context("The async runtime could not be started")?;
    let served = runtime.block_on(serve(context));
    // What is left is a thread stuck in a system call: nothing waits for it.
    runtime.shutdown_background();
    served
}

async fn serve(context: Context) -> anyhow::Result<()> {
    let transport = context.resolved.settings.transport;
    if transport == Transport::Http {
        return Err(Failure::new(Status::ToolFailed, "The HTTP transport is not part of this version yet").into());
    }
    let parts = wire::parts(&context.resolved, wire::Purpose::Serve)?;
    parts.take_over_old_memory().await;
    let history = std::sync::Arc::clone(parts.engine.history());
    skillz_transport::serve_stdio(SkillzServer::new(parts.engine)).await?;
    history.flush().await;
    Ok(())
}
