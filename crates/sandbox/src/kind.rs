//! Who confines.

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
