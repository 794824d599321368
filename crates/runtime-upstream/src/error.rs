//! Why a request to another server came to nothing.

use skillz_json::Value;

/// Something is wrong with the way to the server.
#[derive(Debug, Clone, PartialEq, thiserror::Error)]
pub(crate) enum LinkError {
    /// The connection is over.
    #[error("{0}")]
    Over(String),
    /// Nobody was there to take the request, so it can be made again.
    #[error("{0}")]
    Unsent(String),
    /// The server does not know the session any more, as after a restart.
    #[error("The server does not know the session any more")]
    SessionLost,
    /// An HTTP status instead of an answer.
    #[error("The server answered with HTTP status {status}{}", shown(.text))]
    Refused {
        /// The status.
        status: u16,
        /// The beginning of what came with it.
        text: String,
    },
}

/// Why there is no result.
#[derive(Debug, Clone, PartialEq, thiserror::Error)]
pub(crate) enum RequestError {
    #[error("{0}")]
    Link(#[from] LinkError),
    /// The server's own error.
    #[error("The server answered with error {code}: {message}")]
    Answered {
        /// JSON-RPC's code.
        code: i64,
        /// The server's words.
        message: String,
        /// Detail, where there is some.
        data: Option<Value>,
    },
    /// An answer that makes no sense.
    #[error("{0}")]
    Senseless(String),
}

impl LinkError {
    /// Whether the request never reached the server, so that making it again does nothing twice.
    pub(crate) fn may_repeat(&self) -> bool {
        matches!(self, Self::Unsent(_) | Self::SessionLost)
    }

    /// What a person can do about it.
    pub(crate) fn hint(&self) -> Option<&'static str> {
        match self {
            Self::Refused { status: 401 | 403, .. } => {
                Some("It wants credentials: add the server again with `headers` and `overwrite: true`")
            }
            Self::Refused { status: 404 | 405, .. } => {
                Some("Check the path of the `url`: Streamable HTTP is usually at `/mcp`, the older SSE at `/sse`")
            }
            _ => None,
        }
    }
}

fn shown(text: &str) -> String {
    let text = text.trim();
    if text.is_empty() { String::new() } else { format!(": {text}") }
}
