//! Looking at a tree from time to time, where no control group keeps its limits.

use std::fs;

use rustix::process::getpid;

use super::kill;

/// What a tree uses.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq)]
pub(super) struct Sample {
    /// Resident memory, in bytes; pages that processes share count for each.
    pub(super) memory_bytes: u64,
    /// Processes and threads.
    pub(super) tasks: u64,
}

/// Everybody below this process; in a namespace of its own that is everybody else.
pub(super) fn members(confined: bool) -> Vec<i32> {
    if confined { others_in_namespace() } else { kill::descendants(getpid()) }
}

fn others_in_namespace() -> Vec<i32> {
    let entries = fs::read_dir("/proc").into_iter().flatten().flatten();
    entries.filter_map(|entry| entry.file_name().to_str()?.parse().ok()).filter(|pid| *pid != 1).collect()
}

/// Adds up what processes use.
pub(super) fn sample(members: &[i32]) -> Sample {
    let page = rustix::param::page_size() as u64;
    members.iter().fold(Sample::default(), |sum, pid| Sample {
        memory_bytes: sum.memory_bytes + resident_pages(*pid).unwrap_or(0) * page,
        tasks: sum.tasks + threads(*pid).unwrap_or(0),
    })
}

/// Resident memory with shared pages counted once, in bytes. Costs too much for every look.
pub(super) fn exact_memory(members: &[i32]) -> u64 {
    let page = rustix::param::page_size() as u64;
    members.iter().map(|pid| proportional_bytes(*pid).or_else(|| Some(resident_pages(*pid)? * page)).unwrap_or(0)).sum()
}

fn resident_pages(pid: i32) -> Option<u64> {
    let text = fs::read_to_string(format!("/proc/{pid}/statm")).ok()?;
    text.split(' ').nth(1)?.parse().ok()
}

fn threads(pid: i32) -> Option<u64> {
    let text = fs::read_to_string(format!("/proc/{pid}/stat")).ok()?;
    // The name may hold anything; what follows its closing bracket does not.
    text.rsplit_once(')')?.1.split_whitespace().nth(17)?.parse().ok()
}

fn proportional_bytes(pid: i32) -> Option<u64> {
    let text = fs::read_to_string(format!("/proc/{pid}/smaps_rollup")).ok()?;
    let line = text.lines().find_map(|line| line.strip_prefix("Pss:"))?;
    line.trim().trim_end_matches(" kB").parse::<u64>().ok().map(|kilobytes| kilobytes * 1024)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_process_is_measured_by_its_numbers() {
        let own = i32::try_from(std::process::id()).expect("it is small");
        let sample = sample(&[own]);
        assert!(sample.memory_bytes > 500_000 && sample.tasks >= 1, "{sample:?}");
        assert!(exact_memory(&[own]) <= sample.memory_bytes * 2);
        assert_eq!(super::sample(&[0]), Sample::default());
    }
}
