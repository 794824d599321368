//! Responses, and the one body type that all of them have.

use std::convert::Infallible;

use bytes::Bytes;
use http::{HeaderValue, Response, StatusCode, header};
use http_body_util::{BodyExt, Full, combinators::UnsyncBoxBody};
use serde_json::Value;
use skillz_json::wire;

pub(crate) type ReplyBody = UnsyncBoxBody<Bytes, Infallible>;
pub(crate) type Reply = Response<ReplyBody>;

/// A response in plain text.
pub(crate) fn text(status: StatusCode, text: impl Into<String>) -> Reply {
    full(status, "text/plain; charset=utf-8", text.into().into_bytes())
}

/// A response in JSON.
pub(crate) fn json(status: StatusCode, value: &Value) -> Reply {
    full(status, "application/json", value.to_string().into_bytes())
}

/// A response with a whole body.
pub(crate) fn full(status: StatusCode, content_type: &'static str, body: Vec<u8>) -> Reply {
    let mut reply = Response::new(Full::new(Bytes::from(body)).boxed_unsync());
    *reply.status_mut() = status;
    reply.headers_mut().insert(header::CONTENT_TYPE, HeaderValue::from_static(content_type));
    reply
}

/// The response with numbers in place of the texts that stood for them in the SDK. Each event comes in one piece.
pub(crate) async fn with_exact_numbers(reply: Reply) -> Reply {
    let is_stream =
        reply.headers().get(header::CONTENT_TYPE).is_some_and(|kind| kind.as_bytes().starts_with(b"text/event-stream"));
    let (parts, body) = reply.into_parts();
    let exact = |bytes: Bytes| Bytes::from(wire::unmarked(bytes.into()));
    if is_stream {
        let body = body.map_frame(move |frame| frame.map_data(exact));
        return Response::from_parts(parts, body.boxed_unsync());
    }
    // A whole body has a length, which a mapped one would not.
    let body = body.collect().await.map(http_body_util::Collected::to_bytes).unwrap_or_default();
    Response::from_parts(parts, Full::new(exact(body)).boxed_unsync())
}

/// A stream of server-sent events.
pub(crate) fn events(body: ReplyBody) -> Reply {
    let mut reply = Response::new(body);
    let headers = reply.headers_mut();
    headers.insert(header::CONTENT_TYPE, HeaderValue::from_static("text/event-stream"));
    headers.insert(header::CACHE_CONTROL, HeaderValue::from_static("no-cache"));
    // Some proxies hold streams back until a buffer is full.
    headers.insert("x-accel-buffering", HeaderValue::from_static("no"));
    reply
}
