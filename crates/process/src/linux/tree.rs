//! The server's end of one tree: a socket to the tree's supervisor. Closing it kills the tree.

use std::{io, os::unix::net::UnixStream as StdStream, sync::Arc};

use tokio::{
    io::{AsyncReadExt, AsyncWriteExt},
    net::UnixStream,
};

use super::connection::Connection;
use crate::{
    Command, Exit, ProcessError,
    wire::{self, Event, Failure, Request},
};

/// One tree, followed through its supervisor.
#[derive(Debug)]
pub(crate) struct Tree {
    control: UnixStream,
    /// Bytes of an event that has not arrived whole yet; kept here so that waiting can be cancelled.
    buffer: Vec<u8>,
    /// How the tree ended, if that was told while something else was waited for.
    exit: Option<Exit>,
    /// The helper stays while any tree of its lives.
    _connection: Arc<Connection>,
}

/// What the supervisor told when the program had started.
#[derive(Debug, Clone, Copy)]
pub(crate) struct Started {
    pub(crate) facts: wire::Facts,
}

impl Tree {
    pub(crate) fn new(control: StdStream, connection: Arc<Connection>) -> Result<Self, ProcessError> {
        let open = || {
            control.set_nonblocking(true)?;
            UnixStream::from_std(control)
        };
        let control = open().map_err(|error: std::io::Error| ProcessError::Launcher(error.to_string()))?;
        Ok(Self { control, buffer: Vec::new(), exit: None, _connection: connection })
    }

    /// Sends the request and waits until the program runs.
    pub(crate) async fn start(&mut self, request: &Request) -> Result<Started, ProcessError> {
        let command = &request.command;
        self.say(&wire::encode_request(request)).await;
        match self.event().await? {
            Event::Started(facts) => Ok(Started { facts }),
            Event::Failed(Failure::Program { errno }) => Err(not_executed(command, errno)),
            Event::Failed(Failure::Directory { errno }) => Err(not_entered(command, errno)),
            Event::Failed(Failure::Setup { message }) => Err(not_started(command, io::Error::other(message))),
            Event::Failed(Failure::Sandbox { reason }) => Err(ProcessError::Sandbox { reason }),
            Event::Exited(_) | Event::MemoryKills(_) => Err(lost()),
        }
    }

    /// Waits until the root has ended and the tree is gone. May be cancelled.
    pub(crate) async fn wait(&mut self) -> Result<Exit, ProcessError> {
        while self.exit.is_none() {
            self.follow().await?;
        }
        self.exit.ok_or_else(lost)
    }

    /// Asks how often the kernel has killed for memory.
    pub(crate) async fn memory_kills(&mut self) -> Result<u64, ProcessError> {
        self.say(&[wire::ASK_MEMORY_KILLS]).await;
        loop {
            match self.event().await? {
                Event::MemoryKills(count) => return Ok(u64::from(count)),
                // It ended before it heard the question; its end is the answer.
                Event::Exited(exit) => {
                    self.exit = Some(exit);
                    return Ok(u64::from(exit == Exit::MemoryLimit));
                }
                Event::Started(_) | Event::Failed(_) => {}
            }
        }
    }

    async fn follow(&mut self) -> Result<(), ProcessError> {
        if let Event::Exited(exit) = self.event().await? {
            self.exit = Some(exit);
        }
        Ok(())
    }

    /// Tells the supervisor to kill the tree. Does not wait.
    pub(crate) fn kill(&mut self) {
        // The socket takes a byte at once, or the supervisor is gone.
        let _ = self.control.try_write(&[wire::KILL]);
    }

    /// Tells the other end something. It may have said its last word and closed before it heard this, so a failure to
    /// write says nothing: what it told, or that it told nothing, shows when its events are read.
    async fn say(&mut self, message: &[u8]) {
        let _ = self.control.write_all(message).await;
    }

    async fn event(&mut self) -> Result<Event, ProcessError> {
        loop {
            if let Some(event) = wire::take_event(&mut self.buffer) {
                return event.ok_or_else(|| ProcessError::Launcher("its message could not be read".to_owned()));
            }
            let mut chunk = [0; 1024];
            match self.control.read(&mut chunk).await {
                Ok(count @ 1..) => self.buffer.extend_from_slice(chunk.get(..count).unwrap_or_default()),
                _ => return Err(lost()),
            }
        }
    }
}

/// The kernel says "no such file" also where the file is there and what is to run it is not.
fn not_executed(command: &Command, errno: i32) -> ProcessError {
    let error = io::Error::from_raw_os_error(errno);
    if errno != libc::ENOENT || !command.program.exists() {
        return not_started(command, error);
    }
    let where_to_look = match command.policy {
        Some(_) => "the sandbox does not show it, or not the interpreter that its first line names",
        None => "the interpreter that its first line names, or its loader, is missing",
    };
    not_started(command, io::Error::new(io::ErrorKind::NotFound, format!("the file is there, but {where_to_look}")))
}

fn not_entered(command: &Command, errno: i32) -> ProcessError {
    let error = io::Error::from_raw_os_error(errno);
    let hidden = command.policy.is_some() && command.directory.is_dir();
    let hint = if hidden { "; it is there, but the sandbox does not show it" } else { "" };
    let message = format!("its working folder `{}` cannot be entered: {error}{hint}", command.directory.display());
    not_started(command, io::Error::new(error.kind(), message))
}

fn not_started(command: &Command, source: io::Error) -> ProcessError {
    ProcessError::Start { program: command.program.display().to_string(), source }
}

fn lost() -> ProcessError {
    ProcessError::Launcher("the supervisor of the process was killed from outside".to_owned())
}
