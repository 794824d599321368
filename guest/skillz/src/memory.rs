//! The tool's own memory: any JSON, kept between calls. No other tool sees it.

use serde::{de::DeserializeOwned, Deserialize, Serialize};
use serde_json::{json, Value};

use crate::{host, Json, Result, Seconds};

#[derive(Deserialize)]
struct Kept {
    #[serde(default)]
    found: bool,
    value: Option<Json>,
}

/// The value of a key, or `None` where there is none or it has expired. A number that a `Value` would round is an error;
/// see [`get_as`].
pub fn get(key: &str) -> Result<Option<Value>> {
    get_as(key)
}

/// The value of a key as a type, such as [`Json`], which holds any number.
pub fn get_as<T: DeserializeOwned>(key: &str) -> Result<Option<T>> {
    match kept(key)? {
        None => Ok(None),
        Some(value) => value.read().map(Some),
    }
}

fn kept(key: &str) -> Result<Option<Json>> {
    let kept: Kept = host::request_as("memory/get", json!({ "key": key }))?;
    match kept.value {
        _ if !kept.found => Ok(None),
        // What is kept may be null.
        None => Json::new(()).map(Some),
        value => Ok(value),
    }
}

/// Keeps a value.
pub fn set(key: &str, value: impl Serialize) -> Result<()> {
    set_value(key, Json::new(value)?, None)
}

/// Keeps a value for a time: a number of seconds, or a `Duration`.
pub fn set_for(key: &str, value: impl Serialize, ttl_seconds: impl Seconds) -> Result<()> {
    set_value(key, Json::new(value)?, Some(ttl_seconds.seconds()))
}

fn set_value(key: &str, value: Json, ttl: Option<f64>) -> Result<()> {
    #[derive(Serialize)]
    struct Params<'a> {
        key: &'a str,
        value: Json,
        ttl: Option<f64>,
    }
    host::request_text("memory/set", Json::new(Params { key, value, ttl })?.text()).map(drop)
}

/// The keys that start with a prefix.
pub fn list(prefix: &str) -> Result<Vec<String>> {
    #[derive(Deserialize)]
    struct Keys {
        #[serde(default)]
        keys: Vec<String>,
    }
    host::request_as("memory/list", json!({ "prefix": prefix })).map(|Keys { keys }| keys)
}

/// Deletes a key, and says whether it was there.
pub fn delete(key: &str) -> Result<bool> {
    #[derive(Deserialize)]
    struct Deleted {
        #[serde(default)]
        deleted: bool,
    }
    host::request_as("memory/delete", json!({ "key": key })).map(|Deleted { deleted }| deleted)
}
