//! What to run, and with what.

use std::{path::PathBuf, sync::Arc};

use serde::{Deserialize, Serialize};
use skillz_environments::{Environments, Program};
use skillz_process::Launcher;
use skillz_tool::{CallClock, EffectiveLimits, Tool};

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
    /// Embedded, or in a process if it needs what the embedded interpreter lacks.
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
    /// The tools that it may call.
    pub tools: Vec<Arc<Tool>>,
    /// Names of tools that there are and that it may not call, to say so where it tries.
    pub excluded: Vec<String>,
    /// Limits in force.
    pub limits: EffectiveLimits,
    /// The run's clock, started with `limits.timeout`. It stands still while dependencies are installed.
    pub clock: CallClock,
}

/// Finds a program such as `python3`, `node`, `uv` or `npm`; an error says where it was searched.
pub type FindProgram = Arc<dyn Fn(&str) -> Result<Program, String> + Send + Sync>;

/// How programs are run. Making a [`CodeRunner`](crate::CodeRunner) of it starts nothing.
#[derive(Clone)]
pub struct CodeSettings {
    /// The skillz binary, which becomes a worker when it is started by [`CodeRunner`](crate::CodeRunner).
    pub program: PathBuf,
    /// Starts workers and interpreters.
    pub launcher: Launcher,
    /// Most workers at once; further runs wait for one.
    pub workers: usize,
    /// Finds interpreters for programs that run in a process.
    pub find_program: FindProgram,
    /// Installs dependencies; without it programs cannot have any.
    pub environments: Option<Environments>,
    /// A folder for the private working folders of programs that run in a process.
    pub scratch_directory: PathBuf,
}
