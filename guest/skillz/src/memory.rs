//! The tool's own memory: any JSON, kept between calls. No other tool sees it.

use serde::Serialize;
use serde_json::{json, Value};

use crate::{host, Error, Result, Seconds};

/// The value of a key, or `None` where there is none or it has expired.
pub fn get(key: &str) -> Result<Option<Value>> {
    let mut reply = host::request("memory/get", json!({ "key": key }))?;
    let found = reply["found"].as_bool().unwrap_or(false);
    Ok(found.then(|| reply["value"].take()))
}

/// Keeps a value.
pub fn set(key: &str, value: impl Serialize) -> Result<()> {
    host::request("memory/set", json!({ "key": key, "value": serde_json::to_value(value)? })).map(drop)
}

/// Keeps a value for a time: a number of seconds, or a `Duration`.
pub fn set_for(key: &str, value: impl Serialize, ttl_seconds: impl Seconds) -> Result<()> {
    let params = json!({ "key": key, "value": serde_json::to_value(value)?, "ttl": ttl_seconds.seconds() });
    host::request("memory/set", params).map(drop)
}

/// The keys that start with a prefix.
pub fn list(prefix: &str) -> Result<Vec<String>> {
    let mut reply = host::request("memory/list", json!({ "prefix": prefix }))?;
    serde_json::from_value(reply["keys"].take()).map_err(Error::from)
}

/// Deletes a key, and says whether it was there.
pub fn delete(key: &str) -> Result<bool> {
    let reply = host::request("memory/delete", json!({ "key": key }))?;
    Ok(reply["deleted"].as_bool().unwrap_or(false))
}
