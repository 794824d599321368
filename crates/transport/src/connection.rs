//! One client's connection, whatever carries it: which session is open on it, what is in flight, which batches
//! wait. Nothing a client sends ends it: what cannot be understood is answered with an error.

use std::{
    collections::HashSet,
    sync::{Arc, Mutex, MutexGuard, PoisonError},
    time::Duration,
};

use rmcp::{
    RoleServer, ServerHandler, ServiceExt,
    model::{
        ClientJsonRpcMessage, ClientNotification, ClientRequest, ErrorData, GetMeta, JsonRpcMessage, ProtocolVersion, RequestId,
        ServerJsonRpcMessage, ServerResult,
    },
    service::ServerInitializeError,
    transport::Transport,
};
use serde_json::Value;
use skillz_json::wire;
use tokio::sync::{Notify, mpsc};
use tokio_util::{sync::CancellationToken, task::AbortOnDropHandle};

use crate::{
    batch::Batches,
    decode::{Decoded, Refusal, decode_line},
};

/// How long answers in flight are waited for once the client has closed its end. Work has to be gone within
/// a second of that.
const GRACE: Duration = Duration::from_millis(800);
/// Decoded messages that wait for the service loop.
const INCOMING: usize = 64;

/// Nobody reads any more.
#[derive(Debug, Clone, Copy, thiserror::Error)]
#[error("The client closed its end of the stream")]
pub(crate) struct OutputClosed;

/// Where messages to the client go.
pub(crate) trait Output: Send + Sync + 'static {
    /// Sends one message, and waits while too much is on its way.
    fn send(&self, message: Vec<u8>) -> impl Future<Output = Result<(), OutputClosed>> + Send;
    /// Waits until nobody reads any more.
    fn broken(&self) -> impl Future<Output = ()> + Send;
}

/// Messages from the client, on their way to the service loop.
pub(crate) type Incoming = mpsc::Receiver<ClientJsonRpcMessage>;

/// A way to hand messages over, and where they come out.
pub(crate) fn incoming() -> (mpsc::Sender<ClientJsonRpcMessage>, Incoming) {
    mpsc::channel(INCOMING)
}

/// Serves a connection until the client is gone or `stop` is cancelled.
pub(crate) async fn serve<H: ServerHandler + Clone, O: Output>(
    handler: H,
    connection: Arc<Connection<O>>,
    incoming: Incoming,
    stop: CancellationToken,
) {
    let incoming = Arc::new(tokio::sync::Mutex::new(incoming));
    let stop = stop.child_token();
    let watchdog = AbortOnDropHandle::new(tokio::spawn(end_with_client(Arc::clone(&connection), stop.clone())));
    while !stop.is_cancelled() {
        let transport = ConnectionTransport { connection: Arc::clone(&connection), incoming: Arc::clone(&incoming) };
        match handler.clone().serve_with_ct(transport, stop.child_token()).await {
            Ok(running) => {
                let reason = running.waiting().await;
                tracing::debug!(?reason, "the session ended");
            }
            Err(ServerInitializeError::ConnectionClosed(_) | ServerInitializeError::Cancelled) => {}
            Err(error) => tracing::warn!(%error, "no session came about"),
        }
        let restart = connection.lock().reopen();
        if connection.ended.is_cancelled() && !restart {
            break;
        }
    }
    drop(watchdog);
}

/// Stops the session a moment after the client closed its end, or at once when it no longer reads.
async fn end_with_client<O: Output>(connection: Arc<Connection<O>>, stop: CancellationToken) {
    tokio::select! {
        () = connection.ended.cancelled() => tokio::time::sleep(GRACE).await,
        () = connection.output.broken() => {}
    }
    stop.cancel();
}

/// What both directions and the service loop share.
pub(crate) struct Connection<O> {
    pub(crate) output: O,
    state: Mutex<State>,
    /// Told when the last answer in flight is on its way.
    idle: Notify,
    /// Cancelled when the client has sent its last message.
    pub(crate) ended: CancellationToken,
}

#[derive(Default)]
struct State {
    lifecycle: Lifecycle,
    /// The version agreed on by `initialize`.
    negotiated: Option<ProtocolVersion>,
    /// Requests handed to the handler and not answered yet, subscriptions aside.
    in_flight: HashSet<RequestId>,
    batches: Batches,
    /// An `initialize` that came in a session without handshake: it opens the next one.
    next_opener: Option<ClientJsonRpcMessage>,
}

/// How the session was opened, if it was.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default)]
enum Lifecycle {
    #[default]
    Closed,
    Handshake,
    Inline,
}

