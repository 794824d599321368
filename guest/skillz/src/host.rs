//! The two functions of the server, and the messages that go through them.

use serde::{de::IgnoredAny, Deserialize, Serialize};
use serde_json::Value;

use crate::{Error, Result};

#[cfg(target_arch = "wasm32")]
mod import {
    #[link(wasm_import_module = "skillz")]
    extern "C" {
        /// Takes a message, and gives the length of the reply.
        pub(super) fn call(pointer: *const u8, length: usize) -> usize;
        /// Copies the reply out, and gives its length.
        pub(super) fn take(pointer: *mut u8, capacity: usize) -> usize;
    }
}

#[derive(Serialize)]
struct Message<'a, P> {
    method: &'a str,
    params: P,
}

#[derive(Deserialize)]
struct Reply {
    #[serde(default)]
    result: Value,
    #[serde(default)]
    error: Option<Failure>,
}

#[derive(Deserialize)]
struct Failure {
    code: i64,
    message: String,
    #[serde(default)]
    data: Option<Value>,
}

/// Makes any request by its method; the functions of this crate are the ones that exist.
pub fn request(method: &str, params: impl Serialize) -> Result<Value> {
    let bytes = exchange(&serde_json::to_vec(&Message { method, params })?);
    let Reply { result, error } = serde_json::from_slice(&bytes)?;
    match error {
        Some(Failure { code, message, data }) => Err(Error { code, message, data }),
        None => Ok(result),
    }
}

/// Sends a message that has no reply.
pub(crate) fn notify(method: &str, params: impl Serialize) -> Result<()> {
    let bytes = exchange(&serde_json::to_vec(&Message { method, params })?);
    if bytes.is_empty() {
        return Ok(());
    }
    let Reply { error, .. } = serde_json::from_slice(&bytes)?;
    match error {
        Some(Failure { code, message, data }) => Err(Error { code, message, data }),
        None => serde_json::from_slice(&bytes).map(|IgnoredAny| ()).map_err(Error::from),
    }
}

#[cfg(target_arch = "wasm32")]
fn exchange(message: &[u8]) -> Vec<u8> {
    // SAFETY: the server reads `length` bytes from the first pointer, and writes at most `capacity` to the second.
    unsafe {
        let length = import::call(message.as_ptr(), message.len());
        let mut reply: Vec<u8> = Vec::with_capacity(length);
        let taken = import::take(reply.as_mut_ptr(), length);
        reply.set_len(taken);
        reply
    }
}

/// Outside of the server there is nobody to ask.
#[cfg(not(target_arch = "wasm32"))]
fn exchange(_message: &[u8]) -> Vec<u8> {
    br#"{"error":{"code":-32000,"message":"This program does not run as a Skillz tool"}}"#.to_vec()
}
