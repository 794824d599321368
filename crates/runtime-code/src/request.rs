//! What to run, and with what.

use std::{path::PathBuf, sync::Arc};

use serde::{Deserialize, Serialize};
use skillz_process::Launcher;
use skillz_runtime_script::ScriptRuntime;
use skillz_tool::{CallClock, EffectiveLimits, Grants, Tool};

/// Languages of programs.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default, Serialize, Deserialize)]
#[serde(rename_all = "lowercase")]
pub enum Language {
    /// Python.
    #[default]
    Python,
    /// JavaScript.
    JavaScript,
    /// TypeScript: JavaScript once the types are stripped.
    TypeScript,
}

/// Where a program runs.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default)]
pub enum Runtime {
    /// In a process where the machine has an interpreter and a sandbox, else embedded.
    #[default]
    Auto,
    /// In the interpreter that is part of this program.
    Embedded,
    /// In the machine's own python3 or node, confined.
    Process,
}

/// A program, ready to run.
#[derive(Debug, Clone)]
pub struct CodeRequest {
    /// The program.
    pub code: String,
    /// Its language.
    pub language: Language,
    /// Where it runs.
    pub runtime: Runtime,
    /// Packages that it needs: pip requirements or npm specifiers. They call for a process.
    pub dependencies: Vec<String>,
    /// Network, folders and variables that it may have. They call for a process.
    pub grants: Grants,
    /// Workspace roots, the first first.
    pub roots: Vec<PathBuf>,
    /// The tools that it may call.
    pub tools: Vec<Arc<Tool>>,
    /// Names of tools that there are and that it may not call, to say so where it tries.
    pub excluded: Vec<String>,
    /// Limits in force.
    pub limits: EffectiveLimits,
    /// The run's clock, started with `limits.timeout`. It stands still while dependencies are installed.
    pub clock: CallClock,
}

impl CodeRequest {
    /// Its limit of time, in words.
    pub(crate) fn seconds(&self) -> String {
        let seconds = self.clock.limit().as_secs_f64();
        format!("{} s", (seconds * 1_000.0).round() / 1_000.0)
    }
}

/// How programs are run. Making a [`CodeRunner`](crate::CodeRunner) of it starts nothing.
#[derive(Clone)]
pub struct CodeSettings {
    /// The skillz binary, which becomes a worker when it is started by [`CodeRunner`](crate::CodeRunner).
    pub program: PathBuf,
    /// Starts workers.
    pub launcher: Launcher,
    /// Most workers with embedded interpreters at once; further runs wait for one.
    pub workers: usize,
    /// Runs programs in the machine's own interpreters.
    pub scripts: Arc<ScriptRuntime>,
}
