//! The server's side of the helper process: starts it, keeps the line to it, and hands it requests.
//!
//! A request goes over a line as file descriptors: the control socket of the new tree, the program's stdin,
//! stdout and stderr, and the two of its line to the host where it has one. Everything else passes through the control socket (see `wire`).

mod connection;
mod probe;
mod tree;

use std::{
    os::fd::{AsFd, OwnedFd},
    path::PathBuf,
    sync::{Arc, Mutex, PoisonError},
    time::Duration,
};

use rustix::pipe::{PipeFlags, pipe_with};
use skillz_sandbox::{Policy, SandboxKind};
use tokio::net::unix::pipe;

pub(crate) use self::tree::Tree;
use self::{connection::Connection, tree::Started};
use crate::{Child, ChildInput, ChildOutput, Command, HostLine, ProcessError, wire};

/// How long [`Backend::close`] waits. The helper needs a moment only, if nobody holds a tree any more.
const CLOSE_WAIT: Duration = Duration::from_secs(1);

/// The helper process, started at need and again if it was lost.
#[derive(Debug)]
pub(crate) struct Backend {
    program: PathBuf,
    connection: Mutex<Option<Arc<Connection>>>,
}

/// The child's ends of its three pipes.
struct ChildEnds {
    stdin: OwnedFd,
    stdout: OwnedFd,
    stderr: OwnedFd,
    host: Vec<OwnedFd>,
}

impl Backend {
    pub(crate) fn new(program: PathBuf) -> Self {
        Self { program, connection: Mutex::new(None) }
    }

    pub(crate) fn warm_up(&self, sandbox: SandboxKind) -> Result<(), ProcessError> {
        let policy = confines(sandbox)?.then(Policy::default);
        self.connection()?.prepare(wire::Place::of(policy.as_ref(), confiner(sandbox)));
        Ok(())
    }

    pub(crate) async fn spawn(&self, sandbox: SandboxKind, command: Command, with_host: bool) -> Result<Child, ProcessError> {
        let (child, _started) = self.start(sandbox, command, wire::Purpose::Run, with_host).await?;
        Ok(child)
    }

    /// Closes the lines and waits until the helper has ended, which it does once no tree is left.
    pub(crate) async fn close(&self) {
        let connection = self.connection.lock().unwrap_or_else(PoisonError::into_inner).take();
        if let Some(mut over) = connection.map(|connection| connection.over()) {
            // Trees that somebody still holds keep it alive; it ends with them.
            let _ = tokio::time::timeout(CLOSE_WAIT, over.wait_for(|over| *over)).await;
        }
    }

    async fn start(
        &self,
        sandbox: SandboxKind,
        mut command: Command,
        purpose: wire::Purpose,
        with_host: bool,
    ) -> Result<(Child, Started), ProcessError> {
        if command.policy.is_some() && !confines(sandbox)? {
            command.policy = None;
        }
        let request = wire::Request { command, confiner: confiner(sandbox), purpose };
        let lost = |error: std::io::Error| ProcessError::Launcher(error.to_string());
        let (stdin_read, stdin_write) = pipe_with(PipeFlags::CLOEXEC).map_err(|error| lost(error.into()))?;
        let (stdout_read, stdout_write) = pipe_with(PipeFlags::CLOEXEC).map_err(|error| lost(error.into()))?;
        let (stderr_read, stderr_write) = pipe_with(PipeFlags::CLOEXEC).map_err(|error| lost(error.into()))?;
        let stdin = pipe::Sender::from_owned_fd(stdin_write).map_err(lost)?;
        let stdout = pipe::Receiver::from_owned_fd(stdout_read).map_err(lost)?;
        let stderr = pipe::Receiver::from_owned_fd(stderr_read).map_err(lost)?;
        let mut ends = ChildEnds { stdin: stdin_read, stdout: stdout_write, stderr: stderr_write, host: Vec::new() };
        let mut host = None;
        if with_host {
            let (read, input) = pipe_with(PipeFlags::CLOEXEC).map_err(|error| lost(error.into()))?;
            let (output, write) = pipe_with(PipeFlags::CLOEXEC).map_err(|error| lost(error.into()))?;
            let input = Box::new(pipe::Sender::from_owned_fd(input).map_err(lost)?);
            host = Some(HostLine { input, output: Box::new(pipe::Receiver::from_owned_fd(output).map_err(lost)?) });
            ends.host = vec![read, write];
        }

        let place = wire::Place::of(request.command.policy.as_ref(), request.confiner);
        let mut tree = self.hand_over(place, ends).await?;
        let started = tree.start(&request).await?;
        let child = Child {
            stdin: Some(Box::new(stdin)),
            stdout: Some(Box::new(stdout)),
            stderr: Some(Box::new(stderr)),
            host,
            tree,
            exit: None,
        };
        Ok((child, started))
    }

