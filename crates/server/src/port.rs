//! The client as the engine sees it during one call: a mailbox, emptied by whoever drives the call.
//!
//! A call may outlive the request that started it and may use many tasks, while what it says has to go out in
//! the name of the request that is open now. So the port only queues.

use std::{
    path::PathBuf,
    sync::{Arc, OnceLock},
};

use async_trait::async_trait;
use skillz_engine::ClientPort;
use skillz_json::Value;
use skillz_tool::{Answer, ClientCapabilities, ErrorKind, LogLevel, Progress, ToolError};
use tokio::sync::{mpsc, oneshot};

use crate::question::{Abilities, Question, root_folders};

/// Reports that may wait for a slow client; more are dropped, since each progress note replaces the one before.
pub(crate) const MAILBOX: usize = 256;

/// Something for the client.
#[derive(Debug)]
pub(crate) enum Event {
    Progress(Progress),
    Log(LogLine),
    Ask(Ask),
}

/// A log message.
#[derive(Debug)]
pub(crate) struct LogLine {
    pub(crate) level: LogLevel,
    pub(crate) logger: String,
    pub(crate) message: String,
    pub(crate) data: Option<Value>,
}

/// A question, and where its answer goes. Nobody waits any more once `reply` is closed.
#[derive(Debug)]
pub(crate) struct Ask {
    pub(crate) question: Question,
    pub(crate) reply: oneshot::Sender<Result<Value, ToolError>>,
}

/// What is known of the client when a call starts.
#[derive(Debug, Clone, Default)]
pub(crate) struct ClientProfile {
    /// Which questions it answers.
    pub(crate) abilities: Abilities,
    /// Its progress token.
    pub(crate) progress_token: Option<Value>,
    /// The least severe messages it wants; none at all where absent.
    pub(crate) log_level: Option<LogLevel>,
    /// Whether it may sit on another machine.
    pub(crate) remote: bool,
    /// Its session.
    pub(crate) session: Option<u64>,
}

/// One call's client.
pub(crate) struct CallPort {
    mailbox: mpsc::Sender<Event>,
    profile: ClientProfile,
    /// The first capability that was needed and that the client does not have.
    missing: Arc<OnceLock<ClientCapabilities>>,
}

impl CallPort {
    /// A port, the other end of its mailbox, and the place where a missing capability is noted.
    pub(crate) fn open(profile: ClientProfile) -> (Self, mpsc::Receiver<Event>, Arc<OnceLock<ClientCapabilities>>) {
        let (mailbox, events) = mpsc::channel(MAILBOX);
        let missing = Arc::new(OnceLock::new());
        (Self { mailbox, profile, missing: Arc::clone(&missing) }, events, missing)
    }

    async fn ask(&self, question: Question) -> Result<Value, ToolError> {
        if !self.profile.abilities.answers(&question) {
            self.refused(question.needs());
            return Err(question.unanswerable());
        }
        question.check()?;
        let (reply, answer) = oneshot::channel();
        self.mailbox.send(Event::Ask(Ask { question, reply })).await.map_err(|_| gone())?;
        answer.await.map_err(|_| gone())?
    }

    fn post(&self, event: Event) {
        if self.mailbox.try_send(event).is_err() {
            tracing::trace!("a report was dropped: the client does not keep up");
        }
    }
}

fn gone() -> ToolError {
    ToolError::new(ErrorKind::Cancelled, "The client is gone, so nobody answers")
}

#[async_trait]
impl ClientPort for CallPort {
    fn capabilities(&self) -> ClientCapabilities {
        ClientCapabilities { sampling: self.profile.abilities.sampling, elicitation: self.profile.abilities.forms }
    }

    fn progress_token(&self) -> Option<Value> {
        self.profile.progress_token.clone()
    }

    fn is_remote(&self) -> bool {
        self.profile.remote
    }

    fn session(&self) -> Option<u64> {
        self.profile.session
    }

    async fn roots(&self) -> Option<Vec<PathBuf>> {
        if !self.profile.abilities.roots {
            return None;
        }
        match self.ask(Question::Roots).await {
            Ok(answer) => Some(root_folders(&answer)),
            Err(error) => {
                tracing::debug!(%error, "the client named no roots");
                None
            }
        }
    }

    async fn ask_user(&self, message: &str, schema: Value) -> Result<Answer, ToolError> {
        let answer = self.ask(Question::Form { message: message.to_owned(), schema }).await?;
        skillz_json::from_value(answer).map_err(|error| ToolError::failed(format!("The client's answer makes no sense: {error}")))
    }

    async fn sample(&self, parameters: Value) -> Result<Value, ToolError> {
        self.ask(Question::Sample(parameters)).await
    }

    fn refused(&self, needed: ClientCapabilities) {
        let _ = self.missing.set(needed);
    }

    fn progress(&self, progress: Progress) {
        if self.profile.progress_token.is_some() {
            self.post(Event::Progress(progress));
        }
    }

    fn log(&self, level: LogLevel, logger: &str, message: &str, data: Option<Value>) {
        if self.profile.log_level.is_some_and(|least| level >= least) {
            self.post(Event::Log(LogLine { level, logger: logger.to_owned(), message: message.to_owned(), data }));
        }
    }
}
