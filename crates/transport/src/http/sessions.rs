//! Sessions of the older protocols over Streamable HTTP, and when they end.
//!
//! The SDK keeps sessions for ever or cuts silent calls, so this watches the streams: a client that holds none
//! while a call runs is lost, and its calls are cancelled; one that stays away long enough loses its session.

use std::{
    collections::{HashMap, HashSet},
    pin::Pin,
    sync::{Arc, Mutex, MutexGuard, PoisonError, Weak},
    task::{Context, Poll},
    time::Duration,
};

use futures::Stream;
use rmcp::{
    model::{
        CancelledNotification, CancelledNotificationParam, ClientJsonRpcMessage, ClientNotification, JsonRpcMessage, RequestId,
        ServerJsonRpcMessage,
    },
    transport::streamable_http_server::session::{
        RestoreOutcome, ServerSseMessage, SessionId, SessionManager,
        local::{LocalSessionManager, LocalSessionManagerError},
    },
};
use tokio::time::Instant;
use tokio_util::task::AbortOnDropHandle;

/// How long a client without any stream may take to come back while a call runs. Work of a lost client is gone
/// within a second.
const LOST_AFTER: Duration = Duration::from_millis(800);
/// How long a session is kept whose client held a stream open and dropped it.
const DROPPED_FOR: Duration = Duration::from_mins(2);
/// How long a session is kept whose client only posts.
const IDLE_FOR: Duration = Duration::from_mins(30);
/// Most sessions without a stream; beyond it the longest idle ones end.
const STREAMLESS: usize = 256;
/// How long a session is kept beyond that: its client may be about to open its stream.
const OPENING_FOR: Duration = Duration::from_secs(2);
/// Most sessions without a stream, however young; each takes some 70 kB.
const CROWD: usize = 4 * STREAMLESS;
/// Pause between two looks at idle sessions.
const SWEEP: Duration = Duration::from_secs(5);
/// How long finished answers are kept for clients that lost their stream and resume it.
const RESUMABLE_FOR: Duration = Duration::from_secs(10);

/// Keeps sessions, and ends those that nobody uses.
pub(crate) struct Sessions {
    inner: LocalSessionManager,
    watched: Mutex<HashMap<SessionId, Watched>>,
    sweeper: Mutex<Option<AbortOnDropHandle<()>>>,
    this: Weak<Self>,
}

/// What is known of one session.
struct Watched {
    /// Streams open now.
    streams: usize,
    /// Whether the client ever held a stream for messages of the server.
    had_standing_stream: bool,
    /// When something last happened.
    last: Instant,
    /// Requests that are not answered yet.
    unanswered: HashSet<RequestId>,
}

impl Sessions {
    pub(crate) fn new() -> Arc<Self> {
        let mut inner = LocalSessionManager::default();
        // A silent call of any length is not cut; what is idle is found here.
        inner.session_config.keep_alive = None;
        inner.session_config.completed_cache_ttl = RESUMABLE_FOR;
        Arc::new_cyclic(|this| Self { inner, watched: Mutex::default(), sweeper: Mutex::default(), this: Weak::clone(this) })
    }

    /// How many there are.
    pub(crate) fn count(&self) -> usize {
        self.lock().len()
    }

