//! `skillz` and `skillz serve`: the server itself.

use std::time::Duration;

use anyhow::Context as _;
use skillz_config::Transport;
use skillz_server::{ClientOrigin, SkillzServer};
use skillz_transport::HttpSettings;

use crate::{context::Context, wire};

/// Threads for messages and the engine; guests, databases and scripts have threads and processes of their own.
const THREADS: usize = 2;

/// How long after the start most of the code that ran in it is not needed any more.
const START: Duration = Duration::from_millis(500);

/// Whom the server is for.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum Serves {
    Clients,
    /// The protocol's conformance suite, which asks for resources and prompts by name.
    ConformanceSuite,
}

pub(crate) fn run(context: Context, serves: Serves) -> anyhow::Result<()> {
    let threads = std::thread::available_parallelism().map_or(THREADS, |cores| cores.get().min(THREADS));
    let runtime = tokio::runtime::Builder::new_multi_thread()
        .worker_threads(threads)
        .enable_all()
        .build()
        .context("The async runtime could not be started")?;
    let served = runtime.block_on(serve(context, serves));
    // What is left is a thread stuck in a system call: nothing waits for it.
    runtime.shutdown_background();
    served
}

async fn serve(context: Context, serves: Serves) -> anyhow::Result<()> {
    let settings = &context.resolved.settings;
    let parts = wire::parts(&context.resolved, wire::Purpose::Serve)?;
    parts.take_over_old_memory().await;
    let ending = parts.ending();
    tokio::spawn(async {
        tokio::time::sleep(START).await;
        skillz_process::let_go_of_startup_code();
    });
    let server = match serves {
        Serves::Clients => SkillzServer::new(parts.engine),
        Serves::ConformanceSuite => SkillzServer::for_conformance_suite(parts.engine),
    };
    match settings.transport {
        Transport::Stdio => skillz_transport::serve_stdio(server).await?,
        Transport::Http => {
            let counted = server.clone();
            let http = HttpSettings {
                host: settings.host.clone(),
                port: settings.port,
                token: settings.http.token.as_ref().map(|token| token.reveal().to_owned()),
                allowed_origins: settings.http.allowed_origins.clone(),
                metrics: Some(std::sync::Arc::new(move || counted.metrics())),
            };
            skillz_transport::serve_http(move || server.with_session(ClientOrigin::Remote), http).await?;
        }
    }
    ending.await;
    Ok(())
}
