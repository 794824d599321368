//! Tells a tree that waits for its stdin, and for nothing else, from one that is at work.
//!
//! A program that reads its stdin to the end waits for ever on a pipe that is kept open. Whether it does cannot be
//! seen from the pipe, but from where its threads are: each stuck in a system call without a time limit, and at least
//! one of them in a read of the pipe that is the root's stdin. Whatever may go on by itself counts as being at work.

use std::{fs, path::PathBuf};

/// Descriptors looked at in one process; who has more is busy.
const MOST_DESCRIPTORS: usize = 64;
/// Processes looked at in one tree; a larger one is busy.
const MOST_PROCESSES: usize = 64;

/// What one thread or process is doing.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum Stance {
    /// It may go on by itself.
    Busy,
    /// Something else in the tree has to happen first.
    WaitsForOthers,
    /// It goes on when something comes in on stdin, or its end.
    WaitsForInput,
}

/// Whether nothing in the tree can go on unless something happens on its stdin.
pub(super) fn waits_for_input(root: i32) -> bool {
    let Some(input) = link(root, 0).filter(|input| input.starts_with("pipe:")) else { return false };
    let mut pending = vec![root];
    let mut seen = 0;
    let mut waits = false;
    while let Some(pid) = pending.pop() {
        seen += 1;
        if seen > MOST_PROCESSES {
            return false;
        }
        match stance_of_process(pid, &input, &mut pending) {
            Stance::Busy => return false,
            Stance::WaitsForInput => waits = true,
            Stance::WaitsForOthers => {}
        }
    }
    waits
}

/// The stance of a process; its children are added to `pending`.
fn stance_of_process(pid: i32, input: &str, pending: &mut Vec<i32>) -> Stance {
    let Ok(threads) = fs::read_dir(format!("/proc/{pid}/task")) else { return Stance::Busy };
    let shares_input = link(pid, 0).as_deref() == Some(input);
    let mut waits_for_input = false;
    for thread in threads.flatten() {
        let path = thread.path();
        let Ok(children) = fs::read_to_string(path.join("children")) else { return Stance::Busy };
        pending.extend(children.split_whitespace().filter_map(|child| child.parse::<i32>().ok()));
        let Ok(call) = fs::read_to_string(path.join("syscall")) else { return Stance::Busy };
        // The dead that were not reaped yet do nothing.
        let stance = if is_zombie(&path) { Stance::WaitsForOthers } else { stance_in(&call) };
        match stance {
            Stance::Busy => return Stance::Busy,
            Stance::WaitsForInput => waits_for_input = true,
            Stance::WaitsForOthers => {}
        }
    }
    if waits_for_input && shares_input {
        // An event loop that waits for stdin waits for its sockets and timers too.
        return if has_other_sources(pid) { Stance::Busy } else { Stance::WaitsForInput };
    }
    Stance::WaitsForOthers
}

fn is_zombie(thread: &std::path::Path) -> bool {
    let state = fs::read_to_string(thread.join("stat")).unwrap_or_default();
    state.rsplit_once(')').is_some_and(|(_, rest)| rest.trim_start().starts_with(['Z', 'X']))
}

