//! Why the sandbox could not be made, told with the ways out.

use std::{fs, io, path::PathBuf};

/// Why the sandbox could not be made.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
pub enum SandboxError {
    /// The kernel or its settings do not allow it.
    #[error("The built-in sandbox cannot be made here: the step `{step}` failed: {reason}. {advice}")]
    Unavailable {
        /// What was tried.
        step: &'static str,
        /// What the kernel said.
        reason: String,
        /// The ways out.
        advice: String,
    },
    /// The program of the sandbox that was asked for is not there.
    #[error(
        "The sandbox `bubblewrap` needs the program `bwrap`, which is not in {searched}. Install it (on Debian and Ubuntu: \
         `sudo apt install bubblewrap`), or set `SKILLZ_SANDBOX=builtin`, which needs no outside program, or \
         `SKILLZ_SANDBOX=none`, which runs tools unconfined"
    )]
    Missing {
        /// Folders that were searched.
        searched: String,
    },
    /// A path of the policy cannot be shown.
    #[error("The sandbox cannot show `{}`: {reason}", path.display())]
    Path {
        /// The path.
        path: PathBuf,
        /// Why, and what to do.
        reason: String,
    },
}

impl SandboxError {
    pub(crate) fn new(step: &'static str, errno: Option<i32>) -> Self {
        let error = errno.map_or_else(|| io::Error::other("unknown error"), io::Error::from_raw_os_error);
        Self::Unavailable { step, reason: error.to_string(), advice: advice(errno) }
    }

    pub(crate) fn refused(step: &'static str, reason: String) -> Self {
        Self::Unavailable { step, reason, advice: advice(None) }
    }

    pub(crate) fn path(path: impl Into<PathBuf>, reason: impl Into<String>) -> Self {
        Self::Path { path: path.into(), reason: reason.into() }
    }
}

/// Turns an error of a system call into one that says which step failed.
pub(crate) trait Context<T> {
    fn context(self, step: &'static str) -> Result<T, SandboxError>;
}

impl<T> Context<T> for Result<T, rustix::io::Errno> {
    fn context(self, step: &'static str) -> Result<T, SandboxError> {
        self.map_err(|error| SandboxError::new(step, Some(error.raw_os_error())))
    }
}

impl<T> Context<T> for io::Result<T> {
    fn context(self, step: &'static str) -> Result<T, SandboxError> {
        self.map_err(|error| SandboxError::new(step, error.raw_os_error()))
    }
}

/// What helps, by what the system's settings say.
fn advice(errno: Option<i32>) -> String {
    let cause = if errno == Some(libc::ENOSYS) {
        "the kernel is older than 5.12: use a newer one"
    } else if setting("/proc/sys/kernel/unprivileged_userns_clone") == Some(0) {
        "user namespaces are turned off for plain users: `sudo sysctl kernel.unprivileged_userns_clone=1` turns them on"
    } else if setting("/proc/sys/kernel/apparmor_restrict_unprivileged_userns") == Some(1) {
        "AppArmor forbids user namespaces to programs without a profile: \
         `sudo sysctl kernel.apparmor_restrict_unprivileged_userns=0` allows them"
    } else if setting("/proc/sys/user/max_user_namespaces") == Some(0) {
        "user namespaces are turned off: `sudo sysctl user.max_user_namespaces=15000` turns them on"
    } else {
        "user namespaces must be available to this process; a container that it runs in may forbid them \
         (Docker: `--security-opt seccomp=unconfined --security-opt systempaths=unconfined`)"
    };
    format!("Two ways out: {cause}; or set `SKILLZ_SANDBOX=none`, which runs tools unconfined, with all rights of this server")
}

fn setting(path: &str) -> Option<i64> {
    fs::read_to_string(path).ok()?.trim().parse().ok()
}
