//! From a draft to a script that can be called: file written, interpreter found, dependencies installed, signature read.

use std::{fs, path::Path, sync::Arc, time::Duration};

use serde::Deserialize;
use skillz_json::Value;
use skillz_process::{Command, ProcessLimits};
use skillz_sandbox::Policy;
use skillz_tool::{
    CallClock, CallContext, Draft, EffectiveLimits, ErrorKind, Grants, Host, Manifest, NetworkPermission, Prepared, Protocol,
    SourceCode, Tool, ToolCall, ToolError, ToolName, Version,
};

use crate::{
    argv, failure, install,
    language::Language,
    launch::{self, Mode, Site},
    lines::LineReader,
    log::Tail,
    message::{self, Line},
    plan::{self, Plan},
    process_script::expiry,
    runtime::{Place, ScriptRuntime, cannot_write},
    source::{self, Origin},
    stage, worker,
};

/// Longest time that loading a module may take at registration.
const LOAD_TIME: Duration = Duration::from_mins(1);
/// Longest time in which an interpreter tells its version.
const VERSION_TIME: Duration = Duration::from_secs(10);
/// Largest source, in bytes.
const SOURCE_LENGTH: usize = 4 << 20;

/// What loading a module told.
#[derive(Debug, Default, Deserialize)]
struct Inspection {
    #[serde(default)]
    input_schema: Option<Value>,
    #[serde(default)]
    output_schema: Option<Value>,
    #[serde(default)]
    failure: Option<Value>,
}

/// Makes a draft callable.
pub(crate) async fn run(runtime: &ScriptRuntime, draft: Draft, host: &dyn Host) -> Result<Prepared, ToolError> {
    let Draft { mut manifest, source, directory } = draft;
    if matches!(&manifest.permissions.network, NetworkPermission::Hosts(hosts) if !hosts.is_empty()) {
        return Err(launch::host_lists_are_not_there(&manifest.name));
    }
    let (size_bytes, mut notes) = write_source(&mut manifest, source, &directory)?;
    let entry = Tool::new(name(&manifest)?, Version::FIRST, directory.clone(), manifest.clone(), String::new()).source_path()?;
    let plan = plan::make(&manifest, entry, &runtime.interpreters)?;
    check_start(&manifest, plan.decision.protocol)?;
    check_version(runtime, &plan).await?;
    manifest.protocol = Some(plan.decision.protocol);
    if manifest.interpreter.is_none() && !plan.decision.command.is_empty() {
        manifest.interpreter = Some(plan.decision.command.join(" "));
    }
    install::check_version(runtime, &plan, &manifest).await?;
    let lock = directory.join(install::LOCK_FILE);
    match install::ensure(runtime, &plan, &manifest, &directory, host).await? {
        Some((environment, _)) => fs::write(&lock, &environment.lock).map_err(|error| cannot_write("the lock", &error))?,
        // That of an earlier version, which had some.
        None => drop(fs::remove_file(&lock)),
    }
    let (mut input_schema, mut output_schema) = (None, None);
    if plan.decision.protocol == Protocol::Function {
        let inspection = inspect(runtime, &plan, &manifest, &directory, host).await?;
        if let Some(failure) = inspection.failure {
            let error = worker::load_failure(&manifest.name, &failure);
            if !may_fail_without_grants(&manifest, &error) {
                return Err(error);
            }
            notes.push(format!(
                "The script could not be loaded without its permissions, so that only its text was looked at: {}",
                error.message
            ));
        }
        input_schema = inspection.input_schema.or_else(|| plan.decision.input_schema.clone());
        output_schema = inspection.output_schema;
    }
    manifest.infer(input_schema, output_schema);
    Ok(Prepared { manifest, size_bytes, notes })
}

/// Checks what the manifest says of how a program starts.
fn check_start(manifest: &Manifest, protocol: Protocol) -> Result<(), ToolError> {
    let name = &manifest.name;
    if let Some(argv) = &manifest.argv {
        argv::check(name, argv)?;
    }
    if manifest.argv.is_some() && protocol == Protocol::Function {
        return Err(ToolError::invalid(format!("`{name}` is a function, which has no `argv`"))
            .with_hint("Leave `argv` out, or pass `protocol: \"json\"` to have the file run as a program"));
    }
    match manifest.working_directory.as_deref() {
        None => Ok(()),
        Some("$ROOT") if manifest.permissions.fs.iter().any(|folder| folder.path == "$ROOT") => Ok(()),
        Some("$ROOT") => Err(ToolError::invalid(format!("`{name}` asks to start in `$ROOT` without the permission to see it"))
            .with_hint("Add `permissions: {\"fs\": [{\"path\": \"$ROOT\"}]}`")),
        Some(other) => Err(ToolError::invalid(format!("The `working_directory` `{other}` of `{name}` is none"))
            .with_hint("Give `$ROOT`, the first root, or leave it out for a private, empty folder")),
    }
}

