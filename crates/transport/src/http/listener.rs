//! Listens, and serves each connection, until it is told to stop.

use std::{
    net::SocketAddr,
    sync::{Arc, atomic::Ordering},
    time::Duration,
};

use http::Request;
use hyper::{body::Incoming, server::conn::http1, service::service_fn};
use hyper_util::rt::{TokioIo, TokioTimer};
use rmcp::ServerHandler;
use tokio::{
    net::{TcpListener, TcpStream, lookup_host},
    sync::Semaphore,
    time::Instant,
};
use tokio_util::{sync::CancellationToken, task::TaskTracker};

use super::{
    access::Access,
    metrics::Metrics,
    route::Router,
    sessions::Sessions,
    settings::{HttpError, HttpSettings},
    streamable::Endpoint,
};
use crate::shutdown::termination;

/// Most connections at once; more wait to be accepted.
const CONNECTIONS: usize = 2_048;
/// How long a client may take to send the head of a request, and how long it may idle between two.
const HEAD_PATIENCE: Duration = Duration::from_secs(30);
/// Largest head of a request, in bytes.
const HEAD_SIZE: usize = 64 << 10;
/// How long answers in flight are waited for at the end.
const GRACE: Duration = Duration::from_millis(800);
/// How long connections may take to close after that.
const CLOSING: Duration = Duration::from_millis(500);
/// Pause after a failure to accept, which is most likely a lack of file descriptors.
const ACCEPT_PAUSE: Duration = Duration::from_millis(50);

/// Serves HTTP until the process is asked to end. `new_session` makes the handler for a client.
pub async fn serve_http<H: ServerHandler + Clone>(
    new_session: impl Fn() -> H + Send + Sync + 'static,
    settings: HttpSettings,
) -> Result<(), HttpError> {
    let bound = BoundHttp::bind(settings).await?;
    tracing::info!(address = %bound.address(), "listening");
    let stop = CancellationToken::new();
    let signalled = stop.clone();
    let signals = tokio::spawn(async move {
        termination().await;
        signalled.cancel();
    });
    bound.serve(new_session, stop).await;
    signals.abort();
    Ok(())
}

/// A server that has its port and has not begun to serve.
#[derive(Debug)]
pub struct BoundHttp {
    listener: TcpListener,
    address: SocketAddr,
    settings: HttpSettings,
}

impl BoundHttp {
    /// Takes the port. Refuses addresses that others can reach if there is no token.
    pub async fn bind(settings: HttpSettings) -> Result<Self, HttpError> {
        let token_is_sendable = |token: &String| !token.is_empty() && token.bytes().all(|byte| byte.is_ascii_graphic());
        if settings.token.as_ref().is_some_and(|token| !token_is_sendable(token)) {
            return Err(HttpError::BadToken);
        }
        let host = if settings.host.is_empty() { "127.0.0.1" } else { settings.host.trim_matches(['[', ']']) };
        let resolved = lookup_host((host, settings.port)).await;
        let mut addresses: Vec<SocketAddr> =
            resolved.map_err(|source| HttpError::Resolve { host: settings.host.clone(), source })?.collect();
        // IPv4 first: that is what `localhost` means to most clients.
        addresses.sort_by_key(SocketAddr::is_ipv6);
        if settings.token.is_none() && !addresses.iter().all(|address| address.ip().is_loopback()) {
            return Err(HttpError::TokenRequired { host: settings.host.clone() });
        }
        let mut failure = None;
        for address in addresses {
            match TcpListener::bind(address).await {
                Ok(listener) => {
                    let address = listener.local_addr().unwrap_or(address);
                    return Ok(Self { listener, address, settings });
                }
                Err(source) => failure = failure.or(Some(HttpError::Bind { address, source })),
            }
        }
        Err(failure.unwrap_or_else(|| HttpError::Resolve {
            host: settings.host.clone(),
            source: std::io::Error::from(std::io::ErrorKind::AddrNotAvailable),
        }))
    }

    /// The address that clients reach the server at.
    pub fn address(&self) -> SocketAddr {
        self.address
    }

