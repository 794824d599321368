//! One embedded run as the server sees it: serves the program's requests until it ends or its time is up.

use std::{
    future::Future,
    pin::Pin,
    sync::Arc,
    time::{Duration, Instant},
};

use futures::{StreamExt, stream::FuturesUnordered};
use skillz_json::{Number, Value};
use skillz_tool::{CallClock, ErrorKind, Host, ToolError, dispatch_notification, dispatch_request};

use crate::{
    host::ProgramHost,
    message::{Failure, FailureKind, FromWorker, PreparedProgram, Reply, ReplyError, Request, ToWorker},
    names::Names,
    wire::Wire,
};

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
    TimedOut,
    /// The pipe broke: the process has died.
    Lost(String),
}

/// A run with what it has printed so far.
pub(crate) struct Session {
    pub(crate) run: u64,
    pub(crate) host: Arc<ProgramHost>,
    pub(crate) names: Names,
    pub(crate) clock: CallClock,
    /// Which numbers the program's language can hold; an answer with another one fails its call.
    pub(crate) holds: fn(&Number) -> bool,
    /// Most bytes that may be printed, checked here too for interpreters that do not.
    pub(crate) output_bytes: u64,
    pub(crate) stdout: String,
    /// Whether anything came from the program: then it has run, and a worker that broke off is not replaced.
    pub(crate) is_heard: bool,
}

/// A request that was carried out.
struct Answer {
    id: u32,
    result: Result<Value, ReplyError>,
}

type Work = Pin<Box<dyn Future<Output = Answer> + Send>>;

impl Session {
    /// Sends the first message and serves the run to its end. Dropping the future gives its inner calls up.
    pub(crate) async fn drive(&mut self, wire: &mut Wire, first: &ToWorker) -> Ended {
        if let Err(error) = wire.send(first) {
            return Ended::Lost(error.to_string());
        }
        let mut work: FuturesUnordered<Work> = FuturesUnordered::new();
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
                        work.push(self.work(id, request));
                    }
                    Ok(Some(FromWorker::Printed { text, .. })) => {
                        if (self.stdout.len() + text.len()) as u64 > self.output_bytes {
                            let message = format!("It printed more than {} bytes", self.output_bytes);
                            return Ended::Failed(Failure::new(FailureKind::Output, message));
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
                    let budget_ms = u64::try_from(self.clock.remaining().as_millis()).unwrap_or(u64::MAX);
                    let reply = Reply { run: self.run, id: answer.id, budget_ms, result: self.held(answer.result) };
                    if let Err(error) = wire.send(&ToWorker::Reply(reply)) {
                        return Ended::Lost(error.to_string());
                    }
                }
                () = time => match until {
                    // A program that waits for a call says nothing until the call ends.
                    None if work.is_empty() => until = Some(Instant::now() + LAST_WORDS),
                    _ => return Ended::TimedOut,
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

    fn work(&self, id: u32, request: Request) -> Work {
        let host = Arc::clone(&self.host);
        match request {
            Request::Call(call) => {
                let bound = self.names.bind(call);
                Box::pin(async move {
                    let result = match bound {
                        Ok((name, arguments)) => host.call_tool(&name, arguments).await.map_err(|error| reply_error(&error)),
                        Err(message) => Err(ReplyError { message, data: None }),
                    };
                    Answer { id, result }
                })
            }
            Request::Host { method, params } => {
                Box::pin(async move { Answer { id, result: serve(&*host, &method, params).await } })
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

/// Ends when the clock has run out. While it is paused its rest stays the same, so it is asked again.
async fn time_is_up(clock: &CallClock) {
    loop {
        let remaining = clock.remaining();
        if remaining.is_zero() {
            return;
        }
        tokio::time::sleep(remaining).await;
    }
}
