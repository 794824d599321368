//! Supervisors forked ahead of need: a call then pays neither for their fork nor for their namespaces and groups.
//!
//! A place gets its first spare when the first request for it arrives, or is expected, so that what is never used costs
//! nothing.

use std::{
    collections::HashMap,
    io,
    os::fd::{AsFd, BorrowedFd, OwnedFd},
};

use rustix::{
    event::{PollFd, PollFlags, Timespec, poll},
    pipe::{PipeFlags, pipe_with},
};
use skillz_sandbox::builtin::Confinement;

use super::{cgroup::Cgroups, requests, supervisor};
use crate::{
    sys::{self, Forked},
    wire::{Event, Failure, Place},
};

/// Most supervisors that wait in one place. Two, so that while one gets ready the other can in a burst of requests.
const MOST_WAITING: usize = 2;

/// The waiting supervisors of all places.
pub(super) struct Spares {
    /// One for each place; requests arrive there.
    lines: [OwnedFd; 3],
    /// Supervisors write their numbers in here when they have taken a request.
    taken: OwnedFd,
    tell_taken: OwnedFd,
    /// The waiting ones by their numbers.
    waiting: HashMap<u64, Place>,
    /// Places in which there were requests so far, or will be.
    used: [bool; 3],
    last_number: u64,
    /// Made when the first confined tree is wanted.
    confinement: Option<Confinement>,
}

impl Spares {
    pub(super) fn new(lines: [OwnedFd; 3]) -> io::Result<Self> {
        let (taken, tell_taken) = pipe_with(PipeFlags::CLOEXEC | PipeFlags::NONBLOCK)?;
        Ok(Self { lines, taken, tell_taken, waiting: HashMap::new(), used: [false; 3], last_number: 0, confinement: None })
    }

    /// What tells that there may be something to do: the word of supervisors, and lines on which nobody waits.
    pub(super) fn watched(&self) -> impl Iterator<Item = BorrowedFd<'_>> {
        let lonely = Place::ALL.into_iter().filter(|place| self.count(*place) == 0).map(|place| self.line(place));
        [self.taken.as_fd()].into_iter().chain(lonely.map(AsFd::as_fd))
    }

    /// Notes which supervisors have taken a request.
    pub(super) fn count_taken(&mut self) {
        let mut number = [0_u8; 8];
        while let Ok(8) = rustix::io::read(&self.taken, &mut number) {
            self.forget(u64::from_le_bytes(number));
        }
    }

    /// Notes that a supervisor does not wait any more.
    pub(super) fn forget(&mut self, number: u64) {
        self.waiting.remove(&number);
    }

    /// Expects a request in a place, by its index.
    pub(super) fn expect(&mut self, index: usize) {
        if let Some(used) = self.used.get_mut(index) {
            *used = true;
        }
    }

    /// A place that needs one more.
    pub(super) fn wanted(&mut self) -> Option<Place> {
        Place::ALL.into_iter().find(|place| {
            let waiting = self.count(*place);
            let asked_for = waiting < MOST_WAITING && self.has_request(*place);
            let used = self.used.get_mut(place.index());
            let Some(used) = used else { return false };
            *used |= asked_for;
            asked_for || (*used && waiting == 0)
        })
    }

    fn count(&self, place: Place) -> usize {
        self.waiting.values().filter(|waiting| **waiting == place).count()
    }

    fn has_request(&self, place: Place) -> bool {
        let now = Timespec { tv_sec: 0, tv_nsec: 0 };
        let mut descriptors = [PollFd::new(self.line(place), PollFlags::IN)];
        // A line whose other end is closed is ready to be read, too, but nothing will ever come of it.
        poll(&mut descriptors, Some(&now)).is_ok()
            && descriptors.iter().all(|line| line.revents().contains(PollFlags::IN) && !line.revents().contains(PollFlags::HUP))
    }

    fn line(&self, place: Place) -> &OwnedFd {
        let [open, confined, connected] = &self.lines;
        match place {
            Place::Open => open,
            Place::Confined { network: false } => confined,
            Place::Confined { network: true } => connected,
        }
    }

    /// The number of the supervisor forked last.
    pub(super) fn last_number(&self) -> u64 {
        self.last_number
    }

    /// Forks a supervisor; `None` if that cannot be done, which is told to whoever asked.
    pub(super) fn fork(&mut self, place: Place) -> Option<Forked> {
        self.last_number += 1;
        let forked = match place {
            Place::Open => sys::fork().map_err(|error| Failure::Setup { message: format!("the helper could not fork: {error}") }),
            Place::Confined { network } => self.fork_confined(network),
        };
        match forked {
            Ok(forked) => {
                self.waiting.insert(self.last_number, place);
                Some(forked)
            }
            Err(failure) => {
                self.refuse(place, failure);
                None
            }
        }
    }

    fn fork_confined(&mut self, network: bool) -> Result<Forked, Failure> {
        let confinement = self.confinement.get_or_insert_with(Confinement::prepare);
        confinement.refresh();
        sys::fork_into(confinement.namespaces(network))
            .map_err(|error| Failure::Sandbox { reason: Confinement::refused(&error).to_string() })
    }

    /// Answers a request that no supervisor can be forked for.
    fn refuse(&mut self, place: Place, failure: Failure) {
        // Not again before the next request.
        if let Some(used) = self.used.get_mut(place.index()) {
            *used = false;
        }
        if self.has_request(place)
            && let Some(descriptors) = requests::receive_request(self.line(place))
        {
            supervisor::tell(&descriptors.control, &Event::Failed(failure));
        }
    }

    /// In the fork: what the supervisor needs of all this. The rest is closed.
    pub(super) fn into_means(self, place: Place, cgroups: Cgroups) -> supervisor::Means {
        let [open, confined, connected] = self.lines;
        let (line, confinement) = match place {
            Place::Open => (open, None),
            Place::Confined { network: false } => (confined, self.confinement),
            Place::Confined { network: true } => (connected, self.confinement),
        };
        supervisor::Means { line, place, confinement, cgroups, number: self.last_number, tell_taken: self.tell_taken }
    }
}
