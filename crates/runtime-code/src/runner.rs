//! Runs programs: embedded where that will do, else in a process.

use std::sync::{
    Arc,
    atomic::{AtomicU64, Ordering},
};

use skillz_process::{Exit, ProcessError};
use skillz_tool::{ErrorKind, Host, ToolError};

use crate::{
    message::{Failure, FailureKind, PreparedProgram, Program, ToWorker},
    names::{Names, closest},
    native,
    outcome::{CodeFailure, CodeResult, failed},
    pool::{Lease, Pool, Worker},
    request::{CodeRequest, CodeSettings, Runtime},
    session::{Ended, Session},
};

/// Printed bytes of one run that are kept at most; what comes back into a model's context should be far less.
const MOST_OUTPUT: u64 = 4 << 20;

/// Runs programs. Cheap to make; the first run starts the first worker.
pub struct CodeRunner {
    settings: Arc<CodeSettings>,
    pool: Arc<Pool>,
    installed: native::Installed,
    next_run: AtomicU64,
}

/// What is needed to run one program, whoever runs it.
pub(crate) struct Run {
    pub(crate) session: Session,
    pub(crate) program: Program,
}

impl CodeRunner {
    /// Starts nothing.
    pub fn new(settings: CodeSettings) -> Self {
        let settings = Arc::new(settings);
        let pool = Arc::new(Pool::new(Arc::clone(&settings)));
        Self { pool, settings, installed: native::Installed::default(), next_run: AtomicU64::new(1) }
    }

    /// Runs a program to its end; its inner calls go to `host`. Dropping the future stops the program and its calls.
    pub async fn run(&self, request: CodeRequest, host: Arc<dyn Host>) -> Result<CodeResult, CodeFailure> {
        if !request.dependencies.is_empty() {
            if request.runtime == Runtime::Embedded {
                let message = "The embedded interpreters have no packages, and `dependencies` names some";
                let hint = "Leave `runtime` out, or set it to `process`";
                return Err(CodeFailure::before_start(failed(ErrorKind::InvalidInput, message, hint)));
            }
            return self.run_in_process(&request, host, native::Trust::Asked).await;
        }
        match request.runtime {
            Runtime::Process => self.run_in_process(&request, host, native::Trust::Asked).await,
            Runtime::Embedded | Runtime::Auto => self.run_embedded(&request, host).await,
        }
    }

    async fn run_embedded(&self, request: &CodeRequest, host: Arc<dyn Host>) -> Result<CodeResult, CodeFailure> {
        let mut run = self.start(request, Arc::clone(&host));
        let first = ToWorker::Run(run.program.clone());
        match self.drive(&mut run, &first).await? {
            Ended::Unsupported(reason) if request.runtime == Runtime::Auto => {
                tracing::debug!(%reason, "the program runs in a process");
                let result = self.run_in_process(request, host, native::Trust::Fallback).await;
                result.map_err(|failure| with_reason(failure, &reason))
            }
            Ended::Unsupported(reason) => {
                let message = format!("The program cannot run embedded: {reason}");
                let hint = "Leave `runtime` out, or set it to `process`, to run it in the machine's own interpreter";
                Err(CodeFailure::before_start(failed(ErrorKind::Unavailable, message, hint)))
            }
            ended => finish(ended, run.session, request),
        }
    }

    async fn run_in_process(
        &self,
        request: &CodeRequest,
        host: Arc<dyn Host>,
        trust: native::Trust,
    ) -> Result<CodeResult, CodeFailure> {
        let mut run = self.start(request, host);
        let first = ToWorker::Prepare(run.program.clone());
        let prepared = match self.drive(&mut run, &first).await? {
            Ended::Prepared(prepared) => prepared,
            // Whatever stood against preparing it, the interpreter will say so in its own words.
            Ended::Lost(_) => PreparedProgram { text: request.code.clone(), ..PreparedProgram::default() },
            ended => return finish(ended, run.session, request),
        };
        let ended = native::run(&self.settings, &self.installed, request, &mut run, prepared, trust).await;
        match ended {
            Ok(ended) => finish(ended, run.session, request),
            Err(error) => Err(CodeFailure { error, traceback: None, stdout: run.session.stdout, calls: run.session.calls }),
        }
    }

    fn start(&self, request: &CodeRequest, host: Arc<dyn Host>) -> Run {
        let run = self.next_run.fetch_add(1, Ordering::Relaxed);
        let names = Names::in_program(&request.code, &request.tools);
        let output_bytes = request.limits.max_output_bytes.min(MOST_OUTPUT);
        let program = Program {
            run,
            language: request.language,
            code: request.code.clone(),
            tools: names.identifiers(),
            budget_ms: u64::try_from(request.clock.remaining().as_millis()).unwrap_or(u64::MAX),
            memory_bytes: request.limits.memory_bytes,
            output_bytes,
            original: String::new(),
            lines: Vec::new(),
        };
        let session = Session {
            run,
            host,
            names,
            clock: request.clock.clone(),
            output_bytes,
            stdout: String::new(),
            calls: Vec::new(),
            is_heard: false,
        };
        Run { session, program }
    }

    /// Lets a worker carry a message's order out. One that was idle and turns out to be dead is replaced, once, unless
    /// the program has been heard of.
    async fn drive(&self, run: &mut Run, first: &ToWorker) -> Result<Ended, CodeFailure> {
        let mut lease = self.lease(run).await?;
        let mut ended = run.session.drive(&mut lease.worker.wire, first).await;
        if matches!(ended, Ended::Lost(_)) && lease.worker.is_used() && !run.session.is_heard {
            lease = self.lease(run).await?;
            ended = run.session.drive(&mut lease.worker.wire, first).await;
        }
        match ended {
            Ended::Lost(reason) => Ok(lost(lease.worker, reason, run).await),
            Ended::TimedOut { .. } => Ok(ended),
            ended => {
                self.pool.give_back(lease);
                Ok(ended)
            }
        }
    }
}

