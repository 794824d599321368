//! Trying the sandbox out.

use std::path::PathBuf;

use skillz_sandbox::{Policy, SandboxKind};

use super::Backend;
use crate::{Command, Exit, Keep, LimitMethod, ProcessError, ProcessLimits, SandboxReport, drain, wire::Purpose};

/// Found in every system that the sandboxes show.
const HARMLESS_PROGRAM: &str = "/bin/true";

/// How much is told of what a sandbox's program says.
const WORDS: usize = 500;

impl Backend {
    /// Sets up a confined, limited process that executes nothing, and tells what came of it.
    pub(crate) async fn probe(&self, sandbox: SandboxKind) -> SandboxReport {
        let mut report = SandboxReport {
            kind: if sandbox == SandboxKind::Auto { SandboxKind::Builtin } else { sandbox },
            available: true,
            confined: sandbox != SandboxKind::None,
            landlock_abi: None,
            seccomp: false,
            memory_limit: LimitMethod::None,
            process_limit: LimitMethod::None,
            reason: None,
        };
        match self.try_out(sandbox).await {
            Ok(facts) => {
                report.memory_limit = facts.memory;
                report.process_limit = facts.processes;
                report.landlock_abi = (facts.landlock_abi > 0).then_some(u32::from(facts.landlock_abi));
                report.seccomp = report.confined;
            }
            Err(error) => {
                report.available = false;
                report.confined = false;
                report.reason = Some(error.to_string());
            }
        }
        if sandbox == SandboxKind::None {
            report.reason = Some("`SKILLZ_SANDBOX=none`: tools run unconfined, with all rights of this server".to_owned());
        }
        report
    }

    async fn try_out(&self, sandbox: SandboxKind) -> Result<crate::wire::Facts, ProcessError> {
        let command = Command {
            program: PathBuf::from(HARMLESS_PROGRAM),
            arguments: Vec::new(),
            environment: Vec::new(),
            directory: PathBuf::from("/"),
            policy: Some(Policy::default()),
            limits: ProcessLimits { memory_bytes: Some(1 << 30), max_processes: Some(16), max_file_bytes: None },
        };
        // The built-in one has done everything before it would execute; another one shows what it can in executing.
        let purpose = if sandbox == SandboxKind::Bubblewrap { Purpose::Run } else { Purpose::Probe };
        let (mut child, started) = self.start(sandbox, command, purpose, false).await?;
        child.stdin = None;
        let exit = child.wait().await?;
        if exit == Exit::Code(0) {
            return Ok(started.facts);
        }
        let words = match child.stderr.take() {
            Some(stderr) => drain(stderr, Keep::Head(WORDS), None).await.unwrap_or_default().bytes,
            None => Vec::new(),
        };
        let reason = format!(
            "The sandbox `{}` does not work here: {}. Set `SKILLZ_SANDBOX=builtin`, or `SKILLZ_SANDBOX=none`, which runs tools \
             unconfined",
            sandbox.name(),
            String::from_utf8_lossy(&words).trim()
        );
        Err(ProcessError::Sandbox { reason })
    }
}
