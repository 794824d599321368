//! What confinement and limits are worth on this machine, found by trying.

use serde::Serialize;
use skillz_sandbox::SandboxKind;

/// What a try-out of the sandbox found. For `doctor`, the log and `list_tools`.
#[derive(Debug, Clone, PartialEq, Eq, Serialize)]
pub struct SandboxReport {
    /// The sandbox in force; `None` where tools run unconfined.
    pub kind: SandboxKind,
    /// Whether tools can be run as asked for. If not, every confined call fails, and `reason` says why.
    pub available: bool,
    /// Whether tools are confined when they run.
    pub confined: bool,
    /// Version of Landlock's interface that the kernel offers, if any.
    pub landlock_abi: Option<u32>,
    /// Whether dangerous system calls are refused by seccomp.
    pub seccomp: bool,
    /// How memory limits are kept.
    pub memory_limit: LimitMethod,
    /// How limits on the number of processes are kept.
    pub process_limit: LimitMethod,
    /// Why tools are not confined or cannot run, and what helps.
    pub reason: Option<String>,
}

/// How a limit of a process tree is kept.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize)]
#[serde(rename_all = "lowercase")]
pub enum LimitMethod {
    /// By a control group: exact, in the kernel.
    Cgroup,
    /// By a resource limit of the kernel.
    Rlimit,
    /// By looking at the tree several times a second.
    Sampling,
    /// Not at all.
    None,
}
