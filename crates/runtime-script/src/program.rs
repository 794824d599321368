//! Programs of `execute_code` in the machine's own python3 or node: each in a process of its own that was made ready before
//! it was needed. What serves function scripts serves them too; a program is a call of a tool that has no code of its own.

use std::{
    collections::HashSet,
    fs,
    path::PathBuf,
    sync::{Arc, Mutex, PoisonError},
};

use sha2::{Digest, Sha256};
use skillz_json::{Map, Value};
use skillz_tool::{
    CallClock, CallContext, EffectiveLimits, ErrorKind, Grants, Host, Isolation, Manifest, Output, Protocol, Tool, ToolCall,
    ToolError, ToolKind, ToolName, Version,
};

use crate::{
    install,
    launch::{Mode, Site},
    plan::Plan,
    prepare,
    runtime::{Place, ScriptRuntime, cannot_write},
    settings::ScriptBounds,
    worker::{Pool, Worker, WorkerKey},
};

/// What programs are called where a tool's name is wanted.
const NAME: &str = "execute_code";
/// Interpreters need this much beyond what their programs use, in bytes.
const INTERPRETER_MEMORY: u64 = 768 << 20;
/// Processes and threads of one program.
const MOST_PROCESSES: u32 = 64;

/// The interpreter of a program.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum ProgramLanguage {
    /// python3.
    Python,
    /// node, 18 or newer.
    JavaScript,
}

/// An interpreter that [`ScriptRuntime::check_programs`] has found, with a sandbox that works.
pub struct CheckedLanguage {
    language: ProgramLanguage,
    /// What stands for programs without packages.
    tool: Arc<Tool>,
}

/// A program, and what it may do.
pub struct Program {
    /// Its interpreter.
    pub language: CheckedLanguage,
    /// What its kit needs: `code`, `tools` (identifier, to the tool's name and its parameters in order), and for JavaScript
    /// `header`, `lines` and `source`.
    pub arguments: Map<String, Value>,
    /// Packages, as pip or npm know them.
    pub dependencies: Vec<String>,
    /// Limits in force; memory is that of the program without its interpreter.
    pub limits: EffectiveLimits,
    /// The program's clock. It stands still while dependencies are installed.
    pub clock: CallClock,
    /// Network, folders and variables.
    pub grants: Grants,
    /// Roots and the like.
    pub context: CallContext,
}

/// What a program came to.
pub struct ProgramEnd {
    /// What it printed, up to its end however it ended.
    pub printed: String,
    /// Its result, or why it has none.
    pub outcome: Result<Value, ToolError>,
}

/// What is kept for programs.
pub(crate) struct Programs {
    folder: PathBuf,
    pool: Pool,
    /// Interpreters that are new enough.
    approved: Mutex<HashSet<PathBuf>>,
}

impl Programs {
    pub(crate) fn new(folder: PathBuf, bounds: ScriptBounds) -> Self {
        // A program that waits for its tools keeps its worker, so there are as many of these as there are processes.
        let most = bounds.processes;
        let bounds = ScriptBounds { workers_per_tool: most, workers: most, ..bounds };
        Self { folder, pool: Pool::new(bounds), approved: Mutex::default() }
    }

    /// The tool that stands for programs with these dependencies. Its folder holds their lock.
    fn tool(&self, language: ProgramLanguage, dependencies: &[String]) -> Result<Tool, ToolError> {
        let mut dependencies = dependencies.to_vec();
        dependencies.sort_unstable();
        let (interpreter, entry) = match language {
            ProgramLanguage::Python => ("python3", "main.py"),
            ProgramLanguage::JavaScript => ("node", "main.mjs"),
        };
        let hash = format!("{:x}", Sha256::digest(format!("{interpreter}\n{}", dependencies.join("\n"))));
        let folder = self.folder.join(&hash);
        let file = folder.join(entry);
        if !file.exists() {
            let made = fs::create_dir_all(&folder).and_then(|()| fs::write(&file, ""));
            made.map_err(|error| cannot_write("the folder of programs", &error))?;
        }
        let mut manifest = Manifest::new(NAME, "A program", ToolKind::Script);
        manifest.interpreter = Some(interpreter.to_owned());
        manifest.entry_file = Some(entry.to_owned());
        manifest.protocol = Some(Protocol::Function);
        manifest.isolation = Some(Isolation::Call);
        manifest.dependencies = dependencies;
        Ok(Tool::new(ToolName::of_programs(), Version::FIRST, folder, manifest, hash))
    }
}