impl CodeRunner {
    /// A worker for a run, whose clock stands still while it waits for one.
    async fn lease(&self, run: &Run) -> Result<Lease, CodeFailure> {
        let _waiting = run.session.clock.pause();
        self.pool.lease().await.map_err(|error| CodeFailure::before_start(no_worker(&error)))
    }
}

/// What a worker died of, as a failure of its program.
async fn lost(worker: Worker, reason: String, run: &Run) -> Ended {
    let (exit, stderr) = worker.epitaph().await;
    let (kind, message) = if exit == Some(Exit::MemoryLimit) || stderr.contains("memory allocation of") {
        (FailureKind::Memory, format!("It needed more than its {} MiB of memory", run.program.memory_bytes >> 20))
    } else if stderr.contains("overflowed its stack") {
        (FailureKind::Exception, "It nested calls or values too deeply, and the interpreter's stack overflowed".to_owned())
    } else {
        tracing::warn!(?exit, %stderr, %reason, "a code worker broke off");
        (FailureKind::Exception, format!("The interpreter broke off ({})", stderr.lines().last().unwrap_or(&reason)))
    };
    Ended::Failed(Failure { kind, message, traceback: None })
}

/// The result of a run, or its failure in words.
fn finish(ended: Ended, session: Session, request: &CodeRequest) -> Result<CodeResult, CodeFailure> {
    let limit = seconds(request);
    let failure = match ended {
        Ended::Done(result) => return Ok(CodeResult { result, stdout: session.stdout, calls: session.calls }),
        Ended::Failed(failure) => failure,
        Ended::TimedOut { waiting_for } => {
            let waiting = if waiting_for.is_empty() {
                String::new()
            } else {
                format!(" while it waited for `{}`", waiting_for.join("`, `"))
            };
            Failure { kind: FailureKind::Time, message: waiting, traceback: None }
        }
        Ended::Unsupported(reason) | Ended::Lost(reason) => {
            Failure { kind: FailureKind::Exception, message: reason, traceback: None }
        }
        Ended::Prepared(_) => {
            Failure { kind: FailureKind::Exception, message: "It was only prepared".to_owned(), traceback: None }
        }
    };
    let Failure { kind, message, traceback } = failure;
    let memory = request.limits.memory_bytes >> 20;
    let error = match kind {
        FailureKind::Syntax => ToolError::invalid(format!("The program does not compile: {message}")),
        FailureKind::Exception => {
            let error = ToolError::failed(format!("The program failed: {message}"));
            hint_for(&message, request).map_or(error.clone(), |hint| error.with_hint(hint))
        }
        FailureKind::Time => {
            let waiting = if message.starts_with(' ') { message.as_str() } else { "" };
            let message = format!("The program was stopped after its limit of {limit}{waiting}");
            failed(ErrorKind::TimedOut, message, "Set a longer `timeout` (in seconds), or let it do less at a time")
        }
        FailureKind::Memory => {
            let message = format!("The program was stopped: it needed more than its {memory} MiB of memory");
            failed(ErrorKind::LimitExceeded, message, "Work on parts of the data, or let a tool do it")
        }
        FailureKind::Output => {
            let message = format!("The program was stopped: {}", lower_first(&message));
            failed(
                ErrorKind::LimitExceeded,
                message,
                "Print only what you need to read; large data can stay in variables or go to a tool",
            )
        }
        FailureKind::Result => {
            let hint = "End with a value of dicts, lists, texts, numbers, booleans and None";
            failed(ErrorKind::Failed, format!("The program's result cannot be given back: {}", lower_first(&message)), hint)
        }
    };
    Err(CodeFailure { error, traceback, stdout: session.stdout, calls: session.calls })
}

fn seconds(request: &CodeRequest) -> String {
    let seconds = request.clock.limit().as_secs_f64();
    format!("{} s", (seconds * 1_000.0).round() / 1_000.0)
}

fn lower_first(text: &str) -> String {
    let mut characters = text.chars();
    characters.next().map_or_else(String::new, |first| first.to_lowercase().chain(characters).collect())
}

/// Help for a name that is not defined: tools that are called nearly so.
fn hint_for(message: &str, request: &CodeRequest) -> Option<String> {
    let python = message.strip_prefix("NameError: name '").and_then(|rest| rest.split_once('\''));
    let javascript = message.strip_prefix("ReferenceError: ").and_then(|rest| rest.split_once(" is not defined"));
    let (name, _) = python.or(javascript)?;
    let near = closest(name, &request.tools);
    if near.is_empty() {
        return Some(
            "`skillz.search(\"...\")` finds tools by what they do; `call(\"name\", {...})` reaches each by its name".to_owned(),
        );
    }
    Some(format!("Tools with such a name: `{}`. `call(\"name\", {{...}})` reaches each by its name", near.join("`, `")))
}

fn with_reason(mut failure: CodeFailure, reason: &str) -> CodeFailure {
    if failure.error.kind == ErrorKind::Unavailable {
        failure.error.message = format!("The program needs a process, since {reason}. {}", failure.error.message);
    }
    failure
}

fn no_worker(error: &ProcessError) -> ToolError {
    ToolError::new(ErrorKind::Unavailable, format!("No process for the program could be started: {error}"))
}