impl State {
    /// Prepares for another session over the same streams. Says whether one is waiting to be opened.
    fn reopen(&mut self) -> bool {
        self.lifecycle = Lifecycle::Closed;
        self.negotiated = None;
        self.next_opener.is_some()
    }
}

impl<O: Output> Connection<O> {
    pub(crate) fn new(output: O) -> Self {
        Self { output, state: Mutex::default(), idle: Notify::new(), ended: CancellationToken::new() }
    }

    fn lock(&self) -> MutexGuard<'_, State> {
        self.state.lock().unwrap_or_else(PoisonError::into_inner)
    }

    pub(crate) async fn refuse(&self, refusal: Refusal) -> Result<(), OutputClosed> {
        self.output.send(refusal.into_value().to_string().into_bytes()).await
    }

    /// Notes that `id` will not be answered any more, or has been.
    fn settle(&self, id: &RequestId, answer: Option<Value>) -> Option<Value> {
        let mut state = self.lock();
        state.in_flight.remove(id);
        if state.in_flight.is_empty() {
            self.idle.notify_waiters();
        }
        state.batches.settle(id, answer)
    }

    /// Waits until nothing is in flight.
    async fn settled(&self) {
        loop {
            let idle = self.idle.notified();
            if self.lock().in_flight.is_empty() {
                return;
            }
            idle.await;
        }
    }
}

/// Passes what a line holds on to the service loop, or answers it.
pub(crate) async fn take_line<O: Output>(
    line: &[u8],
    connection: &Connection<O>,
    sender: &mpsc::Sender<ClientJsonRpcMessage>,
) -> Result<(), OutputClosed> {
    match decode_line(line) {
        Ok(Decoded::Message(message)) => sender.send(*message).await.map_err(|_| OutputClosed),
        Ok(Decoded::Batch(batch)) => take_batch(batch, connection, sender).await,
        Ok(Decoded::Nothing) => Ok(()),
        Err(refusal) => connection.refuse(refusal).await,
    }
}

async fn take_batch<O: Output>(
    batch: Vec<Result<ClientJsonRpcMessage, Refusal>>,
    connection: &Connection<O>,
    sender: &mpsc::Sender<ClientJsonRpcMessage>,
) -> Result<(), OutputClosed> {
    if connection.lock().negotiated != Some(ProtocolVersion::V_2025_03_26) {
        let message = "Batches belong to protocol 2025-03-26, which this session does not speak; send the messages one by one";
        return connection.refuse(Refusal { id: None, error: ErrorData::invalid_request(message, None) }).await;
    }
    let mut waiting = HashSet::new();
    let mut answers = Vec::new();
    let mut messages = Vec::new();
    for element in batch {
        match element {
            Ok(JsonRpcMessage::Request(request)) if matches!(request.request, ClientRequest::InitializeRequest(_)) => {
                let error = ErrorData::invalid_request("`initialize` must not be part of a batch", None);
                answers.push(Refusal { id: Some(request.id), error }.into_value());
            }
            Ok(message) => {
                if let JsonRpcMessage::Request(request) = &message {
                    waiting.insert(request.id.clone());
                }
                messages.push(message);
            }
            Err(refusal) => answers.push(refusal.into_value()),
        }
    }
    let complete = connection.lock().batches.open(waiting, answers);
    if let Some(answer) = complete {
        connection.output.send(wire::unmarked(answer.to_string().into_bytes())).await?;
    }
    for message in messages {
        sender.send(message).await.map_err(|_| OutputClosed)?;
    }
    Ok(())
}

/// The service loop's view of the connection. Several may follow one another on one connection.
struct ConnectionTransport<O> {
    connection: Arc<Connection<O>>,
    incoming: Arc<tokio::sync::Mutex<Incoming>>,
}

/// A message could not be sent.
#[derive(Debug, thiserror::Error)]
enum SendError {
    #[error(transparent)]
    Closed(#[from] OutputClosed),
    #[error("A message could not be written as JSON")]
    Unwritable(#[from] serde_json::Error),
}

impl<O: Output> Transport<RoleServer> for ConnectionTransport<O> {
    type Error = SendError;

    fn send(&mut self, message: ServerJsonRpcMessage) -> impl Future<Output = Result<(), SendError>> + Send + 'static {
        let connection = Arc::clone(&self.connection);
        async move { send_message(&connection, message).await }
    }

    async fn receive(&mut self) -> Option<ClientJsonRpcMessage> {
        let opener = self.connection.lock().next_opener.take();
        if let Some(opener) = opener {
            return self.admit(opener);
        }
        loop {
            let Some(message) = self.incoming.lock().await.recv().await else {
                self.connection.settled().await;
                return None;
            };
            if self.opens_another(&message) {
                self.connection.lock().next_opener = Some(message);
                return None;
            }
            if let Some(message) = self.admit(message) {
                return Some(message);
            }
        }
    }

    async fn close(&mut self) -> Result<(), SendError> {
        Ok(())
    }
}

impl<O: Output> ConnectionTransport<O> {
    /// Whether `message` is an `initialize` in a session that was opened without: the client has changed its mind.
    fn opens_another(&self, message: &ClientJsonRpcMessage) -> bool {
        let JsonRpcMessage::Request(request) = message else { return false };
        matches!(request.request, ClientRequest::InitializeRequest(_)) && self.connection.lock().lifecycle == Lifecycle::Inline
    }