    fn lock(&self) -> MutexGuard<'_, HashMap<SessionId, Watched>> {
        self.watched.lock().unwrap_or_else(PoisonError::into_inner)
    }

    /// Starts looking for idle sessions, once there is one.
    fn start_sweeping(&self) {
        let mut sweeper = self.sweeper.lock().unwrap_or_else(PoisonError::into_inner);
        if sweeper.is_some() {
            return;
        }
        let sessions = Weak::clone(&self.this);
        *sweeper = Some(AbortOnDropHandle::new(tokio::spawn(async move {
            loop {
                tokio::time::sleep(SWEEP).await;
                let Some(sessions) = sessions.upgrade() else { return };
                sessions.end_idle().await;
            }
        })));
    }

    /// Ends sessions whose time is over.
    async fn end_idle(&self) {
        for id in self.idle() {
            // While others were ended its client may have come back.
            if self.lock().get(&id).is_some_and(|session| session.streams == 0) {
                tracing::debug!(session = %id, "the session ends: its client stays away");
                let _ = self.close_session(&id).await;
            }
        }
    }

    /// Sessions whose time is over.
    fn idle(&self) -> Vec<SessionId> {
        let watched = self.lock();
        let mut streamless: Vec<(&SessionId, &Watched)> = watched.iter().filter(|(_, session)| session.streams == 0).collect();
        streamless.sort_by_key(|(_, session)| std::cmp::Reverse(session.last));
        let over = |index: usize, session: &Watched| {
            let kept_for = if session.had_standing_stream { DROPPED_FOR } else { IDLE_FOR };
            session.last.elapsed()
                >= match index {
                    0..STREAMLESS => kept_for,
                    STREAMLESS..CROWD => OPENING_FOR,
                    _ => Duration::ZERO,
                }
        };
        streamless
            .iter()
            .enumerate()
            .filter(|(index, (_, session))| over(*index, session))
            .map(|(_, (id, _))| SessionId::clone(id))
            .collect()
    }

    fn touch<T>(&self, id: &SessionId, act: impl FnOnce(&mut Watched) -> T) -> Option<T> {
        let mut watched = self.lock();
        let session = watched.get_mut(id)?;
        session.last = Instant::now();
        Some(act(session))
    }

    /// Counts a stream from before it is there: a request whose stream is being opened is nobody's lost one.
    fn open_stream(&self, id: &SessionId, request: Option<RequestId>) -> OpenStream {
        self.touch(id, |session| {
            session.streams += 1;
            session.unanswered.extend(request);
        });
        OpenStream { sessions: Weak::clone(&self.this), id: SessionId::clone(id) }
    }

    /// A stream of the client is no more.
    fn stream_closed(&self, id: &SessionId) {
        let alone = self.touch(id, |session| {
            session.streams = session.streams.saturating_sub(1);
            session.streams == 0 && !session.unanswered.is_empty()
        });
        let (Some(true), Ok(runtime)) = (alone, tokio::runtime::Handle::try_current()) else { return };
        let (sessions, id) = (Weak::clone(&self.this), SessionId::clone(id));
        runtime.spawn(async move {
            tokio::time::sleep(LOST_AFTER).await;
            let Some(sessions) = sessions.upgrade() else { return };
            // Looked at and taken in one step: a request that comes now has a stream and is not lost.
            let lost = sessions.take_unanswered(&id, |session| session.streams == 0);
            sessions.cancel(&id, lost).await;
        });
    }

    /// Requests that are not answered yet, which are forgotten with that, if the session is as it has to be.
    fn take_unanswered(&self, id: &SessionId, fits: impl Fn(&Watched) -> bool) -> HashSet<RequestId> {
        let mut watched = self.lock();
        let session = watched.get_mut(id).filter(|session| fits(session));
        session.map(|session| std::mem::take(&mut session.unanswered)).unwrap_or_default()
    }

    /// Cancels requests, as if the client had said so.
    async fn cancel(&self, id: &SessionId, requests: HashSet<RequestId>) {
        for request in requests {
            let reason = Some("The client is gone".to_owned());
            let cancelled = CancelledNotification::new(CancelledNotificationParam::new(Some(request), reason));
            let message = ClientJsonRpcMessage::notification(ClientNotification::CancelledNotification(cancelled));
            let _ = self.inner.accept_message(id, message).await;
        }
    }
}

impl SessionManager for Sessions {
    type Error = LocalSessionManagerError;
    type Transport = <LocalSessionManager as SessionManager>::Transport;

    async fn create_session(&self) -> Result<(SessionId, Self::Transport), Self::Error> {
        self.start_sweeping();
        // Those who open one after the other and leave must not pile up until the next look.
        if self.count() > 2 * STREAMLESS {
            self.end_idle().await;
        }
        let (id, transport) = self.inner.create_session().await?;
        let session = Watched { streams: 0, had_standing_stream: false, last: Instant::now(), unanswered: HashSet::new() };
        self.lock().insert(SessionId::clone(&id), session);
        Ok((id, transport))
    }

    async fn initialize_session(
        &self,
        id: &SessionId,
        message: ClientJsonRpcMessage,
    ) -> Result<ServerJsonRpcMessage, Self::Error> {
        self.inner.initialize_session(id, message).await
    }

