//! What this machine lacks, for whoever lists tools: so far, the sandbox.

use async_trait::async_trait;
use skillz_engine::Machine;
use skillz_process::Launcher;
use skillz_sandbox::SandboxKind;
use tokio::sync::OnceCell;

/// Tries the sandbox when tools are first listed, and knows from then on.
pub(crate) struct ThisMachine {
    launcher: Launcher,
    warnings: OnceCell<Vec<String>>,
}

#[async_trait]
impl Machine for ThisMachine {
    async fn warnings(&self) -> Vec<String> {
        self.warnings.get_or_init(|| self.look()).await.clone()
    }
}

impl ThisMachine {
    pub(crate) fn new(launcher: Launcher) -> Self {
        Self { launcher, warnings: OnceCell::new() }
    }

    async fn look(&self) -> Vec<String> {
        // Whoever turned the sandbox off knows that it is off.
        if self.launcher.sandbox() == SandboxKind::None {
            return Vec::new();
        }
        let report = self.launcher.probe().await;
        if report.available && report.confined {
            return Vec::new();
        }
        let effect = if report.available { "scripts run unconfined" } else { "confined scripts cannot run" };
        let reason = report.reason.as_deref().unwrap_or("the sandbox could not be started");
        let warning = format!("There is no sandbox here, so {effect}: {reason}. `skillz doctor` says more");
        tracing::warn!("{warning}");
        vec![warning]
    }
}
