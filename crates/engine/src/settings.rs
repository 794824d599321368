//! What the operator decided, as plain values. The engine reads no environment and no files for it.

use std::{collections::BTreeMap, path::PathBuf};

use skillz_tool::Limits;

/// Settings of an engine.
#[derive(Debug, Clone)]
pub struct EngineSettings {
    /// The data folder. No tool can ever be granted it, nor anything in it but its own data folder.
    pub home: PathBuf,
    /// Where long results are kept for an hour (in `results/`); may be deleted at any time.
    pub cache: PathBuf,
    /// The folder of all tools.
    pub tools_directory: PathBuf,
    /// Workspace roots where the client names none: `SKILLZ_ROOTS`, or the current folder. Roots of remote
    /// clients count only within these.
    pub roots: Vec<PathBuf>,
    /// The server's environment, of which tools get what their manifests name.
    pub environment: BTreeMap<String, String>,
    /// Give every tool all `SKILLZ_*` variables (`forward_env = "all"`), the server's own tokens aside.
    pub forward_all: bool,
    /// Grant the network to every tool (`SKILLZ_SANDBOX_NETWORK=1`).
    pub network_for_all: bool,
    /// What becomes of the permissions that tools ask for.
    pub policy: Policy,
    /// No tool gets more than this, whatever its manifest says.
    pub caps: Limits,
    /// Which tools stand in the protocol's tool list.
    pub exposure: Exposure,
    /// How much may go on at once.
    pub concurrency: Concurrency,
}

/// What becomes of the permissions that tools ask for.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Policy {
    /// The network.
    pub network: PolicyMode,
    /// Folders. `None`: those within the workspace roots as declared, others only after asking the user.
    pub folders: Option<PolicyMode>,
    /// Environment variables.
    pub environment: PolicyMode,
    /// Imported MCP servers. `None`: as declared, but for remote clients only those that are reached by a URL.
    pub servers: Option<PolicyMode>,
}

/// What the operator does with a wish of a tool.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord)]
pub enum PolicyMode {
    /// Refuses it.
    Deny,
    /// Asks the user, once for each tool and version.
    Ask,
    /// Grants what the manifest declares.
    Declared,
}

/// Which tools stand in the protocol's tool list (`SKILLZ_EXPOSE`).
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default)]
pub enum Exposure {
    /// All while they are few, else the pinned ones.
    #[default]
    Auto,
    /// All.
    All,
    /// The pinned ones.
    Pinned,
}

/// How much may go on at once; more waits, in order.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Concurrency {
    /// Calls of clients; inner calls ride on their caller's place.
    pub calls: usize,
    /// Calls of scripts.
    pub scripts: usize,
}

impl EngineSettings {
    /// Settings for a data folder, with the defaults for everything else: no roots, no environment,
    /// permissions as declared, no caps.
    pub fn new(home: impl Into<PathBuf>) -> Self {
        let home = home.into();
        Self {
            cache: home.join("cache"),
            tools_directory: home.join("tools"),
            home,
            roots: Vec::new(),
            environment: BTreeMap::new(),
            forward_all: false,
            network_for_all: false,
            policy: Policy::default(),
            caps: Limits::default(),
            exposure: Exposure::default(),
            concurrency: Concurrency::default(),
        }
    }
}

impl Default for Policy {
    fn default() -> Self {
        Self { network: PolicyMode::Declared, folders: None, environment: PolicyMode::Declared, servers: None }
    }
}

impl Default for Concurrency {
    /// 256 calls, 8 scripts for each core.
    fn default() -> Self {
        let cores = std::thread::available_parallelism().map_or(1, std::num::NonZero::get);
        Self { calls: 256, scripts: 8 * cores }
    }
}
