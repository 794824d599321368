//! What a running script says beside its result: host requests, notifications, stream chunks.
//!
//! The same for process scripts and workers. Requests are carried out at once and side by side; their answers come
//! out in the order in which they are ready. Dropping the conversation gives up what is under way.

use std::{collections::HashMap, sync::Arc};

use futures::{
    FutureExt, StreamExt,
    future::{AbortHandle, Abortable, BoxFuture},
    stream::FuturesUnordered,
};
use serde::Deserialize;
use skillz_json::{Number, Value, json};
use skillz_tool::{Host, HostRequestError, Progress, ToolError, dispatch_notification, dispatch_request};

use crate::{
    language::Language,
    message::{self, Line, Reply},
};

/// Most host requests of one call under way at once; further ones stay unread in the pipe.
const MOST_REQUESTS: usize = 256;

/// One call's talk with the host.
pub(crate) struct Conversation {
    host: Arc<dyn Host>,
    /// Which numbers the script's language can hold; an answer with another one is an error.
    holds: fn(&Number) -> bool,
    requests: FuturesUnordered<BoxFuture<'static, (String, Option<Vec<u8>>)>>,
    /// Handles of the requests that are under way, by their ids as JSON: whoever asked may give one up.
    open: HashMap<String, AbortHandle>,
    chunks: Vec<Value>,
}

#[derive(Deserialize)]
struct Chunk {
    #[serde(default)]
    data: Value,
    #[serde(default)]
    index: Option<f64>,
}

impl Conversation {
    pub(crate) fn new(host: Arc<dyn Host>, language: Language) -> Self {
        Self { host, holds: language.holds(), requests: FuturesUnordered::new(), open: HashMap::new(), chunks: Vec::new() }
    }

    /// Takes one line; gives the reply if it is the one to the call. Text is the caller's business.
    pub(crate) fn take(&mut self, line: Line) -> Option<Reply> {
        match line {
            Line::Request { id, method, params } => {
                let (host, holds) = (Arc::clone(&self.host), self.holds);
                let (handle, registration) = AbortHandle::new_pair();
                let key = id.to_string();
                self.open.insert(key.clone(), handle);
                let answer = async move { answer(&*host, holds, id, &method, params).await };
                self.requests.push(Box::pin(Abortable::new(answer, registration).map(|answer| (key, answer.ok()))));
                None
            }
            Line::Notification { method, params } => {
                match method.as_str() {
                    "stream" | "stream/chunk" => self.take_chunk(params),
                    "notifications/cancelled" => self.cancel(&params),
                    _ => drop(dispatch_notification(&*self.host, &method, params)),
                }
                None
            }
            Line::Reply(reply) => Some(reply),
            Line::Text => None,
        }
    }

    /// Waits for the next answer to send to the script; forever where no request is under way.
    pub(crate) async fn next_answer(&mut self) -> Vec<u8> {
        loop {
            let Some((key, answer)) = self.requests.next().await else { std::future::pending().await };
            self.open.remove(&key);
            if let Some(answer) = answer {
                return answer;
            }
        }
    }

    /// Gives a request up; there is no answer to it.
    fn cancel(&mut self, params: &Value) {
        let handle = params.get("requestId").and_then(|id| self.open.get(&id.to_string()));
        if let Some(handle) = handle {
            handle.abort();
        }
    }

    /// Whether no request is under way.
    pub(crate) fn is_quiet(&self) -> bool {
        self.requests.is_empty()
    }

    /// Whether another request may be read.
    pub(crate) fn has_room(&self) -> bool {
        self.requests.len() < MOST_REQUESTS
    }

    /// The stream chunks put together: text where all are text, else a list. `None` where there was none.
    pub(crate) fn streamed(&mut self) -> Option<Value> {
        let chunks = std::mem::take(&mut self.chunks);
        if chunks.is_empty() {
            return None;
        }
        let texts: Option<Vec<&str>> = chunks.iter().map(Value::as_str).collect();
        Some(texts.map_or_else(|| json!(chunks), |texts| json!(texts.concat())))
    }

    fn take_chunk(&mut self, params: Value) {
        let Ok(Chunk { data, index }) = skillz_json::from_value(params) else { return };
        let message = data.as_str().map_or_else(|| data.to_string(), str::to_owned);
        let current = index.map_or(self.chunks.len() as f64, |index| index) + 1.0;
        // The last chunk may be an empty end mark.
        if !message.is_empty() && !data.is_null() {
            self.host.progress(Progress { current, total: None, message: Some(message) });
            self.chunks.push(data);
        }
    }
}

/// Carries out one request and words the answer as a line.
async fn answer(host: &dyn Host, holds: fn(&Number) -> bool, id: Value, method: &str, params: Value) -> Vec<u8> {
    let result = dispatch_request(host, method, params).await.and_then(|result| match result.unheld_number(holds) {
        None => Ok(result),
        Some((path, written)) => Err(HostRequestError::from(ToolError::failed(format!(
            "The answer holds {written} at `{path}`, a number that the script's language cannot hold as it is"
        )))),
    });
    let (name, value) = match result {
        Ok(result) => ("result", result),
        Err(error) => {
            let mut object = json!({"code": error.code, "message": error.message});
            if let (Some(data), Some(object)) = (error.data, object.as_object_mut()) {
                object.insert("data".to_owned(), data);
            }
            ("error", object)
        }
    };
    let members = [("jsonrpc", Value::from("2.0")), ("id", id), (name, value)];
    message::line(&members.into_iter().map(|(name, value)| (name.to_owned(), value)).collect::<Value>())
}
