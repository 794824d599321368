//! The ways to a server: pipes of a process, Streamable HTTP, and the older pair of an event stream and a mailbox.

mod clients;
mod events;
mod http;
mod marked;
mod sse;
mod stdio;

use std::sync::Arc;

use skillz_json::{Map, Value};

pub(crate) use clients::{HttpClient, headers as request_headers};
pub(crate) use http::HttpLink;
pub(crate) use sse::{SseLink, follow as follow_events};
pub(crate) use stdio::{Pipes, StdioLink, Tail};

use crate::{connection::Connection, error::LinkError, known::KnownTool};

/// Longest message of a server, in bytes: more is noise or an attack.
pub(crate) const MESSAGE_LENGTH: usize = 16 << 20;

/// A message on its way to the server.
pub(crate) struct Outgoing<'a> {
    /// A request's id; notes and answers have none.
    pub(crate) id: Option<u64>,
    /// Method and parameters; answers have none.
    pub(crate) about: Option<(&'a str, &'a Map<String, Value>)>,
    /// The message itself.
    pub(crate) body: Vec<u8>,
}

/// One way to a server.
pub(crate) enum Link {
    Stdio(StdioLink),
    Http(HttpLink),
    Sse(SseLink),
}

impl Link {
    /// Brings a message to the server. What comes back on the same way goes into `connection`; over Streamable HTTP this
    /// returns once the answer is there.
    pub(crate) async fn carry(&self, connection: &Arc<Connection>, message: Outgoing<'_>) -> Result<(), LinkError> {
        match self {
            Self::Stdio(link) => link.carry(message).await,
            // Rare and large, so that they do not weigh on calls of local servers.
            Self::Http(link) => Box::pin(link.carry(connection, message)).await,
            Self::Sse(link) => Box::pin(link.carry(message)).await,
        }
    }

    /// Whether it is Streamable HTTP.
    pub(crate) fn is_http(&self) -> bool {
        matches!(self, Self::Http(_))
    }

    /// Takes note of what tools want to see in headers.
    pub(crate) fn learn(&self, tools: &[KnownTool]) {
        if let Self::Http(link) = self {
            link.marked.learn(tools);
        }
    }

    /// Its name, as states tell it.
    pub(crate) fn name(&self) -> &'static str {
        match self {
            Self::Stdio(_) => "stdio",
            Self::Http(_) => "http",
            Self::Sse(_) => "sse",
        }
    }
}
