//! What the operator decided about HTTP.

use std::{fmt, io, net::SocketAddr, sync::Arc};

/// Gives lines in Prometheus' text format.
pub type MetricsSource = Arc<dyn Fn() -> String + Send + Sync>;

/// Settings of the HTTP transport.
#[derive(Clone, Default)]
pub struct HttpSettings {
    /// Name or address to listen on; empty means `127.0.0.1`.
    pub host: String,
    /// Port to listen on; 0 lets the system choose.
    pub port: u16,
    /// The bearer token that clients must send. Without one only loopback addresses are listened on.
    pub token: Option<String>,
    /// Origins of web apps that may connect, such as `https://app.example.com`.
    pub allowed_origins: Vec<String>,
    /// More lines for `/metrics`.
    pub metrics: Option<MetricsSource>,
}

impl fmt::Debug for HttpSettings {
    /// Never shows the token.
    fn fmt(&self, formatter: &mut fmt::Formatter<'_>) -> fmt::Result {
        formatter
            .debug_struct("HttpSettings")
            .field("host", &self.host)
            .field("port", &self.port)
            .field("token", &self.token.as_ref().map(|_| "<hidden>"))
            .field("allowed_origins", &self.allowed_origins)
            .finish_non_exhaustive()
    }
}

/// The HTTP transport could not start.
#[derive(Debug, thiserror::Error)]
pub enum HttpError {
    /// The host name means nothing.
    #[error("The host `{host}` cannot be resolved")]
    Resolve {
        /// The name as given.
        host: String,
        /// Why.
        #[source]
        source: io::Error,
    },
    /// Anybody on the network could use the server.
    #[error(
        "`{host}` can be reached from other machines, so a bearer token is needed: set SKILLZ_AUTH_TOKEN (or `http.token` in the config), \
         or listen on 127.0.0.1"
    )]
    TokenRequired {
        /// The name as given.
        host: String,
    },
    /// The token cannot be sent in a header.
    #[error("The bearer token is empty or has characters that no HTTP header can carry; use letters, digits and `-._~+/=`")]
    BadToken,
    /// The port is taken, or not allowed.
    #[error("Cannot listen on `{address}`")]
    Bind {
        /// The address tried.
        address: SocketAddr,
        /// Why.
        #[source]
        source: io::Error,
    },
}
