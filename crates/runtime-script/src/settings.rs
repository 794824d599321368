//! What the runtime is made of: given once, by whoever wires the server together.

use std::{num::NonZeroUsize, path::PathBuf, time::Duration};

use skillz_environments::Environments;
use skillz_process::Launcher;

use crate::interpreter::SearchPath;

/// Everything a [`crate::ScriptRuntime`] needs.
#[derive(Debug, Clone)]
pub struct ScriptSettings {
    /// Starts every process.
    pub launcher: Launcher,
    /// Installs dependencies.
    pub environments: Environments,
    /// Where interpreters are looked for.
    pub search: SearchPath,
    /// `$SKILLZ_HOME/cache`: kits, stages and working folders lie below it. May be deleted at any time.
    pub cache_directory: PathBuf,
    /// Bounds on workers and processes.
    pub bounds: ScriptBounds,
}

/// Bounds on what the runtime keeps and starts.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct ScriptBounds {
    /// How long an idle worker is kept.
    pub worker_idle: Duration,
    /// Most warm workers of one tool version.
    pub workers_per_tool: usize,
    /// Most warm workers in all.
    pub workers: usize,
    /// Most process scripts that run at once; more wait in order.
    pub processes: usize,
}

impl Default for ScriptBounds {
    /// Idle workers are kept for 5 minutes; 2 workers a core for one tool, 4 a core in all, and on small machines as many as a
    /// program of `execute_code` has calls at once; 8 processes a core.
    fn default() -> Self {
        let cores = std::thread::available_parallelism().map_or(2, NonZeroUsize::get);
        Self {
            worker_idle: Duration::from_mins(5),
            workers_per_tool: (2 * cores).max(8),
            workers: (4 * cores).max(16),
            processes: 8 * cores,
        }
    }
}
