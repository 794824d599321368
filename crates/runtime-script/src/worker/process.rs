//! One worker: its process, its pipes, its folder.

use std::time::Instant;

use futures::FutureExt;
use skillz_process::{Child, Command, Exit, Launcher};
use skillz_tool::ToolError;

use crate::{
    failure,
    folder::WorkingFolder,
    lines::{LineReader, LineWriter},
    message::{self, Line},
};

/// A running worker. Dropping it ends its whole tree, and then its folder.
pub(crate) struct Worker {
    pub(super) requests: LineWriter,
    pub(super) replies: LineReader,
    pub(super) errors: LineReader,
    /// What programs print; tools print to their errors alone.
    pub(super) output: LineReader,
    /// Whether it said that it waits for a request.
    pub(super) is_ready: bool,
    /// Whether it has ever been ready, that is, whether its module could be loaded.
    pub(super) has_loaded: bool,
    /// When it was last put back.
    pub(super) idle_since: Instant,
    /// How many of its processes the kernel has killed for memory so far.
    pub(super) memory_kills: u64,
    pub(super) child: Child,
    pub(crate) folder: WorkingFolder,
}

impl Worker {
    /// Starts a worker. It loads its module by and by; whoever calls waits for that.
    pub(crate) async fn start(
        launcher: &Launcher,
        name: &str,
        command: Command,
        folder: WorkingFolder,
        is_for_programs: bool,
    ) -> Result<Self, ToolError> {
        let spawned = if is_for_programs { launcher.spawn_with_host(command).await } else { launcher.spawn(command).await };
        let mut child = spawned.map_err(|error| failure::not_started(name, error))?;
        let (requests, replies, output) = match child.host.take() {
            Some(line) => (Some(line.input), Some(line.output), child.stdout.take()),
            None => (child.stdin.take(), child.stdout.take(), None),
        };
        Ok(Self {
            requests: LineWriter::new(requests),
            replies: LineReader::new(replies),
            errors: LineReader::new(child.stderr.take()),
            output: LineReader::new(output),
            is_ready: false,
            has_loaded: false,
            idle_since: Instant::now(),
            memory_kills: 0,
            child,
            folder,
        })
    }

    /// Whether it waits for a request, so far as it has said so. Does not wait.
    pub(crate) fn has_become_ready(&mut self) -> bool {
        while !self.is_ready && self.replies.fill().now_or_never().is_some_and(|count| count > 0) {
            while let Some(line) = self.replies.take_line() {
                self.is_ready |= matches!(message::parse(line), Line::Notification { method, .. } if method == "ready");
            }
        }
        self.has_loaded |= self.is_ready;
        self.is_ready
    }

    /// Whether one of its processes was killed for memory since this was last asked.
    pub(super) async fn ran_out_of_memory(&mut self) -> bool {
        let kills = self.child.memory_kills().await.unwrap_or(self.memory_kills);
        kills > std::mem::replace(&mut self.memory_kills, kills)
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
