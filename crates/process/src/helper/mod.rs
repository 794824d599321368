//! The helper process: keeps supervisors ready and cleans up behind them.
//!
//! One thread, no runtime, little memory: a fork of it is cheap and may run any code. Requests go from the server
//! straight to supervisors that were forked ahead and wait on the line of their place; the helper forks the next one
//! when one has taken a request. It ends when the server is gone, however that came about, and leaves nothing behind.

mod cgroup;
mod exec;
mod hierarchies;
mod kill;
mod limits;
mod requests;
mod sampling;
mod spares;
mod supervisor;

use std::{
    collections::HashMap,
    os::fd::{AsFd, OwnedFd},
    time::{Duration, Instant},
};

use rustix::{
    event::{PollFd, PollFlags, Timespec, poll},
    fs::{Mode, OFlags},
    process::{Pid, Signal, WaitOptions, set_child_subreaper, set_parent_process_death_signal, setsid, wait},
};

use self::{cgroup::Cgroups, spares::Spares};
use crate::sys;

/// How long the supervisors get to end their trees once the server is gone, before the helper kills what is left.
const FAREWELL: Duration = Duration::from_millis(800);

/// How often the helper looks for stragglers while it ends.
const FAREWELL_STEP: Duration = Duration::from_millis(20);

/// Runs the helper process. Its stdin is the line whose end is the server's.
pub(crate) fn run() -> ! {
    let code = match Helper::new() {
        Ok(Some(helper)) => helper.serve(),
        // Nobody reads the helper's words; the server sees its lines close.
        Ok(None) | Err(_) => 1,
    };
    sys::exit(code)
}

struct Helper {
    /// Closes with the server, and names places to prepare for.
    life: OwnedFd,
    signals: OwnedFd,
    spares: Spares,
    cgroups: Cgroups,
    /// Supervisors alive, with the numbers of their trees. Any other child is an orphan that lost its supervisor.
    supervisors: HashMap<i32, u64>,
}

impl Helper {
    /// `None` if the server is gone already.
    fn new() -> std::io::Result<Option<Self>> {
        // A group of its own: what is sent to the server's group must not hit the one that cleans up.
        let _ = setsid();
        let _ = rustix::thread::set_name(c"tool-launcher");
        set_child_subreaper(Some(rustix::process::getpid()))?;
        sys::reset_signals();
        // The closing line says it as well; this also holds if somebody else got hold of the server's end.
        set_parent_process_death_signal(Some(Signal::TERM))?;
        sys::close_others_on_exec();
        let life = sys::stdin()?;
        let nothing = rustix::fs::open("/dev/null", OFlags::RDWR | OFlags::CLOEXEC, Mode::empty())?;
        sys::place(nothing.as_fd(), 0)?;
        let signals = sys::watch_signals(&[libc::SIGCHLD, libc::SIGTERM, libc::SIGINT, libc::SIGHUP])?;
        let Some(lines) = requests::receive_lines(&life) else { return Ok(None) };
        let spares = Spares::new(lines)?;
        Ok(Some(Self { life, signals, spares, cgroups: Cgroups::find(), supervisors: HashMap::new() }))
    }

    fn serve(mut self) -> i32 {
        loop {
            if !self.attend() {
                return self.end();
            }
            while let Some(place) = self.spares.wanted() {
                match self.spares.fork(place) {
                    Some(sys::Forked::Parent(pid)) => {
                        self.supervisors.insert(pid, self.spares.last_number());
                    }
                    Some(sys::Forked::Child) => {
                        let Self { life, signals, spares, cgroups, .. } = self;
                        // Nothing of the helper's must stay open in there, or its end could not be seen.
                        drop((life, signals));
                        supervisor::run(spares.into_means(place, cgroups))
                    }
                    // Back to listening: the server may have gone meanwhile, and then there is nobody to fork for.
                    None => break,
                }
            }
        }
    }

    /// Waits for something to happen. `false` once it is time to end.
    fn attend(&mut self) -> bool {
        let mut descriptors = vec![PollFd::new(&self.life, PollFlags::IN), PollFd::new(&self.signals, PollFlags::IN)];
        descriptors.extend(self.spares.watched().map(|descriptor| PollFd::from_borrowed_fd(descriptor, PollFlags::IN)));
        if poll(&mut descriptors, None).is_err() {
            return true;
        }
        let happened = |index: usize| descriptors.get(index).is_some_and(|descriptor| !descriptor.revents().is_empty());
        let (life, signals) = (happened(0), happened(1));
        drop(descriptors);
        self.spares.count_taken();
        (!life || self.listen()) && (!signals || self.take_signals())
    }

    /// Hears which place the server will need; `false` if the server is gone.
    fn listen(&mut self) -> bool {
        let mut index = [0_u8; 1];
        match rustix::io::read(&self.life, &mut index) {
            Ok(1..) => {
                let [index] = index;
                self.spares.expect(usize::from(index));
                true
            }
            Err(rustix::io::Errno::INTR) => true,
            Ok(_) | Err(_) => false,
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
        while let Ok(Some((pid, status))) = wait(WaitOptions::NOHANG | WaitOptions::UNTRACED) {
            if status.stopped() {
                // An unconfined program may stop its supervisor. It ends instead, and its tree with it.
                let _ = rustix::process::kill_process(pid, Signal::KILL);
                continue;
            }
            let Some(number) = self.supervisors.remove(&pid.as_raw_nonzero().get()) else { continue };
            lost_supervisor |= status.exit_status().is_none();
            self.spares.forget(number);
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
            let children = kill::children_of_self();
            let orphans: Vec<i32> = children.into_iter().filter(|pid| !self.supervisors.contains_key(pid)).collect();
            if orphans.is_empty() {
                return;
            }
            for orphan in orphans.into_iter().filter_map(Pid::from_raw) {
                let _ = rustix::process::kill_process(orphan, Signal::KILL);
                let _ = rustix::process::waitpid(Some(orphan), WaitOptions::empty());
            }
        }
    }

    /// Ends: the supervisors have seen the server's ends of their sockets close, too, and kill their trees. What they do
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
