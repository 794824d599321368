//! One conversation with a server: requests and their answers, notes, and the server's own questions, over whichever
//! link. It is shared by all calls of all clients.

use std::{
    collections::HashMap,
    sync::{
        Arc, Mutex, MutexGuard, OnceLock, PoisonError,
        atomic::{AtomicU64, Ordering},
    },
    time::Duration,
};

use serde::Serialize;
use skillz_json::{Map, Value, json};
use skillz_tool::{ClientCapabilities, Host, Progress};
use tokio::sync::{oneshot, watch};
use tokio_util::sync::CancellationToken;

use crate::{
    error::{LinkError, RequestError},
    link::{Link, Outgoing},
    question,
};

/// How long a note may take to go out, for a server that does not read.
const NOTE_PATIENCE: Duration = Duration::from_secs(10);

/// How the server wants to be spoken to.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(crate) enum Era {
    /// With a handshake; the version agreed on.
    Handshake(String),
    /// Stateless: each request says who asks, in this version.
    Stateless(String),
}

/// A call that is under way, as the server may refer to it.
pub(crate) struct RunningCall {
    pub(crate) host: Arc<dyn Host>,
    pub(crate) capabilities: ClientCapabilities,
    /// Its client's session, where that can be told.
    pub(crate) session: Option<u64>,
    /// Whether its client wants to know how far it has come.
    pub(crate) wants_progress: bool,
    /// Done when the call is over.
    pub(crate) ended: CancellationToken,
}

/// Calls of several clients are under way, so it cannot be told whose something of the server is.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) struct SeveralClients;

/// One conversation with a server.
pub(crate) struct Connection {
    link: Link,
    era: OnceLock<Era>,
    next_id: AtomicU64,
    state: Mutex<State>,
    closed: CancellationToken,
    list_changes: watch::Sender<u64>,
    /// The server's open questions by their id.
    pub(crate) questions: Mutex<HashMap<String, CancellationToken>>,
}

#[derive(Default)]
struct State {
    pending: HashMap<u64, Pending>,
    end: Option<LinkError>,
}

/// A request as it goes out; arguments may be large, so they are not copied for it.
#[derive(Serialize)]
struct Request<'a> {
    jsonrpc: &'static str,
    id: u64,
    method: &'a str,
    params: &'a Map<String, Value>,
}

struct Pending {
    answer: oneshot::Sender<Result<Value, RequestError>>,
    call: Option<Arc<RunningCall>>,
}

impl Connection {
    pub(crate) fn new(link: Link) -> Arc<Self> {
        Arc::new(Self {
            link,
            era: OnceLock::new(),
            next_id: AtomicU64::new(1),
            state: Mutex::default(),
            closed: CancellationToken::new(),
            list_changes: watch::Sender::new(0),
            questions: Mutex::default(),
        })
    }

    /// Settles how the server is spoken to.
    pub(crate) fn set_era(&self, era: Era) {
        let _ = self.era.set(era);
    }

    /// How the server is spoken to; nothing before the greeting is over.
    pub(crate) fn era(&self) -> Option<&Era> {
        self.era.get()
    }

    pub(crate) fn link(&self) -> &Link {
        &self.link
    }

    /// Counts the server's notes that its list of tools has changed.
    pub(crate) fn list_changes(&self) -> watch::Receiver<u64> {
        self.list_changes.subscribe()
    }

    /// Ends the conversation: whoever waits for an answer gets `reason`. The first reason stays.
    pub(crate) fn close(&self, reason: LinkError) {
        // What is under way may have done something, so nobody shall make it again.
        let for_waiting = LinkError::Over(reason.to_string());
        let waiting = {
            let mut state = self.state();
            state.end.get_or_insert(reason);
            std::mem::take(&mut state.pending)
        };
        for pending in waiting.into_values() {
            let _ = pending.answer.send(Err(RequestError::Link(for_waiting.clone())));
        }
        self.closed.cancel();
    }

    /// Waits until the conversation is over, and says why.
    pub(crate) async fn closed(&self) -> LinkError {
        self.closed.cancelled().await;
        self.state().end.clone().unwrap_or_else(|| LinkError::Over("The connection is over".to_owned()))
    }

    pub(crate) fn is_closed(&self) -> bool {
        self.closed.is_cancelled()
    }

