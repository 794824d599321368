//! Ending a tree: kill all, reap all, until there are none.
//!
//! In a pid namespace one call of its first process reaches everybody. Elsewhere they must be found: the caller is a subreaper: whoever loses its parent becomes its child. So "no child left" means "nobody left", and
//! nobody gets away by a double fork or a session of its own.

use std::{
    fs,
    time::{Duration, Instant},
};

use rustix::process::{Pid, Signal, WaitOptions, getpid, kill_process, wait};

use crate::sys;

/// How long a killed tree may take to be gone. Only processes stuck in the kernel reach it.
const LIMIT: Duration = Duration::from_secs(2);

/// Pause between two rounds, long enough for the killed to be gone.
const ROUND: Duration = Duration::from_micros(500);

/// Kills everybody in the namespace whose first process this is, and reaps them. `true` once nobody is left.
pub(super) fn end_namespace() -> bool {
    let deadline = Instant::now() + LIMIT;
    while reap() {
        if Instant::now() > deadline {
            return false;
        }
        sys::kill_everybody();
        if reap() {
            std::thread::sleep(ROUND);
        }
    }
    true
}

/// Kills all descendants of this process and reaps them. `true` once none is left.
pub(super) fn end_descendants() -> bool {
    let deadline = Instant::now() + LIMIT;
    loop {
        if !reap() {
            return true;
        }
        if Instant::now() > deadline {
            return false;
        }
        let found = stop_all();
        for pid in found.into_iter().filter_map(Pid::from_raw) {
            let _ = kill_process(pid, Signal::KILL);
        }
        if reap() {
            std::thread::sleep(ROUND);
        }
    }
}

/// Reaps whoever is dead; `false` if there is no child at all.
fn reap() -> bool {
    loop {
        match wait(WaitOptions::NOHANG) {
            Ok(Some(_)) | Err(rustix::io::Errno::INTR) => {}
            Ok(None) => return true,
            Err(_) => return false,
        }
    }
}

/// Stops every descendant, so that none forks while the others are being found. Gives them all.
fn stop_all() -> Vec<i32> {
    let mut found: Vec<i32> = Vec::new();
    loop {
        let new: Vec<i32> = descendants(getpid()).into_iter().filter(|pid| !found.contains(pid)).collect();
        if new.is_empty() {
            return found;
        }
        for pid in new {
            if let Some(target) = Pid::from_raw(pid) {
                let _ = kill_process(target, Signal::STOP);
            }
            found.push(pid);
        }
    }
}

/// All descendants of a process, parents before children.
pub(super) fn descendants(root: Pid) -> Vec<i32> {
    let mut found = children(root.as_raw_nonzero().get());
    let mut next = 0;
    while let Some(pid) = found.get(next).copied() {
        found.extend(children(pid));
        next += 1;
    }
    found
}

/// The direct children of this process.
pub(super) fn children_of_self() -> Vec<i32> {
    children(getpid().as_raw_nonzero().get())
}

/// The direct children of a process, of all its threads.
fn children(pid: i32) -> Vec<i32> {
    let Ok(threads) = fs::read_dir(format!("/proc/{pid}/task")) else { return Vec::new() };
    let mut found = Vec::new();
    for thread in threads.flatten() {
        match fs::read_to_string(thread.path().join("children")) {
            Ok(list) => found.extend(list.split_whitespace().filter_map(|child| child.parse::<i32>().ok())),
            // A thread that has ended has no such file; nor has any on a kernel that was built without the list.
            Err(_) if !lists_children() => return children_by_search(pid),
            Err(_) => {}
        }
    }
    found
}

fn lists_children() -> bool {
    fs::exists("/proc/thread-self/children").unwrap_or(true)
}

/// The slow way: looks at everybody's parent.
fn children_by_search(parent: i32) -> Vec<i32> {
    let entries = fs::read_dir("/proc").into_iter().flatten().flatten();
    let everybody = entries.filter_map(|entry| entry.file_name().to_str()?.parse::<i32>().ok());
    everybody.filter(|pid| parent_of(*pid) == Some(parent)).collect()
}

fn parent_of(pid: i32) -> Option<i32> {
    let text = fs::read_to_string(format!("/proc/{pid}/stat")).ok()?;
    // The name may hold anything; what follows its closing bracket does not.
    text.rsplit_once(')')?.1.split_whitespace().nth(1)?.parse().ok()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn both_ways_find_the_same_children() {
        let own = getpid().as_raw_nonzero().get();
        let mut child = std::process::Command::new("sleep").arg("60").spawn().expect("it starts");
        let pid = i32::try_from(child.id()).expect("it is small");
        assert!(children(own).contains(&pid));
        assert!(children_by_search(own).contains(&pid));
        child.kill().expect("it is ours");
        child.wait().expect("it is ours");
        assert!(!children_by_search(own).contains(&pid));
    }
}
