//! A running tree as its owner sees it.

use std::{fmt, time::Duration};

use tokio::io::{AsyncRead, AsyncWrite};

use crate::{ProcessError, backend};

/// How long [`Child::kill`] waits for the tree to be gone. Only a process stuck in the kernel takes that long.
const KILL_WAIT: Duration = Duration::from_secs(2);

/// A running process tree with pipes to its root. Dropping it kills the tree.
pub struct Child {
    /// Writes to the program's stdin; drop it to close.
    pub stdin: Option<Box<dyn ChildInput>>,
    /// Reads the program's stdout.
    pub stdout: Option<Box<dyn ChildOutput>>,
    /// Reads the program's stderr.
    pub stderr: Option<Box<dyn ChildOutput>>,
    /// The line beside the standard streams, for programs started with [`crate::Launcher::spawn_with_host`].
    pub host: Option<HostLine>,
    pub(crate) tree: backend::Tree,
    pub(crate) exit: Option<Exit>,
}

/// A pipe that a program reads.
pub trait ChildInput: AsyncWrite + Send + Unpin {
    /// Bytes that were written and that the program has not read, which can still be asked when it is gone; `None` where
    /// the system does not tell.
    fn unread(&self) -> Option<usize> {
        None
    }
}

/// A pipe that a program writes.
pub trait ChildOutput: AsyncRead + Send + Unpin {
    /// Bytes that the program has written and that nobody has read yet; `None` where the system does not tell.
    fn waiting(&self) -> Option<usize> {
        None
    }
}

/// A line of its own between a program and whoever started it: descriptors [`HostLine::READ`] and [`HostLine::WRITE`] of the
/// program.
pub struct HostLine {
    /// Writes to what the program reads.
    pub input: Box<dyn ChildInput>,
    /// Reads what the program writes.
    pub output: Box<dyn ChildOutput>,
}

impl HostLine {
    /// The descriptor that the program reads; beyond what shells and sandboxes use themselves.
    pub const READ: i32 = 64;
    /// The descriptor that the program writes.
    pub const WRITE: i32 = 65;
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
    /// It was killed because its tree had more processes than allowed. Only where the kernel cannot keep it from
    /// starting them; elsewhere a fork fails.
    ProcessLimit,
}

impl Exit {
    /// Whether it exited with code 0.
    pub fn success(self) -> bool {
        self == Self::Code(0)
    }
}

impl Child {
    /// Waits until the root process has ended. Does not wait for the pipes to close.
    ///
    /// What the root left running is killed first, so that nothing of the tree is alive when this returns, and reading
    /// the pipes to their end afterwards does not block. May be cancelled and called again; gives the same answer each time.
    pub async fn wait(&mut self) -> Result<Exit, ProcessError> {
        if let Some(exit) = self.exit {
            return Ok(exit);
        }
        let exit = self.tree.wait().await?;
        self.exit = Some(exit);
        Ok(exit)
    }

    /// How often the kernel has killed a process of the tree because it was out of memory, as it does where a control
    /// group keeps the limit: it takes the largest, which need not be the root. For workers whose calls are processes.
    pub async fn memory_kills(&mut self) -> Result<u64, ProcessError> {
        if let Some(exit) = self.exit {
            return Ok(u64::from(exit == Exit::MemoryLimit));
        }
        self.tree.memory_kills().await
    }

    /// Kills the whole tree and waits until no process of it is left.
    pub async fn kill(&mut self) {
        self.tree.kill();
        // A tree that cannot be followed any more is being ended by the helper all the same.
        let _ = tokio::time::timeout(KILL_WAIT, self.wait()).await;
    }

    /// Ends politely: closes stdin, waits for `grace`, then kills. For servers that want to put their house in order.
    pub async fn end(&mut self, grace: Duration) {
        self.stdin = None;
        if tokio::time::timeout(grace, self.wait()).await.is_err() {
            self.kill().await;
        }
    }
}

impl fmt::Debug for Child {
    fn fmt(&self, formatter: &mut fmt::Formatter<'_>) -> fmt::Result {
        formatter.debug_struct("Child").field("exit", &self.exit).finish_non_exhaustive()
    }
}
