//! `skillz` and `skillz serve`: the server itself.

use std::time::Duration;

use anyhow::Context as _;
use skillz_config::Transport;
use skillz_server::{Activity, ClientOrigin, SkillzServer};
use skillz_transport::{HttpError, HttpSettings};

use crate::{
    context::Context,
    report::{Failure, Status},
    wire,
};

/// Threads for messages and the engine; guests, databases and scripts have threads and processes of their own.
const THREADS: usize = 2;

/// How long after the start most of the code that ran in it is not needed any more.
const START: Duration = Duration::from_millis(500);
/// How long a server is without calls before it counts as resting.
const QUIET: Duration = Duration::from_secs(2);

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
    let server = match serves {
        Serves::Clients => SkillzServer::new(parts.engine),
        Serves::ConformanceSuite => SkillzServer::for_conformance_suite(parts.engine),
    };
    tokio::spawn(rest_between_calls(server.activity()));
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
            skillz_transport::serve_http(move || server.with_session(ClientOrigin::Remote), http).await.map_err(explain)?;
        }
    }
    ending.await;
    Ok(())
}

/// What the operator can mend is wrong use, and no fault of the server.
fn explain(error: HttpError) -> anyhow::Error {
    match error {
        HttpError::TokenRequired { .. } => Failure::new(Status::Refused, error.to_string()).into(),
        HttpError::BadToken => Failure::wrong_use(error.to_string()).into(),
        other => other.into(),
    }
}

/// Lets go of memory whenever nobody needs it.
async fn rest_between_calls(activity: Activity) {
    tokio::time::sleep(START).await;
    loop {
        skillz_process::let_go_of_idle_memory();
        activity.rest(QUIET).await;
    }
}
