//! One call in a worker.

use std::{pin::pin, sync::Arc, time::Duration};

use futures::FutureExt;
use serde::Deserialize;
use skillz_json::Value;
use skillz_process::Exit;
use skillz_tool::{ErrorKind, Host, ToolCall, ToolError, ToolOutcome};
use tokio::time::{Instant, sleep_until};

use super::process::Worker;
use crate::{
    conversation::Conversation,
    failure,
    language::Language,
    launch::execute_line,
    log::{LogForwarder, Tail},
    message::{self, Line, Reply, ReplyError},
    process_script::expiry,
};

/// How long requests that nobody waits for may go on after the reply.
const GRACE: Duration = Duration::from_secs(1);

/// How long a worker that has served a call may take until it is ready for the next. One that was stopped never is.
const SETTLE: Duration = Duration::from_secs(2);

/// How a call in a worker ended.
pub(crate) enum CallEnd {
    /// It is over, and the worker may serve the next one, or may not.
    Over { outcome: Result<ToolOutcome, ToolError>, reusable: bool },
    /// The worker was gone before the call began; another one may serve it.
    NotBegun,
}

/// What Python and JavaScript tell of an exception.
#[derive(Deserialize, Default)]
struct ExceptionData {
    #[serde(default)]
    kind: Option<String>,
    #[serde(default)]
    traceback: Option<String>,
    #[serde(default)]
    hint: Option<String>,
}

/// Refuses numbers that the script's language would change while it reads them.
pub(crate) fn check_numbers(call: &ToolCall, language: Language) -> Result<(), ToolError> {
    let (name, holds) = (if language == Language::Python { "Python" } else { "JavaScript" }, language.holds());
    let mut unheld = call.arguments.iter().filter_map(|(key, value)| Some((key, value.unheld_number(holds)?)));
    let Some((key, (path, written))) = unheld.next() else { return Ok(()) };
    let message =
        format!("`{}` was not called: `/{key}{path}` is {written}, a number that {name} cannot hold as it is", call.tool.name);
    Err(ToolError::new(ErrorKind::InvalidInput, message).with_hint("Give it as text, if the tool takes text there"))
}

/// Runs one call to its end.
pub(crate) async fn run(
    worker: &mut Worker,
    call: &ToolCall,
    language: Language,
    host: Arc<dyn Host>,
    printed: Option<&mut Vec<u8>>,
) -> CallEnd {
    let mut run = Run {
        call,
        conversation: Conversation::new(Arc::clone(&host), language),
        log: LogForwarder::new(host),
        error_tail: Tail::default(),
        output_left: call.limits.max_output_bytes,
        request_length: 0,
        printed,
        worker,
    };
    let mut expired = pin!(expiry(&call.clock));
    if let Some(end) = run.until_ready(expired.as_mut()).await {
        return end;
    }
    run.worker.is_ready = false;
    // Whatever the last call's processes still printed.
    run.worker.output.fill_with_what_is_there().await;
    run.worker.output.take_all();
    let line = execute_line(call, &run.worker.folder);
    run.request_length = line.len();
    run.worker.requests.push(&line);
    let end = run.until_reply(expired.as_mut()).await;
    run.finish(end).await
}

/// What ended the wait for a reply.
enum End {
    Replied(Reply),
    Lost(Exit),
    /// A call's fork died; the worker lives.
    ChildLost(i32),
    TimedOut,
    TooMuchOutput,
    Gone(String),
}

struct Run<'a> {
    worker: &'a mut Worker,
    call: &'a ToolCall,
    conversation: Conversation,
    log: LogForwarder,
    error_tail: Tail,
    output_left: u64,
    /// How long the request is, in bytes.
    request_length: usize,
    /// What a program prints.
    printed: Option<&'a mut Vec<u8>>,
}

