//! The client on the other end of a call, as the engine sees it.

use std::path::PathBuf;

use async_trait::async_trait;
use skillz_json::Value;
use skillz_tool::{Answer, ClientCapabilities, ErrorKind, LogLevel, Progress, ToolError};

/// What the engine may ask of, and tell, whoever made a call. One port serves one outer call; inner calls share it.
#[async_trait]
pub trait ClientPort: Send + Sync {
    /// What the client can do.
    fn capabilities(&self) -> ClientCapabilities;
    /// The client's progress token, where it gave one.
    fn progress_token(&self) -> Option<Value>;
    /// Whether the client may sit on another machine: its roots count only within the operator's.
    fn is_remote(&self) -> bool {
        false
    }
    /// The session that the call was made in, as far as it can be told from other clients' sessions.
    fn session(&self) -> Option<u64> {
        None
    }
    /// Whether the call is the operator's own, made from the command line of the server's machine.
    fn is_operator(&self) -> bool {
        false
    }
    /// The client's workspace roots; `None` where it has no such notion or did not answer.
    async fn roots(&self) -> Option<Vec<PathBuf>>;
    /// Asks the user (MCP elicitation). The engine stops the call's clock meanwhile.
    async fn ask_user(&self, message: &str, schema: Value) -> Result<Answer, ToolError>;
    /// Asks the client's model (MCP sampling).
    async fn sample(&self, parameters: Value) -> Result<Value, ToolError>;
    /// Takes note that a tool needed what the client has no capability for; its request is refused without asking.
    fn refused(&self, _needed: ClientCapabilities) {}
    /// Passes progress on; does nothing without a token.
    fn progress(&self, progress: Progress);
    /// Passes a log message on, with the tool's name as its logger; the port filters by the client's level.
    fn log(&self, level: LogLevel, logger: &str, message: &str, data: Option<Value>);
}

/// No client at all: command line and tests. It answers no questions.
#[derive(Debug, Clone, Copy, Default)]
pub struct NoClient;

#[async_trait]
impl ClientPort for NoClient {
    fn capabilities(&self) -> ClientCapabilities {
        ClientCapabilities::default()
    }

    fn progress_token(&self) -> Option<Value> {
        None
    }

    async fn roots(&self) -> Option<Vec<PathBuf>> {
        None
    }

    async fn ask_user(&self, _message: &str, _schema: Value) -> Result<Answer, ToolError> {
        Err(ToolError::new(ErrorKind::Unavailable, "There is no client that could ask the user (elicitation)"))
    }

    async fn sample(&self, _parameters: Value) -> Result<Value, ToolError> {
        Err(ToolError::new(ErrorKind::Unavailable, "There is no client whose model could be asked (sampling)"))
    }

    fn progress(&self, _progress: Progress) {}

    fn log(&self, _level: LogLevel, _logger: &str, _message: &str, _data: Option<Value>) {}
}
