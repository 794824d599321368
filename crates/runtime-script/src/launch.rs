//! Puts the command of a script together: program, arguments, a clean environment, and what the sandbox shows.

use std::{ffi::OsString, path::PathBuf};

use serde::Serialize;
use skillz_environments::Environment;
use skillz_json::{Map, Value, json};
use skillz_process::{Command, HostLine, ProcessLimits};
use skillz_sandbox::Policy;
use skillz_tool::{ErrorKind, FolderMode, NetworkPermission, Protocol, ToolCall, ToolError};

use crate::{argv, folder::WorkingFolder, kit::Kit, language::Language, message, plan::Plan, stage::Stage};

/// `SKILLZ_ARGUMENTS` is set for arguments up to this size; the kernel bounds the environment.
const ARGUMENTS_LENGTH: usize = 64_000;
/// Where programs are looked for inside.
const SYSTEM_PATH: &str = "/usr/local/sbin:/usr/local/bin:/usr/sbin:/usr/bin:/sbin:/bin";
/// Processes that a worker needs for itself beside those of the tool: parent, two spares, and room to start the next.
const WORKER_PROCESSES: u32 = 5;

/// Makes the standard streams of node its channel, at descriptors 3 and 4; what a function prints goes to stderr.
const FUNCTION_DESCRIPTORS: &str = "exec \"$@\" 3<&0 4>&1 0</dev/null 1>&2";

/// Keeps interpreters from taking modules or settings from their working folder, where it is not theirs.
const INDIFFERENT: [(&str, &str); 4] = [
    ("LUA_INIT", "for _, k in ipairs{'path', 'cpath'} do package[k] = package[k]:gsub(';?%./[^;]*', '') end"),
    ("PERL_USE_UNSAFE_INC", "0"),
    ("R_ENVIRON_USER", "/dev/null"),
    ("R_PROFILE_USER", "/dev/null"),
];

/// What a worker does.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize)]
#[serde(rename_all = "lowercase")]
pub(crate) enum Mode {
    /// Serves calls of a function.
    Serve,
    /// Reports what a function looks like, and ends.
    Inspect,
    /// Runs programs of `execute_code`.
    Program,
}

/// Everything that was found out or made before a script can be started.
pub(crate) struct Site<'a> {
    pub(crate) plan: &'a Plan,
    pub(crate) kit: &'a Kit,
    pub(crate) environment: Option<&'a Environment>,
    pub(crate) stage: Option<&'a Stage>,
    /// Whether temporary folders and shared memory belong to the process alone.
    pub(crate) is_confined: bool,
}

