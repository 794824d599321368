//! A server of its own, for what cannot be tried in the test's process: being killed, and being another user.
//!
//! It is this test binary again, told by its first argument to run commands that come as lines of JSON.

use std::{
    fs,
    io::{BufRead, BufReader, Write},
    os::unix::{fs::PermissionsExt, process::CommandExt},
    path::Path,
    process::{Child, ChildStdin, ChildStdout, Command as StdCommand, Stdio},
};

use serde_json::{Value, json};
use skillz_process::{Launcher, ProcessLimits};
use skillz_sandbox::SandboxKind;
use tempfile::TempDir;

use crate::support::{count_descriptors, descendants, launcher_with, output_and_exit, shell};

/// The argument that makes this binary such a server.
const ARGUMENT: &str = "__test-server";

/// A plain user, who owns nothing and has no name.
pub(crate) const PLAIN_USER: u32 = 12_345;

/// A running server.
pub(crate) struct Server {
    process: Child,
    stdin: ChildStdin,
    stdout: BufReader<ChildStdout>,
    /// The folder of its program, if it has its own.
    program: Option<TempDir>,
}

impl Server {
    pub(crate) fn start() -> Self {
        Self::start_from(StdCommand::new(std::env::current_exe().expect("it runs")))
    }

    /// A server of a plain user; of this one if it is plain already.
    pub(crate) fn start_as_plain_user() -> Self {
        if !rustix::process::geteuid().is_root() {
            return Self::start();
        }
        let folder = plain_copy();
        let mut command = StdCommand::new(folder.path().join("server"));
        command.uid(PLAIN_USER).gid(PLAIN_USER);
        let mut server = Self::start_from(command);
        server.program = Some(folder);
        server
    }

    /// A server of the only user of a small container, after `preparation`: a line of shell with `folder` as `$1`.
    pub(crate) fn start_in_container(preparation: &str, folder: &Path) -> Self {
        Self::start_apart(&["--user", "--map-root-user", "--mount"], preparation, folder)
    }

    /// A server with mounts of its own, after `preparation`: a line of shell with `folder` as `$1`.
    pub(crate) fn start_with_mounts(preparation: &str, folder: &Path) -> Self {
        Self::start_apart(&["--mount"], preparation, folder)
    }

    fn start_apart(namespaces: &[&str], preparation: &str, folder: &Path) -> Self {
        let script = format!("{preparation} && exec \"$0\" {ARGUMENT}");
        let mut command = StdCommand::new("unshare");
        command.args(namespaces).args(["bash", "-c", &script]);
        command.arg(std::env::current_exe().expect("it runs")).arg(folder);
        Self::start_from(command)
    }

    fn start_from(mut command: StdCommand) -> Self {
        let mut process = command
            .arg(ARGUMENT)
            .env("HARMLESS_SECRET", "of the server")
            .stdin(Stdio::piped())
            .stdout(Stdio::piped())
            .spawn()
            .expect("the server starts");
        let (stdin, stdout) = (process.stdin.take().expect("piped"), process.stdout.take().expect("piped"));
        Self { process, stdin, stdout: BufReader::new(stdout), program: None }
    }

    pub(crate) fn pid(&self) -> i32 {
        i32::try_from(self.process.id()).expect("it is small")
    }

    /// Asks and waits for the answer.
    pub(crate) fn ask(&mut self, request: &Value) -> Value {
        writeln!(self.stdin, "{request}").expect("the server listens");
        let mut line = String::new();
        self.stdout.read_line(&mut line).expect("the server answers");
        serde_json::from_str(&line).unwrap_or_else(|error| panic!("no answer to {request}: {error}"))
    }

