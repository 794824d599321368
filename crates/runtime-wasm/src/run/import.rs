//! The import module `skillz`: the two functions by which a guest reaches the server.
//!
//! `call(pointer, length) -> length` takes a JSON message `{"method", "params"}` and gives the length of the
//! reply; `take(pointer, capacity) -> length` copies the reply out. A reply is `{"result"}` or `{"error": {"code",
//! "message", "data"}}`; notifications have an empty one. The methods are those of every host request, and besides
//! them `http/request`, and `tool/return` and `tool/fail`, by which a guest gives its result with its type.

use std::time::Instant;

use serde::Deserialize;
use skillz_json::{Value, json};
use skillz_tool::{Progress, dispatch_notification};
use tokio::sync::oneshot;
use wasmtime::{Caller, Extern, Linker, format_err};

use super::{
    guest::{Guest, HostRequest},
    output::OutputTooLong,
};
use crate::http;

/// Longest message of a guest other than its result, in bytes.
const MAX_MESSAGE: usize = 16 << 20;
/// Log messages and progress reports that a guest may send in a burst, and those it may send per second afterwards.
const BURST: f64 = 500.0;
const PER_SECOND: f64 = 100.0;

#[derive(Deserialize)]
struct Message {
    method: String,
    #[serde(default)]
    params: Value,
}

/// Bounds the notifications of one guest.
#[derive(Debug)]
pub(crate) struct Allowance {
    left: f64,
    counted_at: Instant,
}

impl Allowance {
    pub(crate) fn new() -> Self {
        Self { left: BURST, counted_at: Instant::now() }
    }

    fn take(&mut self) -> bool {
        let now = Instant::now();
        let earned = now.duration_since(self.counted_at).as_secs_f64() * PER_SECOND;
        self.left = (self.left + earned).min(BURST);
        self.counted_at = now;
        if self.left < 1.0 {
            return false;
        }
        self.left -= 1.0;
        true
    }
}

/// Adds the module `skillz`.
pub(crate) fn add_to_linker(linker: &mut Linker<Guest>) -> wasmtime::Result<()> {
    linker.func_wrap_async("skillz", "call", |mut caller: Caller<'_, Guest>, (pointer, length): (u32, u32)| {
        Box::new(async move {
            let message = read(&mut caller, pointer, length)?;
            let reply = answer(caller.data_mut(), message).await?;
            let length = u32::try_from(reply.len()).map_err(|_| format_err!("The reply is longer than 4 GiB"))?;
            caller.data_mut().link.reply = reply;
            Ok::<u32, wasmtime::Error>(length)
        })
    })?;
    linker.func_wrap("skillz", "take", |mut caller: Caller<'_, Guest>, pointer: u32, capacity: u32| {
        let reply = std::mem::take(&mut caller.data_mut().link.reply);
        let length = reply.len().min(capacity as usize);
        let start = pointer as usize;
        let Some(Extern::Memory(memory)) = caller.get_export("memory") else {
            return Err(format_err!("The module exports no memory"));
        };
        let target = memory.data_mut(&mut caller).get_mut(start..start.saturating_add(length));
        let target = target.ok_or_else(|| format_err!("`skillz.take` was given a place outside of the memory"))?;
        target.copy_from_slice(reply.get(..length).unwrap_or_default());
        Ok(length as u32)
    })?;
    Ok(())
}

/// Reads a message out of the guest's memory.
fn read(caller: &mut Caller<'_, Guest>, pointer: u32, length: u32) -> wasmtime::Result<Result<Message, Value>> {
    let Some(Extern::Memory(memory)) = caller.get_export("memory") else {
        return Err(format_err!("The module exports no memory"));
    };
    let start = pointer as usize;
    let bytes = memory.data(&caller).get(start..start.saturating_add(length as usize));
    let bytes = bytes.ok_or_else(|| format_err!("`skillz.call` was given a place outside of the memory"))?;
    let limit = caller.data().link.max_output_bytes;
    let is_result = bytes.starts_with(br#"{"method":"tool/"#);
    if is_result && bytes.len() as u64 > limit {
        return Err(OutputTooLong { limit }.into());
    }
    if !is_result && bytes.len() > MAX_MESSAGE {
        return Ok(Err(failure(-32600, &format!("The message is longer than {MAX_MESSAGE} bytes"))));
    }
    let text = String::from_utf8_lossy(bytes);
    Ok(serde_json::from_str(&text).map_err(|error| failure(-32700, &format!("The message is not valid: {error}"))))
}

/// Carries out one message and gives the reply's bytes.
async fn answer(guest: &mut Guest, message: Result<Message, Value>) -> wasmtime::Result<Vec<u8>> {
    let Message { method, params } = match message {
        Ok(message) => message,
        Err(failure) => return Ok(failure.to_string().into_bytes()),
    };
    let link = &mut guest.link;
    match method.as_str() {
        "tool/return" => link.answer.value = Some(params),
        "tool/fail" => link.answer.failure = Some(text_of(&params)),
        "stream" | "stream/chunk" => stream(guest, &params),
        "log" | "logging/message" | "notifications/message" | "progress" | "notifications/progress" => {
            if link.progress.take() {
                dispatch_notification(&*link.host, &method, params);
            }
        }
        "http/request" => {
            let _waiting = link.ticker.wait();
            let reply = match http::request(&link.http, &link.tool_name, &link.network, params).await {
                Ok(response) => json!({"result": response}),
                Err(error) => {
                    if error.refused {
                        link.refused_network = Some(error.message.clone());
                    }
                    failure(-32000, &error.message)
                }
            };
            return Ok(reply.to_string().into_bytes());
        }
        _ => return request(guest, method, params).await,
    }
    Ok(Vec::new())
}

/// Hands a request to the task that made the call, and waits for the reply.
async fn request(guest: &mut Guest, method: String, params: Value) -> wasmtime::Result<Vec<u8>> {
    let (reply, receiver) = oneshot::channel();
    let gone = || format_err!("The call is over");
    let _waiting = guest.link.ticker.wait();
    guest.link.requests.send(HostRequest { method, params, reply }).map_err(|_| gone())?;
    receiver.await.map_err(|_| gone())
}

/// A chunk of the result: shown as progress, and kept as the result if the tool gives no other.
fn stream(guest: &mut Guest, params: &Value) {
    let chunk = params.get("data").map(text_of).unwrap_or_default();
    let answer = &mut guest.link.answer;
    if answer.chunks.len() + chunk.len() <= MAX_MESSAGE {
        answer.chunks.push_str(&chunk);
    }
    if guest.link.progress.take() {
        let current = params.get("index").and_then(Value::as_f64).unwrap_or_default();
        guest.link.host.progress(Progress { current, total: None, message: Some(chunk) });
    }
}

fn text_of(value: &Value) -> String {
    value.as_str().map_or_else(|| value.to_string(), str::to_owned)
}

fn failure(code: i64, message: &str) -> Value {
    json!({"error": {"code": code, "message": message}})
}