    /// Serves until `stop` is cancelled; then answers in flight have a moment, and everything ends.
    pub async fn serve<H: ServerHandler + Clone>(
        self,
        new_session: impl Fn() -> H + Send + Sync + 'static,
        stop: CancellationToken,
    ) {
        let Self { listener, address, settings } = self;
        // Told last: it ends sessions and streams, and with them the work of their clients.
        let end = CancellationToken::new();
        let new_session: Arc<dyn Fn() -> H + Send + Sync> = Arc::new(new_session);
        let sessions = Sessions::new();
        let router = Arc::new(Router {
            access: Access::new(settings.token, &settings.allowed_origins, address.port(), address.ip().is_loopback()),
            metrics: Metrics::default(),
            more_metrics: settings.metrics,
            endpoint: Arc::new(Endpoint::new(Arc::clone(&new_session), Arc::clone(&sessions), end.clone())),
            new_session,
            sessions,
            event_sessions: Arc::default(),
            stop: end.clone(),
            in_flight: 0.into(),
        });
        let connections = TaskTracker::new();
        accept(listener, &router, &connections, &stop, &end).await;
        let deadline = Instant::now() + GRACE;
        while router.in_flight.load(Ordering::Relaxed) > 0 && Instant::now() < deadline {
            tokio::time::sleep(Duration::from_millis(10)).await;
        }
        end.cancel();
        connections.close();
        let _ = tokio::time::timeout(CLOSING, connections.wait()).await;
    }
}

async fn accept<H: ServerHandler + Clone>(
    listener: TcpListener,
    router: &Arc<Router<H>>,
    connections: &TaskTracker,
    stop: &CancellationToken,
    end: &CancellationToken,
) {
    let room = Arc::new(Semaphore::new(most_connections(std::fs::read_to_string("/proc/self/limits").ok().as_deref())));
    loop {
        let accepted = tokio::select! {
            () = stop.cancelled() => return,
            accepted = async {
                let place = Arc::clone(&room).acquire_owned().await;
                (place, listener.accept().await)
            } => accepted,
        };
        match accepted {
            (Ok(place), Ok((stream, _))) => {
                let serving = serve_connection(stream, Arc::clone(router), stop.clone(), end.clone());
                connections.spawn(async move {
                    serving.await;
                    drop(place);
                });
            }
            (_, Err(error)) => {
                tracing::debug!(%error, "a connection was not accepted");
                tokio::time::sleep(ACCEPT_PAUSE).await;
            }
            (Err(_), _) => return,
        }
    }
}

/// Serves one connection. Once `stop` is told it closes when it idles, and with `end` in any case.
async fn serve_connection<H: ServerHandler + Clone>(
    stream: TcpStream,
    router: Arc<Router<H>>,
    stop: CancellationToken,
    end: CancellationToken,
) {
    let _open = router.metrics.connection();
    let _ = stream.set_nodelay(true);
    let service = service_fn(move |request: Request<Incoming>| {
        let router = Arc::clone(&router);
        async move { Ok::<_, std::convert::Infallible>(router.answer(request).await) }
    });
    let mut builder = http1::Builder::new();
    builder.timer(TokioTimer::new()).header_read_timeout(HEAD_PATIENCE).max_buf_size(HEAD_SIZE);
    let connection = builder.serve_connection(TokioIo::new(stream), service);
    tokio::pin!(connection);
    let mut stopping = false;
    loop {
        tokio::select! {
            ended = connection.as_mut() => {
                if let Err(error) = ended {
                    tracing::trace!(%error, "a connection broke");
                }
                return;
            }
            () = stop.cancelled(), if !stopping => {
                stopping = true;
                connection.as_mut().graceful_shutdown();
            }
            () = closed(&end) => return,
        }
    }
}

/// How many connections there may be at once, given what the system says of this process's limits. Half of the open files
/// it allows stay for tools and databases, so that clients who only hold connections cannot stop everybody's calls.
fn most_connections(limits: Option<&str>) -> usize {
    let line = limits.and_then(|limits| limits.lines().find_map(|line| line.strip_prefix("Max open files")));
    let open_files: Option<usize> = line.and_then(|line| line.split_whitespace().next()?.parse().ok());
    open_files.map_or(CONNECTIONS, |open_files| (open_files / 2).clamp(1, CONNECTIONS))
}

/// A moment after `end`, so that the last events of streams are written.
async fn closed(end: &CancellationToken) {
    end.cancelled().await;
    tokio::time::sleep(CLOSING / 2).await;
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn connections_leave_files_for_tools() {
        let limits = |soft: &str| {
            format!(
                "Limit                     Soft Limit           Hard Limit           Units\nMax open files            {soft}  20000  files\n"
            )
        };
        for (limits, expected) in [
            (Some(limits("1024")), 512),
            (Some(limits("20000")), CONNECTIONS),
            (Some(limits("unlimited")), CONNECTIONS),
            (Some(limits("1")), 1),
            (Some(String::new()), CONNECTIONS),
            (None, CONNECTIONS),
        ] {
            assert_eq!(most_connections(limits.as_deref()), expected, "{limits:?}");
        }
    }
}