    async fn has_session(&self, id: &SessionId) -> Result<bool, Self::Error> {
        self.inner.has_session(id).await
    }

    async fn close_session(&self, id: &SessionId) -> Result<(), Self::Error> {
        // The SDK lets handlers finish first; a client that ends its session wants them to stop.
        self.cancel(id, self.take_unanswered(id, |_| true)).await;
        self.lock().remove(id);
        self.inner.close_session(id).await
    }

    async fn create_stream(
        &self,
        id: &SessionId,
        message: ClientJsonRpcMessage,
    ) -> Result<impl Stream<Item = ServerSseMessage> + Send + Sync + 'static, Self::Error> {
        let request = match &message {
            JsonRpcMessage::Request(request) => Some(request.id.clone()),
            _ => None,
        };
        let open = self.open_stream(id, request.clone());
        match self.inner.create_stream(id, message).await {
            Ok(stream) => Ok(open.around(stream)),
            Err(error) => {
                if let Some(request) = request {
                    self.touch(id, |session| session.unanswered.remove(&request));
                }
                Err(error)
            }
        }
    }

    async fn accept_message(&self, id: &SessionId, message: ClientJsonRpcMessage) -> Result<(), Self::Error> {
        self.touch(id, |session| {
            if let Some(cancelled) = cancelled_request(&message) {
                session.unanswered.remove(cancelled);
            }
        });
        self.inner.accept_message(id, message).await
    }

    async fn create_standalone_stream(
        &self,
        id: &SessionId,
    ) -> Result<impl Stream<Item = ServerSseMessage> + Send + Sync + 'static, Self::Error> {
        let open = self.open_stream(id, None);
        let stream = self.inner.create_standalone_stream(id).await?;
        self.touch(id, |session| session.had_standing_stream = true);
        Ok(open.around(stream))
    }

    async fn resume(
        &self,
        id: &SessionId,
        last_event_id: String,
    ) -> Result<impl Stream<Item = ServerSseMessage> + Send + Sync + 'static, Self::Error> {
        let open = self.open_stream(id, None);
        let stream = self.inner.resume(id, last_event_id).await?;
        Ok(open.around(stream))
    }

    async fn restore_session(&self, id: SessionId) -> Result<RestoreOutcome<Self::Transport>, Self::Error> {
        // There is no store to restore from: after a restart an old session is unknown.
        let _ = id;
        Ok(RestoreOutcome::NotSupported)
    }
}

fn cancelled_request(message: &ClientJsonRpcMessage) -> Option<&RequestId> {
    match message {
        JsonRpcMessage::Notification(notification) => match &notification.notification {
            ClientNotification::CancelledNotification(cancelled) => cancelled.params.request_id.as_ref(),
            _ => None,
        },
        _ => None,
    }
}

/// One stream of a session; counted for as long as it lives.
struct OpenStream {
    sessions: Weak<Sessions>,
    id: SessionId,
}

impl OpenStream {
    fn around<S>(self, stream: S) -> WatchedStream<S> {
        WatchedStream { inner: Box::pin(stream), open: self }
    }
}

impl Drop for OpenStream {
    fn drop(&mut self) {
        if let Some(sessions) = self.sessions.upgrade() {
            sessions.stream_closed(&self.id);
        }
    }
}

/// A stream to a client, which notes what it answers and tells when it is over.
struct WatchedStream<S> {
    inner: Pin<Box<S>>,
    open: OpenStream,
}

impl<S: Stream<Item = ServerSseMessage>> Stream for WatchedStream<S> {
    type Item = ServerSseMessage;

    fn poll_next(mut self: Pin<&mut Self>, cx: &mut Context<'_>) -> Poll<Option<ServerSseMessage>> {
        let polled = self.inner.as_mut().poll_next(cx);
        if let Poll::Ready(Some(message)) = &polled {
            let answered = match message.message.as_deref() {
                Some(JsonRpcMessage::Response(response)) => Some(&response.id),
                Some(JsonRpcMessage::Error(error)) => error.id.as_ref(),
                _ => None,
            };
            if let (Some(answered), Some(sessions)) = (answered, self.open.sessions.upgrade()) {
                sessions.touch(&self.open.id, |session| session.unanswered.remove(answered));
            }
        }
        polled
    }
}
