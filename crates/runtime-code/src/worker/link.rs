//! The interpreter's end of the pipe: requests out, answers in, and what is printed on the way.

use std::{
    collections::HashMap,
    io, process,
    sync::mpsc::{Receiver, RecvTimeoutError},
    time::{Duration, Instant},
};

use crate::message::{self, FromWorker, Program, Reply, Request, ToWorker};

/// Printed text is sent when there is this much of it, in bytes,
const PRINT_CHUNK: usize = 16 << 10;
/// or when the last was sent this long ago, so that it is not lost if the process must be killed.
const PRINT_PAUSE: Duration = Duration::from_millis(20);

/// The program printed more than it may.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) struct OutputExceeded;

/// The interpreter's end of the pipe.
pub(crate) struct Link {
    incoming: Receiver<ToWorker>,
    run: u64,
    deadline: Instant,
    /// Answers that came before somebody waited for them.
    early: HashMap<u32, Reply>,
    printed: String,
    last_sent: Option<Instant>,
    output_left: u64,
    output_exceeded: bool,
}

impl Link {
    pub(crate) fn new(incoming: Receiver<ToWorker>) -> Self {
        Self {
            incoming,
            run: 0,
            deadline: Instant::now(),
            early: HashMap::new(),
            printed: String::new(),
            last_sent: None,
            output_left: 0,
            output_exceeded: false,
        }
    }

    /// Waits for the next program. Answers to the last one's requests may still come; they are dropped.
    pub(crate) fn next_program(&mut self) -> Option<ToWorker> {
        self.incoming.recv().ok()
    }

    pub(crate) fn begin(&mut self, program: &Program) {
        self.run = program.run;
        self.deadline = Instant::now() + Duration::from_millis(program.budget_ms);
        self.early.clear();
        self.printed.clear();
        self.last_sent = None;
        self.output_left = program.output_bytes;
        self.output_exceeded = false;
    }

    /// Sends what a program came to, after what it printed.
    pub(crate) fn end(&mut self, message: &FromWorker) {
        self.flush();
        send(message);
    }

    /// Sends a request; its answer will carry the same number.
    pub(crate) fn request(&mut self, id: u32, request: Request) {
        self.flush();
        send(&FromWorker::Request { run: self.run, id, request });
    }

    /// Waits for the answer to one request.
    pub(crate) fn wait_for(&mut self, id: u32) -> Reply {
        if let Some(reply) = self.early.remove(&id) {
            return reply;
        }
        loop {
            let reply = self.receive();
            if reply.id == id {
                return reply;
            }
            self.early.insert(reply.id, reply);
        }
    }

    /// Waits for the answers to some requests; gives those that are there, at least one.
    pub(crate) fn wait_for_any(&mut self, ids: &[u32]) -> Vec<Reply> {
        loop {
            while let Ok(ToWorker::Reply(reply)) = self.incoming.try_recv() {
                self.keep(reply);
            }
            let there: Vec<Reply> = ids.iter().filter_map(|id| self.early.remove(id)).collect();
            if !there.is_empty() {
                return there;
            }
            let reply = self.receive();
            self.early.insert(reply.id, reply);
        }
    }

    /// Waits for any answer, for so long at most.
    pub(crate) fn wait(&mut self, timeout: Duration) -> Option<Reply> {
        self.flush();
        let until = Instant::now() + timeout;
        loop {
            match self.incoming.recv_timeout(until.saturating_duration_since(Instant::now())) {
                Ok(ToWorker::Reply(reply)) if reply.run == self.run => {
                    self.deadline = Instant::now() + Duration::from_millis(reply.budget_ms);
                    return Some(reply);
                }
                Ok(_) => {}
                Err(RecvTimeoutError::Timeout) => return None,
                Err(RecvTimeoutError::Disconnected) => process::exit(0),
            }
        }
    }

    fn receive(&mut self) -> Reply {
        self.flush();
        loop {
            match self.incoming.recv() {
                Ok(ToWorker::Reply(reply)) if reply.run == self.run => {
                    self.deadline = Instant::now() + Duration::from_millis(reply.budget_ms);
                    return reply;
                }
                Ok(_) => {}
                Err(_) => process::exit(0),
            }
        }
    }

    fn keep(&mut self, reply: Reply) {
        if reply.run == self.run {
            self.early.insert(reply.id, reply);
        }
    }

    /// What is left of the program's time.
    pub(crate) fn time_left(&self) -> Duration {
        self.deadline.saturating_duration_since(Instant::now())
    }

    /// When the program's time is up.
    pub(crate) fn deadline(&self) -> Instant {
        self.deadline
    }

    /// Takes text that the program printed.
    pub(crate) fn print(&mut self, text: &str) -> Result<(), OutputExceeded> {
        let Some(left) = self.output_left.checked_sub(text.len() as u64) else {
            self.output_exceeded = true;
            return Err(OutputExceeded);
        };
        self.output_left = left;
        self.printed.push_str(text);
        if self.printed.len() >= PRINT_CHUNK {
            self.flush();
        }
        Ok(())
    }

    /// Whether the program printed more than it may.
    pub(crate) fn has_printed_too_much(&self) -> bool {
        self.output_exceeded
    }

    /// Sends printed text if it has waited for a while.
    pub(crate) fn flush_if_due(&mut self) {
        if !self.printed.is_empty() && self.last_sent.is_none_or(|sent| sent.elapsed() > PRINT_PAUSE) {
            self.flush();
        }
    }

    fn flush(&mut self) {
        if self.printed.is_empty() {
            return;
        }
        self.last_sent = Some(Instant::now());
        send(&FromWorker::Printed { run: self.run, text: std::mem::take(&mut self.printed) });
    }
}

/// Writes a message. A server that does not read any more is gone, and so is this process.
fn send(message: &FromWorker) {
    if let Err(error) = message::write(&mut io::stdout().lock(), message) {
        // Too long a message leaves the pipe as it was; the run can still fail with a reason.
        let reason = format!("The program's values cannot be passed on: {error}");
        let failure = message::Failure::new(message::FailureKind::Result, reason);
        let told = error.kind() == io::ErrorKind::InvalidData
            && message::write(&mut io::stdout().lock(), &FromWorker::Failed { run: message.run(), failure }).is_ok();
        process::exit(i32::from(!told));
    }
}
