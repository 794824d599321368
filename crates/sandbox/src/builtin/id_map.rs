//! User namespaces that serve as maps for id-mapped mounts: on such a mount two users' files change owners.
//!
//! A namespace lives as long as a descriptor of it; it takes a process to make one, which is gone at once.
#![expect(unsafe_code, reason = "clone has no safe wrapper")]

use std::{fs, io, os::fd::OwnedFd};

use rustix::{
    fs::{Mode, OFlags},
    pipe::{PipeFlags, pipe_with},
    process::{Pid, WaitOptions, waitpid},
};

/// Numbers of users and groups that the kernel has.
const ALL_IDS: u64 = u32::MAX as u64;

/// A map in which files of user `uid` and group `gid` on disk belong to `other` (user and group alike), and those of
/// `other` to them. What `other` makes there belongs to `uid` on disk.
pub(super) fn swapped(uid: u32, gid: u32, other: u32) -> io::Result<OwnedFd> {
    let (wait, go) = pipe_with(PipeFlags::CLOEXEC)?;
    // SAFETY: without CLONE_VM and with no stack given this is a fork. This process has one thread, and the child only
    // reads and exits.
    let pid = unsafe { libc::syscall(libc::SYS_clone, libc::c_long::from(libc::CLONE_NEWUSER | libc::SIGCHLD), 0, 0, 0, 0) };
    match libc::pid_t::try_from(pid) {
        Ok(0) => {
            drop(go);
            let _ = rustix::io::read(&wait, &mut [0_u8; 1]);
            // SAFETY: always allowed.
            unsafe { libc::_exit(0) }
        }
        Ok(pid) if pid > 0 => {
            let namespace = write_maps(uid, gid, other);
            drop(go);
            let _ = waitpid(Pid::from_raw(pid), WaitOptions::empty());
            namespace
        }
        _ => Err(io::Error::last_os_error()),
    }
}

/// Writes the maps of this process's only child. It is found through the kernel's list of children, because its number
/// as told by `clone` is that of this process's pid namespace, and `/proc` may belong to another.
fn write_maps(uid: u32, gid: u32, other: u32) -> io::Result<OwnedFd> {
    let children = fs::read_to_string("/proc/thread-self/children")?;
    let child = children.split_whitespace().next_back().ok_or_else(|| io::Error::other("the child is not listed"))?;
    fs::write(format!("/proc/{child}/uid_map"), swap_map(uid, other))?;
    fs::write(format!("/proc/{child}/gid_map"), swap_map(gid, other))?;
    let namespace = rustix::fs::open(format!("/proc/{child}/ns/user"), OFlags::RDONLY | OFlags::CLOEXEC, Mode::empty())?;
    Ok(namespace)
}

/// The lines of a map that swaps `a` and `b` and leaves all others as they are.
fn swap_map(a: u32, b: u32) -> String {
    if a == b {
        return format!("0 0 {ALL_IDS}\n");
    }
    let (low, high) = (u64::from(a.min(b)), u64::from(a.max(b)));
    let lines = [
        (0, 0, low),
        (low, high, 1),
        (low + 1, low + 1, high - low - 1),
        (high, low, 1),
        (high + 1, high + 1, ALL_IDS - high - 1),
    ];
    let lines = lines.iter().filter(|(.., count)| *count > 0);
    lines.map(|(from, to, count)| format!("{from} {to} {count}\n")).collect::<Vec<_>>().concat()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn maps_swap_two_and_keep_the_rest() {
        assert_eq!(swap_map(0, 65534), "0 65534 1\n1 1 65533\n65534 0 1\n65535 65535 4294901760\n");
        assert_eq!(swap_map(1000, 65534).lines().count(), 5);
        assert_eq!(swap_map(65534, 65534), "0 0 4294967295\n");
        for (a, b) in [(0, 1), (5, 65534), (65534, 70000)] {
            let total: u64 = swap_map(a, b)
                .lines()
                .map(|line| line.split(' ').next_back().expect("three").parse::<u64>().expect("a number"))
                .sum();
            assert_eq!(total, ALL_IDS, "every id is mapped once");
        }
    }
}