    /// Notes what a message means for the connection. `None` for one that the SDK would end the session over:
    /// whatever is no request before the session is open.
    fn admit(&self, mut message: ClientJsonRpcMessage) -> Option<ClientJsonRpcMessage> {
        self.keep_version(&mut message);
        match &message {
            JsonRpcMessage::Request(request) => {
                let mut state = self.connection.lock();
                if state.lifecycle == Lifecycle::Closed {
                    state.lifecycle = lifecycle_opened_by(&request.request);
                }
                if !matches!(request.request, ClientRequest::SubscriptionsListenRequest(_)) {
                    state.in_flight.insert(request.id.clone());
                }
            }
            _ if self.connection.lock().lifecycle == Lifecycle::Closed => {
                tracing::debug!("dropped a message that came before the session was open");
                return None;
            }
            JsonRpcMessage::Notification(notification) => {
                if let ClientNotification::CancelledNotification(cancelled) = &notification.notification {
                    self.forget(cancelled.params.request_id.as_ref());
                }
            }
            JsonRpcMessage::Response(_) | JsonRpcMessage::Error(_) => {}
        }
        Some(message)
    }

    /// A second `initialize` in a session changes nothing about its version. The SDK would take over whatever is asked for.
    fn keep_version(&self, message: &mut ClientJsonRpcMessage) {
        let JsonRpcMessage::Request(request) = message else { return };
        let ClientRequest::InitializeRequest(initialize) = &mut request.request else { return };
        if let Some(version) = self.connection.lock().negotiated.clone() {
            initialize.params.protocol_version = version;
        }
    }

    /// A cancelled request is not answered.
    fn forget(&self, id: Option<&RequestId>) {
        let Some(id) = id else { return };
        if let Some(batch) = self.connection.settle(id, None) {
            let connection = Arc::clone(&self.connection);
            tokio::spawn(async move { connection.output.send(wire::unmarked(batch.to_string().into_bytes())).await });
        }
    }
}

/// The SDK opens a session on `initialize`, and on any other request but a probe whose `_meta` is complete.
fn lifecycle_opened_by(request: &ClientRequest) -> Lifecycle {
    match request {
        ClientRequest::InitializeRequest(_) => Lifecycle::Handshake,
        ClientRequest::DiscoverRequest(_) | ClientRequest::PingRequest(_) => Lifecycle::Closed,
        request => {
            let meta = request.get_meta();
            let complete = meta.missing_required_keys(&ProtocolVersion::V_2026_07_28).is_empty();
            let known = meta.protocol_version().is_some_and(|version| ProtocolVersion::KNOWN_VERSIONS.contains(&version));
            if complete && known { Lifecycle::Inline } else { Lifecycle::Closed }
        }
    }
}

async fn send_message<O: Output>(connection: &Connection<O>, message: ServerJsonRpcMessage) -> Result<(), SendError> {
    let answered = match &message {
        JsonRpcMessage::Response(response) => {
            if let ServerResult::InitializeResult(result) = &response.result {
                connection.lock().negotiated = Some(result.protocol_version.clone());
            }
            Some(response.id.clone())
        }
        JsonRpcMessage::Error(error) => error.id.clone(),
        JsonRpcMessage::Request(_) | JsonRpcMessage::Notification(_) => None,
    };
    let in_batch = answered.as_ref().is_some_and(|id| connection.lock().batches.wants(id));
    if in_batch {
        let answer = serde_json::to_value(&message)?;
        if let Some(batch) = answered.and_then(|id| connection.settle(&id, Some(answer))) {
            connection.output.send(wire::unmarked(batch.to_string().into_bytes())).await?;
        }
        return Ok(());
    }
    connection.output.send(wire::unmarked(serde_json::to_vec(&message)?)).await?;
    if let Some(id) = answered {
        connection.settle(&id, None);
    }
    Ok(())
}
