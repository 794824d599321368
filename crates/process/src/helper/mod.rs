//! The helper process: takes requests from the server and forks a supervisor for each tree.
//!
//! One thread, no runtime, little memory: a fork of it is cheap and may run any code. It ends when the line to the
//! server closes, however the server ended, and leaves nothing behind.

mod cgroup;
mod exec;
mod hierarchies;
mod kill;
mod limits;
mod requests;
mod sampling;
mod supervisor;

use std::{
    collections::HashMap,
    os::fd::{AsFd, OwnedFd},
    time::{Duration, Instant},
};

use rustix::{
    event::{PollFd, PollFlags, Timespec, poll},
    process::{Pid, Signal, WaitOptions, set_child_subreaper, set_parent_process_death_signal, setsid, wait},
};

use skillz_sandbox::builtin::Confinement;

use self::cgroup::Cgroups;
use crate::{
    sys::{self, Forked},
    wire::{Event, Failure, Place},
};

/// How long the supervisors get to end their trees once the server is gone, before the helper kills what is left.
const FAREWELL: Duration = Duration::from_millis(800);

/// How often the helper looks for stragglers while it ends.
const FAREWELL_STEP: Duration = Duration::from_millis(20);

/// Runs the helper process. Its stdin is the line to the server.
pub(crate) fn run() -> ! {
    let code = match Helper::new() {
        Ok(helper) => helper.serve(),
        // Nobody reads the helper's words; the server sees its line close.
        Err(_) => 1,
    };
    sys::exit(code)
}

struct Helper {
    line: OwnedFd,
    signals: OwnedFd,
    /// What all confined trees share; made at the first one.
    confinement: Option<Confinement>,
    cgroups: Cgroups,
    /// The number of the last tree.
    last_number: u64,
    /// Supervisors alive, with the numbers of their trees. Any other child is an orphan that lost its supervisor.
    supervisors: HashMap<i32, u64>,
}

/// What the helper is to do.
enum Next {
    Nothing,
    Supervise(Place, requests::Descriptors),
    End,
}

impl Helper {
    fn new() -> std::io::Result<Self> {
        // A group of its own: what is sent to the server's group must not hit the one that cleans up.
        let _ = setsid();
        let _ = rustix::thread::set_name(c"tool-launcher");
        set_child_subreaper(Some(rustix::process::getpid()))?;
        sys::reset_signals();
        // The closing line says it as well; this also holds if somebody else got hold of the server's end.
        set_parent_process_death_signal(Some(Signal::TERM))?;
        sys::close_others_on_exec();
        let line = sys::stdin()?;
        let nothing =
            rustix::fs::open("/dev/null", rustix::fs::OFlags::RDWR | rustix::fs::OFlags::CLOEXEC, rustix::fs::Mode::empty())?;
        sys::place(nothing.as_fd(), 0)?;
        let signals = sys::watch_signals(&[libc::SIGCHLD, libc::SIGTERM, libc::SIGINT, libc::SIGHUP])?;
        Ok(Self { line, signals, confinement: None, cgroups: Cgroups::find(), last_number: 0, supervisors: HashMap::new() })
    }

    fn serve(mut self) -> i32 {
        loop {
            match self.next() {
                Next::Nothing => {}
                Next::End => return self.end(),
                Next::Supervise(place, descriptors) => match self.fork(place) {
                    Ok(Forked::Parent(pid)) => {
                        self.supervisors.insert(pid, self.last_number);
                    }
                    Ok(Forked::Child) => {
                        let Self { line, signals, confinement, cgroups, last_number, .. } = self;
                        // The server must see its line close when the helper is gone.
                        drop((line, signals));
                        supervisor::run(descriptors, &supervisor::Means { confinement, cgroups, number: last_number })
                    }
                    Err(failure) => supervisor::tell(&descriptors.control, &Event::Failed(failure)),
                },
            }
        }
    }

    fn fork(&mut self, place: Place) -> Result<Forked, Failure> {
        self.last_number += 1;
        let Place::Confined { network } = place else {
            let failed = |error| Failure::Setup { message: format!("the helper could not fork: {error}") };
            return sys::fork().map_err(failed);
        };
        let confinement = self.confinement.get_or_insert_with(Confinement::prepare);
        confinement.refresh();
        let refused = |error| Failure::Sandbox { reason: Confinement::refused(&error).to_string() };
        sys::fork_into(confinement.namespaces(network)).map_err(refused)
    }

    /// Waits for something to do.
    fn next(&mut self) -> Next {
        let mut descriptors = [PollFd::new(&self.line, PollFlags::IN), PollFd::new(&self.signals, PollFlags::IN)];
        if poll(&mut descriptors, None).is_err() {
            return Next::Nothing;
        }
        let [line, signals] = descriptors.map(|descriptor| !descriptor.revents().is_empty());
        if signals && !self.take_signals() {
            return Next::End;
        }
        if !line {
            return Next::Nothing;
        }
        match requests::receive(&self.line) {
            requests::Received::Request(place, descriptors) => Next::Supervise(place, descriptors),
            requests::Received::Nothing => Next::Nothing,
            requests::Received::Closed => Next::End,
        }
    }

    /// Reaps the dead; `false` if the helper was told to end.
    fn take_signals(&mut self) -> bool {
        let mut told_to_end = false;
        // One record of `signalfd` is 128 bytes, the signal's number its first four.
        let mut record = [0_u8; 128];
        while let Ok(128) = rustix::io::read(&self.signals, &mut record) {
            let number = record.first_chunk().map(|bytes| i32::from_le_bytes(*bytes));
            told_to_end |= number.is_some_and(|number| number != libc::SIGCHLD);
        }
        self.reap();
        !told_to_end
    }

    fn reap(&mut self) {
        let mut lost_supervisor = false;
        while let Ok(Some((pid, status))) = wait(WaitOptions::NOHANG) {
            let Some(number) = self.supervisors.remove(&pid.as_raw_nonzero().get()) else { continue };
            lost_supervisor |= status.exit_status().is_none();
            self.cgroups.remove(number);
        }
        if lost_supervisor {
            self.kill_orphans();
        }
    }

    /// Kills children that no supervisor looks after, until there are none.
    fn kill_orphans(&mut self) {
        let deadline = Instant::now() + FAREWELL;
        while Instant::now() < deadline {
            let orphans: Vec<i32> =
                kill::children_of_self().into_iter().filter(|pid| !self.supervisors.contains_key(pid)).collect();
            if orphans.is_empty() {
                return;
            }
            for orphan in orphans.into_iter().filter_map(Pid::from_raw) {
                let _ = rustix::process::kill_process(orphan, Signal::KILL);
                let _ = rustix::process::waitpid(Some(orphan), WaitOptions::empty());
            }
        }
    }

    /// Ends: the supervisors have seen the server's end of their sockets close, too, and kill their trees. What they do
    /// not get done in time is killed here.
    fn end(mut self) -> i32 {
        let deadline = Instant::now() + FAREWELL;
        let step = Timespec { tv_sec: 0, tv_nsec: FAREWELL_STEP.subsec_nanos().into() };
        while !self.supervisors.is_empty() && Instant::now() < deadline {
            let mut descriptors = [PollFd::new(&self.signals, PollFlags::IN)];
            let _ = poll(&mut descriptors, Some(&step));
            self.take_signals();
        }
        for supervisor in self.supervisors.drain().filter_map(|(pid, _)| Pid::from_raw(pid)) {
            let _ = rustix::process::kill_process(supervisor, Signal::KILL);
        }
        self.kill_orphans();
        self.cgroups.remove_all();
        0
    }
}
