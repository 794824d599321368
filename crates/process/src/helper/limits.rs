//! Keeping one tree's limits, by the best means there are: control group, resource limit, or looking.

use std::{io, time::Duration};

use rustix::{
    event::Timespec,
    process::{Resource, getuid},
};

use super::{
    cgroup::Group,
    exec::lower,
    sampling::{self, Sample},
};
use crate::{Exit, LimitMethod, ProcessLimits};

/// How often a tree is looked at. A program can take some 100 MB in that time.
const INTERVAL: Duration = Duration::from_millis(50);

/// The first kernel that counts a user's processes for each user namespace apart.
const COUNTS_BY_NAMESPACE: (u32, u32) = (5, 14);

/// One tree's limits and how they are kept.
#[derive(Debug)]
pub(super) struct Keeper {
    group: Group,
    limits: ProcessLimits,
    confined: bool,
    memory: LimitMethod,
    processes: LimitMethod,
}

impl Keeper {
    /// Decides how to keep a tree's limits. Before confinement, since groups lie outside.
    pub(super) fn new(limits: ProcessLimits, mut group: Group, confined: bool) -> Self {
        let memory = match limits.memory_bytes {
            None => LimitMethod::None,
            Some(bytes) if group.limit_memory(bytes) => LimitMethod::Cgroup,
            Some(_) => LimitMethod::Sampling,
        };
        let processes = match limits.max_processes {
            None => LimitMethod::None,
            Some(count) if group.limit_processes(count) => LimitMethod::Cgroup,
            Some(_) if confined && has_own_count() => LimitMethod::Rlimit,
            Some(_) => LimitMethod::Sampling,
        };
        Self { group, limits, confined, memory, processes }
    }

    pub(super) fn methods(&self) -> (LimitMethod, LimitMethod) {
        (self.memory, self.processes)
    }

    /// Puts the calling process, which is to become the program, under the limits.
    pub(super) fn apply(&self) -> io::Result<()> {
        if let Some(most) = self.most_processes_of_user() {
            lower(Resource::Nproc, most, most)?;
        }
        if let Some(bytes) = self.limits.max_file_bytes {
            lower(Resource::Fsize, bytes, bytes)?;
        }
        Ok(())
    }

    /// How many processes and threads the user may have, where the kernel is to keep an eye on that.
    fn most_processes_of_user(&self) -> Option<u64> {
        let count = u64::from(self.limits.max_processes?);
        match self.processes {
            // The namespace's first process is the supervisor, and counts.
            LimitMethod::Rlimit => Some(count + 1),
            // All of this user's processes count, whatever they are, and they are no more than all that there are. So
            // this is no limit for the tree; it keeps a fork bomb small until somebody looks.
            LimitMethod::Sampling => Some(u64::from(rustix::system::sysinfo().procs) + count),
            LimitMethod::Cgroup | LimitMethod::None => None,
        }
    }

    /// How long to wait between two looks; `None` where none are needed.
    pub(super) fn interval(&self) -> Option<Timespec> {
        let looks = self.memory == LimitMethod::Sampling || self.processes == LimitMethod::Sampling;
        looks.then_some(Timespec { tv_sec: 0, tv_nsec: INTERVAL.subsec_nanos().into() })
    }

    /// Looks at the tree; gives its end if it has gone beyond a limit.
    pub(super) fn look(&self) -> Option<Exit> {
        let members = sampling::members(self.confined);
        let Sample { memory_bytes, tasks } = sampling::sample(&members);
        let exceeds = |method: LimitMethod, limit: Option<u64>, used: u64| {
            method == LimitMethod::Sampling && limit.is_some_and(|limit| used > limit)
        };
        let memory = |used| exceeds(self.memory, self.limits.memory_bytes, used);
        if memory(memory_bytes) && memory(sampling::exact_memory(&members)) {
            return Some(Exit::MemoryLimit);
        }
        exceeds(self.processes, self.limits.max_processes.map(u64::from), tasks).then_some(Exit::ProcessLimit)
    }

    /// Before the kill: lets nobody fork any more, where that can be said.
    pub(super) fn freeze(&mut self) {
        self.group.forbid_forks();
    }

    /// How the tree ended, given how its root did: the kernel kills for memory without saying so.
    pub(super) fn verdict(&mut self, exit: Exit) -> Exit {
        match exit {
            Exit::Code(0) => exit,
            _ if self.group.memory_kills() > 0 => Exit::MemoryLimit,
            _ => exit,
        }
    }

    /// How often the kernel has killed in the tree for memory so far.
    pub(super) fn memory_kills(&mut self) -> u64 {
        self.group.memory_kills()
    }
}

/// Whether the kernel counts this user's processes in a confined tree for themselves. It never limits root.
fn has_own_count() -> bool {
    if getuid().is_root() {
        return false;
    }
    let name = rustix::system::uname();
    let release = name.release().to_string_lossy();
    let mut numbers = release.split(['.', '-', '+']).map(|part| part.parse::<u32>().unwrap_or(0));
    (numbers.next().unwrap_or(0), numbers.next().unwrap_or(0)) >= COUNTS_BY_NAMESPACE
}
