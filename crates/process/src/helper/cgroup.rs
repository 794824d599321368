//! Control groups: where they can be made, one for each limited tree, and their removal.
//!
//! Version 1 has a hierarchy for memory and one for processes; version 2 has one for all. The helper finds out once
//! what works, the supervisors make the groups, and the helper removes them when their supervisor is gone.

use std::{
    fs::{self, File, OpenOptions},
    io::{self, Read, Seek, Write},
    path::{Path, PathBuf},
    time::Duration,
};

use rustix::process::{Pid, Signal, WaitOptions, kill_process, waitpid};

use super::hierarchies::{Base, Controller, Version, candidates};
use crate::{
    ProcessLimits,
    sys::{self, Forked},
};

/// Names of groups start with this, then the helper's process id and a number.
const PREFIX: &str = "skillz-";

/// A group whose helper is gone is left alone for this long: its helper might live where this one cannot see it.
const FOREIGN_AGE: Duration = Duration::from_mins(1);

/// The places where this helper can make groups.
#[derive(Debug)]
pub(super) struct Cgroups {
    memory: Option<Base>,
    pids: Option<Base>,
    helper: u32,
    /// Groups that could not be removed yet.
    leftovers: Vec<PathBuf>,
}

/// The group of one tree.
#[derive(Debug, Default)]
pub(super) struct Group {
    /// Files that take whoever writes to them into the group.
    doors: Vec<File>,
    /// Where the kernel counts the processes that it killed for memory.
    events: Option<File>,
    /// Whether the memory limit is kept by the group.
    pub(super) keeps_memory: bool,
    /// The file with the limit of processes, where the group keeps it.
    process_limit: Option<File>,
}

impl Cgroups {
    /// Finds out where groups can be made, and clears away those of helpers that are gone.
    pub(super) fn find() -> Self {
        let read = |path| fs::read_to_string(path).unwrap_or_default();
        let (own, mounts) = (read("/proc/self/cgroup"), read("/proc/self/mountinfo"));
        let usable = |controller| candidates(controller, &own, &mounts).into_iter().find(|base| can_use(base, controller));
        let groups = Self {
            memory: usable(Controller::Memory),
            pids: usable(Controller::Pids),
            helper: std::process::id(),
            leftovers: Vec::new(),
        };
        groups.bases().for_each(sweep);
        groups
    }

    /// Makes the group of tree `number`. A limit whose group cannot be made is left to other means.
    pub(super) fn make(&self, number: u64, limits: &ProcessLimits) -> Group {
        let mut group = Group::default();
        if let (Some(base), Some(bytes)) = (&self.memory, limits.memory_bytes) {
            group.keeps_memory = group.limit_memory(base, &self.path(base, number), bytes).is_ok();
        }
        if let (Some(base), Some(count)) = (&self.pids, limits.max_processes) {
            group.process_limit = group.limit_processes(&self.path(base, number), count).ok();
        }
        group
    }

    /// Removes the group of tree `number`, and what was left over before.
    pub(super) fn remove(&mut self, number: u64) {
        let mut folders = std::mem::take(&mut self.leftovers);
        folders.extend(self.bases().map(|base| self.path(base, number)));
        folders.retain(|folder| !remove(folder));
        self.leftovers = folders;
    }

    /// Removes all groups of this helper.
    pub(super) fn remove_all(&mut self) {
        let own = format!("{PREFIX}{}-", self.helper);
        for base in self.bases() {
            for folder in groups_in(&base.folder).filter(|folder| name_of(folder).starts_with(&own)) {
                remove(&folder);
            }
        }
    }

    fn path(&self, base: &Base, number: u64) -> PathBuf {
        base.folder.join(format!("{PREFIX}{}-{number}", self.helper))
    }

    fn bases(&self) -> impl Iterator<Item = &Base> {
        // On version 2 both are the same.
        let pids = self.pids.as_ref().filter(|pids| self.memory.as_ref().is_none_or(|memory| memory.folder != pids.folder));
        self.memory.iter().chain(pids)
    }
}

impl Group {
    /// Takes the calling process in.
    pub(super) fn join(&self) -> io::Result<()> {
        self.doors.iter().try_for_each(|mut door| door.write_all(b"0"))
    }

    /// How many processes the kernel killed because the group was out of memory.
    pub(super) fn memory_kills(&mut self) -> u64 {
        let Some(events) = &mut self.events else { return 0 };
        let mut text = String::new();
        if events.rewind().is_err() || events.read_to_string(&mut text).is_err() {
            return 0;
        }
        let count = text.lines().find_map(|line| line.strip_prefix("oom_kill "));
        count.and_then(|count| count.trim().parse().ok()).unwrap_or(0)
    }