impl ScriptRuntime {
    /// Whether programs can be run here: there is a sandbox that works, and an interpreter that is new enough. The error says
    /// what is missing.
    pub async fn check_programs(&self, language: ProgramLanguage) -> Result<CheckedLanguage, ToolError> {
        let unavailable = |message: String| ToolError::new(ErrorKind::Unavailable, message);
        if !self.is_confined() {
            let message =
                "Programs run in a sandbox only, and this server has none (`SKILLZ_SANDBOX=none`, or a system without one)";
            return Err(unavailable(message.to_owned()).with_hint("Use `runtime: \"embedded\"`"));
        }
        let report = self.settings.launcher.probe().await;
        if !report.available {
            let reason = report.reason.as_deref().unwrap_or("it gave no reason");
            return Err(unavailable(format!("Programs run in a sandbox only, which does not work here: {reason}")));
        }
        let tool = Arc::new(self.programs.tool(language, &[])?);
        let plan = self.plans.get(&tool, &self.interpreters)?;
        if let Some(interpreter) = &plan.interpreter {
            let approved = || self.programs.approved.lock().unwrap_or_else(PoisonError::into_inner);
            if !approved().contains(&interpreter.program) {
                prepare::check_version(self, &plan).await?;
                approved().insert(interpreter.program.clone());
            }
        }
        Ok(CheckedLanguage { language, tool })
    }

    /// Runs a program to its end; its requests go to `host`. Dropping the future ends it with all that it started.
    pub async fn run_program(&self, program: Program, host: Arc<dyn Host>) -> ProgramEnd {
        let mut printed = Vec::new();
        let outcome = self.run_printing(program, host, &mut printed).await;
        ProgramEnd { printed: String::from_utf8_lossy(&printed).into_owned(), outcome }
    }

    async fn run_printing(&self, program: Program, host: Arc<dyn Host>, printed: &mut Vec<u8>) -> Result<Value, ToolError> {
        let Program { language, arguments, dependencies, mut limits, clock, grants, context } = program;
        limits.memory_bytes = limits.memory_bytes.saturating_add(INTERPRETER_MEMORY);
        limits.max_processes = MOST_PROCESSES;
        let CheckedLanguage { language, tool } = language;
        let tool = if dependencies.is_empty() { tool } else { Arc::new(self.programs.tool(language, &dependencies)?) };
        let plan = self.plans.get(&tool, &self.interpreters)?;
        let call = ToolCall { tool, arguments, clock, limits, grants, context };
        let place = {
            let _installs = call.clock.pause();
            self.place_of_program(&plan, &call, &*host).await?
        };
        let environment = place.environment.as_ref();
        let site = Site { plan: &plan, kit: &self.kit, environment, stage: None, is_confined: self.is_confined() };
        let outcome = self.call_in_worker(&self.programs.pool, &site, &call, host, Mode::Program, Some(printed)).await?;
        match outcome.output {
            Output::Value(value) => Ok(value),
            other => Err(ToolError::internal(format!("A program came to {other:?}"))),
        }
    }

    async fn place_of_program(&self, plan: &Plan, call: &ToolCall, host: &dyn Host) -> Result<Place, ToolError> {
        self.kit.ensure().map_err(|error| cannot_write("the helper kits", &error))?;
        let folder = &call.tool.directory;
        let installed = install::ensure(self, plan, &call.tool.manifest, folder, host).await?;
        if let Some((environment, _)) = &installed {
            let lock = folder.join(install::LOCK_FILE);
            if !lock.exists() {
                fs::write(&lock, &environment.lock).map_err(|error| cannot_write("the lock of a program's packages", &error))?;
            }
        }
        let (environment, environment_use) = installed.unzip();
        Ok(Place { environment, stage: None, _environment_use: environment_use })
    }

    /// Starts the interpreter of the next program, where this one's is not forked. Programs with permissions or packages start
    /// their own.
    pub(crate) fn make_ready(&self, pool: &Pool, key: &WorkerKey, site: &Site<'_>, call: &ToolCall) {
        if !call.grants.are_none() || site.environment.is_some() {
            return;
        }
        let Some(vacancy) = pool.vacancy_for_spare(key) else { return };
        let Ok(folder) = self.folder() else { return };
        let Ok(command) = site.worker(call, &folder, Mode::Program) else { return };
        let launcher = self.settings.launcher.clone();
        tokio::spawn(async move {
            match Worker::start(&launcher, NAME, command, folder, true).await {
                Ok(worker) => vacancy.fill(worker).put_back(),
                Err(error) => tracing::debug!(%error, "no interpreter is ready for the next program"),
            }
        });
    }
}
