//! What to run: plain data, filled in by the runtimes.

use std::{ffi::OsString, path::PathBuf};

use skillz_sandbox::Policy;

/// A program to run, with everything it will know.
#[derive(Debug, Clone)]
pub struct Command {
    /// Absolute path of the program.
    pub program: PathBuf,
    /// Arguments, without the program itself.
    pub arguments: Vec<OsString>,
    /// The whole environment; nothing is inherited.
    pub environment: Vec<(OsString, OsString)>,
    /// Working folder.
    pub directory: PathBuf,
    /// `None` runs unconfined (the server's own git, docker and so on).
    pub policy: Option<Policy>,
    /// Resource limits of the whole tree.
    pub limits: ProcessLimits,
}

/// Resource limits of a process tree; `None` is no limit.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub struct ProcessLimits {
    /// Most resident memory of the tree, in bytes.
    pub memory_bytes: Option<u64>,
    /// Most processes and threads alive at once.
    pub max_processes: Option<u32>,
    /// Largest file that may be written, in bytes.
    pub max_file_bytes: Option<u64>,
}
