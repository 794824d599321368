//! `execute_code`: programs that call tools. How they run is the business of whatever implements [`CodeRuntime`].

use std::{path::PathBuf, sync::Arc, time::Duration};

use async_trait::async_trait;
use sha2::{Digest, Sha256};
use skillz_json::Value;
use skillz_tool::{
    CallClock, EffectiveLimits, ErrorKind, Grants, Host, Limits, Manifest, Permissions, Tool, ToolError, ToolKind, ToolName,
    Version,
};
use tracing::Instrument;

use crate::{
    ClientPort, CodeLanguage, CodeRequest, CodeRuntimeChoice,
    call::{within_time, without_panic},
    callable::Callable,
    engine::Engine,
    host::EngineHost,
    policy::check_permissions,
    queue::Need,
    tree::{CallTree, Frame},
};

/// Whose memory a program has, and what its calls stand under.
const PROGRAM_NAME: &str = "execute_code";
/// Memory of a program, in MiB.
const MEMORY_MB: u64 = 256;
/// Longest run that a program may ask for, in seconds: a day.
const LONGEST_SECONDS: f64 = 86_400.0;

/// A program, ready to run.
#[derive(Debug, Clone)]
pub struct CodeRun {
    /// The program.
    pub code: String,
    /// Its language.
    pub language: CodeLanguage,
    /// Where it runs.
    pub runtime: CodeRuntimeChoice,
    /// Packages it needs.
    pub dependencies: Vec<String>,
    /// What it may reach beyond its tools.
    pub grants: Grants,
    /// Workspace roots.
    pub roots: Vec<PathBuf>,
    /// The tools that it may call, sorted by name.
    pub tools: Vec<Arc<Tool>>,
    /// Names of the tools that the request leaves out.
    pub excluded: Vec<String>,
    /// Limits in force.
    pub limits: EffectiveLimits,
    /// The run's clock, started with `limits.timeout`.
    pub clock: CallClock,
}

/// Runs programs that call tools.
#[async_trait]
pub trait CodeRuntime: Send + Sync {
    /// Runs a program to its end: `{result, stdout, calls: [{tool, ms, ok}]}`, of many calls the first ones and how many
    /// more there were, as `calls_omitted`. Dropping the future stops it.
    async fn run(&self, run: CodeRun, host: Arc<dyn Host>) -> Result<Value, ToolError>;
}

impl Engine {
    /// Runs a program that calls tools, as the built-in `execute_code` answers.
    pub async fn execute_code(&self, request: CodeRequest, client: Arc<dyn ClientPort>) -> Result<Value, ToolError> {
        let Some(runtime) = self.code() else {
            return Err(ToolError::new(ErrorKind::Unavailable, "This server cannot run code that calls tools"));
        };
        let (tools, excluded) = self.tools_of_program(request.tools.as_deref())?;
        let limits = self.limits_of_program(request.timeout)?;
        let tree = Arc::new(CallTree::new(client));
        let grants = self.grants_of_program(&request, &tree).await?;
        let roots = tree.known_roots(self.settings());
        let place = self.queue().place(Need::Call).await;
        let clock = CallClock::start(limits.timeout);
        let frame = Arc::new(Frame {
            name: PROGRAM_NAME.into(),
            call_id: self.next_call_id(),
            depth: 1,
            clock: clock.clone(),
            holds_script_place: false,
            is_recorded: true,
            caller: None,
        });
        let host = Arc::new(EngineHost::of_program(self.clone(), tree, frame, request.tools));
        let CodeRequest { code, language, runtime: choice, dependencies, .. } = request;
        let run = CodeRun {
            code,
            language,
            runtime: choice,
            dependencies,
            grants,
            roots,
            tools,
            excluded,
            limits,
            clock: clock.clone(),
        };
        let span = tracing::info_span!("execute_code", ?language);
        let running = without_panic(PROGRAM_NAME, runtime.run(run, host)).instrument(span);
        let result = within_time(&clock, running, || timed_out(&clock)).await;
        drop(place);
        result
    }

    /// What a program may reach: decided as for a tool that asks for the same.
    async fn grants_of_program(&self, request: &CodeRequest, tree: &CallTree) -> Result<Grants, ToolError> {
        if request.permissions == Permissions::default() {
            return Ok(Grants::default());
        }
        if let Some(fault) = check_permissions(&request.permissions).into_iter().next() {
            return Err(ToolError::invalid(fault));
        }
        let mut manifest = Manifest::new(PROGRAM_NAME, "A program", ToolKind::Script);
        manifest.permissions = request.permissions.clone();
        // A consent is to this program, not to whatever comes next.
        let hash = format!("{:x}", Sha256::digest(&request.code));
        let tool = Arc::new(Tool::new(ToolName::of_programs(), Version::FIRST, PathBuf::new(), manifest, hash));
        self.authorise(&Callable::new(tool, self.settings(), self.runtimes()), tree).await
    }

    /// The tools that a program may call, and the names of those that it may not.
    fn tools_of_program(&self, only: Option<&[String]>) -> Result<(Vec<Arc<Tool>>, Vec<String>), ToolError> {
        let view = self.view();
        let Some(only) = only else { return Ok((view.offered().cloned().collect(), Vec::new())) };
        if let Some(unknown) = only.iter().find(|name| !view.callables.contains_key(name.as_str()) && *name != "list_tools") {
            return Err(self.unknown_tool(unknown));
        }
        let (tools, others): (Vec<&Arc<Tool>>, Vec<&Arc<Tool>>) =
            view.offered().partition(|tool| only.iter().any(|name| name == tool.name.as_str()));
        Ok((tools.into_iter().cloned().collect(), others.into_iter().map(|tool| tool.name.to_string()).collect()))
    }

    fn limits_of_program(&self, timeout_seconds: Option<f64>) -> Result<EffectiveLimits, ToolError> {
        let timeout = match timeout_seconds {
            Some(seconds) if seconds > 0.0 && seconds <= LONGEST_SECONDS => Some(Duration::from_secs_f64(seconds)),
            Some(seconds) => {
                let message = format!("The `timeout` {seconds} is no number of seconds between 0 and {LONGEST_SECONDS}");
                return Err(ToolError::invalid(message));
            }
            None => None,
        };
        let timeout_ms = timeout.map(|timeout| u64::try_from(timeout.as_millis()).unwrap_or(u64::MAX));
        let asked = Limits { timeout_ms, ..Limits::default() };
        Ok(EffectiveLimits::with_memory_mb(MEMORY_MB).asked(&asked).capped(&self.settings().caps))
    }
}

fn timed_out(clock: &CallClock) -> ToolError {
    let message = format!("The program was stopped after its limit of {} s", clock.limit().as_secs_f64());
    ToolError::new(ErrorKind::TimedOut, message).with_hint("Set a longer `timeout` (in seconds), or let it do less at a time")
}
