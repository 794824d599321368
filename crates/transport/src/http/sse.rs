//! The transport of protocol 2024-11-05: a stream of events, and a place to post messages to.

use std::{
    collections::HashMap,
    sync::{Arc, Mutex, MutexGuard, PoisonError},
};

use bytes::Bytes;
use http::{Request, StatusCode};
use http_body_util::BodyExt;
use rmcp::{ServerHandler, model::ClientJsonRpcMessage};
use tokio::sync::mpsc;
use tokio_util::sync::CancellationToken;

use super::{
    body::EventBody,
    reply::{self, Reply},
};
use crate::connection::{Connection, Output, OutputClosed, incoming, serve, take_line};

/// Events that may wait for a slow client.
const WAITING: usize = 64;

/// All sessions of this transport.
#[derive(Default)]
pub(crate) struct EventSessions {
    open: Mutex<HashMap<String, EventSession>>,
}

#[derive(Clone)]
struct EventSession {
    connection: Arc<Connection<EventOutput>>,
    messages: mpsc::Sender<ClientJsonRpcMessage>,
}

/// Messages go out as events.
struct EventOutput(mpsc::Sender<Bytes>);

impl Output for EventOutput {
    async fn send(&self, message: Vec<u8>) -> Result<(), OutputClosed> {
        self.0.send(event("message", &message)).await.map_err(|_| OutputClosed)
    }

    async fn broken(&self) {
        self.0.closed().await;
    }
}

/// One event. JSON as the server writes it has no line breaks.
fn event(name: &str, data: &[u8]) -> Bytes {
    let mut event = Vec::with_capacity(data.len() + name.len() + 16);
    event.extend_from_slice(b"event: ");
    event.extend_from_slice(name.as_bytes());
    event.extend_from_slice(b"\ndata: ");
    event.extend_from_slice(data);
    event.extend_from_slice(b"\n\n");
    Bytes::from(event)
}

impl EventSessions {
    /// How many there are.
    pub(crate) fn count(&self) -> usize {
        self.lock().len()
    }

    fn lock(&self) -> MutexGuard<'_, HashMap<String, EventSession>> {
        self.open.lock().unwrap_or_else(PoisonError::into_inner)
    }

    /// Opens a session for as long as the client reads.
    pub(crate) fn open<H: ServerHandler + Clone>(self: &Arc<Self>, handler: H, stop: &CancellationToken) -> Reply {
        let id = uuid::Uuid::new_v4().simple().to_string();
        let (events, receiver) = mpsc::channel(WAITING);
        // The channel is empty, so there is room.
        let _ = events.try_send(event("endpoint", format!("/message?sessionId={id}").as_bytes()));
        let connection = Arc::new(Connection::new(EventOutput(events)));
        let (messages, incoming) = incoming();
        self.lock().insert(id.clone(), EventSession { connection: Arc::clone(&connection), messages });
        let (sessions, stop) = (Arc::clone(self), stop.clone());
        tokio::spawn(Box::pin(async move {
            serve(handler, connection, incoming, stop).await;
            sessions.lock().remove(&id);
        }));
        reply::events(EventBody::new(receiver).boxed_unsync())
    }

    /// Takes a message for a session. Its answer goes out on the session's stream.
    pub(crate) async fn accept(&self, request: &Request<Bytes>) -> Reply {
        let session = session_id(request.uri().query()).and_then(|id| self.lock().get(id).cloned());
        let Some(session) = session else {
            return reply::text(StatusCode::NOT_FOUND, "There is no such session; open one with GET /sse");
        };
        match take_line(request.body().trim_ascii(), &session.connection, &session.messages).await {
            Ok(()) => reply::text(StatusCode::ACCEPTED, "Accepted"),
            Err(OutputClosed) => reply::text(StatusCode::NOT_FOUND, "The session has ended"),
        }
    }
}

/// The session that a query names, as clients of different ages write it.
fn session_id(query: Option<&str>) -> Option<&str> {
    query?.split('&').find_map(|pair| {
        let (name, value) = pair.split_once('=')?;
        matches!(name, "sessionId" | "session_id").then_some(value)
    })
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_query_names_the_session() {
        assert_eq!(session_id(Some("sessionId=abc")), Some("abc"));
        assert_eq!(session_id(Some("x=1&session_id=abc&y=2")), Some("abc"));
        for query in [None, Some(""), Some("x"), Some("id=abc")] {
            assert_eq!(session_id(query), None);
        }
    }
}
