//! The two functions of the server, and the messages that go through them.

use serde::{de::DeserializeOwned, Deserialize, Serialize};
use serde_json::Value;

use crate::{reader, Error, Json, Result};

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

/// Makes any request by its method; the functions of this crate are the ones that exist.
pub fn request(method: &str, params: impl Serialize) -> Result<Value> {
    request_as(method, params)
}

/// Makes a request and reads its result as a type.
pub(crate) fn request_as<T: DeserializeOwned>(method: &str, params: impl Serialize) -> Result<T> {
    request_text(method, &serde_json::to_string(&params)?)?.read()
}

/// What is generic in this crate only turns values into text and back, and leaves the rest to functions like this one:
/// they are compiled once, with the crate, and not again with each tool.
pub(crate) fn request_text(method: &str, params: &str) -> Result<Json> {
    read_reply(exchange(&message(method, params)))
}

/// Sends a message that has no reply, but perhaps an error.
pub(crate) fn notify(method: &str, params: &str) -> Result<()> {
    let reply = exchange(&message(method, params));
    if reply.is_empty() {
        return Ok(());
    }
    read_reply(reply).map(drop)
}

/// A message. The server looks at its beginning before it reads it whole, so the method comes first.
fn message(method: &str, params: &str) -> Vec<u8> {
    format!("{{\"method\":{},\"params\":{params}}}", Value::from(method)).into_bytes()
}

#[derive(Deserialize)]
struct Reply {
    result: Option<Json>,
    error: Option<Failure>,
}

#[derive(Deserialize)]
struct Failure {
    code: Option<i64>,
    message: Option<String>,
    data: Option<Json>,
}

fn read_reply(bytes: Vec<u8>) -> Result<Json> {
    let text = String::from_utf8(bytes).map_err(|_| Error::new("The server's reply is not UTF-8"))?;
    let reply: Reply = reader::read(&text)?;
    match reply.error {
        None => reply.result.map_or_else(|| Json::new(()), Ok),
        Some(failure) => Err(Error {
            code: failure.code.unwrap_or(-32000),
            message: failure.message.unwrap_or_else(|| "The request failed".to_owned()),
            data: failure.data.and_then(|data| data.read().ok()),
        }),
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
