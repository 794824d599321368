//! Programs in the machine's own python3 or node, confined: for what the embedded interpreters lack.
//!
//! The interpreter runs a kit that speaks the workers' protocol over its stdin and stdout, so that a run is served like any
//! other. It has a private working folder, no network, and nothing of the user's home.

use std::{
    collections::HashMap,
    ffi::OsString,
    path::Path,
    sync::{Mutex, PoisonError},
};

use skillz_environments::{Environment, InstallRequest, Language as EnvironmentLanguage, Program as Interpreter};
use skillz_process::{Child, Command, Exit, Keep, ProcessLimits, drain};
use skillz_sandbox::Policy;
use skillz_tool::{ErrorKind, Progress, ToolError};
use tempfile::TempDir;

use crate::{
    message::{Failure, FailureKind, PreparedProgram, ToWorker},
    outcome::failed,
    request::{CodeRequest, CodeSettings, Language},
    runner::Run,
    session::Ended,
    wire::Wire,
};

/// Values are turned into JSON as function scripts do it.
const PYTHON_KIT: &str = concat!(include_str!("../../../runtime-script/kits/_skillz_values.py"), "\n", include_str!("kit.py"));
const NODE_RUNNER: &str = include_str!("runner.mjs");
/// The same kit as embedded: what a program finds does not depend on where it runs.
const JAVASCRIPT_KIT: &str = include_str!("../worker/javascript/kit.js");
/// How much of stderr is kept, in bytes.
const STDERR_KEPT: usize = 8 << 10;
/// Real interpreters need this much beyond what their programs use, in bytes.
const INTERPRETER_MEMORY: u64 = 768 << 20;
/// Processes and threads of one program.
const MOST_PROCESSES: u32 = 64;

/// Why a program runs in a process.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum Trust {
    /// The caller asked for it, and gets all that the sandbox leaves.
    Asked,
    /// The embedded interpreter lacked something. What embedded programs cannot have, files and processes, stays refused.
    Fallback,
}

/// Environments of earlier programs, by language and dependencies: a second program with the same ones asks no index.
/// So their versions stay the same until the server ends.
#[derive(Default)]
pub(crate) struct Installed(Mutex<HashMap<(EnvironmentLanguage, Vec<String>), Environment>>);

impl Installed {
    fn get(&self, key: &(EnvironmentLanguage, Vec<String>)) -> Option<Environment> {
        self.0.lock().unwrap_or_else(PoisonError::into_inner).get(key).cloned()
    }

    fn keep(&self, key: (EnvironmentLanguage, Vec<String>), environment: Environment) {
        self.0.lock().unwrap_or_else(PoisonError::into_inner).insert(key, environment);
    }
}

/// Runs a prepared program.
pub(crate) async fn run(
    settings: &CodeSettings,
    installed: &Installed,
    request: &CodeRequest,
    run: &mut Run,
    prepared: PreparedProgram,
    trust: Trust,
) -> Result<Ended, ToolError> {
    let interpreter = find(settings, request.language)?;
    let environment = install(settings, installed, request, run, &interpreter).await?;
    let folder = scratch(settings)?;
    let command = match request.language {
        Language::Python => python(&interpreter, environment.as_ref(), folder.path(), trust),
        Language::JavaScript | Language::TypeScript => node(&interpreter, environment.as_ref(), folder.path(), &prepared, trust)?,
    };
    let mut program = run.program.clone();
    program.original = std::mem::replace(&mut program.code, prepared.text);
    program.lines = prepared.lines;
    program.budget_ms = u64::try_from(request.clock.remaining().as_millis()).unwrap_or(u64::MAX);
    let command = limited(command, request.limits.memory_bytes);
    let mut child = settings.launcher.spawn(command).await.map_err(|error| {
        ToolError::new(ErrorKind::Unavailable, format!("The program's process could not be started: {error}"))
    })?;
    let (Some(stdin), Some(stdout), Some(stderr)) = (child.stdin.take(), child.stdout.take(), child.stderr.take()) else {
        return Err(ToolError::internal("A process was started without its pipes"));
    };
    let stderr = tokio::spawn(drain(stderr, Keep::Tail(STDERR_KEPT), None));
    let mut wire = Wire::new(stdin, stdout);
    let ended = run.session.drive(&mut wire, &ToWorker::Run(program)).await;
    let ended = match ended {
        Ended::Lost(reason) => {
            let exit = child.wait().await.ok();
            let stderr = stderr.await.ok().and_then(Result::ok).unwrap_or_default();
            lost(exit, &String::from_utf8_lossy(&stderr.bytes), &reason)
        }
        ended => ended,
    };
    end(child).await;
    Ok(ended)
}