    /// Runs a line of shell; gives exit and output.
    pub(crate) fn run(&mut self, sandbox: SandboxKind, script: &str, more: &Value) -> (String, String) {
        let mut request = json!({"do": "run", "sandbox": sandbox, "script": script});
        let object = request.as_object_mut().expect("an object");
        object.extend(more.as_object().cloned().unwrap_or_default());
        let answer = self.ask(&request);
        let text = |name: &str| answer[name].as_str().unwrap_or_default().to_owned();
        (text("exit"), text("output"))
    }

    pub(crate) fn kill(&mut self) {
        self.process.kill().expect("it is ours");
        self.process.wait().expect("it is ours");
    }
}

impl Drop for Server {
    fn drop(&mut self) {
        // It may be dead already.
        let _ = self.process.kill();
        let _ = self.process.wait();
        // Its copy of the program may be needed by its helper until now.
        self.program = None;
    }
}

/// A copy of this binary that everybody may execute: the build folder may be private.
fn plain_copy() -> TempDir {
    let open = |path: &Path| fs::set_permissions(path, fs::Permissions::from_mode(0o755)).expect("opened");
    let folder = tempfile::tempdir().expect("a folder");
    let copy = folder.path().join("server");
    fs::copy(std::env::current_exe().expect("it runs"), &copy).expect("copied");
    open(folder.path());
    open(&copy);
    folder
}

/// Becomes a server if this process was started as one.
pub(crate) fn run_if_asked() {
    if std::env::args().nth(1).as_deref() != Some(ARGUMENT) {
        return;
    }
    let runtime = tokio::runtime::Builder::new_current_thread().enable_all().build().expect("a runtime");
    runtime.block_on(serve());
    std::process::exit(0);
}

async fn serve() {
    let [none, builtin, bubblewrap] = [SandboxKind::None, SandboxKind::Builtin, SandboxKind::Bubblewrap].map(launcher_with);
    let mut held = Vec::new();
    for line in std::io::stdin().lock().lines() {
        let request: Value = serde_json::from_str(&line.expect("a line")).expect("it is JSON");
        let launcher = match request["sandbox"].as_str() {
            Some("builtin") => &builtin,
            Some("bubblewrap") => &bubblewrap,
            _ => &none,
        };
        let answer = match request["do"].as_str() {
            Some("run") => run(launcher, &request).await,
            Some("hold") => match launcher.spawn(command(&request)).await {
                Ok(child) => {
                    held.push(child);
                    json!({"held": held.len()})
                }
                Err(error) => json!({"error": error.to_string()}),
            },
            Some("wait") => match held.remove(0).wait().await {
                Ok(exit) => json!({"exit": format!("{exit:?}")}),
                Err(error) => json!({"error": error.to_string()}),
            },
            Some("kill") => {
                let mut child = held.remove(0);
                child.kill().await;
                json!({"exit": child.wait().await.map_or_else(|error| error.to_string(), |exit| format!("{exit:?}"))})
            }
            Some("warm") => json!(launcher.warm_up().is_ok()),
            Some("probe") => json!(launcher.probe().await),
            Some("count") => json!({"descriptors": count_descriptors(), "descendants": descendants(std::process::id()).len()}),
            other => panic!("{other:?} is not a thing to do"),
        };
        println!("{answer}");
    }
}

async fn run(launcher: &Launcher, request: &Value) -> Value {
    match output_and_exit(launcher, command(request)).await {
        Ok((output, exit)) => json!({"exit": format!("{exit:?}"), "output": output}),
        Err(error) => json!({"exit": "not started", "output": error.to_string()}),
    }
}

fn command(request: &Value) -> skillz_process::Command {
    let mut command = shell(request["script"].as_str().expect("a script"));
    command.policy = Some(serde_json::from_value(request["policy"].clone()).unwrap_or_default());
    command.limits = ProcessLimits {
        memory_bytes: request["memory_bytes"].as_u64(),
        max_processes: request["max_processes"].as_u64().map(|count| u32::try_from(count).expect("small")),
        max_file_bytes: request["max_file_bytes"].as_u64(),
    };
    command
}
