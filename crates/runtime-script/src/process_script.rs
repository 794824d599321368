//! Programs: started anew for each call, their arguments on stdin, a printed result or a reply out. Beside the standard
//! streams each has a line of its own to its host, for the kits.

use std::{pin::pin, sync::Arc, time::Duration};

use skillz_json::Value;
use skillz_process::{Child, Exit, Launcher};
use skillz_tool::{CallClock, Host, Output, Protocol, ToolCall, ToolError, ToolOutcome};
use tokio::time::{Instant, sleep, sleep_until};

use crate::{
    conversation::Conversation,
    failure,
    folder::WorkingFolder,
    language::Language,
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
    let child = launcher.spawn_with_host(command).await.map_err(|error| failure::not_started(name, error))?;
    let talks = site.plan.decision.protocol == Protocol::JsonRpc;
    let mut run = Run::new(child, call, site.plan.decision.language, host, talks);
    let execute = execute_line(call, &folder);
    run.line.input.push(&execute);
    if talks {
        run.standard.input.push(&execute);
    } else {
        run.standard.input.push(&message::line(&call.arguments));
        run.standard.input.close();
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

/// One way to and from the program, and what is said on it.
struct Talk {
    input: LineWriter,
    output: LineReader,
    conversation: Conversation,
}

struct Run<'a> {
    call: &'a ToolCall,
    child: Child,
    /// stdin and stdout.
    standard: Talk,
    /// The line to the host.
    line: Talk,
    errors: LineReader,
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
    fn new(mut child: Child, call: &'a ToolCall, language: Language, host: Arc<dyn Host>, talks: bool) -> Self {
        let (line_in, line_out) = child.host.take().map(|line| (line.input, line.output)).unzip();
        Self {
            call,
            standard: Talk {
                input: LineWriter::new(child.stdin.take()),
                output: LineReader::new(child.stdout.take()),
                conversation: Conversation::new(Arc::clone(&host), language),
            },
            line: Talk {
                input: LineWriter::new(line_in),
                output: LineReader::new(line_out),
                conversation: Conversation::new(Arc::clone(&host), language),
            },
            errors: LineReader::new(child.stderr.take()),
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
            if self.reply.is_some() && grace_ends.is_none() && self.is_quiet() {
                self.standard.input.close();
                self.line.input.close();
                grace_ends = Some(Instant::now() + GRACE);
            }
            let reads = |talk: &Talk| !talk.output.is_done() && talk.conversation.has_room();
            let (reads_standard, reads_line) = (reads(&self.standard), reads(&self.line));
            tokio::select! {
                biased;
                () = &mut expired => return Ended::TimedOut,
                count = self.standard.output.fill(), if reads_standard => {
                    if !self.take_output(count) { return Ended::TooMuchOutput }
                }
                count = self.line.output.fill(), if reads_line => {
                    if !self.take_line(count) { return Ended::TooMuchOutput }
                }
                count = self.errors.fill(), if !self.errors.is_done() => {
                    if !self.take_errors(count) { return Ended::TooMuchOutput }
                }
                answer = self.standard.conversation.next_answer() => self.standard.input.push(&answer),
                answer = self.line.conversation.next_answer() => self.line.input.push(&answer),
                _ = self.standard.input.advance(), if self.standard.input.has_pending() => {}
                _ = self.line.input.advance(), if self.line.input.has_pending() => {}
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
        while !self.standard.output.is_done() || !self.line.output.is_done() || !self.errors.is_done() {
            tokio::select! {
                count = self.standard.output.fill(), if !self.standard.output.is_done() => {
                    if !self.take_output(count) { return Ended::TooMuchOutput }
                }
                count = self.line.output.fill(), if !self.line.output.is_done() => {
                    if !self.take_line(count) { return Ended::TooMuchOutput }
                }
                count = self.errors.fill(), if !self.errors.is_done() => {
                    if !self.take_errors(count) { return Ended::TooMuchOutput }
                }
                () = sleep_until(deadline) => break,
            }
        }
        // Requests that nobody waited for count all the same.
        while !self.is_quiet() {
            tokio::select! {
                _ = self.standard.conversation.next_answer() => {}
                _ = self.line.conversation.next_answer() => {}
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
        while let Some(line) = self.standard.output.take_line() {
            let message = if self.talks { message::parse(line) } else { Line::Text };
            match message {
                Line::Text => self.printed.extend_from_slice(line),
                message => {
                    self.replaced_bytes |= matches!(message, Line::Reply(_)) && std::str::from_utf8(line).is_err();
                    let reply = self.standard.conversation.take(message);
                    // The first reply counts.
                    self.reply = self.reply.take().or(reply);
                }
            }
        }
        true
    }

    /// Takes what was read from the line to the host, where only messages count.
    fn take_line(&mut self, count: usize) -> bool {
        if !self.spend(count) {
            return false;
        }
        while let Some(line) = self.line.output.take_line() {
            let reply = self.line.conversation.take(message::parse(line));
            self.reply = self.reply.take().or(reply);
        }
        true
    }

    /// Whether no host request is under way.
    fn is_quiet(&self) -> bool {
        self.standard.conversation.is_quiet() && self.line.conversation.is_quiet()
    }

    /// What was streamed ahead, on either way.
    fn streamed(&mut self) -> Option<Value> {
        self.line.conversation.streamed().or_else(|| self.standard.conversation.streamed())
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
                let value = self.streamed().unwrap_or(Value::Null);
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
            && let Some(value) = self.streamed()
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
