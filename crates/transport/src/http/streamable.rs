//! `/mcp`: the SDK's Streamable HTTP, with what it leaves out: errors that clients can read for bodies that are no
//! JSON, batches, and signs of life while a call of the stateless protocol says nothing.

use std::{convert::Infallible, pin::Pin, sync::Arc, time::Duration};

use bytes::Bytes;
use futures::{StreamExt, stream};
use http::{HeaderValue, Method, Request, StatusCode, header, request::Parts};
use http_body::Frame;
use http_body_util::{BodyExt, Full, StreamBody};
use rmcp::{
    ServerHandler,
    transport::streamable_http_server::{StreamableHttpServerConfig, StreamableHttpService},
};
use serde_json::Value;
use tokio_util::sync::CancellationToken;

use super::{
    body::{BODY_SIZE, KEEP_ALIVE, SIGN_OF_LIFE},
    reply::{self, Reply},
    sessions::Sessions,
};
use crate::decode::{self, Decoded, Refusal, decode_line};

/// How long silence may last.
#[derive(Debug, Clone, Copy)]
struct Silence {
    /// How long the status line may wait for the first word of a call. The status of quick errors matters; after
    /// this the stream is opened, since clients give up on a server that sends nothing at all.
    at_first: Duration,
    /// Pause between signs of life after that.
    later: Duration,
}

const SILENCE: Silence = Silence { at_first: Duration::from_secs(5), later: KEEP_ALIVE };
/// The header that names the protocol.
const PROTOCOL_VERSION: &str = "mcp-protocol-version";
/// The one protocol that has batches.
const BATCH_VERSION: &str = "2025-03-26";

/// The endpoint.
pub(crate) struct Endpoint<H> {
    service: StreamableHttpService<H, Sessions>,
}

impl<H: ServerHandler> Endpoint<H> {
    /// An endpoint that makes a handler for each session, and for each request of the stateless protocol.
    pub(crate) fn new(new_session: Arc<dyn Fn() -> H + Send + Sync>, sessions: Arc<Sessions>, stop: CancellationToken) -> Self {
        let config = StreamableHttpServerConfig::default()
            // Host and Origin were checked before.
            .disable_allowed_hosts()
            .disable_allowed_origins()
            .with_sse_keep_alive(Some(KEEP_ALIVE))
            .with_max_request_body_bytes(BODY_SIZE)
            .with_cancellation_token(stop);
        Self { service: StreamableHttpService::new(move || Ok(new_session()), sessions, config) }
    }

    /// Answers one request.
    pub(crate) async fn answer(self: Arc<Self>, request: Request<Bytes>) -> Reply {
        reply::with_exact_numbers(self.answer_marked(request).await).await
    }

    /// Answers one request; numbers that the SDK would round have gone through it as marked texts.
    async fn answer_marked(self: Arc<Self>, request: Request<Bytes>) -> Reply {
        if request.method() != Method::POST {
            let ends = request.method() == Method::DELETE;
            let reply = self.ask(request).await;
            // The SDK answers "accepted", which some clients take for a failure to end the session.
            let ended = ends && reply.status() == StatusCode::ACCEPTED;
            return if ended { reply::text(StatusCode::OK, "The session has ended") } else { reply };
        }
        let body = request.body().clone();
        let says_json =
            request.headers().get(header::CONTENT_TYPE).is_some_and(|kind| kind.as_bytes().starts_with(b"application/json"));
        if body.trim_ascii_start().first() == Some(&b'[') {
            return self.answer_batch(request).await;
        }
        let reply = patiently(Box::pin(async move { self.ask(request).await }), SILENCE).await;
        if says_json && reply.status() == StatusCode::UNSUPPORTED_MEDIA_TYPE {
            return unreadable(&body).unwrap_or(reply);
        }
        reply
    }

    async fn ask(&self, request: Request<Bytes>) -> Reply {
        let (parts, body) = request.into_parts();
        // What cannot be read is left to the SDK to refuse.
        let body = decode::read(body.trim_ascii()).map_or(body, |message| Bytes::from(message.to_string()));
        self.service.handle(Request::from_parts(parts, Full::new(body))).await.map(BodyExt::boxed_unsync)
    }

    /// Answers the messages of a batch one after another, and gives all answers in one array.
    async fn answer_batch(&self, request: Request<Bytes>) -> Reply {
        let (parts, body) = request.into_parts();
        let version = parts.headers.get(PROTOCOL_VERSION);
        if version.is_some_and(|version| version != BATCH_VERSION) {
            let message = "Batches belong to protocol 2025-03-26; send the messages one by one";
            return refuse(Refusal { id: None, error: rmcp::ErrorData::invalid_request(message, None) });
        }
        let elements = match (decode_line(&body), decode::read(&body)) {
            (Ok(Decoded::Batch(_)), Ok(Value::Array(elements))) => elements,
            (Err(refusal), _) => return refuse(refusal),
            _ => Vec::new(),
        };
        let mut answers = Vec::new();
        for element in elements {
            answers.extend(self.answer_element(&parts, &element).await);
        }
        if answers.is_empty() {
            return reply::text(StatusCode::ACCEPTED, "");
        }
        reply::json(StatusCode::OK, &Value::Array(answers))
    }

    async fn answer_element(&self, parts: &Parts, element: &Value) -> Option<Value> {
        let text = element.to_string();
        if let Err(refusal) = decode_line(text.as_bytes()) {
            return Some(refusal.into_value());
        }
        let id = element.get("id").filter(|_| element.get("method").is_some())?.clone();
        if element.get("method").is_some_and(|method| method == "initialize") {
            let error = rmcp::ErrorData::invalid_request("`initialize` must not be part of a batch", None);
            return Some(serde_json::json!({"jsonrpc": "2.0", "id": id, "error": error}));
        }
        let reply = self.ask(Request::from_parts(parts.clone(), Bytes::from(text))).await;
        let body = reply.into_body().collect().await.map(http_body_util::Collected::to_bytes).unwrap_or_default();
        answer_in(&body, &id)
    }
}