impl Site<'_> {
    /// The command of a process script.
    pub(crate) fn process(&self, call: &ToolCall, folder: &WorkingFolder) -> Result<Command, ToolError> {
        let mut command = self.command(call, folder)?;
        self.add_interpreter_arguments(&mut command);
        if let Some(argv) = &call.tool.manifest.argv {
            let line = argv::expand(call.tool.name.as_str(), argv, &call.arguments)?;
            command.arguments.extend(line.into_iter().map(OsString::from));
        }
        if cfg!(target_os = "linux") {
            command.environment.push(host_line());
        }
        if let Some(root) = working_root(call)? {
            command.directory = root;
            command.environment.extend(INDIFFERENT.map(|(name, value)| (name.into(), value.into())));
        }
        let context = context(call, folder);
        let arguments = Value::Object(call.arguments.clone()).to_string();
        let mut add = |name: &str, value: String| {
            if value.len() < ARGUMENTS_LENGTH && !value.contains('\0') {
                command.environment.push((name.into(), value.into()));
            }
        };
        add("SKILLZ_ARGUMENTS", arguments);
        add("SKILLZ_CONTEXT", without_environment(context).to_string());
        Ok(command)
    }

    /// The command of a worker.
    pub(crate) fn worker(&self, call: &ToolCall, folder: &WorkingFolder, mode: Mode) -> Result<Command, ToolError> {
        let mut command = self.command(call, folder)?;
        command.limits.max_processes = command.limits.max_processes.map(|most| most.saturating_add(WORKER_PROCESSES));
        let isolation = call.tool.manifest.isolation;
        if let Some(root) = working_root(call)? {
            command.directory = root;
        }
        let packages = self.environment.map(|environment| environment.directory.join("node_modules"));
        let options = json!({
            "entry": self.entry(), "folder": folder.path(), "packages": packages,
            "mode": mode, "isolation": isolation, "is_confined": self.is_confined,
        });
        let options = OsString::from(options.to_string());
        self.add_interpreter_arguments(&mut command);
        command.arguments.pop();
        if mode == Mode::Program {
            command.environment.push(host_line());
        }
        if self.plan.decision.language == Language::Python {
            command.arguments.extend([self.kit.python_worker().into_os_string(), options]);
            return Ok(command);
        }
        command.arguments.extend([self.kit.node_worker().into_os_string(), options]);
        if mode != Mode::Program {
            // Node cannot move its own descriptors: the shell does it, and becomes node.
            let program = std::mem::replace(&mut command.program, PathBuf::from("/bin/sh"));
            let shell = ["-c".into(), FUNCTION_DESCRIPTORS.into(), "sh".into(), program.into_os_string()];
            command.arguments.splice(0..0, shell);
        }
        Ok(command)
    }

    /// The script as the interpreter sees it.
    fn entry(&self) -> PathBuf {
        self.stage.map_or_else(|| self.plan.entry.clone(), |stage| stage.entry.clone())
    }

    fn command(&self, call: &ToolCall, folder: &WorkingFolder) -> Result<Command, ToolError> {
        let program = match (self.environment.and_then(|environment| environment.program.clone()), &self.plan.interpreter) {
            (Some(program), _) => program,
            (None, Some(interpreter)) => interpreter.program.clone(),
            (None, None) => self.entry(),
        };
        Ok(Command {
            program,
            arguments: Vec::new(),
            environment: self.environment_variables(call, folder),
            directory: folder.path().to_path_buf(),
            policy: Some(self.policy(call, folder)?),
            limits: ProcessLimits {
                memory_bytes: Some(call.limits.memory_bytes),
                max_processes: Some(call.limits.max_processes),
                max_file_bytes: None,
            },
        })
    }

    /// The interpreter's own arguments, what the language needs, and the script.
    fn add_interpreter_arguments(&self, command: &mut Command) {
        let Some(interpreter) = &self.plan.interpreter else { return };
        let arguments = &mut command.arguments;
        arguments.extend(interpreter.arguments.iter().map(OsString::from));
        let is_process = self.plan.decision.protocol != Protocol::Function;
        let global = self.kit.global().into_os_string();
        match interpreter.name.as_str() {
            "deno" => {
                if interpreter.arguments.is_empty() {
                    let flags = [
                        "run",
                        "--quiet",
                        "--no-prompt",
                        "--allow-all",
                        "--no-check",
                        "--cached-only",
                        "--node-modules-dir=manual",
                    ];
                    arguments.extend(flags.map(OsString::from));
                }
                if is_process {
                    arguments.extend(["--require".into(), global]);
                }
            }
            "node" | "nodejs" => {
                arguments.push("--no-warnings".into());
                if self.plan.decision.language == Language::TypeScript {
                    arguments.push("--enable-source-maps".into());
                }
                if is_process {
                    arguments.extend(["--require".into(), global]);
                }
            }
            "bun" if is_process => arguments.extend(["--preload".into(), global]),
            _ => {}
        }
        arguments.push(self.entry().into_os_string());
    }

    fn environment_variables(&self, call: &ToolCall, folder: &WorkingFolder) -> Vec<(OsString, OsString)> {
        let mut path = OsString::new();
        let own = self.environment.and_then(|environment| environment.program.as_ref()?.parent().map(PathBuf::from));
        let folders = self.plan.interpreter.iter().flat_map(|interpreter| interpreter.folders.iter().cloned());
        for place in own.into_iter().chain(folders) {
            path.push(place);
            path.push(":");
        }
        path.push(SYSTEM_PATH);
        let home = folder.path().as_os_str();
        let mut variables: Vec<(OsString, OsString)> = vec![
            ("PATH".into(), path),
            ("HOME".into(), home.into()),
            ("TMPDIR".into(), home.into()),
            ("LANG".into(), "C.UTF-8".into()),
            ("LC_ALL".into(), "C.UTF-8".into()),
        ];
        match self.plan.decision.language {
            Language::Python => variables.extend([
                ("PYTHONPATH".into(), self.kit.python().into_os_string()),
                // A request that is printed and not flushed would be waited for from both sides.
                ("PYTHONUNBUFFERED".into(), "1".into()),
                ("PYTHONIOENCODING".into(), "utf-8:surrogateescape".into()),
                ("PYTHONUTF8".into(), "1".into()),
                ("PYTHONDONTWRITEBYTECODE".into(), "1".into()),
                ("PYTHONNOUSERSITE".into(), "1".into()),
            ]),
            Language::JavaScript | Language::TypeScript => {
                let mut modules = self.kit.node_modules().into_os_string();
                if let Some(environment) = self.environment {
                    modules.push(":");
                    modules.push(environment.directory.join("node_modules"));
                }
                variables.push(("NODE_PATH".into(), modules));
                variables.push(("NO_COLOR".into(), "1".into()));
            }
            Language::Other => {}
        }
        // Granted variables come last, and win.
        for variable in &call.grants.environment {
            let name = OsString::from(&variable.name);
            variables.retain(|(known, _)| *known != name);
            variables.push((name, OsString::from(&variable.value)));
        }
        variables
    }

    fn policy(&self, call: &ToolCall, folder: &WorkingFolder) -> Result<Policy, ToolError> {
        let network = match &call.grants.network {
            NetworkPermission::All(all) => *all,
            NetworkPermission::Hosts(hosts) if hosts.is_empty() => false,
            NetworkPermission::Hosts(_) => return Err(host_lists_are_not_there(call.tool.name.as_str())),
        };
        let mut policy = Policy { network, ..Policy::default() };
        policy.allow_reading(&call.tool.directory);
        policy.allow_reading(self.kit.root());
        self.stage.iter().for_each(|stage| policy.allow_reading(&stage.folder));
        self.environment.iter().for_each(|environment| policy.allow_reading(&environment.directory));
        let visible = self.plan.interpreter.iter().flat_map(|interpreter| interpreter.visible.iter());
        visible.for_each(|place| policy.allow_reading(place));
        policy.read_write.push(folder.path().to_path_buf());
        if !call.context.data_directory.as_os_str().is_empty() {
            policy.read_write.push(call.context.data_directory.clone());
        }
        for grant in &call.grants.folders {
            match grant.mode {
                FolderMode::Ro => policy.read_only.push(grant.path.clone()),
                FolderMode::Rw => policy.read_write.push(grant.path.clone()),
            }
        }
        Ok(policy)
    }
}

