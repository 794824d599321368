//! Runs programs: embedded where that will do, else in a process.

use std::sync::{
    Arc,
    atomic::{AtomicU64, Ordering},
};

use skillz_json::Number;
use skillz_process::{Exit, ProcessError};
use skillz_tool::{ErrorKind, Host, ToolError};

use crate::{
    hints,
    message::{Failure, FailureKind, PreparedProgram, Program, ToWorker},
    names::Names,
    native,
    outcome::{CodeFailure, CodeResult, failed},
    pool::{Lease, Pool, Worker},
    request::{CodeRequest, CodeSettings, Language, Runtime},
    session::{Ended, Session},
};

/// Printed bytes of one run that are kept at most; what comes back into a model's context should be far less.
const MOST_OUTPUT: u64 = 4 << 20;

/// Hint of a failure that a real interpreter might not have.
const ELSEWHERE: &str = "If this is right in a real interpreter, set `runtime: \"process\"`, which runs the program in one";

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
            Runtime::Embedded => self.run_embedded(&request, host).await,
            Runtime::Auto => self.run_auto(&request, host).await,
        }
    }

    /// Runs a program embedded; it moves to a process where that is better, as long as nothing of it can be seen outside.
    async fn run_auto(&self, request: &CodeRequest, host: Arc<dyn Host>) -> Result<CodeResult, CodeFailure> {
        let mut run = self.start(request, Arc::clone(&host));
        run.program.may_move = true;
        let first = ToWorker::Run(run.program.clone());
        match self.drive(&mut run, &first).await? {
            Ended::Unsupported(reason) => {
                tracing::debug!(%reason, "the program runs in a process");
                match self.run_in_process(request, Arc::clone(&host), native::Trust::Fallback).await {
                    // There is no such process here: what is only doubtful is tried all the same.
                    Err(failure) if failure.error.kind == ErrorKind::Unavailable => {
                        let embedded = self.run_embedded(request, host).await;
                        let is_refused = |other: &CodeFailure| other.error.kind == ErrorKind::Unavailable;
                        embedded.map_err(|other| if is_refused(&other) { with_reason(failure, &reason) } else { other })
                    }
                    result => result,
                }
            }
            Ended::Failed(failure) if failure.is_doubtful && !run.session.has_asked => {
                tracing::debug!(reason = failure.message, "the program runs again in a process");
                match self.run_in_process(request, host, native::Trust::Fallback).await {
                    Err(other) if other.error.kind == ErrorKind::Unavailable => {
                        finish(Ended::Failed(failure), run.session, request)
                    }
                    result => result,
                }
            }
            ended => finish(ended, run.session, request),
        }
    }

    async fn run_embedded(&self, request: &CodeRequest, host: Arc<dyn Host>) -> Result<CodeResult, CodeFailure> {
        let mut run = self.start(request, host);
        let first = ToWorker::Run(run.program.clone());
        match self.drive(&mut run, &first).await? {
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
            may_move: false,
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
            holds: if request.language == Language::Python { Number::fits_python } else { Number::fits_double },
            output_bytes,
            stdout: String::new(),
            calls: Vec::new(),
            is_heard: false,
            has_asked: false,
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
    Ended::Failed(Failure::new(kind, message))
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
            Failure::new(FailureKind::Time, waiting)
        }
        Ended::Unsupported(reason) | Ended::Lost(reason) => Failure::new(FailureKind::Exception, reason),
        Ended::Prepared(_) => Failure::new(FailureKind::Exception, "It was only prepared"),
    };
    let Failure { kind, message, traceback, is_doubtful } = failure;
    let memory = request.limits.memory_bytes >> 20;
    let error = match kind {
        FailureKind::Syntax => {
            let error = ToolError::invalid(format!("The program does not compile: {message}"));
            if is_doubtful { error.with_hint(ELSEWHERE) } else { error }
        }
        FailureKind::Exception => {
            let error = ToolError::failed(format!("The program failed: {message}"));
            let parts = [hints::for_name(&message, request), is_doubtful.then(|| ELSEWHERE.to_owned())];
            let hint = parts.into_iter().flatten().collect::<Vec<_>>().join(". ");
            if hint.is_empty() { error } else { error.with_hint(hint) }
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

fn with_reason(mut failure: CodeFailure, reason: &str) -> CodeFailure {
    if failure.error.kind == ErrorKind::Unavailable {
        failure.error.message = format!("The program needs a process, since {reason}. {}", failure.error.message);
    }
    failure
}

fn no_worker(error: &ProcessError) -> ToolError {
    ToolError::new(ErrorKind::Unavailable, format!("No process for the program could be started: {error}"))
}
