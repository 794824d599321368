//! The composition root: settings in, a working engine or server out. The one place that names every concrete type.

use std::{collections::HashMap, path::PathBuf, sync::Arc, time::Duration};

use anyhow::Context as _;
use skillz_config::{Environment, Exposure, ForwardEnvironment, LimitCaps, PolicyMode, Resolved, Sandbox, Settings};
use skillz_engine::{Engine, EngineParts, EngineSettings, Policy};
use skillz_environments::{EnvironmentSettings, Environments, is_installer_variable};
use skillz_import::{ImportSettings, Importer};
use skillz_process::Launcher;
use skillz_registry::{Registry, RegistrySettings};
use skillz_runtime_script::{ScriptBounds, ScriptRuntime, ScriptSettings, SearchPath};
use skillz_runtime_upstream::{ImportedServers, UpstreamRuntime};
use skillz_runtime_wasm::{ToolchainSettings, WasmRuntime, WasmSettings};
use skillz_sandbox::SandboxKind;
use skillz_store::{HistorySettings, LibsqlHistory, LibsqlMemory, MemoryLocation};
use skillz_tool::{Limits, ToolKind, ToolRuntime};

use crate::{code::Programs, machine::ThisMachine, upstreams};

/// What the parts are for.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum Purpose {
    /// A server, which notices edits by hand if it is told to.
    Serve,
    /// One command, which is over before anybody edits anything.
    OneCommand,
}

/// A working engine, and what of its parts others need.
pub(crate) struct Parts {
    pub(crate) engine: Engine,
    launcher: Launcher,
    memory: Arc<LibsqlMemory>,
    old_memory: PathBuf,
}

/// Puts everything together. Starts no process and opens no database: each does so when it is first needed.
pub(crate) fn parts(resolved: &Resolved, purpose: Purpose) -> anyhow::Result<Parts> {
    let settings = &resolved.settings;
    let launcher = launcher(resolved)?;
    let memory = Arc::new(LibsqlMemory::new(memory_location(settings)));
    let history = Arc::new(LibsqlHistory::new(HistorySettings::new(settings.home.join("history.db"))));
    let watch = purpose == Purpose::Serve && settings.watch;
    let registry = Registry::open(RegistrySettings { tools_directory: settings.tools_dir.clone(), watch });
    let mut runtimes: HashMap<ToolKind, Arc<dyn ToolRuntime>> = HashMap::new();
    runtimes.insert(ToolKind::Wasm, Arc::new(WasmRuntime::new(wasm_settings(resolved, launcher.clone()))));
    let environments = environments(resolved, launcher.clone());
    let scripts = Arc::new(ScriptRuntime::new(script_settings(resolved, launcher.clone(), environments)));
    runtimes.insert(ToolKind::Script, Arc::clone(&scripts) as _);
    let importer = Importer::new(import_settings(resolved, launcher.clone()));
    let servers = ImportedServers::open(upstreams::settings(resolved, launcher.clone(), purpose));
    runtimes.insert(ToolKind::Mcp, Arc::new(UpstreamRuntime::new(servers.clone())));
    let programs = Programs::new(binary()?, launcher.clone(), scripts);
    let engine = Engine::new(EngineParts {
        registry,
        runtimes,
        memory: Arc::clone(&memory) as _,
        history,
        code: Some(Arc::new(programs)),
        upstreams: Some(Arc::new(servers)),
        settings: engine_settings(resolved),
    });
    engine.set_machine(Arc::new(ThisMachine::new(launcher.clone())));
    engine.set_fetcher(Arc::new(importer));
    Ok(Parts { engine, launcher, memory, old_memory: settings.tools_dir.join(".memory.db") })
}

impl Parts {
    /// Takes over what the tools of Skillz 0.8 remember, once.
    pub(crate) async fn take_over_old_memory(&self) {
        if !self.old_memory.exists() {
            return;
        }
        match self.memory.import_legacy(&self.old_memory).await {
            Ok(None) => {}
            Ok(Some(import)) => tracing::info!(?import, path = %self.old_memory.display(), "took over the memory of Skillz 0.8"),
            Err(error) => tracing::warn!(%error, path = %self.old_memory.display(), "the memory of Skillz 0.8 cannot be read"),
        }
    }

    /// What is left to do when all is over: nothing that was started outlives it, and the history is on disk.
    pub(crate) fn ending(&self) -> impl Future<Output = ()> + use<> {
        let (history, launcher) = (Arc::clone(self.engine.history()), self.launcher.clone());
        async move {
            history.flush().await;
            launcher.close().await;
        }
    }
}

