//! What a confined process may see and do, and the ways to make it so.
//!
//! A [`Policy`] is data; [`SandboxKind`] says who enforces it. Nothing here starts a process:
//! `skillz-process` does, and applies the policy in the child.
use std::path::PathBuf;

use serde::{Deserialize, Serialize};

/// Who confines processes (`SKILLZ_SANDBOX`).
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default, Serialize, Deserialize)]
#[serde(rename_all = "lowercase")]
pub enum SandboxKind {
    /// The built-in one where the system can; on Linux a reasoned error otherwise.
    #[default]
    Auto,
    /// The built-in one, or an error.
    Builtin,
    /// `bwrap`.
    Bubblewrap,
    /// `firejail`.
    Firejail,
    /// `nsjail`.
    Nsjail,
    /// No confinement.
    None,
}

/// What one process tree may see and do. The default sees system folders read-only and nothing else.
#[derive(Debug, Clone, PartialEq, Eq, Default, Serialize, Deserialize)]
pub struct Policy {
    /// Folders or files visible read-only at their own paths, besides the system's (`/usr`, `/lib`, `/bin`, `/etc` basics).
    pub read_only: Vec<PathBuf>,
    /// Folders visible and writable at their own paths. The working folder must be listed to be writable.
    pub read_write: Vec<PathBuf>,
    /// Whether the network of the host is reachable.
    pub network: bool,
}

impl SandboxKind {
    /// The value of `SKILLZ_SANDBOX` that chooses it.
    pub fn name(self) -> &'static str {
        match self {
            Self::Auto => "auto",
            Self::Builtin => "builtin",
            Self::Bubblewrap => "bubblewrap",
            Self::Firejail => "firejail",
            Self::Nsjail => "nsjail",
            Self::None => "none",
        }
    }
}