impl Run<'_> {
    /// Waits until the worker has loaded its module, or is done with the call before. Gives an end if it does not get there.
    async fn until_ready(&mut self, mut expired: std::pin::Pin<&mut impl Future<Output = ()>>) -> Option<CallEnd> {
        let name = self.call.tool.name.as_str();
        let over = |error: ToolError| Some(CallEnd::Over { outcome: Err(error), reusable: false });
        let settled = tokio::time::sleep(SETTLE);
        let mut settled = pin!(settled);
        while !self.worker.is_ready {
            let has_loaded = self.worker.has_loaded;
            while let Some(line) = self.worker.replies.take_line() {
                let Line::Notification { method, params } = message::parse(line) else { continue };
                match method.as_str() {
                    "ready" => self.worker.is_ready = true,
                    "failed" => {
                        let error = load_failure(name, &params);
                        return over(failure::with_last_lines(error, &self.error_tail.text(), ""));
                    }
                    // Its last call left it in a state that it does not trust itself.
                    "spent" => return Some(CallEnd::NotBegun),
                    _ => {}
                }
            }
            if self.worker.is_ready {
                self.worker.has_loaded = true;
                break;
            }
            tokio::select! {
                biased;
                () = expired.as_mut() => return over(self.with_tail(failure::timed_out(name, &self.call.limits))),
                _ = self.worker.replies.fill(), if !self.worker.replies.is_done() => {}
                () = settled.as_mut(), if has_loaded => return Some(CallEnd::NotBegun),
                count = self.worker.errors.fill(), if !self.worker.errors.is_done() => {
                    if !self.take_errors(count) {
                        return over(failure::too_much_output(name, &self.call.limits));
                    }
                }
                exit = self.worker.child.wait() => {
                    if has_loaded {
                        // It died after its last call, which is not this one's fault.
                        return Some(CallEnd::NotBegun);
                    }
                    let exit = exit.unwrap_or(Exit::Signal(9));
                    self.drain_errors();
                    // Its reason to go may still be in the pipe.
                    while self.worker.replies.fill().await > 0 {}
                    let mut reason = None;
                    while let Some(line) = self.worker.replies.take_line() {
                        if let Line::Notification { method, params } = message::parse(line) {
                            reason = (method == "failed").then_some(params).or(reason);
                        }
                    }
                    let error = reason.map_or_else(|| failure::ended(name, exit, &self.call.limits), |params| load_failure(name, &params));
                    return over(self.with_tail(error));
                }
            }
        }
        None
    }

    async fn until_reply(&mut self, mut expired: std::pin::Pin<&mut impl Future<Output = ()>>) -> End {
        loop {
            let reads = self.conversation.has_room() && !self.worker.replies.is_done();
            tokio::select! {
                biased;
                () = expired.as_mut() => return End::TimedOut,
                count = self.worker.replies.fill(), if reads => {
                    if !self.spend(count) { return End::TooMuchOutput }
                    if let Some(end) = self.take_messages() { return end }
                }
                count = self.worker.errors.fill(), if !self.worker.errors.is_done() => {
                    if !self.take_errors(count) { return End::TooMuchOutput }
                }
                count = self.worker.output.fill(), if !self.worker.output.is_done() => {
                    if !self.take_printed(count) { return End::TooMuchOutput }
                }
                answer = self.conversation.next_answer() => self.worker.requests.push(&answer),
                _ = self.worker.requests.advance(), if self.worker.requests.has_pending() => {}
                exit = self.worker.child.wait() => match exit {
                    Ok(exit) => {
                        // The reply may have been its last word.
                        while self.worker.replies.fill().await > 0 {}
                        if let Some(end) = self.take_messages() { return end }
                        return End::Lost(exit);
                    }
                    Err(error) => return End::Gone(error.to_string()),
                },
            }
        }
    }

    fn take_messages(&mut self) -> Option<End> {
        while let Some(line) = self.worker.replies.take_line() {
            match message::parse(line) {
                // What a native library or a child process printed past the redirection.
                Line::Text => self.log.line(line),
                Line::Notification { method, params } if method == "lost" => {
                    let status = params.get("status").and_then(Value::as_i64).unwrap_or_default();
                    return Some(End::ChildLost(status as i32));
                }
                message => {
                    if let Some(reply) = self.conversation.take(message) {
                        return Some(End::Replied(reply));
                    }
                }
            }
        }
        None
    }

    /// Gives requests under way a little time, takes in the log, and words the outcome.
    async fn finish(mut self, end: End) -> CallEnd {
        let name = self.call.tool.name.as_str();
        let limits = &self.call.limits;
        // The kit flushes before it replies, so that all of it is in the pipe by now.
        let count = self.worker.output.fill_with_what_is_there().await;
        let end = if self.take_printed(count) { end } else { End::TooMuchOutput };
        let (outcome, reusable) = match end {
            End::Replied(reply) => {
                self.finish_requests().await;
                self.drain_errors();
                let reusable = !reply.spent;
                (self.outcome(reply.result), reusable)
            }
            // It died with the request in its pipe: nothing of it has been done.
            End::Lost(_) if self.worker.requests.unread().is_some_and(|unread| unread >= self.request_length) => {
                return CallEnd::NotBegun;
            }
            End::Lost(exit) => {
                self.drain_errors();
                (Err(self.with_tail(failure::ended(name, exit, limits))), false)
            }
            End::ChildLost(status) => {
                self.drain_errors();
                let exit = if self.worker.ran_out_of_memory().await { Exit::MemoryLimit } else { exit_of(status) };
                (Err(self.with_tail(failure::ended(name, exit, limits))), true)
            }
            End::TimedOut => {
                self.drain_errors();
                (Err(self.with_tail(failure::timed_out(name, limits))), false)
            }
            End::TooMuchOutput => (Err(failure::too_much_output(name, limits)), false),
            End::Gone(reason) => (Err(ToolError::internal(format!("`{name}` was lost: {reason}"))), false),
        };
        CallEnd::Over { outcome, reusable }
    }

    fn outcome(&mut self, result: Result<Value, ReplyError>) -> Result<ToolOutcome, ToolError> {
        match result {
            Ok(Value::Null) => Ok(ToolOutcome::value(self.conversation.streamed().unwrap_or(Value::Null))),
            Ok(value) => Ok(ToolOutcome::value(value)),
            Err(error) => Err(self.exception(error)),
        }
    }

    /// An exception: its message, its traceback, and then what was printed.
    fn exception(&self, error: ReplyError) -> ToolError {
        let data: ExceptionData = error.data.and_then(|data| skillz_json::from_value(data).ok()).unwrap_or_default();
        let mut failure = failure::replied(self.call.tool.name.as_str(), ReplyError { message: error.message, data: None });
        if data.kind.as_deref() == Some("MemoryError") {
            failure.kind = ErrorKind::LimitExceeded;
        }
        failure.hint = data.hint.or(failure.hint);
        let printed = self.error_tail.text();
        let traceback = data.traceback.unwrap_or_default();
        let output = match (printed.trim().is_empty(), traceback.is_empty()) {
            (true, _) => traceback,
            (false, true) => printed,
            (false, false) => format!("{}\n{traceback}", printed.trim_end()),
        };
        failure.with_output(output)
    }

    async fn finish_requests(&mut self) {
        let deadline = Instant::now() + GRACE;
        while !self.conversation.is_quiet() {
            tokio::select! {
                _ = self.conversation.next_answer() => {}
                () = sleep_until(deadline) => return,
            }
        }
    }

    fn take_printed(&mut self, count: usize) -> bool {
        if let Some(printed) = &mut self.printed {
            printed.extend_from_slice(self.worker.output.take_all());
        }
        self.spend(count)
    }

    /// Takes what has been printed so far, without waiting for more.
    fn drain_errors(&mut self) {
        while !self.worker.errors.is_done() {
            match self.worker.errors.fill().now_or_never() {
                Some(count @ 1..) => {
                    self.take_errors(count);
                }
                _ => return,
            }
        }
    }

    fn take_errors(&mut self, count: usize) -> bool {
        let within = self.spend(count);
        while let Some(line) = self.worker.errors.take_line() {
            self.error_tail.add(line);
            self.log.line(line);
        }
        within
    }

    fn spend(&mut self, count: usize) -> bool {
        let left = self.output_left.checked_sub(count as u64);
        self.output_left = left.unwrap_or(0);
        left.is_some()
    }

    fn with_tail(&self, error: ToolError) -> ToolError {
        failure::with_last_lines(error, &self.error_tail.text(), "")
    }
}

/// The module could not be loaded.
pub(crate) fn load_failure(name: &str, params: &Value) -> ToolError {
    let message = params.get("message").and_then(Value::as_str).unwrap_or("it gave no reason");
    let traceback = params.get("traceback").and_then(Value::as_str).unwrap_or_default();
    let error = ToolError::failed(format!("The script of `{name}` could not be loaded: {message}")).with_output(traceback);
    match params.get("kind").and_then(Value::as_str) {
        Some("ModuleNotFoundError") => error.with_hint("Name the package in `dependencies`, as pip knows it"),
        Some("Error") if message.contains("Cannot find") => {
            error.with_hint("Name the package in `dependencies`, as npm knows it")
        }
        _ => error,
    }
}

/// A wait status as `waitpid` gives it.
fn exit_of(status: i32) -> Exit {
    let signal = status & 0x7f;
    if signal == 0 { Exit::Code((status >> 8) & 0xff) } else { Exit::Signal(signal) }
}
