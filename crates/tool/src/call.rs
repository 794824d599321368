//! One call of one tool, with everything that a runtime needs to carry it out.

use std::{fmt, path::PathBuf, sync::Arc};

use skillz_json::{Map, Value};

use crate::{CallClock, EffectiveLimits, FolderMode, NetworkPermission, Tool};

/// A call that passed every check: a runtime carries it out as it stands.
#[derive(Debug, Clone)]
pub struct ToolCall {
    /// The tool and version to run.
    pub tool: Arc<Tool>,
    /// Arguments, valid by the tool's input schema.
    pub arguments: Map<String, Value>,
    /// Limits in force.
    pub limits: EffectiveLimits,
    /// The call's clock, started with `limits.timeout`.
    pub clock: CallClock,
    /// What the tool may reach.
    pub grants: Grants,
    /// Where the call stands.
    pub context: CallContext,
}

/// What a tool may reach in this call: asked for by its manifest and allowed by the operator.
#[derive(Debug, Clone, Default)]
pub struct Grants {
    /// The network.
    pub network: NetworkPermission,
    /// Folders, resolved to absolute paths.
    pub folders: Vec<FolderGrant>,
    /// Environment variables with their values.
    pub environment: Vec<EnvironmentVariable>,
}

impl Grants {
    /// Whether nothing is granted.
    pub fn are_none(&self) -> bool {
        self.network.is_none() && self.folders.is_empty() && self.environment.is_empty()
    }
}

/// A folder that a tool sees at its real path.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct FolderGrant {
    /// Absolute path.
    pub path: PathBuf,
    /// How it may be used.
    pub mode: FolderMode,
}

/// A variable for a tool. Its value never shows in `Debug` output, so that it cannot reach a log.
#[derive(Clone, PartialEq, Eq)]
pub struct EnvironmentVariable {
    /// The variable's name.
    pub name: String,
    /// The secret itself.
    pub value: String,
}

impl fmt::Debug for EnvironmentVariable {
    fn fmt(&self, formatter: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(formatter, "{}=<hidden>", self.name)
    }
}

/// Where a call stands: who asked, how deep, from where.
#[derive(Debug, Clone, Default)]
pub struct CallContext {
    /// Identifies the call in history and logs.
    pub call_id: String,
    /// 1 for a call of a client, one more for each tool in between.
    pub depth: usize,
    /// Workspace roots.
    pub roots: Vec<PathBuf>,
    /// A folder of the tool's own that lasts between calls.
    pub data_directory: PathBuf,
    /// The folder of all tools (told to scripts, as in Skillz 0.8; not visible to confined ones).
    pub tools_directory: PathBuf,
    /// The client's progress token, where it gave one.
    pub progress_token: Option<Value>,
    /// What the client on the other end can do.
    pub capabilities: ClientCapabilities,
}

/// What the client on the other end can do.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default)]
pub struct ClientCapabilities {
    /// It answers sampling requests.
    pub sampling: bool,
    /// It answers elicitation requests.
    pub elicitation: bool,
}
