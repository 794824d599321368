//! The runtime itself: sends each call to the way its script is run, after everything it needs is in place.

use std::sync::Arc;

use async_trait::async_trait;
use skillz_environments::Environment;
use skillz_sandbox::SandboxKind;
use skillz_tool::{Draft, ErrorKind, Host, Isolation, Prepared, Protocol, Tool, ToolCall, ToolError, ToolOutcome, ToolRuntime};
use tokio::sync::Semaphore;

use crate::{
    discard::{self, EnvironmentUse, EnvironmentUses},
    folder::{WorkingFolder, WorkingFolders},
    install,
    interpreter::Interpreters,
    kit::Kit,
    language::Language,
    launch::{Mode, Site},
    plan::{Plan, Plans},
    prepare, process_script,
    program::Programs,
    refusal,
    settings::ScriptSettings,
    source::advice,
    stage::{self, Stage, StagePlan},
    worker::{self, CallEnd, Lent, Pool, Worker, WorkerKey},
};

/// Runs scripts. Cheap to make: no process is started and no file touched before the first use.
pub struct ScriptRuntime {
    pub(crate) settings: ScriptSettings,
    pub(crate) interpreters: Interpreters,
    pub(crate) kit: Kit,
    pub(crate) folders: WorkingFolders,
    pub(crate) plans: Plans,
    pub(crate) programs: Programs,
    pool: Pool,
    pub(crate) uses: EnvironmentUses,
    processes: Arc<Semaphore>,
}

impl ScriptRuntime {
    /// A runtime with its settings.
    pub fn new(settings: ScriptSettings) -> Self {
        Self {
            interpreters: Interpreters::new(settings.search.clone()),
            kit: Kit::below(&settings.cache_directory),
            folders: WorkingFolders::new(settings.cache_directory.join("work")),
            plans: Plans::default(),
            uses: EnvironmentUses::default(),
            pool: Pool::new(settings.bounds),
            programs: Programs::new(settings.cache_directory.join("programs"), settings.bounds),
            processes: Arc::new(Semaphore::new(settings.bounds.processes.max(1))),
            settings,
        }
    }

    /// Looks interpreters up the way calls do.
    pub fn interpreters(&self) -> &Interpreters {
        &self.interpreters
    }

    /// How many warm workers are idle, and how many there are in all.
    pub fn workers(&self) -> (usize, usize) {
        self.pool.count()
    }

    /// Makes sure of everything that a script needs before it can start.
    pub(crate) async fn place(&self, plan: &Plan, tool: &Tool, host: &dyn Host) -> Result<Place, ToolError> {
        self.kit.ensure().map_err(|error| cannot_write("the helper kits", &error))?;
        let (environment, environment_use) = install::ensure(self, plan, &tool.manifest, &tool.directory, host).await?.unzip();
        let stage = self.stage(plan, tool, environment.as_ref())?;
        Ok(Place { environment, stage, _environment_use: environment_use })
    }

    fn stage(&self, plan: &Plan, tool: &Tool, environment: Option<&Environment>) -> Result<Option<Stage>, ToolError> {
        let language = plan.decision.language;
        if !matches!(language, Language::JavaScript | Language::TypeScript) && !plan.has_carriage_returns {
            return Ok(None);
        }
        let packages = environment.map(|environment| environment.directory.join("node_modules"));
        let is_node = plan.interpreter.as_ref().is_some_and(|interpreter| interpreter.name.starts_with("node"));
        let stage_plan = StagePlan {
            tool: &tool.directory,
            hash: &tool.hash,
            entry_file: &plan.decision.entry_file,
            is_module: plan.decision.is_module,
            strips_types: is_node,
            is_shell: plan.has_carriage_returns,
            packages: packages.as_deref(),
        };
        let stage = stage::ensure(&self.settings.cache_directory, &self.kit, &stage_plan);
        stage.map(Some).map_err(|error| ToolError::failed(format!("`{}` could not be prepared: {error}", tool.name)))
    }

    pub(crate) fn is_confined(&self) -> bool {
        cfg!(target_os = "linux") && self.settings.launcher.sandbox() != SandboxKind::None
    }

    pub(crate) fn folder(&self) -> Result<WorkingFolder, ToolError> {
        self.folders.create().map_err(|error| cannot_write("a working folder", &error))
    }

    async fn call_by_plan(&self, plan: &Plan, call: &ToolCall, host: &Arc<dyn Host>) -> Result<ToolOutcome, ToolError> {
        worker::check_numbers(call, plan.decision.language)?;
        let place = {
            let _installs = call.clock.pause();
            self.place(plan, &call.tool, &**host).await?
        };
        let (environment, stage) = (place.environment.as_ref(), place.stage.as_ref());
        let site = Site { plan, kit: &self.kit, environment, stage, is_confined: self.is_confined() };
        match plan.decision.protocol {
            Protocol::Json | Protocol::JsonRpc => self.call_process(&site, call, Arc::clone(host)).await,
            Protocol::Function => self.call_in_worker(&self.pool, &site, call, Arc::clone(host), Mode::Serve, None).await,
        }
    }

