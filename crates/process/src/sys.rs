//! The system calls that have no safe form elsewhere, each behind one. Used by the helper process only, which has one thread.
#![expect(unsafe_code, reason = "fork, exec and signals have no safe wrapper")]

use std::{
    convert::Infallible,
    ffi::{CStr, CString},
    io,
    os::fd::{AsRawFd, BorrowedFd, FromRawFd, OwnedFd, RawFd},
    ptr,
};

/// Which side of a fork this is.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum Forked {
    /// The old process; holds the new one's id.
    Parent(libc::pid_t),
    /// The new process.
    Child,
}

/// Forks.
pub(crate) fn fork() -> io::Result<Forked> {
    // SAFETY: the helper has one thread, so the copy is a whole process that may allocate and use locks.
    let pid = unsafe { libc::fork() };
    forked(i64::from(pid))
}

/// Forks into new namespaces (`CLONE_NEW...` flags).
pub(crate) fn fork_into(namespaces: libc::c_int) -> io::Result<Forked> {
    let flags = namespaces | libc::SIGCHLD;
    // SAFETY: without CLONE_VM and with no stack given this is a fork; one thread, as above. The remaining
    // arguments are ignored with these flags.
    let pid = unsafe { libc::syscall(libc::SYS_clone, libc::c_long::from(flags), 0, 0, 0, 0) };
    forked(pid)
}

fn forked(pid: i64) -> io::Result<Forked> {
    match libc::pid_t::try_from(pid) {
        Ok(0) => Ok(Forked::Child),
        Ok(pid) if pid > 0 => Ok(Forked::Parent(pid)),
        _ => Err(io::Error::last_os_error()),
    }
}

/// Ends this process at once, without running what the server registered for its own end.
pub(crate) fn exit(code: i32) -> ! {
    // SAFETY: always allowed.
    unsafe { libc::_exit(code) }
}

/// Kills every process of the pid namespace whose first process this is, but this one.
pub(crate) fn kill_everybody() {
    // Anywhere else the same call would reach everything on the machine.
    if std::process::id() != 1 {
        return;
    }
    // SAFETY: always allowed; it concerns nobody outside of the namespace.
    unsafe { libc::kill(-1, libc::SIGKILL) };
}

/// Gives every signal its default action and blocks none: what a fresh program expects.
pub(crate) fn reset_signals() {
    // The kernel's own form of the call, since libc refuses the two signals that it keeps for its threads, and a parent
    // may have left those ignored as well. All zeros is the default action, without flags and mask, on every machine.
    let default = [0_u64; 8];
    let set_bytes: usize = 8;
    for signal in 1..=64 {
        // SAFETY: the kernel reads less than `default` holds. Signals that cannot be changed give an error that means nothing.
        unsafe { libc::syscall(libc::SYS_rt_sigaction, signal, default.as_ptr(), ptr::null_mut::<u64>(), set_bytes) };
    }
    set_mask(&[], libc::SIG_SETMASK);
}

/// Blocks `signals` and gives a descriptor that becomes readable when one arrives.
pub(crate) fn watch_signals(signals: &[libc::c_int]) -> io::Result<OwnedFd> {
    set_mask(signals, libc::SIG_BLOCK);
    let set = signal_set(signals);
    // SAFETY: `set` lives through the call.
    let descriptor = unsafe { libc::signalfd(-1, &raw const set, libc::SFD_CLOEXEC | libc::SFD_NONBLOCK) };
    if descriptor < 0 {
        return Err(io::Error::last_os_error());
    }
    // SAFETY: the kernel has just opened it for us.
    Ok(unsafe { OwnedFd::from_raw_fd(descriptor) })
}

/// Blocks none: for a program about to be executed.
pub(crate) fn unblock_signals() {
    set_mask(&[], libc::SIG_SETMASK);
}

fn set_mask(signals: &[libc::c_int], how: libc::c_int) {
    let set = signal_set(signals);
    // SAFETY: `set` lives through the call, and the old mask is not asked for. It cannot fail with a valid `how`.
    unsafe { libc::sigprocmask(how, &raw const set, ptr::null_mut()) };
}

fn signal_set(signals: &[libc::c_int]) -> libc::sigset_t {
    // SAFETY: a signal set is plain data, made valid by `sigemptyset`.
    let mut set = unsafe { std::mem::zeroed() };
    // SAFETY: `set` is a live local.
    unsafe { libc::sigemptyset(&raw mut set) };
    for signal in signals {
        // SAFETY: as above; an invalid number gives an error and changes nothing.
        unsafe { libc::sigaddset(&raw mut set, *signal) };
    }
    set
}

/// Puts `descriptor` in the place `number`, open across exec. What was there is closed: 0 to 2 are owned by nobody in the
/// helper; further ones are for a process about to execute, whose other descriptors do not matter any more.
pub(crate) fn place(descriptor: BorrowedFd<'_>, number: RawFd) -> io::Result<()> {
    // SAFETY: the caller owns `descriptor`, and answers for `number`, as above.
    let result = unsafe { libc::dup2(descriptor.as_raw_fd(), number) };
    if result < 0 { Err(io::Error::last_os_error()) } else { Ok(()) }
}

/// Marks every descriptor from 3 on as closed by exec, whatever it is.
pub(crate) fn close_others_on_exec() {
    const CLOSE_RANGE_CLOEXEC: libc::c_uint = 4;
    // SAFETY: only sets a flag. Kernels without it fail, and then the descriptors have the flag from their making.
    unsafe { libc::syscall(libc::SYS_close_range, 3, libc::c_uint::MAX, CLOSE_RANGE_CLOEXEC) };
}

/// Takes over a descriptor of the process that nothing else owns: the helper's stdin.
pub(crate) fn stdin() -> io::Result<OwnedFd> {
    // SAFETY: duplicates a number; the new one is owned here alone.
    let copy = unsafe { libc::fcntl(0, libc::F_DUPFD_CLOEXEC, 3) };
    if copy < 0 {
        return Err(io::Error::last_os_error());
    }
    // SAFETY: as above.
    Ok(unsafe { OwnedFd::from_raw_fd(copy) })
}

/// Argument list of an exec: strings, and pointers to them with a null at the end.
pub(crate) struct StringTable {
    pointers: Vec<*const libc::c_char>,
    /// What the pointers point to.
    _strings: Vec<CString>,
}

impl StringTable {
    pub(crate) fn new(strings: Vec<CString>) -> Self {
        let pointers = strings.iter().map(|string| string.as_ptr()).chain([ptr::null()]).collect();
        Self { pointers, _strings: strings }
    }
}

/// Becomes another program. Returns only if that fails.
pub(crate) fn execute(program: &CStr, arguments: &StringTable, environment: &StringTable) -> io::Result<Infallible> {
    // SAFETY: all pointers are to strings that live as long as the tables, and the tables end with null.
    unsafe { libc::execve(program.as_ptr(), arguments.pointers.as_ptr(), environment.pointers.as_ptr()) };
    Err(io::Error::last_os_error())
}