/// The oldest node that counts as one.
const OLDEST_NODE: u32 = 18;

/// Refuses a node that is too old. What does not tell its version is taken as it is.
pub(crate) async fn check_version(runtime: &ScriptRuntime, plan: &Plan) -> Result<(), ToolError> {
    let Some(node) = plan.interpreter.as_ref().filter(|interpreter| matches!(interpreter.name.as_str(), "node" | "nodejs"))
    else {
        return Ok(());
    };
    let mut policy = Policy::default();
    node.visible.iter().for_each(|place| policy.allow_reading(place));
    let command = Command {
        program: node.program.clone(),
        arguments: vec!["--version".into()],
        environment: Vec::new(),
        directory: "/".into(),
        policy: Some(policy),
        limits: ProcessLimits::default(),
    };
    let Ok(mut child) = runtime.settings.launcher.spawn(command).await else { return Ok(()) };
    let mut output = LineReader::new(child.stdout.take());
    let told = tokio::time::timeout(VERSION_TIME, async { while output.fill().await > 0 {} }).await;
    let line = told.ok().and_then(|()| output.take_line()).map(String::from_utf8_lossy).unwrap_or_default();
    let version = line.trim().trim_start_matches('v');
    match version.split('.').next().and_then(|major| major.parse::<u32>().ok()) {
        Some(major) if major < OLDEST_NODE => Err(ToolError::new(
            ErrorKind::Unavailable,
            format!("`{}` is node {version}, which is too old: version {OLDEST_NODE} or newer is wanted", node.program.display()),
        )
        .with_hint("Install a newer node, for example with nvm, and register it again")),
        _ => Ok(()),
    }
}

/// Whether a module that asks for permissions may have failed for want of them: here it is loaded without any.
fn may_fail_without_grants(manifest: &Manifest, error: &ToolError) -> bool {
    let permissions = &manifest.permissions;
    let asks = !permissions.network.is_none()
        || !permissions.fs.is_empty()
        || !permissions.env.is_empty()
        || !manifest.requires_services.is_empty();
    let is_broken = ["SyntaxError", "IndentationError", "ModuleNotFoundError", "Cannot find", "starts threads"]
        .iter()
        .any(|word| error.message.contains(word));
    asks && !is_broken
}

/// Writes the source into the folder, and names it in the manifest. Gives its size, and what to tell of it.
fn write_source(manifest: &mut Manifest, source: SourceCode, directory: &Path) -> Result<(u64, Vec<String>), ToolError> {
    match source {
        SourceCode::Text(text) => {
            if text.len() > SOURCE_LENGTH {
                return Err(ToolError::invalid(format!("The code has {} bytes; at most {SOURCE_LENGTH} are taken", text.len())));
            }
            if text.trim().is_empty() {
                return Err(ToolError::invalid("The `code` is empty"));
            }
            let decision = source::decide(manifest, text.as_bytes(), Origin::New)?;
            source::advice::check(&manifest.name, &decision, &text)?;
            // A carriage return is part of a word to a shell, and of the interpreter's name in a `#!` line.
            let text = if decision.language == Language::Other { text.replace("\r\n", "\n") } else { text };
            let notes = source::advice::notes(manifest, &decision, &text);
            manifest.protocol = Some(decision.protocol);
            manifest.entry_file = Some(decision.entry_file);
            let tool = Tool::new(name(manifest)?, Version::FIRST, directory.to_path_buf(), manifest.clone(), String::new());
            let path = tool.source_path()?;
            fs::write(&path, &text).map_err(|error| cannot_write("the source", &error))?;
            if text.starts_with("#!") {
                make_executable(&path).map_err(|error| cannot_write("the source", &error))?;
            }
            Ok((text.len() as u64, notes))
        }
        SourceCode::Folder => {
            let tool = Tool::new(name(manifest)?, Version::FIRST, directory.to_path_buf(), manifest.clone(), String::new());
            let path = tool.source_path()?;
            let metadata = fs::metadata(&path).map_err(|error| {
                ToolError::invalid(format!("The `entry_file` of `{}` cannot be read: {error}", manifest.name))
            })?;
            Ok((metadata.len(), Vec::new()))
        }
        SourceCode::Wat(_) | SourceCode::Module(_) => {
            Err(ToolError::invalid(format!("`{}` is a script, which is made of source text, not of a module", manifest.name)))
        }
    }
}

