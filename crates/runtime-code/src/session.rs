//! One run as the server sees it: serves the program's requests until it ends or its time is up.

use std::{
    future::Future,
    pin::Pin,
    sync::Arc,
    time::{Duration, Instant},
};

use futures::{StreamExt, stream::FuturesUnordered};
use skillz_json::{Number, Value};
use skillz_tool::{CallClock, ErrorKind, Host, ToolError, dispatch_notification, dispatch_request};
use tokio::sync::Semaphore;

use crate::{
    message::{Call, Failure, FromWorker, PreparedProgram, Reply, ReplyError, Request, ToWorker},
    names::Names,
    outcome::CallRecord,
    wire::Wire,
};

/// Inner calls of one run that go on at once.
const CALLS_AT_ONCE: usize = 8;
/// How long a program whose time is up may take to say where it was, before it is ended.
const LAST_WORDS: Duration = Duration::from_millis(100);
/// Longest pause that a program may ask for, in seconds; its clock runs on anyway.
const LONGEST_SLEEP: f64 = 86_400.0;

/// How a run ended.
pub(crate) enum Ended {
    Done(Value),
    Failed(Failure),
    Unsupported(String),
    Prepared(PreparedProgram),
    /// Its time was up, and it said nothing more.
    TimedOut {
        waiting_for: Vec<String>,
    },
    /// The pipe broke: the process has died.
    Lost(String),
}

/// A run with what it has printed and called so far.
pub(crate) struct Session {
    pub(crate) run: u64,
    pub(crate) host: Arc<dyn Host>,
    pub(crate) names: Names,
    pub(crate) clock: CallClock,
    /// Which numbers the program's language can hold; an answer with another one fails its call.
    pub(crate) holds: fn(&Number) -> bool,
    /// Most bytes that may be printed, checked here too for interpreters that do not.
    pub(crate) output_bytes: u64,
    pub(crate) stdout: String,
    pub(crate) calls: Vec<CallRecord>,
    /// Whether anything came from the program: then it has run, and a worker that broke off is not replaced.
    pub(crate) is_heard: bool,
    /// Whether the program has asked for anything: then it has had effects, and must not run again.
    pub(crate) has_asked: bool,
}

/// A request that was carried out.
struct Answer {
    id: u32,
    result: Result<Value, ReplyError>,
    record: Option<CallRecord>,
}

type Work = Pin<Box<dyn Future<Output = Answer> + Send>>;

impl Session {
    /// Sends the first message and serves the run to its end. Dropping the future gives its inner calls up.
    pub(crate) async fn drive(&mut self, wire: &mut Wire, first: &ToWorker) -> Ended {
        if let Err(error) = wire.send(first) {
            return Ended::Lost(error.to_string());
        }
        let places = Arc::new(Semaphore::new(CALLS_AT_ONCE));
        let mut work: FuturesUnordered<Work> = FuturesUnordered::new();
        // What goes on, to name it if the time is up meanwhile.
        let mut open: Vec<(u32, String)> = Vec::new();
        let mut until: Option<Instant> = None;
        loop {
            let time = async {
                match until {
                    None => time_is_up(&self.clock).await,
                    Some(until) => tokio::time::sleep_until(until.into()).await,
                }
            };
            tokio::select! {
                message = wire.next() => match message {
                    Ok(Some(message)) if message.run() != self.run => {}
                    Ok(Some(FromWorker::Request { id, request, .. })) => {
                        self.is_heard = true;
                        self.has_asked = true;
                        open.push((id, name_of(&request)));
                        work.push(self.work(id, request, &places));
                    }
                    Ok(Some(FromWorker::Printed { text, .. })) => {
                        if (self.stdout.len() + text.len()) as u64 > self.output_bytes {
                            return self.printed_too_much();
                        }
                        self.is_heard = true;
                        self.stdout.push_str(&text);
                    }
                    Ok(Some(FromWorker::Done { result, .. })) => return Ended::Done(result),
                    Ok(Some(FromWorker::Failed { failure, .. })) => return Ended::Failed(failure),
                    Ok(Some(FromWorker::Unsupported { reason, .. })) => return Ended::Unsupported(reason),
                    Ok(Some(FromWorker::Prepared { prepared, .. })) => return Ended::Prepared(prepared),
                    Ok(None) => return Ended::Lost("it closed its output".to_owned()),
                    Err(error) => return Ended::Lost(error.to_string()),
                },
                Some(answer) = work.next() => {
                    open.retain(|(id, _)| *id != answer.id);
                    self.calls.extend(answer.record);
                    let budget_ms = u64::try_from(self.clock.remaining().as_millis()).unwrap_or(u64::MAX);
                    let reply = Reply { run: self.run, id: answer.id, budget_ms, result: self.held(answer.result) };
                    if let Err(error) = wire.send(&ToWorker::Reply(reply)) {
                        return Ended::Lost(error.to_string());
                    }
                }
                () = time => match until {
                    // A program that waits for a call says nothing until the call ends.
                    None if open.is_empty() => until = Some(Instant::now() + LAST_WORDS),
                    _ => return Ended::TimedOut { waiting_for: open.into_iter().map(|(_, name)| name).collect() },
                },
            }
        }
    }

