//! Process scripts: started anew for each call, a JSON-RPC line in, a reply line or plain printing out.

use std::{pin::pin, sync::Arc, time::Duration};

use skillz_json::Value;
use skillz_process::{Child, Exit, Launcher};
use skillz_tool::{CallClock, Host, Output, Protocol, ToolCall, ToolError, ToolOutcome};
use tokio::time::{Instant, sleep, sleep_until};

use crate::{
    conversation::Conversation,
    failure,
    folder::WorkingFolder,
    launch::{Site, execute_line},
    lines::{LineReader, LineWriter},
    log::{LogForwarder, Tail},
    message::{self, Line, Reply},
};

/// How long a script may go on after its reply: to write its files and end by itself.
const GRACE: Duration = Duration::from_secs(1);
/// How long the pipes are read after the end of everything that could write to them.
const DRAIN: Duration = Duration::from_secs(2);

/// Runs one call of a process script.
pub(crate) async fn run(
    launcher: &Launcher,
    site: &Site<'_>,
    folder: WorkingFolder,
    call: &ToolCall,
    host: Arc<dyn Host>,
) -> Result<ToolOutcome, ToolError> {
    let name = call.tool.name.as_str();
    let command = site.process(call, &folder)?;
    let child = launcher.spawn(command).await.map_err(|error| failure::not_started(name, error))?;
    let talks = site.plan.decision.protocol == Protocol::JsonRpc;
    let mut run = Run::new(child, call, host, talks);
    if talks {
        run.input.push(&execute_line(call, &folder));
    } else {
        run.input.push(format!("{}\n", Value::Object(call.arguments.clone())).as_bytes());
        run.input.close();
    }
    let ended = run.follow(&call.clock).await;
    let outcome = run.outcome(ended);
    // The tree must be gone before its folder goes.
    drop(run);
    drop(folder);
    outcome
}

/// How the following of a call ended.
enum Ended {
    Exited(Exit),
    TimedOut,
    TooMuchOutput,
    Lost(String),
}

struct Run<'a> {
    call: &'a ToolCall,
    child: Child,
    input: LineWriter,
    output: LineReader,
    errors: LineReader,
    conversation: Conversation,
    /// Whether lines of its stdout may be messages.
    talks: bool,
    log: LogForwarder,
    /// What was printed and is no message.
    printed: Vec<u8>,
    error_tail: Tail,
    output_left: u64,
    reply: Option<Reply>,
    replaced_bytes: bool,
}

impl<'a> Run<'a> {
    fn new(mut child: Child, call: &'a ToolCall, host: Arc<dyn Host>, talks: bool) -> Self {
        Self {
            call,
            input: LineWriter::new(child.stdin.take()),
            output: LineReader::new(child.stdout.take()),
            errors: LineReader::new(child.stderr.take()),
            conversation: Conversation::new(Arc::clone(&host)),
            log: LogForwarder::new(host),
            child,
            talks,
            printed: Vec::new(),
            error_tail: Tail::default(),
            output_left: call.limits.max_output_bytes,
            reply: None,
            replaced_bytes: false,
        }
    }

    /// Serves the script until it has ended or must be ended. Nothing of it is alive afterwards but for the timeout,
    /// where dropping the child ends it.
    async fn follow(&mut self, clock: &CallClock) -> Ended {
        let mut expired = pin!(expiry(clock));
        let mut grace_ends: Option<Instant> = None;
        loop {
            if self.reply.is_some() && grace_ends.is_none() && self.conversation.is_quiet() {
                self.input.close();
                grace_ends = Some(Instant::now() + GRACE);
            }
            let reads = !self.output.is_done() && self.conversation.has_room();
            tokio::select! {
                biased;
                () = &mut expired => return Ended::TimedOut,
                count = self.output.fill(), if reads => {
                    if !self.take_output(count) { return Ended::TooMuchOutput }
                }
                count = self.errors.fill(), if !self.errors.is_done() => {
                    if !self.take_errors(count) { return Ended::TooMuchOutput }
                }
                answer = self.conversation.next_answer() => {
                    self.input.push(&answer);
                }
                _ = self.input.advance(), if self.input.has_pending() => {}
                exit = self.child.wait() => {
                    return match exit {
                        Ok(exit) => self.drain(exit).await,
                        Err(error) => Ended::Lost(error.to_string()),
                    };
                }
                () = until(grace_ends), if grace_ends.is_some() => {
                    self.child.kill().await;
                    return self.drain(Exit::Code(0)).await;
                }
            }
        }
    }