fn make_executable(path: &Path) -> std::io::Result<()> {
    use std::os::unix::fs::PermissionsExt;
    fs::set_permissions(path, fs::Permissions::from_mode(0o755))
}

fn name(manifest: &Manifest) -> Result<ToolName, ToolError> {
    ToolName::for_existing(&manifest.name).map_err(|error| ToolError::invalid(error.to_string()))
}

/// Loads the module in the sandbox, without any permission, and reads what it tells of itself.
async fn inspect(
    runtime: &ScriptRuntime,
    plan: &Plan,
    manifest: &Manifest,
    directory: &Path,
    host: &dyn Host,
) -> Result<Inspection, ToolError> {
    // Each registration has a stage of its own: sources in the staging folder change under the same name.
    let hash = format!("draft {:?}", std::time::SystemTime::now());
    // Without its permissions it cannot start in a root.
    let manifest = Manifest { working_directory: None, ..manifest.clone() };
    let tool = Tool::new(name(&manifest)?, Version::FIRST, directory.to_path_buf(), manifest.clone(), hash);
    let Place { environment, stage, .. } = runtime.place(plan, &tool, host).await?;
    let (installed, staged) = (environment.as_ref(), stage.as_ref());
    let site = Site { plan, kit: &runtime.kit, environment: installed, stage: staged, is_confined: runtime.is_confined() };
    let folder = runtime.folder()?;
    let limits = EffectiveLimits { timeout: LOAD_TIME, ..EffectiveLimits::with_memory_mb(1024) }.asked(&manifest.limits);
    let call = ToolCall {
        tool: Arc::new(tool),
        arguments: skillz_json::Map::new(),
        clock: CallClock::start(LOAD_TIME),
        limits,
        grants: Grants::default(),
        context: CallContext::default(),
    };
    let inspection = match plan.decision.language {
        Language::Python => load(runtime, &site, &call, &folder, Mode::Inspect).await,
        _ => load(runtime, &site, &call, &folder, Mode::Serve).await,
    };
    if let Some(stage) = &stage {
        stage::remove(stage);
    }
    inspection
}

async fn load(
    runtime: &ScriptRuntime,
    site: &Site<'_>,
    call: &ToolCall,
    folder: &crate::folder::WorkingFolder,
    mode: Mode,
) -> Result<Inspection, ToolError> {
    let name = call.tool.name.as_str();
    let command = site.worker(call, folder, mode)?;
    let spawned = runtime.settings.launcher.spawn(command).await;
    let mut child = spawned.map_err(|error| failure::not_started(name, error))?;
    // Kept open: a worker whose stdin ends, ends.
    let _requests = child.stdin.take();
    let mut replies = LineReader::new(child.stdout.take());
    let mut errors = LineReader::new(child.stderr.take());
    let mut tail = Tail::default();
    let mut read = 0;
    let mut expired = std::pin::pin!(expiry(&call.clock));
    loop {
        while let Some(line) = replies.take_line() {
            let Line::Notification { method, params } = message::parse(line) else { continue };
            match method.as_str() {
                "ready" => return Ok(Inspection::default()),
                "failed" => return Ok(Inspection { failure: Some(params), ..Inspection::default() }),
                "inspected" => {
                    return skillz_json::from_value(params)
                        .map_err(|error| ToolError::internal(format!("The worker's report is broken: {error}")));
                }
                _ => {}
            }
        }
        while let Some(line) = errors.take_line() {
            tail.add(line);
        }
        tokio::select! {
            () = &mut expired => {
                return Err(ToolError::failed(format!("The script of `{name}` took more than {} s to load", LOAD_TIME.as_secs()))
                    .with_output(tail.text())
                    .with_hint("Do the work in `run`, and only imports and definitions at top level"));
            }
            count = replies.fill(), if !replies.is_done() => read += count,
            count = errors.fill(), if !errors.is_done() => read += count,
            exit = child.wait(), if replies.is_done() => {
                let exit = exit.unwrap_or(skillz_process::Exit::Signal(9));
                while errors.fill().await > 0 {}
                while let Some(line) = errors.take_line() {
                    tail.add(line);
                }
                let error = failure::ended(name, exit, &call.limits);
                return Err(ToolError { message: format!("The script of `{name}` could not be loaded: {}", error.message), ..error }
                    .with_output(tail.text()));
            }
        }
        if read as u64 > call.limits.max_output_bytes {
            return Err(failure::too_much_output(name, &call.limits));
        }
    }
}
