//! The settings, resolved once into plain structs. Everything below receives these, and asks nobody else.

use std::path::PathBuf;

use serde::Deserialize;

use crate::Secret;

/// All settings.
#[derive(Debug, Clone, PartialEq, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct Settings {
    /// The data folder, absolute.
    pub home: PathBuf,
    /// The folder of all tools, absolute.
    pub tools_dir: PathBuf,
    /// How clients reach the server.
    pub transport: Transport,
    /// Address to listen on (HTTP).
    pub host: String,
    /// Port to listen on (HTTP); 0 lets the system choose.
    pub port: u16,
    /// Whether edits by hand in the tools folder are noticed.
    pub watch: bool,
    /// Log filter.
    pub log: String,
    /// Form of the log lines.
    pub log_format: LogFormat,
    /// Who confines processes.
    pub sandbox: Sandbox,
    /// Whether every tool gets the network.
    pub sandbox_network: bool,
    /// Workspace roots that the operator named; `None` where nobody did.
    pub roots: Option<Vec<PathBuf>>,
    /// Which variables of the environment tools get without asking.
    pub forward_env: ForwardEnvironment,
    /// Which tools stand in `tools/list`.
    pub expose: Exposure,
    /// What of the tools' wishes is granted.
    pub policy: PolicySettings,
    /// Caps on the tools' own limits.
    #[serde(default)]
    pub limits: LimitCaps,
    /// The HTTP transport.
    pub http: HttpSettings,
    /// Where imports come from.
    pub import: ImportSettings,
    /// Where the memory lies.
    #[serde(default)]
    pub memory: MemorySettings,
    /// Warm workers of function scripts.
    pub workers: WorkerSettings,
}

/// How clients reach the server.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Deserialize)]
#[serde(rename_all = "lowercase")]
pub enum Transport {
    /// One client on stdin and stdout.
    Stdio,
    /// Many clients on a port.
    Http,
}

/// Form of the log lines.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Deserialize)]
#[serde(rename_all = "lowercase")]
pub enum LogFormat {
    /// For people.
    Text,
    /// One JSON object a line.
    Json,
}

/// Who confines processes.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Deserialize)]
#[serde(rename_all = "lowercase")]
pub enum Sandbox {
    /// The built-in one where the system has what it needs.
    Auto,
    /// The built-in one, or an error.
    Builtin,
    /// bubblewrap.
    Bubblewrap,
    /// firejail.
    Firejail,
    /// nsjail.
    Nsjail,
    /// Nobody.
    None,
}

/// Which variables tools get without asking for them by name.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Deserialize)]
#[serde(rename_all = "lowercase")]
pub enum ForwardEnvironment {
    /// None.
    Named,
    /// All `SKILLZ_*` variables but the server's own tokens, as Skillz 0.8 did.
    All,
}

/// Which tools stand in `tools/list`.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Deserialize)]
#[serde(rename_all = "lowercase")]
pub enum Exposure {
    /// All while they are few, else the pinned ones.
    Auto,
    /// All.
    All,
    /// The pinned ones.
    Pinned,
}

/// What the operator does with a wish of a tool. Ordered from narrow to wide.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Deserialize)]
#[serde(rename_all = "lowercase")]
pub enum PolicyMode {
    /// Refuses it.
    Deny,
    /// Asks the user once for each tool and version.
    Ask,
    /// Grants what the manifest declares.
    Declared,
}

/// `[policy]`.
#[derive(Debug, Clone, PartialEq, Eq, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct PolicySettings {
    /// The network.
    pub network: PolicyMode,
    /// Folders; where absent, those within the roots are granted and others asked for.
    pub fs: Option<PolicyMode>,
    /// Environment variables.
    pub env: PolicyMode,
    /// Servers that are started by a command (`import_mcp`); where absent, granted over stdio and refused over HTTP.
    pub servers: Option<PolicyMode>,
}

/// `[limits]`: no tool gets more than this, whatever its manifest says.
#[derive(Debug, Clone, PartialEq, Eq, Default, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct LimitCaps {
    /// Longest run, in milliseconds.
    pub timeout_ms: Option<u64>,
    /// Most memory, in MiB.
    pub memory_mb: Option<u64>,
    /// Most bytes of stdout and stderr.
    pub max_output_bytes: Option<u64>,
    /// Most processes of one script call.
    pub max_processes: Option<u32>,
    /// Most bytes of text in a result.
    pub max_result_bytes: Option<u64>,
}

/// `[http]`.
#[derive(Debug, Clone, PartialEq, Eq, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct HttpSettings {
    /// The bearer token clients must send.
    pub token: Option<Secret>,
    /// Origins of web apps that may connect.
    pub allowed_origins: Vec<String>,
}

/// `[import]`.
#[derive(Debug, Clone, PartialEq, Eq, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct ImportSettings {
    /// GitHub's API, or that of an installation of one's own, which gists are asked for from.
    pub github_api: String,
}

/// `[memory]`.
#[derive(Debug, Clone, PartialEq, Eq, Default, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct MemorySettings {
    /// A libSQL server; the file `memory.db` where absent.
    pub url: Option<String>,
    /// The token for it.
    pub token: Option<Secret>,
}

/// `[workers]`.
#[derive(Debug, Clone, PartialEq, Eq, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct WorkerSettings {
    /// Most warm workers of all tools together; where absent, four for each core.
    pub max: Option<u32>,
    /// How long an idle worker is kept, in seconds.
    pub idle_seconds: u64,
}