    /// Makes a request. Dropping the future takes it back, and tells the server so.
    pub(crate) async fn request(
        self: &Arc<Self>,
        method: &str,
        mut params: Map<String, Value>,
        call: Option<&Arc<RunningCall>>,
    ) -> Result<Value, RequestError> {
        let id = self.next_id.fetch_add(1, Ordering::Relaxed);
        let (answer, answered) = oneshot::channel();
        {
            let mut state = self.state();
            if let Some(end) = &state.end {
                return Err(RequestError::Link(LinkError::Unsent(end.to_string())));
            }
            state.pending.insert(id, Pending { answer, call: call.cloned() });
        }
        let mut withdrawal = Withdrawal { connection: self, id, tells: method != "initialize" };
        self.add_meta(&mut params, id, call.is_some_and(|call| call.wants_progress));
        let request = Request { jsonrpc: "2.0", id, method, params: &params };
        let body = serde_json::to_vec(&request).map_err(|error| RequestError::Senseless(error.to_string()))?;
        let outgoing = Outgoing { id: Some(id), about: Some((method, &params)), body };
        let carried = self.link.carry(self, outgoing);
        tokio::pin!(answered);
        let answer = tokio::select! {
            biased;
            answer = &mut answered => answer,
            carried = carried => match carried {
                Ok(()) => answered.await,
                Err(error) => {
                    withdrawal.tells = false;
                    drop(withdrawal);
                    return Err(RequestError::Link(self.without_way(error)));
                }
            },
        };
        answer.unwrap_or_else(|_| Err(RequestError::Link(LinkError::Over("The connection is over".to_owned()))))
    }

    /// Sends a note.
    pub(crate) async fn notify(self: &Arc<Self>, method: &str, params: Map<String, Value>) -> Result<(), LinkError> {
        let mut message = json!({"jsonrpc": "2.0", "method": method});
        if let (Some(object), false) = (message.as_object_mut(), params.is_empty()) {
            object.insert("params".to_owned(), json!(params));
        }
        let outgoing = Outgoing { id: None, about: Some((method, &params)), body: message.to_string().into_bytes() };
        self.link.carry(self, outgoing).await.map_err(|error| self.without_way(error))
    }

    /// Answers a question of the server.
    pub(crate) async fn answer(self: &Arc<Self>, message: &Value) -> Result<(), LinkError> {
        let outgoing = Outgoing { id: None, about: None, body: message.to_string().into_bytes() };
        self.link.carry(self, outgoing).await.map_err(|error| self.without_way(error))
    }

    /// Where a message does not reach the server any more, the conversation is over.
    fn without_way(&self, error: LinkError) -> LinkError {
        if error.may_repeat() {
            self.close(error.clone());
        }
        error
    }

    /// Takes in what the server sent. `carrier` is the request whose answer's stream it came with, where the link knows.
    pub(crate) fn receive(self: &Arc<Self>, message: Value, carrier: Option<u64>) {
        let Value::Object(message) = message else {
            if let Value::Array(batch) = message {
                batch.into_iter().filter(Value::is_object).for_each(|message| self.receive(message, carrier));
            }
            return;
        };
        let id = message.get("id").filter(|id| !id.is_null());
        if message.get("method").is_none_or(|method| !method.is_string()) {
            let id = id.and_then(number).or(carrier);
            self.take_answer(message, id);
        } else if id.is_some() {
            question::take(self, message, carrier);
        } else {
            self.take_note(&message, carrier);
        }
    }

    /// Fails one request: its answer was lost on the way.
    pub(crate) fn fail(&self, id: u64, error: RequestError) {
        if let Some(pending) = self.state().pending.remove(&id) {
            let _ = pending.answer.send(Err(error));
        }
    }

    /// Whether somebody still waits for the answer to a request.
    pub(crate) fn waits_for(&self, id: u64) -> bool {
        self.state().pending.contains_key(&id)
    }

    /// The call that something of the server belongs to: the one it names or came with. Else the latest whose client can
    /// do what is needed, if all calls are of one client: nobody is asked in the name of somebody else's call.
    pub(crate) fn call_for(
        &self,
        related: Option<u64>,
        needed: ClientCapabilities,
    ) -> Result<Option<Arc<RunningCall>>, SeveralClients> {
        let state = self.state();
        if let Some(call) = related.and_then(|id| state.pending.get(&id)).and_then(|pending| pending.call.as_ref()) {
            return Ok(Some(Arc::clone(call)));
        }
        if !are_of_one_client(state.pending.values().filter_map(|pending| Some(pending.call.as_ref()?.session))) {
            return Err(SeveralClients);
        }
        let can = |call: &RunningCall| {
            (call.capabilities.elicitation || !needed.elicitation) && (call.capabilities.sampling || !needed.sampling)
        };
        let calls = state.pending.iter().filter_map(|(id, pending)| Some((*id, pending.call.as_ref()?)));
        Ok(calls.max_by_key(|(id, call)| (can(call), *id)).map(|(_, call)| Arc::clone(call)))
    }