    /// Whether the group keeps the limit of processes.
    pub(super) fn keeps_processes(&self) -> bool {
        self.process_limit.is_some()
    }

    /// Lets nobody in the group fork any more, so that a fork bomb holds still while it is killed.
    pub(super) fn forbid_forks(&mut self) {
        if let Some(file) = &mut self.process_limit {
            // Without it the bomb is chased; see `kill`.
            let _ = file.write_all(b"0");
        }
    }

    fn limit_memory(&mut self, base: &Base, folder: &Path, bytes: u64) -> io::Result<()> {
        make_folder(folder)?;
        let bytes = bytes.to_string();
        let events = match base.version {
            Version::One => {
                fs::write(folder.join("memory.limit_in_bytes"), &bytes)?;
                // Not there where the kernel does not account for swap.
                let _ = fs::write(folder.join("memory.memsw.limit_in_bytes"), &bytes);
                "memory.oom_control"
            }
            Version::Two => {
                fs::write(folder.join("memory.max"), &bytes)?;
                let _ = fs::write(folder.join("memory.swap.max"), "0");
                "memory.events"
            }
        };
        let events = File::open(folder.join(events))?;
        self.doors.push(door(folder)?);
        self.events = Some(events);
        Ok(())
    }

    fn limit_processes(&mut self, folder: &Path, count: u32) -> io::Result<File> {
        make_folder(folder)?;
        let mut file = OpenOptions::new().write(true).open(folder.join("pids.max"))?;
        file.write_all(count.to_string().as_bytes())?;
        self.doors.push(door(folder)?);
        Ok(file)
    }
}

/// Makes a group's folder; on version 2 it may be there for another controller.
fn make_folder(folder: &Path) -> io::Result<()> {
    match fs::create_dir(folder) {
        Err(error) if error.kind() == io::ErrorKind::AlreadyExists => Ok(()),
        other => other,
    }
}

fn door(folder: &Path) -> io::Result<File> {
    OpenOptions::new().write(true).open(folder.join("cgroup.procs"))
}

/// Removes a group and whoever is still in it. `true` once it is not there any more.
fn remove(folder: &Path) -> bool {
    let gone = |error: &io::Error| error.kind() == io::ErrorKind::NotFound;
    match fs::remove_dir(folder) {
        Ok(()) => true,
        Err(error) if gone(&error) => true,
        Err(_) => {
            let members = fs::read_to_string(folder.join("cgroup.procs")).unwrap_or_default();
            for member in members.lines().filter_map(|line| Pid::from_raw(line.parse().ok()?)) {
                let _ = kill_process(member, Signal::KILL);
            }
            fs::remove_dir(folder).is_ok_and(|()| true)
        }
    }
}

/// Removes the empty groups of helpers that ended without doing so.
fn sweep(base: &Base) {
    for folder in groups_in(&base.folder) {
        let helper = name_of(&folder).trim_start_matches(PREFIX).split('-').next().unwrap_or_default().to_owned();
        let alive = Path::new("/proc").join(&helper).exists();
        let old = folder
            .metadata()
            .and_then(|data| data.modified())
            .is_ok_and(|time| time.elapsed().is_ok_and(|age| age > FOREIGN_AGE));
        if !alive && old {
            // Fails if somebody is in there, and that is right.
            let _ = fs::remove_dir(&folder);
        }
    }
}

fn groups_in(folder: &Path) -> impl Iterator<Item = PathBuf> {
    let entries = fs::read_dir(folder).into_iter().flatten().flatten();
    entries.map(|entry| entry.path()).filter(|path| name_of(path).starts_with(PREFIX) && path.is_dir())
}

fn name_of(path: &Path) -> String {
    path.file_name().unwrap_or_default().to_string_lossy().into_owned()
}

/// Tries a place out with a group, a limit and a process that joins it.
fn can_use(base: &Base, controller: Controller) -> bool {
    if base.version == Version::Two && !base.offers(controller) {
        return false;
    }
    let folder = base.folder.join(format!("{PREFIX}{}-try", std::process::id()));
    let mut group = Group::default();
    let made = match controller {
        Controller::Memory => group.limit_memory(base, &folder, 1 << 30),
        Controller::Pids => group.limit_processes(&folder, 16).map(drop),
    };
    let works = made.is_ok() && process_can_join(&group);
    remove(&folder) && works
}

fn process_can_join(group: &Group) -> bool {
    match sys::fork() {
        Ok(Forked::Child) => sys::exit(i32::from(group.join().is_err())),
        Ok(Forked::Parent(pid)) => {
            let ended = waitpid(Pid::from_raw(pid), WaitOptions::empty());
            matches!(ended, Ok(Some((_, status))) if status.exit_status() == Some(0))
        }
        Err(_) => false,
    }
}
