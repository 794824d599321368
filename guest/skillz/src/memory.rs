//! The tool's own memory: any JSON, kept between calls. No other tool sees it.

use serde::Serialize;
use serde_json::{json, Value};

use crate::{host, Result, Seconds};

/// The value of a key, or `None` where there is none or it has expired.
pub fn get(key: &str) -> Result<Option<Value>> {
    let mut reply = host::request_value("memory/get", json!({ "key": key }))?;
    let found = reply["found"].as_bool().unwrap_or(false);
    Ok(found.then(|| reply["value"].take()))
}

/// Keeps a value.
pub fn set(key: &str, value: impl Serialize) -> Result<()> {
    set_value(key, serde_json::to_value(value)?, None)
}

/// Keeps a value for a time: a number of seconds, or a `Duration`.
pub fn set_for(key: &str, value: impl Serialize, ttl_seconds: impl Seconds) -> Result<()> {
    set_value(key, serde_json::to_value(value)?, Some(ttl_seconds.seconds()))
}

fn set_value(key: &str, value: Value, ttl: Option<f64>) -> Result<()> {
    host::request_value("memory/set", json!({ "key": key, "value": value, "ttl": ttl })).map(drop)
}

/// The keys that start with a prefix.
pub fn list(prefix: &str) -> Result<Vec<String>> {
    let mut reply = host::request_value("memory/list", json!({ "prefix": prefix }))?;
    let keys = match reply["keys"].take() {
        Value::Array(keys) => keys,
        _ => Vec::new(),
    };
    Ok(keys.iter().filter_map(Value::as_str).map(str::to_owned).collect())
}

/// Deletes a key, and says whether it was there.
pub fn delete(key: &str) -> Result<bool> {
    let reply = host::request_value("memory/delete", json!({ "key": key }))?;
    Ok(reply["deleted"].as_bool().unwrap_or(false))
}
