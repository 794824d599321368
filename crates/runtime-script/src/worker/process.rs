//! One worker: its process, its pipes, its folder.

use std::time::Instant;

use futures::FutureExt;
use skillz_process::{Child, Command, Exit, Launcher};
use skillz_tool::ToolError;

use crate::{
    failure,
    folder::WorkingFolder,
    lines::{LineReader, LineWriter},
};

/// A running worker. Dropping it ends its whole tree, and then its folder.
pub(crate) struct Worker {
    pub(super) requests: LineWriter,
    pub(super) replies: LineReader,
    pub(super) errors: LineReader,
    /// Whether it said that it waits for a request.
    pub(super) is_ready: bool,
    /// When it was last put back.
    pub(super) idle_since: Instant,
    pub(super) child: Child,
    pub(crate) folder: WorkingFolder,
}

impl Worker {
    /// Starts a worker. It loads its module by and by; whoever calls waits for that.
    pub(crate) async fn start(launcher: &Launcher, name: &str, command: Command, folder: WorkingFolder) -> Result<Self, ToolError> {
        let mut child = launcher.spawn(command).await.map_err(|error| failure::not_started(name, error))?;
        Ok(Self {
            requests: LineWriter::new(child.stdin.take()),
            replies: LineReader::new(child.stdout.take()),
            errors: LineReader::new(child.stderr.take()),
            is_ready: false,
            idle_since: Instant::now(),
            child,
            folder,
        })
    }

    /// How it ended, if it has. Does not wait.
    pub(super) fn exit(&mut self) -> Option<Exit> {
        match self.child.wait().now_or_never()? {
            Ok(exit) => Some(exit),
            // Lost is as good as dead.
            Err(_) => Some(Exit::Signal(9)),
        }
    }
}
