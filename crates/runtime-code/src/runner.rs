//! Runs programs: in the machine's own interpreter where there is one and a sandbox, else embedded.

use std::sync::{
    Arc,
    atomic::{AtomicU64, Ordering},
};

use skillz_json::Number;
use skillz_process::{Exit, ProcessError};
use skillz_runtime_script::CheckedLanguage;
use skillz_tool::{ErrorKind, Host, ToolError};

use crate::{
    hints,
    host::ProgramHost,
    message::{Failure, FailureKind, PreparedProgram, Program, TOOL_ERROR, ToWorker},
    names::Names,
    outcome::{CodeFailure, CodeResult, failed, out_of_memory, printed_too_much, timed_out},
    pool::{Lease, Pool, Worker},
    real,
    request::{CodeRequest, CodeSettings, Language, Runtime},
    session::{Ended, Session},
    worker::UNCONFINED,
};

/// Printed bytes of one run that are kept at most; what comes back into a model's context should be far less.
const MOST_OUTPUT: u64 = 4 << 20;

/// Hint of a failure that a real interpreter might not have.
const ELSEWHERE: &str = "The embedded interpreter lacks parts of the language and of its library; \
    `runtime: \"process\"` runs programs in a real one, where the machine has it";

/// Runs programs. Cheap to make; the first run starts the first worker.
pub struct CodeRunner {
    settings: Arc<CodeSettings>,
    pool: Arc<Pool>,
    next_run: AtomicU64,
}

/// What is needed to run one program embedded.
struct Run {
    session: Session,
    program: Program,
}

impl CodeRunner {
    /// Starts nothing.
    pub fn new(settings: CodeSettings) -> Self {
        let settings = Arc::new(settings);
        Self { pool: Arc::new(Pool::new(Arc::clone(&settings))), settings, next_run: AtomicU64::new(1) }
    }

    /// Runs a program to its end; its inner calls go to `host`. Dropping the future stops the program and its calls.
    pub async fn run(&self, mut request: CodeRequest, host: Arc<dyn Host>) -> Result<CodeResult, CodeFailure> {
        request.limits.max_output_bytes = request.limits.max_output_bytes.min(MOST_OUTPUT);
        let host = Arc::new(ProgramHost::new(host, request.clock.clone()));
        let lacking = match request.runtime {
            Runtime::Embedded => None,
            Runtime::Auto | Runtime::Process => {
                match self.settings.scripts.check_programs(real::interpreter(request.language)).await {
                    Ok(language) => return self.run_real(language, request, host).await,
                    Err(error) if request.runtime == Runtime::Process => return Err(CodeFailure::before_start(error)),
                    Err(error) => Some(error),
                }
            }
        };
        if request.dependencies.is_empty() && request.grants.are_none() {
            return self.run_embedded(&request, host).await;
        }
        let hint = "Leave them out, or leave `runtime` out where the machine has the interpreter";
        let message = "The embedded interpreters have no packages and no permissions, and this program asks for some";
        Err(CodeFailure::before_start(lacking.unwrap_or_else(|| failed(ErrorKind::InvalidInput, message, hint))))
    }

    async fn run_real(
        &self,
        language: CheckedLanguage,
        request: CodeRequest,
        host: Arc<ProgramHost>,
    ) -> Result<CodeResult, CodeFailure> {
        if request.language == Language::Python {
            let names = Names::in_program(&request.code, &request.tools);
            return real::run(&self.settings, language, request, names, None, host).await;
        }
        let mut run = self.start(&request, Arc::clone(&host));
        let order = ToWorker::Prepare(run.program.clone());
        let prepared = match self.drive(&mut run, &order).await? {
            Ended::Prepared(prepared) => prepared,
            // What no parser got through, node will not either, and says so in its own words.
            Ended::Lost(_) => PreparedProgram { text: request.code.clone(), ..PreparedProgram::default() },
            ended => return finish(ended, run.session, &request, false),
        };
        real::run(&self.settings, language, request, run.session.names, Some(prepared), host).await
    }

    async fn run_embedded(&self, request: &CodeRequest, host: Arc<ProgramHost>) -> Result<CodeResult, CodeFailure> {
        let mut run = self.start(request, host);
        let order = ToWorker::Run(run.program.clone());
        match self.drive(&mut run, &order).await? {
            Ended::Unsupported(reason) => {
                let message = format!("The program cannot run embedded: {reason}");
                Err(CodeFailure::before_start(failed(ErrorKind::Unavailable, message, ELSEWHERE)))
            }
            ended => finish(ended, run.session, request, true),
        }
    }

