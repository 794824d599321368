//! Starts, confines, drains, times out, kills and reaps every process of the server.
//!
//! A [`Launcher`] owns one small helper process that forks all others, so that a fork never copies the
//! server, and so that everything dies with the server however it ends. Dropping a [`Child`] kills its whole tree.
use std::{ffi::OsString, path::PathBuf};

use skillz_sandbox::{Policy, SandboxKind};
use tokio::io::{AsyncRead, AsyncWrite};

/// Starts processes. Cheap to clone; clones share one helper process, which is started at the first use.
#[derive(Debug, Clone)]
pub struct Launcher {}

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
#[derive(Debug, Clone, Default)]
pub struct ProcessLimits {
    /// Most resident memory of the tree, in bytes.
    pub memory_bytes: Option<u64>,
    /// Most processes and threads alive at once.
    pub max_processes: Option<u32>,
    /// Largest file that may be written, in bytes.
    pub max_file_bytes: Option<u64>,
}

/// A running process tree with pipes to its root. Dropping it kills the tree.
pub struct Child {
    /// Writes to the program's stdin; drop it to close.
    pub stdin: Option<Box<dyn AsyncWrite + Send + Unpin>>,
    /// Reads the program's stdout.
    pub stdout: Option<Box<dyn AsyncRead + Send + Unpin>>,
    /// Reads the program's stderr.
    pub stderr: Option<Box<dyn AsyncRead + Send + Unpin>>,
}

/// How a process ended.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Exit {
    /// It exited with this code.
    Code(i32),
    /// A signal killed it.
    Signal(i32),
    /// It was killed because its tree used more memory than allowed.
    MemoryLimit,
}

/// Why a process could not be started or followed.
#[derive(Debug, thiserror::Error)]
pub enum ProcessError {
    /// The sandbox asked for cannot be had here.
    #[error("{reason}")]
    Sandbox {
        /// What is missing and the ways out.
        reason: String,
    },
    /// The program could not be started.
    #[error("`{program}` could not be started: {source}")]
    Start {
        /// The program.
        program: String,
        /// Why.
        source: std::io::Error,
    },
    /// The helper process is gone.
    #[error("The helper that starts processes is gone: {0}")]
    Launcher(String),
}

impl Launcher {
    /// A launcher that re-executes `program` (the skillz binary) as its helper and confines by `sandbox`.
    /// Starts nothing yet.
    pub fn new(_program: PathBuf, _sandbox: SandboxKind) -> Self {
        todo!("process helper")
    }

    /// Starts a command.
    pub async fn spawn(&self, _command: Command) -> Result<Child, ProcessError> {
        todo!("process helper")
    }
}

impl Child {
    /// Waits until the root process has ended. Does not wait for the pipes to close.
    pub async fn wait(&mut self) -> Result<Exit, ProcessError> {
        todo!("process helper")
    }

    /// Kills the whole tree and waits until no process of it is left.
    pub async fn kill(&mut self) {
        todo!("process helper")
    }
}

/// Entry of the helper process: the binary's `main` calls this first; it never returns if this process is a helper.
pub fn run_helper_if_asked() {}
