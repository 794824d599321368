//! The lines to the helper process, and the thread that starts and reaps it.

use std::{
    io::IoSlice,
    mem::MaybeUninit,
    os::{
        fd::{AsFd, BorrowedFd, OwnedFd},
        unix::process::CommandExt,
    },
    path::{Path, PathBuf},
    process::Stdio,
    sync::mpsc,
    time::Duration,
};

use rustix::{
    io::Errno,
    net::{AddressFamily, SendAncillaryBuffer, SendAncillaryMessage, SendFlags, SocketFlags, SocketType, sendmsg, socketpair},
};

use tokio::sync::watch;

use crate::{HELPER_ARGUMENT, ProcessError, wire::Place};

/// The helper's name in process lists. Without the server's name in it, so that `killall` and `pkill -f` of the server
/// leave the one alone that cleans up after it.
const HELPER_NAME: &str = "tool-launcher";

/// How long to wait before a full queue is tried again. It holds some 200 requests, which the helper takes at once.
const RETRY: Duration = Duration::from_millis(1);

/// The lines to a helper. Closing them ends the helper, and with it all that the helper started.
#[derive(Debug)]
pub(crate) struct Connection {
    /// The helper holds the other end for as long as it lives. It carries the other lines' ends, once, and then places to
    /// prepare for.
    life: OwnedFd,
    /// One for each [`Place`].
    lines: [OwnedFd; 3],
    /// Tells when the helper has been reaped.
    over: watch::Receiver<bool>,
}

impl Connection {
    /// Starts a helper.
    pub(crate) fn open(program: &Path) -> Result<Self, ProcessError> {
        let lost = |error: String| ProcessError::Launcher(format!("it could not be started: {error}"));
        let pair = || {
            let kind = SocketType::SEQPACKET;
            socketpair(AddressFamily::UNIX, kind, SocketFlags::CLOEXEC, None).map_err(|error| lost(error.to_string()))
        };
        let (life, other_life) = pair()?;
        let (open, other_open) = pair()?;
        let (confined, other_confined) = pair()?;
        let (connected, other_connected) = pair()?;
        let others = [other_open.as_fd(), other_confined.as_fd(), other_connected.as_fd()];
        send(&life, &others).map_err(|error| lost(error.to_string()))?;

        let program = running_binary(program);
        let (report, started) = mpsc::channel();
        let (set_over, over) = watch::channel(false);
        // The helper asks to be told when its parent ends, and the kernel means the thread that forked it. So a thread
        // forks it that lives as long as the server and has nothing to do but reap it.
        std::thread::Builder::new()
            .name("helper-watch".to_owned())
            .spawn(move || {
                start_and_reap(&program, other_life, &report);
                set_over.send_replace(true);
            })
            .map_err(|error| lost(error.to_string()))?;
        match started.recv() {
            Ok(Ok(())) => Ok(Self { life, lines: [open, confined, connected], over }),
            Ok(Err(error)) => Err(lost(error.to_string())),
            Err(_) => Err(lost("the thread that starts it ended".to_owned())),
        }
    }

    /// Tells when the helper has been reaped, also after the lines are closed.
    pub(crate) fn over(&self) -> watch::Receiver<bool> {
        self.over.clone()
    }

    /// Has a supervisor prepared for `place`.
    pub(crate) fn prepare(&self, place: Place) {
        let index = u8::try_from(place.index()).unwrap_or_default();
        // It is a favour only; what fails here shows at the first tree.
        let _ = rustix::net::send(&self.life, &[index], SendFlags::NOSIGNAL | SendFlags::DONTWAIT);
    }

    /// Passes a tree's descriptors to a supervisor in `place`; `false` if the helper is gone.
    pub(crate) async fn send(&self, place: Place, descriptors: &[BorrowedFd<'_>]) -> Result<bool, ProcessError> {
        let [open, confined, connected] = &self.lines;
        let line = match place {
            Place::Open => open,
            Place::Confined { network: false } => confined,
            Place::Confined { network: true } => connected,
        };
        while !*self.over.borrow() {
            match send(line, descriptors) {
                Ok(()) => return Ok(true),
                Err(Errno::AGAIN | Errno::NOBUFS) => tokio::time::sleep(RETRY).await,
                Err(Errno::PIPE | Errno::CONNRESET | Errno::NOTCONN) => break,
                Err(error) => return Err(ProcessError::Launcher(error.to_string())),
            }
        }
        Ok(false)
    }
}

/// Sends descriptors, without waiting for room.
fn send(line: &OwnedFd, descriptors: &[BorrowedFd<'_>]) -> Result<(), Errno> {
    let mut space = [MaybeUninit::uninit(); rustix::cmsg_space!(ScmRights(6))];
    let mut ancillary = SendAncillaryBuffer::new(&mut space);
    ancillary.push(SendAncillaryMessage::ScmRights(descriptors));
    let flags = SendFlags::NOSIGNAL | SendFlags::DONTWAIT;
    sendmsg(line, &[IoSlice::new(b"d")], &mut ancillary, flags).map(drop)
}

/// The file to execute. Where `program` is the running binary, its in-memory link is used: the file may have been
/// replaced by an upgrade since, and its helper might speak another language.
fn running_binary(program: &Path) -> PathBuf {
    let own = std::env::current_exe();
    if own.is_ok_and(|own| own == program) { PathBuf::from("/proc/self/exe") } else { program.to_owned() }
}

/// Starts the helper, says so, and reaps it when it ends.
fn start_and_reap(program: &Path, line: OwnedFd, report: &mpsc::Sender<std::io::Result<()>>) {
    let spawned = std::process::Command::new(program)
        .arg0(HELPER_NAME)
        .arg(HELPER_ARGUMENT)
        .env_clear()
        .current_dir("/")
        .stdin(Stdio::from(line))
        .stdout(Stdio::null())
        .stderr(Stdio::null())
        .spawn();
    match spawned {
        Ok(mut helper) => {
            // Nobody listens any more only if the server is ending.
            let _ = report.send(Ok(()));
            let _ = helper.wait();
        }
        Err(error) => {
            let _ = report.send(Err(error));
        }
    }
}