    fn start(&self, request: &CodeRequest, host: Arc<ProgramHost>) -> Run {
        let run = self.next_run.fetch_add(1, Ordering::Relaxed);
        let names = Names::in_program(&request.code, &request.tools);
        let output_bytes = request.limits.max_output_bytes;
        let program = Program {
            run,
            language: request.language,
            code: request.code.clone(),
            tools: names.identifiers(),
            budget_ms: u64::try_from(request.clock.remaining().as_millis()).unwrap_or(u64::MAX),
            memory_bytes: request.limits.memory_bytes,
            output_bytes,
        };
        let session = Session {
            run,
            host,
            names,
            clock: request.clock.clone(),
            holds: if request.language == Language::Python { Number::fits_python } else { Number::fits_double },
            output_bytes,
            stdout: String::new(),
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
            Ended::Lost(reason) => lost(lease.worker, reason, run).await.map_err(CodeFailure::before_start),
            Ended::TimedOut => Ok(ended),
            ended => {
                self.pool.give_back(lease);
                Ok(ended)
            }
        }
    }

    /// A worker for a run, whose clock stands still while it waits for one.
    async fn lease(&self, run: &Run) -> Result<Lease, CodeFailure> {
        let _waiting = run.session.clock.pause();
        self.pool.lease().await.map_err(|error| CodeFailure::before_start(no_worker(&error)))
    }
}

/// What a worker died of, as a failure of its program.
async fn lost(worker: Worker, reason: String, run: &Run) -> Result<Ended, ToolError> {
    let (exit, stderr) = worker.epitaph().await;
    if stderr.contains(UNCONFINED) {
        return Err(ToolError::new(ErrorKind::Unavailable, format!("The program was not run: {stderr}"))
            .with_hint("The system must allow seccomp filters; `skillz doctor` says more"));
    }
    let (kind, message) = if exit == Some(Exit::MemoryLimit) || stderr.contains("memory allocation of") {
        (FailureKind::Memory, format!("It needed more than its {} MiB of memory", run.program.memory_bytes >> 20))
    } else if stderr.contains("overflowed its stack") {
        (FailureKind::Exception, "It nested calls or values too deeply, and the interpreter's stack overflowed".to_owned())
    } else {
        tracing::warn!(?exit, %stderr, %reason, "a code worker broke off");
        (FailureKind::Exception, format!("The interpreter broke off ({})", stderr.lines().last().unwrap_or(&reason)))
    };
    Ok(Ended::Failed(Failure::new(kind, message)))
}

/// The result of a run, or its failure in words.
fn finish(ended: Ended, session: Session, request: &CodeRequest, is_embedded: bool) -> Result<CodeResult, CodeFailure> {
    let calls = session.host.calls();
    let failure = match ended {
        Ended::Done(result) => return Ok(CodeResult { result, stdout: session.stdout, calls, is_embedded }),
        Ended::Failed(failure) => failure,
        Ended::TimedOut => Failure::new(FailureKind::Time, ""),
        Ended::Unsupported(reason) | Ended::Lost(reason) => Failure::new(FailureKind::Exception, reason),
        Ended::Prepared(_) => Failure::new(FailureKind::Exception, "It was only prepared"),
    };
    let Failure { kind, message, traceback } = failure;
    let error = match kind {
        FailureKind::Syntax => {
            let error = ToolError::invalid(format!("The program does not compile: {message}"));
            if is_embedded { error.with_hint(ELSEWHERE) } else { error }
        }
        FailureKind::Exception => {
            let error = ToolError::failed(format!("The program failed: {message}"));
            match hints::for_name(&message, request) {
                Some(hint) => error.with_hint(hint),
                None if message.starts_with(TOOL_ERROR) || !is_embedded => error,
                None => error.with_hint(ELSEWHERE),
            }
        }
        FailureKind::Time => timed_out(request, &session.host.late()),
        FailureKind::Memory => out_of_memory(request),
        FailureKind::Output => printed_too_much(request),
        FailureKind::Result => {
            let hint = "End with a value of dicts, lists, texts, numbers, booleans and None";
            failed(ErrorKind::Failed, format!("The program's result cannot be given back: {}", lower_first(&message)), hint)
        }
    };
    Err(CodeFailure { error, traceback, stdout: session.stdout, calls })
}

fn lower_first(text: &str) -> String {
    let mut characters = text.chars();
    characters.next().map_or_else(String::new, |first| first.to_lowercase().chain(characters).collect())
}

fn no_worker(error: &ProcessError) -> ToolError {
    ToolError::new(ErrorKind::Unavailable, format!("No process for the program could be started: {error}"))
}