/// The process is killed before the folder that it may be writing to is removed.
async fn end(mut child: Child) {
    child.kill().await;
}

fn lost(exit: Option<Exit>, stderr: &str, reason: &str) -> Ended {
    let (kind, message) = match exit {
        Some(Exit::MemoryLimit) => (FailureKind::Memory, String::new()),
        Some(Exit::ProcessLimit) => {
            (FailureKind::Exception, format!("It started more than {MOST_PROCESSES} processes and threads"))
        }
        Some(Exit::Code(code)) => (FailureKind::Exception, format!("Its process ended with exit code {code}")),
        Some(Exit::Signal(signal)) => (FailureKind::Exception, format!("Its process was ended by signal {signal}")),
        None => (FailureKind::Exception, format!("Its process broke off ({reason})")),
    };
    let traceback = Some(stderr.trim().to_owned()).filter(|text| !text.is_empty());
    Ended::Failed(Failure { traceback, ..Failure::new(kind, message) })
}

fn find(settings: &CodeSettings, language: Language) -> Result<Interpreter, ToolError> {
    let name = if language == Language::Python { "python3" } else { "node" };
    (settings.find_program)(name).map_err(|reason| ToolError::new(ErrorKind::Unavailable, reason))
}

/// Installs what the program depends on; its clock stands still meanwhile.
async fn install(
    settings: &CodeSettings,
    installed: &Installed,
    request: &CodeRequest,
    run: &Run,
    interpreter: &Interpreter,
) -> Result<Option<Environment>, ToolError> {
    if request.dependencies.is_empty() {
        return Ok(None);
    }
    let Some(environments) = &settings.environments else {
        return Err(failed(ErrorKind::Unavailable, "This server installs no dependencies", "Leave `dependencies` out"));
    };
    let (language, installer) = match request.language {
        Language::Python => (EnvironmentLanguage::Python, "uv"),
        Language::JavaScript | Language::TypeScript => (EnvironmentLanguage::Node, "npm"),
    };
    let mut key = (language, request.dependencies.clone());
    key.1.sort_unstable();
    if let Some(environment) = installed.get(&key).filter(|environment| environments.is_whole(environment)) {
        return Ok(Some(environment));
    }
    let installer = (settings.find_program)(installer).ok();
    let _waiting = run.session.clock.pause();
    let host = std::sync::Arc::clone(&run.session.host);
    let told = std::sync::atomic::AtomicU32::new(0);
    let progress = move |message: &str| {
        let current = told.fetch_add(1, std::sync::atomic::Ordering::Relaxed) + 1;
        host.progress(Progress { current: f64::from(current), total: None, message: Some(message.to_owned()) });
    };
    let request = InstallRequest {
        language,
        base: &settings.scratch_directory,
        interpreter,
        installer: installer.as_ref(),
        dependencies: &request.dependencies,
        lock: None,
        install_scripts: false,
        progress: &progress,
    };
    let environment = environments.ensure(request).await.map_err(|error| ToolError::new(ErrorKind::Failed, error.to_string()))?;
    installed.keep(key, environment.clone());
    Ok(Some(environment))
}

