//! Interpreters, installers, Docker, and the sandbox, which is really tried.

use std::path::{Path, PathBuf};

use skillz_sandbox::SandboxKind;

use super::{Check, Examination};

/// Programs that tools are written for, with the Debian package that brings each.
const PROGRAMS: &[(&str, &str)] = &[
    ("python3", "apt install python3 python3-venv"),
    ("node", "apt install nodejs"),
    ("bash", "apt install bash"),
    ("ruby", "apt install ruby"),
    ("perl", "apt install perl"),
    ("php", "apt install php-cli"),
    ("lua", "apt install lua5.4"),
    ("deno", "see its home page, or `cargo install deno`"),
    ("bun", "npm install -g bun"),
    ("uv", "pip install uv; without it dependencies are installed by pip, which is slower"),
    ("npm", "apt install npm"),
    ("git", "apt install git"),
];

impl Examination<'_> {
    pub(super) async fn machine(&self) -> Vec<Check> {
        let mut checks: Vec<Check> = PROGRAMS.iter().map(|(name, fix)| self.program(name, fix)).collect();
        checks.push(self.docker());
        checks.push(self.sandbox().await);
        checks
    }

    fn program(&self, name: &str, fix: &str) -> Check {
        match self.interpreters.locate(name) {
            Some(path) => Check::ok(name, path.display().to_string()),
            None => Check::absent(name, "not found on PATH or in the usual places", fix),
        }
    }

    fn docker(&self) -> Check {
        let environment = &self.context.resolved.environment;
        if let Some(host) = environment.get("DOCKER_HOST") {
            return Check::ok("docker", format!("DOCKER_HOST is {host}"));
        }
        let mut sockets = vec![PathBuf::from("/var/run/docker.sock")];
        if let Some(runtime) = environment.path("XDG_RUNTIME_DIR") {
            sockets.extend([runtime.join("docker.sock"), runtime.join("podman/podman.sock")]);
        }
        match sockets.iter().find(|socket| is_socket(socket)) {
            Some(socket) => Check::ok("docker", socket.display().to_string()),
            None => {
                Check::absent("docker", "no socket of Docker or Podman was found", "apt install docker.io; only services need it")
            }
        }
    }

    async fn sandbox(&self) -> Check {
        let report = self.launcher.probe().await;
        let reason = report.reason.clone().unwrap_or_default();
        if !report.available {
            let fix = "set SKILLZ_SANDBOX to another sandbox, or to `none` if every tool is trusted";
            return Check::broken("sandbox", reason, fix);
        }
        if !report.confined || report.kind == SandboxKind::None {
            let fix = "unset SKILLZ_SANDBOX if that was not intended";
            return Check::absent("sandbox", format!("scripts run unconfined. {reason}").trim_end().to_owned(), fix);
        }
        let found = format!(
            "{:?} confines scripts (tried); Landlock {}, seccomp {}, memory limits by {:?}, process limits by {:?}",
            report.kind,
            report.landlock_abi.map_or_else(|| "absent".to_owned(), |version| format!("version {version}")),
            if report.seccomp { "on" } else { "off" },
            report.memory_limit,
            report.process_limit,
        );
        Check::ok("sandbox", found.to_lowercase())
    }
}

#[cfg(unix)]
fn is_socket(path: &Path) -> bool {
    use std::os::unix::fs::FileTypeExt;
    path.metadata().is_ok_and(|metadata| metadata.file_type().is_socket())
}

#[cfg(not(unix))]
fn is_socket(path: &Path) -> bool {
    path.exists()
}