/// Where a kit finds the line to its host.
fn host_line() -> (OsString, OsString) {
    ("SKILLZ_HOST_FD".into(), format!("{},{}", HostLine::READ, HostLine::WRITE).into())
}

/// The folder that the call starts in where it is not a private one.
fn working_root(call: &ToolCall) -> Result<Option<PathBuf>, ToolError> {
    if call.tool.manifest.working_directory.is_none() {
        return Ok(None);
    }
    let name = &call.tool.name;
    let Some(root) = call.context.roots.first() else {
        return Err(ToolError::new(ErrorKind::Unavailable, format!("`{name}` starts in the first root, and there is none"))
            .with_hint("Open a workspace in the client, or set `SKILLZ_ROOTS`"));
    };
    let root = root.canonicalize().unwrap_or_else(|_| root.clone());
    if call.grants.folders.iter().any(|grant| root.starts_with(&grant.path)) {
        return Ok(Some(root));
    }
    Err(ToolError::new(ErrorKind::Denied, format!("`{name}` starts in the first root, which it may not see"))
        .with_hint("Publish it with `permissions: {\"fs\": [{\"path\": \"$ROOT\"}]}`"))
}

/// The error for `permissions.network` with a list of hosts.
pub(crate) fn host_lists_are_not_there(name: &str) -> ToolError {
    let message = format!("`{name}` asks for some hosts of the network only, which cannot be enforced for scripts yet");
    ToolError::new(ErrorKind::Unavailable, message)
        .with_hint("Use `\"network\": true`, or write it as a WASM tool, for which lists of hosts work")
}

/// The one request that every call is.
#[derive(Serialize)]
struct Execute<'a> {
    jsonrpc: &'static str,
    id: u64,
    method: &'static str,
    params: Parameters<'a>,
}

#[derive(Serialize)]
struct Parameters<'a> {
    arguments: &'a Map<String, Value>,
    context: Value,
}

/// The line of the request; the arguments are written as they are, once.
pub(crate) fn execute_line(call: &ToolCall, folder: &WorkingFolder) -> Vec<u8> {
    let params = Parameters { arguments: &call.arguments, context: context(call, folder) };
    message::line(&Execute { jsonrpc: "2.0", id: message::CALL_ID, method: "execute", params })
}

fn context(call: &ToolCall, folder: &WorkingFolder) -> Value {
    let context = &call.context;
    let variables: skillz_json::Map<String, Value> =
        call.grants.environment.iter().map(|variable| (variable.name.clone(), json!(variable.value))).collect();
    let meta = context.progress_token.as_ref().map_or_else(|| json!({}), |token| json!({"progressToken": token}));
    json!({
        "roots": context.roots,
        "working_directory": working_root(call).ok().flatten().as_deref().unwrap_or(folder.path()),
        "data_dir": context.data_directory,
        "tool_name": call.tool.name,
        "tools_dir": context.tools_directory,
        "environment": variables,
        "capabilities": {
            "sampling": context.capabilities.sampling, "elicitation": context.capabilities.elicitation,
            "memory": true, "resources": true, "tools": true,
        },
        "_meta": meta,
    })
}

/// The variables are in the environment already, and need not be there twice.
fn without_environment(mut context: Value) -> Value {
    if let Some(context) = context.as_object_mut() {
        context.shift_remove("environment");
    }
    context
}
