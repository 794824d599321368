//! What a call tells its client, sent in the name of the request that is open now.

#![expect(deprecated, reason = "clients still want log messages")]

use rmcp::{
    RoleServer,
    model::{CancelledNotificationParam, LoggingMessageNotificationParam, ProgressNotificationParam, ProgressToken, RequestId},
    service::{Peer, PeerRequestOptions, ServiceError},
};
use skillz_json::{Value, wire};
use skillz_tool::{ErrorKind, Progress, ToolError};

use crate::{
    convert,
    port::{Ask, Event, LogLine},
    question::Question,
};

/// How much progress grows by where a tool reports the same value again with another message: the protocol
/// demands growth.
const NUDGE: f64 = 0.001;

/// The way to the client while one request is open.
pub(crate) struct Outlet {
    peer: Peer<RoleServer>,
    token: Option<ProgressToken>,
    reached: Option<f64>,
}

impl Outlet {
    pub(crate) fn new(peer: Peer<RoleServer>, token: Option<ProgressToken>) -> Self {
        Self { peer, token, reached: None }
    }

    /// Sends progress.
    pub(crate) async fn progress(&mut self, progress: Progress) {
        let Some(token) = self.token.clone() else { return };
        let Some(value) = self.growing(&progress) else { return };
        self.reached = Some(value);
        let mut note = ProgressNotificationParam::new(token, value);
        note.total = progress.total;
        note.message = progress.message;
        // A client that is gone is noticed by its session.
        let _ = self.peer.notify_progress(note).await;
    }

    /// The value to send: a tool's own, or a little more than the last where that did not grow but says something.
    fn growing(&self, progress: &Progress) -> Option<f64> {
        let Some(reached) = self.reached else { return progress.current.is_finite().then_some(progress.current) };
        if progress.current > reached {
            return progress.current.is_finite().then_some(progress.current);
        }
        progress.message.as_ref().map(|_| reached + NUDGE)
    }

    /// Sends a log message.
    pub(crate) async fn log(&self, line: LogLine) {
        let data = convert::log_data(line.message, line.data);
        let note =
            LoggingMessageNotificationParam::new(convert::logging_level(line.level), wire::enter(data)).with_logger(line.logger);
        let _ = self.peer.notify_logging_message(note).await;
    }

    /// Sends a report; a question is none and is given back.
    pub(crate) async fn tell(&mut self, event: Event) -> Option<Ask> {
        match event {
            Event::Progress(progress) => self.progress(progress).await,
            Event::Log(line) => self.log(line).await,
            Event::Ask(ask) => return Some(ask),
        }
        None
    }

    /// A future that asks the client in the older protocols and passes the answer on. Whoever drops it, or no
    /// longer waits for the answer, takes the question back.
    pub(crate) fn ask(&self, mut ask: Ask) -> impl Future<Output = ()> + Send + use<> {
        let peer = self.peer.clone();
        async move {
            let answer = tokio::select! {
                answer = request(&peer, &ask.question) => answer,
                () = ask.reply.closed() => return,
            };
            let _ = ask.reply.send(answer);
        }
    }
}

async fn request(peer: &Peer<RoleServer>, question: &Question) -> Result<Value, ToolError> {
    let handle =
        peer.send_cancellable_request(question.server_request(), PeerRequestOptions::no_options()).await.map_err(failure)?;
    let withdrawal = Withdrawal { peer: peer.clone(), id: Some(handle.id.clone()) };
    let answer = handle.await_response().await;
    withdrawal.disarm();
    let answer = serde_json::to_value(answer.map_err(failure)?).map(wire::leave).map_err(ToolError::internal)?;
    if question.accepts(&answer) {
        Ok(answer)
    } else {
        Err(ToolError::failed("The client's answer does not fit the question: a form has to be filled in as its schema says"))
    }
}

fn failure(error: ServiceError) -> ToolError {
    match error {
        ServiceError::McpError(error) => ToolError::failed(format!("The client refused the question: {}", error.message)),
        ServiceError::TransportClosed => ToolError::new(ErrorKind::Cancelled, "The client is gone, so nobody answers"),
        other => ToolError::failed(format!("The question did not reach the client: {other}")),
    }
}

/// Tells the client that a question is void, unless it was answered.
struct Withdrawal {
    peer: Peer<RoleServer>,
    id: Option<RequestId>,
}

impl Withdrawal {
    fn disarm(mut self) {
        self.id = None;
    }
}

impl Drop for Withdrawal {
    fn drop(&mut self) {
        let Some(id) = self.id.take() else { return };
        let peer = self.peer.clone();
        // Only a runtime can send; without one the session is over anyway.
        if let Ok(runtime) = tokio::runtime::Handle::try_current() {
            runtime.spawn(async move {
                let note = CancelledNotificationParam::new(Some(id), Some("The call that asked has ended".to_owned()));
                let _ = peer.notify_cancelled(note).await;
            });
        }
    }
}