/// The answer to a request in a JSON body, or in a stream of events.
fn answer_in(body: &[u8], id: &Value) -> Option<Value> {
    if let Ok(answer) = serde_json::from_slice::<Value>(body) {
        return Some(answer);
    }
    let lines = body.split(|byte| *byte == b'\n').filter_map(|line| line.strip_prefix(b"data:"));
    lines
        .filter_map(|data| serde_json::from_slice::<Value>(data).ok())
        .find(|message| message.get("id") == Some(id) && message.get("method").is_none())
}

fn refuse(refusal: Refusal) -> Reply {
    reply::json(StatusCode::BAD_REQUEST, &refusal.into_value())
}

/// What is wrong with a body that the SDK could not read, as a JSON-RPC error.
fn unreadable(body: &[u8]) -> Option<Reply> {
    decode_line(body.trim_ascii()).err().map(refuse)
}

/// Waits for a response, but not in silence: after a while the stream is opened and kept alive, and the response
/// is passed on in it. Dropping the reply drops the request.
async fn patiently(mut asking: Pin<Box<dyn Future<Output = Reply> + Send>>, silence: Silence) -> Reply {
    if let Ok(reply) = tokio::time::timeout(silence.at_first, asking.as_mut()).await {
        return reply;
    }
    let waiting = stream::unfold(Waiting::ForReply(asking), move |waiting| async move { waiting.next(silence.later).await });
    let mut reply = reply::events(StreamBody::new(waiting.map(|bytes| Ok::<_, Infallible>(Frame::data(bytes)))).boxed_unsync());
    reply.headers_mut().insert(header::CACHE_CONTROL, HeaderValue::from_static("no-cache"));
    reply
}

/// A response on its way into a stream that is open already.
enum Waiting {
    ForReply(Pin<Box<dyn Future<Output = Reply> + Send>>),
    InBody(super::reply::ReplyBody),
    Over,
}

impl Waiting {
    async fn next(self, silence: Duration) -> Option<(Bytes, Self)> {
        match self {
            Self::ForReply(mut asking) => match tokio::time::timeout(silence, asking.as_mut()).await {
                Err(_) => Some((Bytes::from_static(SIGN_OF_LIFE), Self::ForReply(asking))),
                Ok(reply) if is_events(&reply) => Self::pass_on(reply.into_body()).await,
                Ok(reply) => {
                    let body = reply.into_body().collect().await.map(http_body_util::Collected::to_bytes).unwrap_or_default();
                    let mut event = b"data: ".to_vec();
                    event.extend_from_slice(&body);
                    event.extend_from_slice(b"\n\n");
                    Some((Bytes::from(event), Self::Over))
                }
            },
            Self::InBody(body) => Self::pass_on(body).await,
            Self::Over => None,
        }
    }

    async fn pass_on(mut body: super::reply::ReplyBody) -> Option<(Bytes, Self)> {
        while let Some(Ok(frame)) = body.frame().await {
            if let Ok(data) = frame.into_data() {
                return Some((data, Self::InBody(body)));
            }
        }
        None
    }
}

fn is_events(reply: &Reply) -> bool {
    reply.headers().get(header::CONTENT_TYPE).is_some_and(|kind| kind.as_bytes().starts_with(b"text/event-stream"))
}

#[cfg(test)]
mod tests {
    use serde_json::json;

    use super::*;

    #[test]
    fn an_answer_is_found_in_json_and_in_events() {
        let id = json!(7);
        let answer = json!({"jsonrpc": "2.0", "id": 7, "result": {}});
        assert_eq!(answer_in(answer.to_string().as_bytes(), &id), Some(answer.clone()));
        let events = format!("id: 0\nretry: 3000\ndata:\n\ndata: {{\"method\":\"x\",\"id\":7}}\n\nid: 1\ndata: {answer}\n\n");
        assert_eq!(answer_in(events.as_bytes(), &id), Some(answer));
        assert_eq!(answer_in(b"Not Found", &id), None);
    }

    #[tokio::test]
    async fn a_silent_call_is_kept_alive_and_its_answer_passed_on() {
        let brief = Silence { at_first: Duration::from_millis(1), later: Duration::from_millis(1) };
        let (answer, answered) = tokio::sync::oneshot::channel();
        let slow = async { answered.await.expect("it is answered") };
        let mut reply = patiently(Box::pin(slow), brief).await;
        assert!(is_events(&reply));
        let mut next = async || reply.body_mut().frame().await.map(|frame| frame.expect("no error").into_data().expect("data"));
        for _ in 0..3 {
            assert_eq!(next().await.as_deref(), Some(SIGN_OF_LIFE));
        }
        answer.send(reply::json(StatusCode::OK, &json!({"id": 1}))).expect("it waits");
        let rest = loop {
            match next().await.expect("the answer comes") {
                sign if sign == SIGN_OF_LIFE => {}
                rest => break rest,
            }
        };
        assert_eq!(rest, "data: {\"id\":1}\n\n");
        assert_eq!(next().await, None);
    }

    #[tokio::test]
    async fn a_quick_answer_keeps_its_status() {
        let quick = patiently(Box::pin(async { reply::text(StatusCode::NOT_FOUND, "no") }), SILENCE).await;
        assert_eq!(quick.status(), StatusCode::NOT_FOUND);
    }
}
