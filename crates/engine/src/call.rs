//! The one path of every call: find, check arguments, check permissions, wait for a place, run under limits,
//! shape the result, record.
//!
//! Everything a call starts hangs on its future: dropping that ends it all, and the history says `cancelled`.

use std::{
    panic::AssertUnwindSafe,
    sync::{Arc, Mutex},
    time::Duration,
};

use futures::FutureExt;
use skillz_json::Value;
use skillz_pipeline::StepReport;
use skillz_tool::{CallClock, CallContext, EffectiveLimits, ErrorKind, ToolCall, ToolError};
use tracing::Instrument;

use crate::{
    CallFailure, CallReply, CallRequest, arguments,
    callable::Callable,
    engine::Engine,
    find::FindError,
    host::EngineHost,
    queue::{Need, Place},
    record::CallLog,
    secrets::Secrets,
    shape::{self, Finished},
    tree::{CallTree, Frame},
};

/// How deep tools may call tools.
const DEEPEST: usize = 16;
/// Runtimes keep a call's time themselves and know best what to say. One that does not is cut off this much
/// later, within the 200 ms that a call may overrun.
const GRACE: Duration = Duration::from_millis(120);

/// A call of a known tool.
pub(crate) struct Invocation<'a> {
    pub(crate) callable: &'a Arc<Callable>,
    pub(crate) arguments: Value,
    pub(crate) tree: &'a Arc<CallTree>,
    /// The call that makes this one, if a tool does.
    pub(crate) caller: Option<&'a Arc<Frame>>,
    pub(crate) call_id: String,
    /// Whether its inner calls go into the history.
    pub(crate) recorded: bool,
    /// Where a pipeline's steps are reported, if somebody wants to know.
    pub(crate) steps: Option<&'a Mutex<Vec<StepReport>>>,
}

impl Engine {
    /// Calls a tool for a client. Dropping the future stops the call and everything it started.
    pub async fn call(&self, request: CallRequest) -> Result<CallReply, CallFailure> {
        let callable = match self.find(&request.tool_name, request.version.as_deref()).await {
            Ok(callable) => callable,
            Err(FindError::Unknown(message)) => return Err(CallFailure::UnknownTool { message }),
            Err(FindError::Unusable(error)) => return Ok(CallReply::failed(error)),
        };
        let tree = Arc::new(CallTree::new(request.client));
        let call_id = self.next_call_id();
        let log = CallLog::open(self.history(), &callable.tool, &call_id, None, request.arguments.written_length() as u64);
        let invocation = Invocation {
            callable: &callable,
            arguments: request.arguments,
            tree: &tree,
            caller: None,
            call_id,
            recorded: true,
            steps: None,
        };
        Ok(self.reply(invocation, log).await)
    }

    /// Carries a call out and shapes its result for a client.
    pub(crate) async fn reply(&self, invocation: Invocation<'_>, log: CallLog) -> CallReply {
        let callable = Arc::clone(invocation.callable);
        let secrets = Secrets(&callable.wishes.environment);
        match self.execute(invocation).await {
            Ok(finished) => {
                let most = usize::try_from(callable.limits.max_result_bytes).unwrap_or(usize::MAX);
                let (reply, bytes) = shape::reply(&callable.tool, finished, most, self.results()).await;
                match &reply.failure {
                    Some(error) => log.failed(error, &secrets),
                    None => log.succeeded(bytes),
                }
                reply
            }
            Err(error) => {
                log.failed(&error, &secrets);
                CallReply::failed(error)
            }
        }
    }

    /// Carries a call out for another tool: the whole value, however long.
    pub(crate) async fn value(&self, invocation: Invocation<'_>, log: CallLog) -> Result<Value, ToolError> {
        let callable = Arc::clone(invocation.callable);
        let result = match self.execute(invocation).await {
            Ok(finished) => shape::whole(&callable.tool, finished),
            Err(error) => Err(error),
        };
        match &result {
            Ok(value) => log.succeeded(value.written_length() as u64),
            Err(error) => log.failed(error, &Secrets(&callable.wishes.environment)),
        }
        result
    }

    /// Carries a call out. A panic on the way is a failure of this call only.
    pub(crate) async fn execute(&self, invocation: Invocation<'_>) -> Result<Finished, ToolError> {
        let tool = Arc::clone(&invocation.callable.tool);
        let span = tracing::info_span!("call", tool = %tool.name, version = %tool.version, id = invocation.call_id);
        without_panic(tool.name.as_str(), self.attempt(invocation).instrument(span)).await
    }

