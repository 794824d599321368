//! HTTP for guests, which have no sockets: made here, on the host, and only to hosts that the call grants.

use serde::{Deserialize, Serialize};
use serde_json::{Map, Value};
use skillz_tool::NetworkPermission;

/// Why a request came to nothing.
pub(crate) struct HttpError {
    pub(crate) message: String,
    /// Whether it was refused, rather than tried.
    pub(crate) refused: bool,
}

#[derive(Deserialize)]
struct Request {
    #[serde(default)]
    method: Option<String>,
    url: String,
    #[serde(default)]
    headers: Map<String, Value>,
    #[serde(default)]
    body: Option<Value>,
}

/// What came back.
#[derive(Serialize)]
pub(crate) struct Response {
    status: u16,
}

/// Makes one request in a tool's name.
pub(crate) async fn request(tool: &str, network: &NetworkPermission, params: Value) -> Result<Response, HttpError> {
    let _ = (tool, network, params);
    Err(HttpError { message: "not yet".into(), refused: true })
}
