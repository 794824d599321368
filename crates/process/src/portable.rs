//! Processes where there is no Linux: a tree is a process group, started by the runtime and killed as a group.
//!
//! Nothing is confined here, memory and process limits are not kept, and a daemon that leaves its group gets away;
//! [`Backend::probe`] says so.

use std::{path::PathBuf, process::Stdio};

use skillz_sandbox::SandboxKind;

use crate::{Child, ChildInput, ChildOutput, Command, Exit, LimitMethod, ProcessError, SandboxReport};

#[derive(Debug)]
pub(crate) struct Backend {}

/// A process group by its leader.
pub(crate) struct Tree {
    leader: tokio::process::Child,
    /// The leader's id, which is the group's; kept, since the group may outlive its leader.
    group: Option<u32>,
}

impl Backend {
    pub(crate) fn new(_program: PathBuf) -> Self {
        Self {}
    }

    #[expect(clippy::unnecessary_wraps, clippy::unused_self, reason = "the same form as on Linux")]
    pub(crate) fn warm_up(&self, _sandbox: SandboxKind) -> Result<(), ProcessError> {
        Ok(())
    }

    #[expect(clippy::unused_async, reason = "the same form as on Linux")]
    pub(crate) async fn close(&self) {}

    #[expect(clippy::unused_async, reason = "the same form as on Linux")]
    pub(crate) async fn spawn(&self, sandbox: SandboxKind, command: Command, _with_host: bool) -> Result<Child, ProcessError> {
        if command.policy.is_some() {
            unconfined_only(sandbox)?;
        }
        let mut starter = tokio::process::Command::new(&command.program);
        starter
            .args(&command.arguments)
            .env_clear()
            .envs(command.environment.iter().map(|(name, value)| (name, value)))
            .current_dir(&command.directory)
            .stdin(Stdio::piped())
            .stdout(Stdio::piped())
            .stderr(Stdio::piped())
            .kill_on_drop(true);
        #[cfg(unix)]
        starter.process_group(0);
        let mut leader =
            starter.spawn().map_err(|source| ProcessError::Start { program: command.program.display().to_string(), source })?;
        Ok(Child {
            stdin: leader.stdin.take().map(|stdin| Box::new(stdin) as Box<_>),
            stdout: leader.stdout.take().map(|stdout| Box::new(stdout) as Box<_>),
            stderr: leader.stderr.take().map(|stderr| Box::new(stderr) as Box<_>),
            host: None,
            tree: Tree { group: leader.id(), leader },
            exit: None,
        })
    }

    #[expect(clippy::unused_async, reason = "the same form as on Linux")]
    pub(crate) async fn probe(&self, sandbox: SandboxKind) -> SandboxReport {
        let reason = match unconfined_only(sandbox) {
            Ok(()) => {
                "There is no sandbox for this operating system: tools run unconfined, with all rights of this server".to_owned()
            }
            Err(error) => error.to_string(),
        };
        SandboxReport {
            kind: SandboxKind::None,
            available: unconfined_only(sandbox).is_ok(),
            confined: false,
            landlock_abi: None,
            seccomp: false,
            memory_limit: LimitMethod::None,
            process_limit: LimitMethod::None,
            reason: Some(reason),
        }
    }
}

fn unconfined_only(sandbox: SandboxKind) -> Result<(), ProcessError> {
    match sandbox {
        SandboxKind::Auto | SandboxKind::None => Ok(()),
        _ => Err(ProcessError::Sandbox {
            reason: format!(
                "The sandbox `{}` runs on Linux only. Leave `SKILLZ_SANDBOX` unset, which runs tools unconfined on this system",
                sandbox.name()
            ),
        }),
    }
}

impl Tree {
    pub(crate) async fn wait(&mut self) -> Result<Exit, ProcessError> {
        let status = self.leader.wait().await.map_err(|error| ProcessError::Launcher(error.to_string()))?;
        self.kill();
        #[cfg(unix)]
        if let Some(signal) = std::os::unix::process::ExitStatusExt::signal(&status) {
            return Ok(Exit::Signal(signal));
        }
        Ok(Exit::Code(status.code().unwrap_or(-1)))
    }

    #[expect(clippy::unused_async, reason = "the same form as on Linux")]
    pub(crate) async fn memory_kills(&mut self) -> Result<u64, ProcessError> {
        Ok(0)
    }

    pub(crate) fn kill(&mut self) {
        #[cfg(unix)]
        if let Some(group) = self.group.and_then(|id| i32::try_from(id).ok()).and_then(rustix::process::Pid::from_raw) {
            let _ = rustix::process::kill_process_group(group, rustix::process::Signal::KILL);
        }
        // A leader that has ended already needs no kill.
        let _ = self.leader.start_kill();
    }
}

impl Drop for Tree {
    fn drop(&mut self) {
        self.kill();
    }
}

impl ChildInput for tokio::process::ChildStdin {}

impl ChildOutput for tokio::process::ChildStdout {}

impl ChildOutput for tokio::process::ChildStderr {}