    async fn attempt(&self, invocation: Invocation<'_>) -> Result<Finished, ToolError> {
        let Invocation { callable, arguments, tree, caller, call_id, recorded, steps } = invocation;
        let tool = &callable.tool;
        let depth = caller.map_or(1, |caller| caller.depth + 1);
        if depth > DEEPEST {
            return Err(too_deep(&tool.name.to_string(), caller));
        }
        let runtime = callable.runtime()?;
        check_services(callable)?;
        let arguments = arguments::check(tool, arguments)?;
        // Neither consent nor a place in the queue is on the time of the calls that wait for this one.
        let waiting = caller.map(|caller| caller.pause());
        callable.make_data_directory()?;
        let grants = self.authorise(callable, tree).await?;
        let place = self.place(callable, caller).await;
        drop(waiting);

        let clock = CallClock::start(callable.limits.timeout);
        let holds_script_place = callable.is_script() || caller.is_some_and(|caller| caller.holds_script_place);
        let frame = Arc::new(Frame {
            name: Arc::clone(&callable.name),
            call_id: call_id.clone(),
            depth,
            clock: clock.clone(),
            holds_script_place,
            is_recorded: recorded,
            caller: caller.cloned(),
        });
        let context = CallContext {
            call_id,
            depth,
            roots: tree.known_roots(self.settings()),
            data_directory: callable.data_directory().to_owned(),
            tools_directory: self.settings().tools_directory.clone(),
            progress_token: tree.client().progress_token(),
            capabilities: tree.capabilities,
        };
        let call = ToolCall {
            tool: Arc::clone(tool),
            arguments,
            limits: callable.limits.clone(),
            clock: clock.clone(),
            grants,
            context,
        };
        let host = Arc::new(EngineHost::of_call(self.clone(), Arc::clone(tree), Arc::clone(callable), frame));
        let run = async {
            match steps {
                // Rare and large, so that it does not weigh on every call.
                Some(steps) => Box::pin(self.run_with_report(call, host, steps)).await,
                None => runtime.call(call, host).await,
            }
        };
        let outcome = within_time(&clock, run, || timed_out(&callable.name, &callable.limits)).await;
        drop(place);
        shape::finish(tool, outcome.map_err(|error| with_missing_variables(callable, error))?)
    }

    /// A place to run in. Inner calls ride on their caller's, but a script under callers that are none waits for
    /// a place among the scripts.
    async fn place(&self, callable: &Callable, caller: Option<&Arc<Frame>>) -> Option<Place> {
        let need = match caller {
            None if callable.is_script() => Need::ScriptCall,
            None => Need::Call,
            Some(caller) if callable.is_script() && !caller.holds_script_place => Need::InnerScript,
            Some(_) => return None,
        };
        Some(self.queue().place(need).await)
    }
}

/// Turns a panic into a failure of this one call.
pub(crate) async fn without_panic<T>(name: &str, run: impl Future<Output = Result<T, ToolError>>) -> Result<T, ToolError> {
    AssertUnwindSafe(run).catch_unwind().await.unwrap_or_else(|_panic| {
        tracing::error!(tool = name, "A call panicked");
        let message = format!("A fault inside the server ended the call of `{name}`; the server's log has the details");
        Err(ToolError::new(ErrorKind::Internal, message).with_hint("Calling it again may help; the other tools are not affected"))
    })
}

/// Ends a run whose runtime overlooks that time is up.
pub(crate) async fn within_time<T>(
    clock: &CallClock,
    run: impl Future<Output = Result<T, ToolError>>,
    timed_out: impl FnOnce() -> ToolError,
) -> Result<T, ToolError> {
    tokio::pin!(run);
    loop {
        // While the clock stands still this looks again from time to time.
        let patience = clock.remaining() + GRACE;
        match tokio::time::timeout(patience, &mut run).await {
            Ok(outcome) => return outcome,
            Err(_) if clock.remaining().is_zero() => return Err(timed_out()),
            Err(_) => {}
        }
    }
}

fn timed_out(name: &str, limits: &EffectiveLimits) -> ToolError {
    let message = format!("`{name}` ran longer than its limit of {} ms and was stopped", limits.timeout.as_millis());
    ToolError::new(ErrorKind::TimedOut, message)
        .with_hint("Give it less to do, or publish it with a higher `limits.timeout_ms` if the work needs it")
}

/// Services are not part of this server yet, so that a tool that needs them says so instead of failing obscurely.
fn check_services(callable: &Callable) -> Result<(), ToolError> {
    let services = &callable.tool.manifest.requires_services;
    if services.is_empty() {
        return Ok(());
    }
    let names: Vec<String> = services.iter().map(|name| format!("`{name}`")).collect();
    let message = format!(
        "`{}` needs the services {}, and this version of the server cannot start services yet",
        callable.name,
        names.join(", ")
    );
    Err(ToolError::new(ErrorKind::Unavailable, message).with_hint(
        "Publish it without `requires_services` if it can reach them by itself, with `permissions.network` and `permissions.env`",
    ))
}

/// The text names the chain, so that a circle shows.
fn too_deep(name: &str, caller: Option<&Arc<Frame>>) -> ToolError {
    let names = caller.map(|caller| caller.names()).unwrap_or_default();
    let circle = names.iter().any(|caller| caller.as_ref() == name);
    let chain: Vec<&str> = names.iter().map(AsRef::as_ref).chain([name]).collect();
    let chain = chain.join(" -> ");
    let why = if circle { "tools call each other in a circle" } else { "tools call tools too deep" };
    let message = format!("`{name}` was not called, since {why}: {chain}. At most {DEEPEST} calls may stand inside each other");
    ToolError::new(ErrorKind::LimitExceeded, message)
        .with_hint("Break the circle, or let the outer tool call the others one after the other")
}

/// A failure may come from a variable that the tool asks for and that is not there; the hint says so.
fn with_missing_variables(callable: &Callable, mut error: ToolError) -> ToolError {
    if error.kind == ErrorKind::Failed && !callable.wishes.missing.is_empty() {
        let names: Vec<String> = callable.wishes.missing.iter().map(|name| format!("`{name}`")).collect();
        let note = format!(
            "The tool asks for {} in its environment, which the server's own environment does not have",
            names.join(", ")
        );
        error.hint = Some(error.hint.map_or_else(|| note.clone(), |hint| format!("{hint}. {note}")));
    }
    error
}
