//! Why the server did not do what it was asked for.

use std::fmt;

use serde_json::Value;

use crate::reader::Fault;

/// A request that failed, in the server's words.
#[derive(Debug, Clone, PartialEq)]
pub struct Error {
    /// JSON-RPC error code.
    pub code: i64,
    /// What failed, and why.
    pub message: String,
    /// Machine-readable detail, where there is some.
    pub data: Option<Value>,
}

/// The result of a request.
pub type Result<T> = std::result::Result<T, Error>;

impl Error {
    pub(crate) fn new(message: impl Into<String>) -> Self {
        Self { code: -32000, message: message.into(), data: None }
    }
}

impl fmt::Display for Error {
    fn fmt(&self, formatter: &mut fmt::Formatter<'_>) -> fmt::Result {
        formatter.write_str(&self.message)
    }
}

impl std::error::Error for Error {}

impl From<serde_json::Error> for Error {
    fn from(error: serde_json::Error) -> Self {
        Self::new(format!("A value does not fit into JSON, or not into its type: {error}"))
    }
}

impl From<Fault> for Error {
    fn from(fault: Fault) -> Self {
        Self::new(format!("A value does not fit its type: {fault}"))
    }
}

impl From<Error> for String {
    fn from(error: Error) -> Self {
        error.message
    }
}
