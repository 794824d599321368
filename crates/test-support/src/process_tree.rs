//! Which processes there are, from `/proc`.

use std::{
    fs,
    time::{Duration, Instant},
};

/// The processes that `pid` started and that are still its children, zombies included.
pub fn children(pid: u32) -> Vec<u32> {
    all().into_iter().filter(|process| process.parent == pid).map(|process| process.pid).collect()
}

/// All processes below `pid`.
pub fn descendants(pid: u32) -> Vec<u32> {
    let mut found = children(pid);
    let mut next = 0;
    while let Some(pid) = found.get(next).copied() {
        found.extend(children(pid));
        next += 1;
    }
    found
}

/// The zombies below `pid`.
pub fn zombies(pid: u32) -> Vec<u32> {
    let below = descendants(pid);
    all().into_iter().filter(|process| process.state == 'Z' && below.contains(&process.pid)).map(|process| process.pid).collect()
}

/// Living processes, zombies aside, that have `argument` on their command line, wherever they hang in the tree.
pub fn with_argument(argument: &str) -> Vec<u32> {
    let has = |process: &Process| {
        let line = fs::read(format!("/proc/{}/cmdline", process.pid)).unwrap_or_default();
        line.split(|byte| *byte == 0).any(|part| part == argument.as_bytes())
    };
    all().into_iter().filter(|process| process.state != 'Z' && has(process)).map(|process| process.pid).collect()
}

/// Whether there is a process of that number that is no zombie.
pub fn is_alive(pid: u32) -> bool {
    all().iter().any(|process| process.pid == pid && process.state != 'Z')
}

/// Waits until none of `pids` is alive; gives those that are after `deadline`.
pub fn wait_until_gone(pids: &[u32], deadline: Duration) -> Vec<u32> {
    let end = Instant::now() + deadline;
    loop {
        let alive: Vec<u32> = pids.iter().copied().filter(|pid| is_alive(*pid)).collect();
        if alive.is_empty() || Instant::now() > end {
            return alive;
        }
        std::thread::sleep(Duration::from_millis(20));
    }
}

/// Resident memory of a process, in bytes, without what it shares with files.
pub fn resident_bytes(pid: u32) -> u64 {
    let status = fs::read_to_string(format!("/proc/{pid}/status")).unwrap_or_default();
    let kilobytes = status.lines().find_map(|line| line.strip_prefix("RssAnon:"));
    let number = kilobytes.and_then(|rest| rest.trim().trim_end_matches(" kB").parse::<u64>().ok());
    number.unwrap_or(0) * 1_024
}

/// How many files a process has open; none where there is no such process.
pub fn open_files(pid: u32) -> usize {
    fs::read_dir(format!("/proc/{pid}/fd")).map_or(0, Iterator::count)
}

/// How many threads a process has; none where there is no such process.
pub fn threads(pid: u32) -> usize {
    fs::read_dir(format!("/proc/{pid}/task")).map_or(0, Iterator::count)
}

struct Process {
    pid: u32,
    parent: u32,
    state: char,
}

fn all() -> Vec<Process> {
    let entries = fs::read_dir("/proc").expect("/proc is there");
    entries.flatten().filter_map(|entry| read(entry.file_name().to_str()?.parse().ok()?)).collect()
}

/// Reads `/proc/PID/stat`: the name in brackets may hold anything, so what counts starts after the last bracket.
fn read(pid: u32) -> Option<Process> {
    let stat = fs::read_to_string(format!("/proc/{pid}/stat")).ok()?;
    let mut fields = stat.get(stat.rfind(')')? + 1..)?.split_whitespace();
    let state = fields.next()?.chars().next()?;
    let parent = fields.next()?.parse().ok()?;
    Some(Process { pid, parent, state })
}
