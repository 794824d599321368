//! Receiving a request: the descriptors of a new tree.

use std::{io::IoSliceMut, mem::MaybeUninit, os::fd::OwnedFd};

use rustix::{
    io::Errno,
    net::{RecvAncillaryBuffer, RecvAncillaryMessage, RecvFlags, recvmsg},
};

use crate::wire::Place;

/// What a new tree is connected with.
pub(super) struct Descriptors {
    /// To the server: request in, events out.
    pub(super) control: OwnedFd,
    pub(super) stdin: OwnedFd,
    pub(super) stdout: OwnedFd,
    pub(super) stderr: OwnedFd,
}

/// What was on the line.
pub(super) enum Received {
    Request(Place, Descriptors),
    /// Nothing that makes sense; go on.
    Nothing,
    /// The server is gone.
    Closed,
}

/// Takes one message off the line.
pub(super) fn receive(line: &OwnedFd) -> Received {
    let mut space = [MaybeUninit::uninit(); rustix::cmsg_space!(ScmRights(4))];
    let mut ancillary = RecvAncillaryBuffer::new(&mut space);
    let mut byte = [0];
    let flags = RecvFlags::CMSG_CLOEXEC | RecvFlags::DONTWAIT;
    match recvmsg(line, &mut [IoSliceMut::new(&mut byte)], &mut ancillary, flags) {
        Ok(message) if message.bytes == 0 => Received::Closed,
        Ok(_) => {
            let [code] = byte;
            match (Place::from_code(code), descriptors(&mut ancillary)) {
                (Some(place), Some(descriptors)) => Received::Request(place, descriptors),
                _ => Received::Nothing,
            }
        }
        Err(Errno::AGAIN | Errno::INTR) => Received::Nothing,
        Err(_) => Received::Closed,
    }
}

fn descriptors(ancillary: &mut RecvAncillaryBuffer<'_>) -> Option<Descriptors> {
    let mut rights = ancillary.drain().filter_map(|message| match message {
        RecvAncillaryMessage::ScmRights(rights) => Some(rights),
        _ => None,
    });
    let mut rights = rights.next()?;
    Some(Descriptors { control: rights.next()?, stdin: rights.next()?, stdout: rights.next()?, stderr: rights.next()? })
}
