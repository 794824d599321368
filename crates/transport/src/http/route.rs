//! Where a request goes.

use std::{
    panic::AssertUnwindSafe,
    sync::{
        Arc,
        atomic::{AtomicUsize, Ordering},
    },
};

use bytes::Bytes;
use futures::FutureExt;
use http::{Method, Request, StatusCode, header};
use http_body::Body;
use rmcp::ServerHandler;
use serde_json::json;
use tokio_util::sync::CancellationToken;

use super::{
    access::Access,
    body,
    metrics::Metrics,
    reply::{self, Reply},
    sessions::Sessions,
    settings::MetricsSource,
    sse::EventSessions,
    streamable::Endpoint,
};

/// Everything that answers requests.
pub(crate) struct Router<H> {
    pub(crate) access: Access,
    pub(crate) metrics: Metrics,
    pub(crate) more_metrics: Option<MetricsSource>,
    pub(crate) new_session: Arc<dyn Fn() -> H + Send + Sync>,
    pub(crate) sessions: Arc<Sessions>,
    pub(crate) event_sessions: Arc<EventSessions>,
    pub(crate) endpoint: Arc<Endpoint<H>>,
    pub(crate) stop: CancellationToken,
    /// Requests whose response has not begun.
    pub(crate) in_flight: AtomicUsize,
}

impl<H: ServerHandler + Clone> Router<H> {
    /// Answers a request, whatever it is.
    pub(crate) async fn answer<B>(self: Arc<Self>, request: Request<B>) -> Reply
    where
        B: Body<Data = Bytes> + Send + 'static,
        B::Error: Into<Box<dyn std::error::Error + Send + Sync>>,
    {
        let route = route_of(request.uri().path());
        let origin = request.headers().get(header::ORIGIN).cloned();
        let _in_flight = InFlight::new(&self.in_flight);
        let mut reply = match self.access.turn_away(&request) {
            Some(refusal) => refusal,
            // A fault of the server costs this request, not the others.
            None => AssertUnwindSafe(self.dispatch(route, request))
                .catch_unwind()
                .await
                .unwrap_or_else(|_| reply::text(StatusCode::INTERNAL_SERVER_ERROR, "The request broke off inside the server")),
        };
        self.access.admit(origin.as_ref(), &mut reply);
        self.metrics.answered(route, reply.status().as_u16());
        reply
    }

    async fn dispatch<B>(&self, route: &'static str, request: Request<B>) -> Reply
    where
        B: Body<Data = Bytes> + Send + 'static,
        B::Error: Into<Box<dyn std::error::Error + Send + Sync>>,
    {
        match (route, request.method()) {
            ("/mcp", _) => match body::read(request).await {
                Ok(request) => Arc::clone(&self.endpoint).answer(request).await,
                Err(refusal) => refusal,
            },
            ("/sse", &Method::GET) => self.event_sessions.open((self.new_session)(), &self.stop),
            ("/message", &Method::POST) => match body::read(request).await {
                Ok(request) => self.event_sessions.accept(&request).await,
                Err(refusal) => refusal,
            },
            ("/health", &Method::GET | &Method::HEAD) => reply::json(StatusCode::OK, &json!({"status": "ok"})),
            ("/metrics", &Method::GET) => self.metrics_page(),
            ("other", _) => reply::text(StatusCode::NOT_FOUND, "There is nothing here; MCP is at /mcp"),
            _ => reply::text(StatusCode::METHOD_NOT_ALLOWED, "This address does not answer that method"),
        }
    }

    fn metrics_page(&self) -> Reply {
        let mut text = self.metrics.render((self.sessions.count(), self.event_sessions.count()));
        if let Some(more) = &self.more_metrics {
            text.push_str(&more());
        }
        reply::full(StatusCode::OK, "text/plain; version=0.0.4; charset=utf-8", text.into_bytes())
    }
}

/// The route as it is counted.
fn route_of(path: &str) -> &'static str {
    match path {
        "/mcp" | "/mcp/" => "/mcp",
        "/sse" | "/sse/" => "/sse",
        "/message" | "/message/" => "/message",
        "/health" => "/health",
        "/metrics" => "/metrics",
        _ => "other",
    }
}

/// Counts a request while it is being answered.
struct InFlight<'a>(&'a AtomicUsize);

impl<'a> InFlight<'a> {
    fn new(count: &'a AtomicUsize) -> Self {
        count.fetch_add(1, Ordering::Relaxed);
        Self(count)
    }
}

impl Drop for InFlight<'_> {
    fn drop(&mut self) {
        self.0.fetch_sub(1, Ordering::Relaxed);
    }
}
