//! Request bodies, of bounded size and within bounded time, and streams of events.

use std::{
    convert::Infallible,
    pin::Pin,
    task::{Context, Poll, ready},
    time::Duration,
};

use bytes::Bytes;
use http::{Request, StatusCode};
use http_body::{Body, Frame};
use http_body_util::{BodyExt, LengthLimitError, Limited};
use tokio::{
    sync::mpsc,
    time::{Instant, Interval, MissedTickBehavior},
};

use super::reply::{self, Reply};

/// Largest request body, in bytes.
pub(crate) const BODY_SIZE: usize = 16 << 20;
/// How long a body may take to arrive.
const BODY_PATIENCE: Duration = Duration::from_secs(30);
/// Pause between signs of life on a stream. Proxies give up on silent ones after a minute or so.
pub(crate) const KEEP_ALIVE: Duration = Duration::from_secs(15);
/// A comment, which clients skip.
pub(crate) const SIGN_OF_LIFE: &[u8] = b": keep-alive\n\n";

/// Reads the whole body of a request; gives the response that refuses it otherwise.
pub(crate) async fn read<B>(request: Request<B>) -> Result<Request<Bytes>, Reply>
where
    B: Body<Data = Bytes>,
    B::Error: Into<Box<dyn std::error::Error + Send + Sync>>,
{
    let (parts, body) = request.into_parts();
    if body.size_hint().lower() > BODY_SIZE as u64 {
        return Err(too_large());
    }
    let read = tokio::time::timeout(BODY_PATIENCE, Limited::new(body, BODY_SIZE).collect()).await;
    match read {
        Ok(Ok(collected)) => Ok(Request::from_parts(parts, collected.to_bytes())),
        Ok(Err(error)) if error.is::<LengthLimitError>() => Err(too_large()),
        Ok(Err(error)) => Err(reply::text(StatusCode::BAD_REQUEST, format!("The body could not be read: {error}"))),
        Err(_) => Err(reply::text(StatusCode::REQUEST_TIMEOUT, "The body did not arrive within 30 seconds")),
    }
}

fn too_large() -> Reply {
    reply::text(StatusCode::PAYLOAD_TOO_LARGE, format!("The body has more than {BODY_SIZE} bytes"))
}

/// A stream of events that come over a channel, with signs of life between them. It ends when the senders are gone.
pub(crate) struct EventBody {
    events: mpsc::Receiver<Bytes>,
    keep_alive: Interval,
}

impl EventBody {
    pub(crate) fn new(events: mpsc::Receiver<Bytes>) -> Self {
        let mut keep_alive = tokio::time::interval_at(Instant::now() + KEEP_ALIVE, KEEP_ALIVE);
        keep_alive.set_missed_tick_behavior(MissedTickBehavior::Delay);
        Self { events, keep_alive }
    }
}

impl Body for EventBody {
    type Data = Bytes;
    type Error = Infallible;

    fn poll_frame(mut self: Pin<&mut Self>, cx: &mut Context<'_>) -> Poll<Option<Result<Frame<Bytes>, Infallible>>> {
        if let Poll::Ready(event) = self.events.poll_recv(cx) {
            self.keep_alive.reset();
            return Poll::Ready(event.map(|event| Ok(Frame::data(event))));
        }
        ready!(self.keep_alive.poll_tick(cx));
        Poll::Ready(Some(Ok(Frame::data(Bytes::from_static(SIGN_OF_LIFE)))))
    }
}
