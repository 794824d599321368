//! The two functions of the server, and the messages that go through them.

use serde::Serialize;
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

/// Makes any request by its method; the functions of this crate are the ones that exist.
pub fn request(method: &str, params: impl Serialize) -> Result<Value> {
    request_value(method, serde_json::to_value(params)?)
}

/// What is generic in this crate only turns values into [`Value`] and leaves the rest to functions like this one:
/// they are compiled once, with the crate, and not again with each tool.
pub(crate) fn request_value(method: &str, params: Value) -> Result<Value> {
    let bytes = exchange(&message(method, params));
    read_reply(&bytes)
}

/// Sends a message that has no reply, but perhaps an error.
pub(crate) fn notify(method: &str, params: Value) -> Result<()> {
    let bytes = exchange(&message(method, params));
    if bytes.is_empty() {
        return Ok(());
    }
    read_reply(&bytes).map(drop)
}

/// A message. The server looks at its beginning before it reads it whole, so the method comes first.
fn message(method: &str, params: Value) -> Vec<u8> {
    let mut text = String::from("{\"method\":");
    text.push_str(&Value::from(method).to_string());
    text.push_str(",\"params\":");
    text.push_str(&params.to_string());
    text.push('}');
    text.into_bytes()
}

fn read_reply(bytes: &[u8]) -> Result<Value> {
    let mut reply: Value = serde_json::from_slice(bytes)?;
    let error = reply["error"].take();
    if error.is_null() {
        return Ok(reply["result"].take());
    }
    Err(Error {
        code: error["code"].as_i64().unwrap_or(-32000),
        message: error["message"].as_str().unwrap_or("The request failed").to_owned(),
        data: error.get("data").filter(|data| !data.is_null()).cloned(),
    })
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
