//! Receiving descriptors: the lines at the start, and those of a new tree with each request.

use std::{io::IoSliceMut, mem::MaybeUninit, os::fd::OwnedFd};

use rustix::{
    io::Errno,
    net::{RecvAncillaryBuffer, RecvAncillaryMessage, RecvFlags, recvmsg},
};

/// What a new tree is connected with.
pub(super) struct Descriptors {
    /// To the server: request in, events out.
    pub(super) control: OwnedFd,
    pub(super) stdin: OwnedFd,
    pub(super) stdout: OwnedFd,
    pub(super) stderr: OwnedFd,
    /// What the program reads from and writes to beside its standard streams, where it was asked for.
    pub(super) host: Vec<OwnedFd>,
}

/// Receives one line for each place. `None` if the server is gone.
pub(super) fn receive_lines(life: &OwnedFd) -> Option<[OwnedFd; 3]> {
    receive(life)?.try_into().ok()
}

/// Waits for a request. `None` if the server is gone.
pub(super) fn receive_request(line: &OwnedFd) -> Option<Descriptors> {
    loop {
        // Anything else makes no sense; the sender sees its socket close.
        let mut received = receive(line)?.into_iter();
        if let (Some(control), Some(stdin), Some(stdout), Some(stderr)) =
            (received.next(), received.next(), received.next(), received.next())
        {
            return Some(Descriptors { control, stdin, stdout, stderr, host: received.collect() });
        }
    }
}

fn receive(line: &OwnedFd) -> Option<Vec<OwnedFd>> {
    let mut space = [MaybeUninit::uninit(); rustix::cmsg_space!(ScmRights(6))];
    let mut ancillary = RecvAncillaryBuffer::new(&mut space);
    let mut byte = [0];
    let bytes = loop {
        match recvmsg(line, &mut [IoSliceMut::new(&mut byte)], &mut ancillary, RecvFlags::CMSG_CLOEXEC) {
            Ok(message) => break message.bytes,
            Err(Errno::INTR) => {}
            Err(_) => return None,
        }
    };
    let rights = ancillary.drain().filter_map(|message| match message {
        RecvAncillaryMessage::ScmRights(rights) => Some(rights),
        _ => None,
    });
    let descriptors = rights.flatten().collect();
    (bytes > 0).then_some(descriptors)
}