/// Starts processes, confined as the operator wants it. This binary is its own helper.
pub(crate) fn launcher(resolved: &Resolved) -> anyhow::Result<Launcher> {
    let kind = match resolved.settings.sandbox {
        Sandbox::Auto => SandboxKind::Auto,
        Sandbox::Builtin => SandboxKind::Builtin,
        Sandbox::Bubblewrap => SandboxKind::Bubblewrap,
        Sandbox::Firejail => SandboxKind::Firejail,
        Sandbox::Nsjail => SandboxKind::Nsjail,
        Sandbox::None => SandboxKind::None,
    };
    Ok(Launcher::new(binary()?, kind))
}

fn binary() -> anyhow::Result<PathBuf> {
    std::env::current_exe().context("The path of this program is not known, so it cannot start tools")
}

/// Where programs are looked for.
pub(crate) fn search_path(environment: &Environment) -> SearchPath {
    SearchPath { path: environment.search_path(), home: environment.home(), variables: environment.for_tools() }
}

fn memory_location(settings: &Settings) -> MemoryLocation {
    match &settings.memory.url {
        None => MemoryLocation::File(settings.home.join("memory.db")),
        Some(url) => {
            let token = settings.memory.token.as_ref().map(|token| token.reveal().to_owned());
            MemoryLocation::Remote { url: url.clone(), token }
        }
    }
}

fn wasm_settings(resolved: &Resolved, launcher: Launcher) -> WasmSettings {
    let environment = &resolved.environment;
    WasmSettings {
        toolchain: ToolchainSettings {
            search_path: environment.search_path(),
            user_home: environment.home(),
            cargo_home: environment.path("CARGO_HOME"),
            rustup_home: environment.path("RUSTUP_HOME"),
            download_environment: environment.for_downloads(),
        },
        ..WasmSettings::new(resolved.settings.home.join("cache"), launcher)
    }
}

fn import_settings(resolved: &Resolved, launcher: Launcher) -> ImportSettings {
    let environment = &resolved.environment;
    let mut variables = environment.for_downloads();
    variables.extend(environment.path("SSH_AUTH_SOCK").map(|socket| ("SSH_AUTH_SOCK".into(), socket.into_os_string())));
    ImportSettings {
        scratch: resolved.settings.home.join("cache").join("imports"),
        launcher,
        search_path: environment.search_path(),
        user_home: environment.home(),
        working_directory: environment.current_directory().to_owned(),
        variables,
        github_api: resolved.settings.import.github_api.clone(),
    }
}

fn script_settings(resolved: &Resolved, launcher: Launcher, environments: Environments) -> ScriptSettings {
    let settings = &resolved.settings;
    let defaults = ScriptBounds::default();
    let bounds = ScriptBounds {
        worker_idle: Duration::from_secs(settings.workers.idle_seconds),
        workers: settings.workers.max.map_or(defaults.workers, |max| max as usize),
        ..defaults
    };
    ScriptSettings {
        environments,
        launcher,
        search: search_path(&resolved.environment),
        cache_directory: settings.home.join("cache"),
        bounds,
    }
}

/// The environments that scripts share.
pub(crate) fn environments(resolved: &Resolved, launcher: Launcher) -> Environments {
    let home = &resolved.settings.home;
    let variables = resolved.environment.for_tools().into_iter().filter(|(name, _)| is_installer_variable(name));
    Environments::new(EnvironmentSettings {
        directory: home.join("envs"),
        cache_directory: home.join("cache"),
        launcher,
        variables: variables.collect(),
    })
}

fn engine_settings(resolved: &Resolved) -> EngineSettings {
    let settings = &resolved.settings;
    EngineSettings {
        tools_directory: settings.tools_dir.clone(),
        roots: resolved.operator_roots(),
        environment: resolved.environment.for_tools(),
        forward_all: settings.forward_env == ForwardEnvironment::All,
        network_for_all: settings.sandbox_network,
        policy: Policy {
            network: policy_mode(settings.policy.network),
            folders: settings.policy.fs.map(policy_mode),
            environment: policy_mode(settings.policy.env),
            servers: settings.policy.servers.map(policy_mode),
        },
        caps: caps(&settings.limits),
        exposure: match settings.expose {
            Exposure::Auto => skillz_engine::Exposure::Auto,
            Exposure::All => skillz_engine::Exposure::All,
            Exposure::Pinned => skillz_engine::Exposure::Pinned,
        },
        ..EngineSettings::new(settings.home.clone())
    }
}

fn policy_mode(mode: PolicyMode) -> skillz_engine::PolicyMode {
    match mode {
        PolicyMode::Deny => skillz_engine::PolicyMode::Deny,
        PolicyMode::Ask => skillz_engine::PolicyMode::Ask,
        PolicyMode::Declared => skillz_engine::PolicyMode::Declared,
    }
}

fn caps(caps: &LimitCaps) -> Limits {
    Limits {
        timeout_ms: caps.timeout_ms,
        memory_mb: caps.memory_mb,
        max_output_bytes: caps.max_output_bytes,
        max_processes: caps.max_processes,
        max_result_bytes: caps.max_result_bytes,
        deterministic: false,
    }
}