    /// Reads what is left in the pipes. The whole tree has ended, so that their end comes.
    async fn drain(&mut self, exit: Exit) -> Ended {
        let deadline = Instant::now() + DRAIN;
        while !self.output.is_done() || !self.errors.is_done() {
            tokio::select! {
                count = self.output.fill(), if !self.output.is_done() => {
                    if !self.take_output(count) { return Ended::TooMuchOutput }
                }
                count = self.errors.fill(), if !self.errors.is_done() => {
                    if !self.take_errors(count) { return Ended::TooMuchOutput }
                }
                () = sleep_until(deadline) => break,
            }
        }
        // Requests that nobody waited for count all the same.
        while !self.conversation.is_quiet() {
            tokio::select! {
                _ = self.conversation.next_answer() => {}
                () = sleep_until(deadline) => break,
            }
        }
        Ended::Exited(exit)
    }

    /// Takes what was read from stdout; says whether the output is within its bound.
    fn take_output(&mut self, count: usize) -> bool {
        if !self.spend(count) {
            return false;
        }
        while let Some(line) = self.output.take_line() {
            let message = if self.talks { message::parse(line) } else { Line::Text };
            match message {
                Line::Text => self.printed.extend_from_slice(line),
                message => {
                    self.replaced_bytes |= matches!(message, Line::Reply(_)) && std::str::from_utf8(line).is_err();
                    let reply = self.conversation.take(message);
                    // The first reply counts.
                    self.reply = self.reply.take().or(reply);
                }
            }
        }
        true
    }

    fn take_errors(&mut self, count: usize) -> bool {
        if !self.spend(count) {
            return false;
        }
        while let Some(line) = self.errors.take_line() {
            self.error_tail.add(line);
            self.log.line(line);
        }
        true
    }

    fn spend(&mut self, count: usize) -> bool {
        match self.output_left.checked_sub(count as u64) {
            Some(left) => {
                self.output_left = left;
                true
            }
            None => false,
        }
    }

    fn outcome(&mut self, ended: Ended) -> Result<ToolOutcome, ToolError> {
        let name = self.call.tool.name.as_str();
        let limits = &self.call.limits;
        if let Some(reply) = self.reply.take() {
            return self.replied(reply);
        }
        let error = match ended {
            Ended::Exited(Exit::Code(0)) => return self.printed_outcome(),
            Ended::Exited(exit) => failure::ended(name, exit, limits),
            Ended::TimedOut => failure::timed_out(name, limits),
            Ended::TooMuchOutput => failure::too_much_output(name, limits),
            Ended::Lost(reason) => ToolError::internal(format!("`{name}` was lost: {reason}")),
        };
        let mut printed = Tail::default();
        printed.add(&self.printed);
        Err(failure::with_last_lines(error, &self.error_tail.text(), &printed.text()))
    }

    fn replied(&mut self, reply: Reply) -> Result<ToolOutcome, ToolError> {
        // Printed lines beside a reply are log lines.
        for line in self.printed.split(|byte| *byte == b'\n') {
            self.log.line(line);
        }
        match reply.result {
            Ok(Value::Null) => {
                let value = self.conversation.streamed().unwrap_or(Value::Null);
                Ok(self.noted(Output::Value(value)))
            }
            Ok(value) => Ok(self.noted(Output::Value(value))),
            Err(error) => {
                let error = failure::replied(self.call.tool.name.as_str(), error);
                Err(failure::with_last_lines(error, &self.error_tail.text(), ""))
            }
        }
    }

    fn printed_outcome(&mut self) -> Result<ToolOutcome, ToolError> {
        if self.talks
            && let Some(error) = self.printed.split(|byte| *byte == b'\n').find_map(message::broken_reply)
        {
            let name = self.call.tool.name.as_str();
            return Err(ToolError::failed(format!("`{name}` printed a reply that is not valid JSON: {error}"))
                .with_output(String::from_utf8_lossy(&self.printed))
                .with_hint("Print the reply with a JSON library; JSON has no NaN and no Infinity"));
        }
        if self.printed.trim_ascii().is_empty()
            && let Some(value) = self.conversation.streamed()
        {
            return Ok(self.noted(Output::Value(value)));
        }
        let text = match String::from_utf8(std::mem::take(&mut self.printed)) {
            Ok(text) => text,
            Err(error) => {
                self.replaced_bytes = true;
                String::from_utf8_lossy(error.as_bytes()).into_owned()
            }
        };
        Ok(self.noted(Output::Printed(text)))
    }

    fn noted(&self, output: Output) -> ToolOutcome {
        let mut notes = Vec::new();
        if self.replaced_bytes {
            notes.push("Bytes of the output that are not UTF-8 were replaced".to_owned());
        }
        ToolOutcome { output, notes }
    }
}

/// Completes when the call's time is up. While the clock stands still nothing is used up, and it is looked at again.
pub(crate) async fn expiry(clock: &CallClock) {
    loop {
        let left = clock.remaining();
        if left.is_zero() {
            return;
        }
        sleep(left.max(Duration::from_millis(5))).await;
    }
}

async fn until(instant: Option<Instant>) {
    match instant {
        Some(instant) => sleep_until(instant).await,
        None => std::future::pending().await,
    }
}
