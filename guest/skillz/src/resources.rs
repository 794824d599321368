//! The server's resources.

use serde_json::{json, Value};

use crate::{host, Result};

/// Reads a resource: `{"contents": [{"uri", "mimeType", "text" or "blob"}]}`.
pub fn read(uri: &str) -> Result<Value> {
    host::request("resources/read", json!({ "uri": uri }))
}

/// Lists what there is: `{"resources": [...]}`.
pub fn list() -> Result<Value> {
    host::request("resources/list", json!({}))
}