    /// Gives the helper the ends of a new tree, on a new helper if the old one turns out to be gone.
    async fn hand_over(&self, place: wire::Place, ends: ChildEnds) -> Result<Tree, ProcessError> {
        let (ours, theirs) = std::os::unix::net::UnixStream::pair().map_err(|error| ProcessError::Launcher(error.to_string()))?;
        let standard = [theirs.as_fd(), ends.stdin.as_fd(), ends.stdout.as_fd(), ends.stderr.as_fd()];
        let descriptors: Vec<_> = standard.into_iter().chain(ends.host.iter().map(AsFd::as_fd)).collect();
        let mut connection = self.connection()?;
        if !connection.send(place, &descriptors).await? {
            self.forget(&connection);
            connection = self.connection()?;
            if !connection.send(place, &descriptors).await? {
                return Err(ProcessError::Launcher("it ended right after its start".to_owned()));
            }
        }
        Tree::new(ours, connection)
    }

    fn connection(&self) -> Result<Arc<Connection>, ProcessError> {
        let mut current = self.connection.lock().unwrap_or_else(PoisonError::into_inner);
        if let Some(connection) = &*current {
            return Ok(Arc::clone(connection));
        }
        let connection = Arc::new(Connection::open(&self.program)?);
        *current = Some(Arc::clone(&connection));
        Ok(connection)
    }

    /// Drops a dead connection, unless somebody else has replaced it already.
    fn forget(&self, dead: &Arc<Connection>) {
        let mut current = self.connection.lock().unwrap_or_else(PoisonError::into_inner);
        if current.as_ref().is_some_and(|connection| Arc::ptr_eq(connection, dead)) {
            *current = None;
        }
    }
}

/// Who confines where somebody does.
fn confiner(sandbox: SandboxKind) -> wire::Confiner {
    if sandbox == SandboxKind::Bubblewrap { wire::Confiner::Bubblewrap } else { wire::Confiner::Builtin }
}

/// Whether a sandbox confines at all; an error where it is not to be had.
fn confines(sandbox: SandboxKind) -> Result<bool, ProcessError> {
    match sandbox {
        SandboxKind::None => Ok(false),
        SandboxKind::Auto | SandboxKind::Builtin => Ok(true),
        SandboxKind::Bubblewrap => {
            skillz_sandbox::bubblewrap::find().map_err(|error| ProcessError::Sandbox { reason: error.to_string() })?;
            Ok(true)
        }
        SandboxKind::Firejail | SandboxKind::Nsjail => {
            let reason = format!(
                "The sandbox `{}` is not available in this version. Set `SKILLZ_SANDBOX=builtin` (no outside program needed) \
                 or `SKILLZ_SANDBOX=bubblewrap`, or `SKILLZ_SANDBOX=none`, which runs tools unconfined",
                sandbox.name()
            );
            Err(ProcessError::Sandbox { reason })
        }
    }
}

impl ChildInput for pipe::Sender {
    fn unread(&self) -> Option<usize> {
        bytes_in_pipe(self)
    }
}

impl ChildOutput for pipe::Receiver {
    fn waiting(&self) -> Option<usize> {
        bytes_in_pipe(self)
    }
}

/// How much lies in a pipe, asked by either of its ends.
fn bytes_in_pipe(end: impl AsFd) -> Option<usize> {
    usize::try_from(rustix::io::ioctl_fionread(end).ok()?).ok()
}
