//! A client whose answers are set beforehand and which remembers what it was told.

use std::{
    path::PathBuf,
    sync::{
        Mutex, PoisonError,
        atomic::{AtomicUsize, Ordering},
    },
    time::Duration,
};

use async_trait::async_trait;
use skillz_engine::ClientPort;
use skillz_json::{Value, json};
use skillz_tool::{Answer, AnswerAction, ClientCapabilities, LogLevel, Progress, ToolError};

/// A client that can do what its fields say.
pub(crate) struct FakeClient {
    pub(crate) answer: Option<AnswerAction>,
    pub(crate) sampling: bool,
    pub(crate) roots: Option<Vec<PathBuf>>,
    pub(crate) is_remote: bool,
    /// Whether it is the command line of the server's machine.
    pub(crate) is_operator: bool,
    pub(crate) wants_progress: bool,
    /// How long a user thinks.
    pub(crate) thinking: Duration,
    pub(crate) questions: Mutex<Vec<String>>,
    pub(crate) progress: Mutex<Vec<Progress>>,
    pub(crate) logs: Mutex<Vec<(String, String)>>,
    pub(crate) asked_for_roots: AtomicUsize,
}

impl Default for FakeClient {
    fn default() -> Self {
        Self {
            answer: None,
            sampling: false,
            roots: None,
            is_remote: false,
            is_operator: false,
            wants_progress: true,
            thinking: Duration::ZERO,
            questions: Mutex::default(),
            progress: Mutex::default(),
            logs: Mutex::default(),
            asked_for_roots: AtomicUsize::new(0),
        }
    }
}

impl FakeClient {
    /// A client whose user answers every question so.
    pub(crate) fn answering(answer: AnswerAction) -> Self {
        Self { answer: Some(answer), ..Self::default() }
    }

    /// The questions asked so far.
    pub(crate) fn questions(&self) -> Vec<String> {
        self.questions.lock().unwrap_or_else(PoisonError::into_inner).clone()
    }
}

#[async_trait]
impl ClientPort for FakeClient {
    fn capabilities(&self) -> ClientCapabilities {
        ClientCapabilities { sampling: self.sampling, elicitation: self.answer.is_some() }
    }

    fn progress_token(&self) -> Option<Value> {
        self.wants_progress.then(|| json!("token"))
    }

    fn is_remote(&self) -> bool {
        self.is_remote
    }

    fn is_operator(&self) -> bool {
        self.is_operator
    }

    async fn roots(&self) -> Option<Vec<PathBuf>> {
        self.asked_for_roots.fetch_add(1, Ordering::Relaxed);
        self.roots.clone()
    }

    async fn ask_user(&self, message: &str, _schema: Value) -> Result<Answer, ToolError> {
        self.questions.lock().unwrap_or_else(PoisonError::into_inner).push(message.to_owned());
        tokio::time::sleep(self.thinking).await;
        let action = self.answer.expect("only asked if it can");
        Ok(Answer { action, content: (action == AnswerAction::Accept).then(|| json!({"allow": true})) })
    }

    async fn sample(&self, parameters: Value) -> Result<Value, ToolError> {
        Ok(json!({"content": parameters}))
    }

    fn progress(&self, progress: Progress) {
        self.progress.lock().unwrap_or_else(PoisonError::into_inner).push(progress);
    }

    fn log(&self, _level: LogLevel, logger: &str, message: &str, _data: Option<Value>) {
        self.logs.lock().unwrap_or_else(PoisonError::into_inner).push((logger.to_owned(), message.to_owned()));
    }
}