    async fn call_process(&self, site: &Site<'_>, call: &ToolCall, host: Arc<dyn Host>) -> Result<ToolOutcome, ToolError> {
        // An inner call rides on its caller's place: waiting for one could be waiting for itself.
        let _place = if call.context.depth > 1 {
            None
        } else {
            let _queued = call.clock.pause();
            self.processes.acquire().await.ok()
        };
        process_script::run(&self.settings.launcher, site, self.folder()?, call, host).await
    }

    /// Calls a function, or runs a program, in a warm worker. What a program prints is put into `printed`.
    pub(crate) async fn call_in_worker(
        &self,
        pool: &Pool,
        site: &Site<'_>,
        call: &ToolCall,
        host: Arc<dyn Host>,
        mode: Mode,
        mut printed: Option<&mut Vec<u8>>,
    ) -> Result<ToolOutcome, ToolError> {
        // Node cannot be forked: a call of its own means a process of its own.
        let language = site.plan.decision.language;
        let is_alone = call.tool.manifest.isolation == Some(Isolation::Call) && language != Language::Python;
        let is_for_programs = mode == Mode::Program;
        let key = WorkerKey::new(call, site.environment.map(|environment| environment.hash.clone()));
        // A worker that turns out to be gone before the call began costs nothing but another try.
        for _ in 0..3 {
            let lent = {
                let _queued = call.clock.pause();
                pool.lend(&key, call.context.depth > 1).await
            };
            let mut loan = match lent {
                Lent::Warm(loan) => *loan,
                Lent::Vacancy(vacancy) => {
                    let folder = self.folder()?;
                    let command = site.worker(call, &folder, mode)?;
                    let name = call.tool.name.as_str();
                    vacancy.fill(Worker::start(&self.settings.launcher, name, command, folder, is_for_programs).await?)
                }
            };
            let Some(worker) = loan.worker() else { continue };
            // The next one is started when this one is done with its program, unless there is already one to wait for.
            let is_late = is_for_programs && is_alone && !worker.has_become_ready();
            if is_late {
                self.make_ready(pool, &key, site, call);
            }
            match worker::run(worker, call, language, Arc::clone(&host), printed.as_deref_mut()).await {
                CallEnd::Over { outcome, reusable } => {
                    if reusable && !is_alone {
                        loan.put_back();
                    } else if is_for_programs && is_alone && !is_late {
                        self.make_ready(pool, &key, site, call);
                    }
                    return outcome;
                }
                CallEnd::NotBegun => {}
            }
        }
        Err(ToolError::internal(format!("`{}` was not run: its workers end as soon as they are started", call.tool.name)))
    }
}

/// What a call needs beside its plan.
pub(crate) struct Place {
    pub(crate) environment: Option<Environment>,
    pub(crate) stage: Option<Stage>,
    pub(crate) _environment_use: Option<EnvironmentUse>,
}

#[async_trait]
impl ToolRuntime for ScriptRuntime {
    async fn prepare(&self, draft: Draft, host: Arc<dyn Host>) -> Result<Prepared, ToolError> {
        prepare::run(self, draft, &*host).await
    }

    async fn call(&self, mut call: ToolCall, host: Arc<dyn Host>) -> Result<ToolOutcome, ToolError> {
        let plan = self.plans.get(&call.tool, &self.interpreters)?;
        make_data_directory(&mut call)?;
        let outcome = self.call_by_plan(&plan, &call, &host).await;
        match &outcome {
            // What was found may have gone meanwhile; the next call looks again.
            Err(error) if error.kind == ErrorKind::Unavailable => {
                self.interpreters.forget();
                self.plans.forget(&call.tool);
            }
            Err(error) if install::may_be_damage(error) && install::forget_if_damaged(self, &plan) => {
                self.pool.retire(&call.tool);
                // A module that was never loaded has done nothing, so that it may be tried again at once.
                if plan.decision.protocol == Protocol::Function {
                    return self.call_by_plan(&plan, &call, &host).await;
                }
            }
            _ => {}
        }
        outcome.map_err(|error| {
            let mut error = refusal::explain(error, &call, plan.decision.language, &self.settings.cache_directory);
            if error.hint.is_none() && error.kind == ErrorKind::Failed {
                let source = std::fs::read(&plan.entry).unwrap_or_default();
                error.hint = advice::without_argv(&call.tool.manifest, &plan.decision, &String::from_utf8_lossy(&source));
            }
            error
        })
    }

    fn retire(&self, tool: &Tool) {
        self.pool.retire(tool);
        self.plans.forget(tool);
    }

    async fn discard(&self, tool: &Tool, others: &[Arc<Tool>]) {
        discard::run(&self.settings.environments, &self.uses, tool, others).await;
    }
}

/// Makes the tool's data folder, and names it by its real path: a sandbox shows writable folders there only.
fn make_data_directory(call: &mut ToolCall) -> Result<(), ToolError> {
    let folder = &mut call.context.data_directory;
    if folder.as_os_str().is_empty() {
        return Ok(());
    }
    let real = folder.canonicalize().or_else(|_| std::fs::create_dir_all(&*folder).and_then(|()| folder.canonicalize()));
    *folder = real.map_err(|error| cannot_write("the tool's data folder", &error))?;
    Ok(())
}

pub(crate) fn cannot_write(what: &str, error: &std::io::Error) -> ToolError {
    ToolError::internal(format!("The server could not write {what}: {error}"))
        .with_hint("Look at free space and permissions of its data folder")
}