    fn take_answer(&self, mut message: Map<String, Value>, id: Option<u64>) {
        let Some(pending) = id.and_then(|id| self.state().pending.remove(&id)) else {
            tracing::debug!("An answer that nobody waits for was dropped");
            return;
        };
        let answer = match (message.shift_remove("result"), message.shift_remove("error")) {
            (_, Some(error)) if !error.is_null() => Err(RequestError::Answered {
                code: error.get("code").and_then(Value::as_i64).unwrap_or_default(),
                message: error.get("message").and_then(Value::as_str).unwrap_or("no reason given").to_owned(),
                data: error.get("data").cloned(),
            }),
            (Some(result), _) => Ok(result),
            (None, _) => Err(RequestError::Senseless("The server's answer has neither `result` nor `error`".to_owned())),
        };
        let _ = pending.answer.send(answer);
    }

    fn take_note(&self, message: &Map<String, Value>, carrier: Option<u64>) {
        let params = message.get("params").unwrap_or(&Value::Null);
        match message.get("method").and_then(Value::as_str).unwrap_or_default() {
            "notifications/progress" => self.take_progress(params),
            "notifications/tools/list_changed" => self.list_changes.send_modify(|count| *count += 1),
            "notifications/message" => {
                let call = self.call_for(related(params, carrier), ClientCapabilities::default());
                question::log(call.ok().flatten().as_deref(), params);
            }
            "notifications/cancelled" => {
                let id = params.get("requestId").map(Value::to_string).unwrap_or_default();
                if let Some(question) = self.questions.lock().unwrap_or_else(PoisonError::into_inner).remove(&id) {
                    question.cancel();
                }
            }
            _ => {}
        }
    }

    fn take_progress(&self, params: &Value) {
        let call = params.get("progressToken").and_then(number);
        let call = call.and_then(|id| self.state().pending.get(&id)?.call.clone());
        let Some((call, current)) = call.zip(params.get("progress").and_then(Value::as_f64)) else { return };
        call.host.progress(Progress {
            current,
            total: params.get("total").and_then(Value::as_f64),
            message: params.get("message").and_then(Value::as_str).map(str::to_owned),
        });
    }

    fn add_meta(&self, params: &mut Map<String, Value>, id: u64, wants_progress: bool) {
        let stateless = match self.era.get() {
            Some(Era::Stateless(version)) => Some(version),
            _ => None,
        };
        if stateless.is_none() && !wants_progress {
            return;
        }
        let Value::Object(meta) = params.entry("_meta".to_owned()).or_insert_with(|| json!({})) else { return };
        if wants_progress {
            meta.insert("progressToken".to_owned(), json!(id));
        }
        if let Some(version) = stateless {
            for (name, value) in question::who_asks(version) {
                meta.insert(name, value);
            }
        }
    }

    fn state(&self) -> MutexGuard<'_, State> {
        self.state.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

/// Takes a request back that nobody waits for any more.
struct Withdrawal<'a> {
    connection: &'a Arc<Connection>,
    id: u64,
    tells: bool,
}

impl Drop for Withdrawal<'_> {
    fn drop(&mut self) {
        let was_open = self.connection.state().pending.remove(&self.id).is_some();
        // Over HTTP, stateless servers are told by the end of the stream.
        let by_stream = self.connection.link.is_http() && matches!(self.connection.era(), Some(Era::Stateless(_)));
        if !was_open || !self.tells || by_stream || self.connection.is_closed() {
            return;
        }
        let (connection, id) = (Arc::clone(self.connection), self.id);
        // Without a runtime there is no connection either.
        let Ok(runtime) = tokio::runtime::Handle::try_current() else { return };
        runtime.spawn(async move {
            let reason = json!("The call was cancelled");
            let params = Map::from_iter([("requestId".to_owned(), json!(id)), ("reason".to_owned(), reason)]);
            let _ = tokio::time::timeout(NOTE_PATIENCE, connection.notify("notifications/cancelled", params)).await;
        });
    }
}

/// Whether calls made in these sessions are of one client. A call whose session is not known may be anybody's.
fn are_of_one_client(mut sessions: impl Iterator<Item = Option<u64>>) -> bool {
    let Some(first) = sessions.next() else { return true };
    sessions.all(|session| session.is_some() && session == first)
}

/// The request that something of the server says it belongs to.
pub(crate) fn related(params: &Value, carrier: Option<u64>) -> Option<u64> {
    let meta = params.get("_meta");
    let named = ["progressToken", "relatedRequestId"].iter().find_map(|field| meta?.get(*field).and_then(number));
    named.or(carrier)
}

/// An id of this side's, which some servers give back as text.
fn number(value: &Value) -> Option<u64> {
    value.as_u64().or_else(|| value.as_str()?.parse().ok())
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn calls_are_of_one_client_if_all_sessions_are_the_same() {
        for (sessions, expected) in [
            (vec![], true),
            (vec![None], true),
            (vec![Some(1)], true),
            (vec![Some(1), Some(1)], true),
            (vec![Some(1), Some(2)], false),
            (vec![Some(1), None], false),
            (vec![None, None], false),
        ] {
            assert_eq!(are_of_one_client(sessions.iter().copied()), expected, "{sessions:?}");
        }
    }
}