/// What a line of `/proc/<pid>/syscall` says: number and arguments of the call that a thread is stuck in.
fn stance_in(call: &str) -> Stance {
    let mut words = call.split_whitespace();
    let Some(number) = words.next().and_then(|word| word.parse::<i64>().ok()) else { return Stance::Busy };
    let argument = |index: usize| {
        let word = call.split_whitespace().nth(index + 1).unwrap_or_default();
        u64::from_str_radix(word.trim_start_matches("0x"), 16).unwrap_or(1)
    };
    // A time limit that is a pointer: none means for ever.
    let for_ever = |index: usize| argument(index) == 0;
    // A time limit in milliseconds: a negative one means for ever.
    let negative = |index: usize| (argument(index) as u32).cast_signed() == -1;
    match number {
        libc::SYS_read | libc::SYS_readv if argument(0) == 0 => Stance::WaitsForInput,
        libc::SYS_epoll_pwait if negative(3) => Stance::WaitsForInput,
        libc::SYS_epoll_pwait2 if for_ever(3) => Stance::WaitsForInput,
        libc::SYS_ppoll if for_ever(2) => Stance::WaitsForInput,
        libc::SYS_pselect6 if for_ever(4) => Stance::WaitsForInput,
        #[cfg(target_arch = "x86_64")]
        libc::SYS_epoll_wait if negative(3) => Stance::WaitsForInput,
        #[cfg(target_arch = "x86_64")]
        libc::SYS_poll if negative(2) => Stance::WaitsForInput,
        #[cfg(target_arch = "x86_64")]
        libc::SYS_select if for_ever(4) => Stance::WaitsForInput,
        // A read of another pipe: what another process of the tree writes. Of anything else it would be an event loop's.
        libc::SYS_read | libc::SYS_wait4 => Stance::WaitsForOthers,
        libc::SYS_waitid => Stance::WaitsForOthers,
        libc::SYS_futex if for_ever(3) => Stance::WaitsForOthers,
        _ => Stance::Busy,
    }
}

/// Whether a process may be woken by the network, a timer or watched files.
fn has_other_sources(pid: i32) -> bool {
    let Ok(descriptors) = fs::read_dir(format!("/proc/{pid}/fd")) else { return true };
    let mut count = 0;
    for descriptor in descriptors.flatten() {
        count += 1;
        let target = fs::read_link(descriptor.path()).unwrap_or_default();
        let target = target.to_string_lossy();
        let wakes = ["socket:", "anon_inode:[timerfd]", "anon_inode:inotify", "anon_inode:[fanotify]", "anon_inode:[signalfd]"];
        if count > MOST_DESCRIPTORS || wakes.iter().any(|kind| target.starts_with(kind)) {
            return true;
        }
    }
    false
}

fn link(pid: i32, descriptor: i32) -> Option<String> {
    let path = PathBuf::from(format!("/proc/{pid}/fd/{descriptor}"));
    Some(fs::read_link(path).ok()?.to_string_lossy().into_owned())
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn only_calls_without_a_time_limit_are_waits() {
        let line = |number: i64, arguments: &str| format!("{number} {arguments} 0x7ffd 0x7f12\n");
        for (line, stance) in [
            (line(libc::SYS_read, "0x0 0x7f 0x1000 0x0 0x0 0x0"), Stance::WaitsForInput),
            (line(libc::SYS_read, "0x5 0x7f 0x1000 0x0 0x0 0x0"), Stance::WaitsForOthers),
            (line(libc::SYS_epoll_pwait, "0xd 0x7f 0x400 0xffffffff 0x0 0x8"), Stance::WaitsForInput),
            (line(libc::SYS_epoll_pwait, "0xd 0x7f 0x400 0xffffffffffffffff 0x0 0x8"), Stance::WaitsForInput),
            (line(libc::SYS_epoll_pwait, "0xd 0x7f 0x400 0x64 0x0 0x8"), Stance::Busy),
            (line(libc::SYS_ppoll, "0x7f 0x1 0x0 0x0 0x8 0x0"), Stance::WaitsForInput),
            (line(libc::SYS_ppoll, "0x7f 0x1 0x7ffd 0x0 0x8 0x0"), Stance::Busy),
            (line(libc::SYS_futex, "0x7f 0x189 0x0 0x0 0x0 0xffffffff"), Stance::WaitsForOthers),
            (line(libc::SYS_futex, "0x7f 0x189 0x0 0x7ffd 0x0 0xffffffff"), Stance::Busy),
            (line(libc::SYS_wait4, "0xffffffff 0x7f 0x0 0x0 0x0 0x0"), Stance::WaitsForOthers),
            (line(libc::SYS_clock_nanosleep, "0x0 0x0 0x7f 0x0 0x0 0x0"), Stance::Busy),
            ("running\n".to_owned(), Stance::Busy),
            ("-1 0x7ffd 0x7f12\n".to_owned(), Stance::Busy),
            (String::new(), Stance::Busy),
        ] {
            assert_eq!(stance_in(&line), stance, "{line}");
        }
    }
}
