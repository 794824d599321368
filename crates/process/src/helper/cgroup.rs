//! Control groups: where they can be made, one for each limited tree, and their removal.
//!
//! Version 1 has a hierarchy for memory and one for processes; version 2 has one for all. The helper finds out once
//! what works, the supervisors make the groups, and the helper removes them when their supervisor is gone.

use std::{
    fs::{self, File, OpenOptions},
    io::{self, Read, Seek, Write},
    path::{Path, PathBuf},
};

use rustix::process::{Pid, Signal, kill_process};

use super::hierarchies::{Base, Controller, Version, candidates};
/// Names of groups start with this, then the helper's process id and a number.
const PREFIX: &str = "skillz-";

/// The places where this helper can make groups.
#[derive(Debug)]
pub(super) struct Cgroups {
    memory: Option<Base>,
    pids: Option<Base>,
    helper: u32,
    /// Groups that could not be removed yet.
    leftovers: Vec<PathBuf>,
}

/// The group of one tree. Its supervisor is in it from the start: to move into a group takes the kernel many
/// milliseconds, which is too much once somebody waits.
#[derive(Debug, Default)]
pub(super) struct Group {
    memory: Option<(Version, PathBuf)>,
    pids: Option<PathBuf>,
    /// Where the kernel counts the processes that it killed for memory.
    events: Option<File>,
    /// The file with the limit of processes.
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

    /// Makes the group of tree `number` and moves the calling process, its supervisor, into it. What cannot be made is
    /// left out; limits are then kept by other means.
    pub(super) fn enter_new(&self, number: u64) -> Group {
        let enter = |base: &Base| {
            let folder = self.path(base, number);
            let entered = make_folder(&folder).and_then(|()| fs::write(folder.join("cgroup.procs"), "0"));
            entered.is_ok().then_some(folder)
        };
        Group {
            memory: self.memory.as_ref().and_then(|base| Some((base.version, enter(base)?))),
            pids: self.pids.as_ref().and_then(enter),
            events: None,
            process_limit: None,
        }
    }

    /// Removes the group of tree `number`, and what was left over before.
    pub(super) fn remove(&mut self, number: u64) {
        let mut folders = std::mem::take(&mut self.leftovers);
        folders.extend(self.bases().map(|base| self.path(base, number)));
        folders.retain(|folder| !remove(folder));
        self.leftovers = folders;
    }

    /// Removes all groups of this helper, and those of helpers that are gone.
    pub(super) fn remove_all(&mut self) {
        let own = format!("{PREFIX}{}-", self.helper);
        for base in self.bases() {
            for folder in groups_in(&base.folder).filter(|folder| name_of(folder).starts_with(&own)) {
                remove(&folder);
            }
            sweep(base);
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
    /// Limits the memory of all that is in the group; `false` if that cannot be done.
    pub(super) fn limit_memory(&mut self, bytes: u64) -> bool {
        let Some((version, folder)) = &self.memory else { return false };
        self.events = limit_memory(*version, folder, bytes).ok();
        self.events.is_some()
    }

    /// Limits the processes of the group, its supervisor aside; `false` if that cannot be done.
    pub(super) fn limit_processes(&mut self, count: u32) -> bool {
        let Some(folder) = &self.pids else { return false };
        let limit = || {
            let mut file = OpenOptions::new().write(true).open(folder.join("pids.max"))?;
            file.write_all((u64::from(count) + 1).to_string().as_bytes())?;
            io::Result::Ok(file)
        };
        self.process_limit = limit().ok();
        self.process_limit.is_some()
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

    /// Lets nobody in the group fork any more, so that a fork bomb holds still while it is killed.
    pub(super) fn forbid_forks(&mut self) {
        if let Some(file) = &mut self.process_limit {
            // Without it the bomb is chased; see `kill`.
            let _ = file.write_all(b"0");
        }
    }
}

/// Sets the limit of a group; gives the file where its breaches are counted.
fn limit_memory(version: Version, folder: &Path, bytes: u64) -> io::Result<File> {
    let bytes = bytes.to_string();
    match version {
        Version::One => {
            fs::write(folder.join("memory.limit_in_bytes"), &bytes)?;
            // Not there where the kernel does not account for swap.
            let _ = fs::write(folder.join("memory.memsw.limit_in_bytes"), &bytes);
            File::open(folder.join("memory.oom_control"))
        }
        Version::Two => {
            fs::write(folder.join("memory.max"), &bytes)?;
            let _ = fs::write(folder.join("memory.swap.max"), "0");
            File::open(folder.join("memory.events"))
        }
    }
}

/// Makes a group's folder; on version 2 it may be there for another controller.
fn make_folder(folder: &Path) -> io::Result<()> {
    match fs::create_dir(folder) {
        Err(error) if error.kind() == io::ErrorKind::AlreadyExists => Ok(()),
        other => other,
    }
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

/// Removes the groups of helpers that ended without doing so. Should such a helper live after all, where this one cannot
/// see it, its groups are in use, and cannot be removed.
fn sweep(base: &Base) {
    for folder in groups_in(&base.folder) {
        let name = name_of(&folder);
        let helper = name.trim_start_matches(PREFIX).split('-').next().unwrap_or_default();
        if !Path::new("/proc").join(helper).exists() {
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

/// Whether groups can be made in a place. Whether a process can be moved there shows when one is.
fn can_use(base: &Base, controller: Controller) -> bool {
    let folder = base.folder.join(format!("{PREFIX}{}-try", std::process::id()));
    base.offers(controller) && fs::create_dir(&folder).is_ok() && remove(&folder)
}