/// A private folder for one run.
fn scratch(settings: &CodeSettings) -> Result<TempDir, ToolError> {
    let make = || {
        std::fs::create_dir_all(&settings.scratch_directory)?;
        tempfile::Builder::new().prefix("code-").tempdir_in(&settings.scratch_directory)
    };
    make().map_err(|error| {
        let place = settings.scratch_directory.display();
        ToolError::new(ErrorKind::Unavailable, format!("The program's working folder could not be made in `{place}`: {error}"))
    })
}

fn python(interpreter: &Interpreter, environment: Option<&Environment>, folder: &Path, trust: Trust) -> Command {
    let program = environment.and_then(|environment| environment.program.clone()).unwrap_or_else(|| interpreter.path.clone());
    let mode = if trust == Trust::Fallback { "strict" } else { "open" };
    // Isolated: neither the working folder nor the user's packages are on the path.
    let arguments = ["-I", "-X", "utf8", "-c", PYTHON_KIT, mode].map(OsString::from).to_vec();
    Command {
        program,
        arguments,
        environment: variables(folder),
        directory: folder.to_owned(),
        policy: Some(policy(interpreter, environment, folder)),
        limits: ProcessLimits::default(),
    }
}

fn node(
    interpreter: &Interpreter,
    environment: Option<&Environment>,
    folder: &Path,
    prepared: &PreparedProgram,
    trust: Trust,
) -> Result<Command, ToolError> {
    let program = format!("{}export default () => {}", prepared.header, prepared.text);
    let write = |name: &str, text: &str| std::fs::write(folder.join(name), text);
    let made = write("program.mjs", &program)
        .and_then(|()| write("runner.mjs", NODE_RUNNER))
        .and_then(|()| write("kit.cjs", &format!("module.exports = {JAVASCRIPT_KIT};")))
        .and_then(|()| {
            environment
                .map_or(Ok(()), |environment| link(&environment.directory.join("node_modules"), &folder.join("node_modules")))
        });
    made.map_err(|error| {
        ToolError::new(ErrorKind::Unavailable, format!("The program could not be written to its working folder: {error}"))
    })?;
    let mode = if trust == Trust::Fallback { "strict" } else { "open" };
    let arguments = vec![OsString::from("--preserve-symlinks"), folder.join("runner.mjs").into_os_string(), OsString::from(mode)];
    Ok(Command {
        program: interpreter.path.clone(),
        arguments,
        environment: variables(folder),
        directory: folder.to_owned(),
        policy: Some(policy(interpreter, environment, folder)),
        limits: ProcessLimits::default(),
    })
}

#[cfg(unix)]
fn link(target: &Path, place: &Path) -> std::io::Result<()> {
    std::os::unix::fs::symlink(target, place)
}

#[cfg(windows)]
fn link(target: &Path, place: &Path) -> std::io::Result<()> {
    std::os::windows::fs::symlink_dir(target, place)
}

fn policy(interpreter: &Interpreter, environment: Option<&Environment>, folder: &Path) -> Policy {
    let mut policy = Policy { read_write: vec![folder.to_owned()], ..Policy::default() };
    for path in &interpreter.visible {
        policy.allow_reading(path);
    }
    if let Some(environment) = environment {
        policy.allow_reading(&environment.directory);
    }
    policy
}

fn variables(folder: &Path) -> Vec<(OsString, OsString)> {
    let folder = folder.as_os_str().to_owned();
    let fixed = [("PATH", "/usr/local/bin:/usr/bin:/bin"), ("LANG", "C.UTF-8"), ("LC_ALL", "C.UTF-8")];
    let fixed = fixed.map(|(name, value)| (OsString::from(name), OsString::from(value)));
    let folders = ["HOME", "TMPDIR"].map(|name| (OsString::from(name), folder.clone()));
    fixed.into_iter().chain(folders).collect()
}

fn limited(command: Command, memory_bytes: u64) -> Command {
    let limits = ProcessLimits {
        memory_bytes: Some(memory_bytes.saturating_add(INTERPRETER_MEMORY)),
        max_processes: Some(MOST_PROCESSES),
        max_file_bytes: None,
    };
    Command { limits, ..command }
}