    fn held(&self, result: Result<Value, ReplyError>) -> Result<Value, ReplyError> {
        let value = result?;
        let Some((path, written)) = value.unheld_number(self.holds) else { return Ok(value) };
        let message =
            format!("The answer holds {written} at `{path}`, a number that the program's language cannot hold as it is");
        Err(ReplyError { message, data: None })
    }

    fn printed_too_much(&self) -> Ended {
        let message = format!("It printed more than {} bytes", self.output_bytes);
        Ended::Failed(Failure::new(crate::message::FailureKind::Output, message))
    }

    fn work(&self, id: u32, request: Request, places: &Arc<Semaphore>) -> Work {
        let host = Arc::clone(&self.host);
        match request {
            Request::Call(call) => match self.names.bind(call) {
                Ok((name, arguments)) => {
                    let places = Arc::clone(places);
                    Box::pin(async move {
                        let _place = places.acquire().await;
                        let started = Instant::now();
                        let result = host.call_tool(&name, arguments).await;
                        let ms = (started.elapsed().as_secs_f64() * 1_000_000.0).round() / 1_000.0;
                        let record = Some(CallRecord { tool: name, ms, ok: result.is_ok() });
                        Answer { id, result: result.map_err(|error| reply_error(&error)), record }
                    })
                }
                Err(message) => {
                    Box::pin(async move { Answer { id, result: Err(ReplyError { message, data: None }), record: None } })
                }
            },
            Request::Host { method, params } => {
                Box::pin(async move { Answer { id, result: serve(&*host, &method, params).await, record: None } })
            }
        }
    }
}

async fn serve(host: &dyn Host, method: &str, params: Value) -> Result<Value, ReplyError> {
    match method {
        "sleep" => {
            let seconds = params.as_f64().unwrap_or_default().clamp(0.0, LONGEST_SLEEP);
            tokio::time::sleep(Duration::from_secs_f64(seconds)).await;
            Ok(Value::Null)
        }
        "log" | "progress" => {
            dispatch_notification(host, method, params);
            Ok(Value::Null)
        }
        _ => {
            dispatch_request(host, method, params).await.map_err(|error| ReplyError { message: error.message, data: error.data })
        }
    }
}

fn reply_error(error: &ToolError) -> ReplyError {
    let message = if error.kind == ErrorKind::Internal { format!("The server failed: {}", error.text()) } else { error.text() };
    ReplyError { message, data: error.data.clone() }
}

fn name_of(request: &Request) -> String {
    match request {
        Request::Call(Call { name, .. }) => name.clone(),
        Request::Host { method, .. } => method.clone(),
    }
}

/// Ends when the clock has run out. While it is paused its rest stays the same, so it is asked again.
pub(crate) async fn time_is_up(clock: &CallClock) {
    loop {
        let remaining = clock.remaining();
        if remaining.is_zero() {
            return;
        }
        tokio::time::sleep(remaining).await;
    }
}
