//! What bounds the worker itself: memory, and the system calls that it may make.

use std::{
    fs::File,
    sync::{
        OnceLock,
        atomic::{AtomicBool, Ordering},
    },
    thread,
    time::Duration,
};

use monty_types::{BASELINE_MEMORY, LIVE_MEMORY};

/// How often memory is looked at while a program runs.
const WATCH_PAUSE: Duration = Duration::from_millis(4);
/// Address space beyond a program's memory, for what allocators and threads reserve.
#[cfg(target_os = "linux")]
const ADDRESS_SLACK: u64 = 512 << 20;

static RUNNING: AtomicBool = AtomicBool::new(false);
static WATCHER: OnceLock<thread::Thread> = OnceLock::new();
/// Kept open, since a confined worker opens no file.
static STATISTICS: OnceLock<File> = OnceLock::new();

/// Starts the thread that looks at the process's memory while a program runs, and tells the interpreter, whose own
/// checks then end the program with an exception. The limit of the address space stands behind it, and ends the process.
pub(crate) fn watch_memory() {
    // Found out by a system call, once: a confined worker could not make it any more.
    #[cfg(target_os = "linux")]
    rustix::param::page_size();
    let Ok(statistics) = File::open("/proc/self/statm") else { return };
    // Asked for now, while the system still answers.
    #[cfg(target_os = "linux")]
    rustix::param::page_size();
    let _ = STATISTICS.set(statistics);
    let watch = || {
        loop {
            if RUNNING.load(Ordering::Acquire) {
                thread::sleep(WATCH_PAUSE);
                if let Some(memory) = memory() {
                    LIVE_MEMORY.store(memory.resident, Ordering::Relaxed);
                }
            } else {
                thread::park();
            }
        }
    };
    if let Ok(handle) = thread::Builder::new().name("memory".to_owned()).stack_size(128 << 10).spawn(watch) {
        let _ = WATCHER.set(handle.thread().clone());
    }
}

/// A program begins, with so much memory.
pub(crate) fn begin(memory_bytes: u64) {
    if let Some(memory) = memory() {
        LIVE_MEMORY.store(memory.resident, Ordering::Relaxed);
        BASELINE_MEMORY.store(memory.resident, Ordering::Relaxed);
        limit_address_space(memory.address_space as u64, memory_bytes);
    }
    RUNNING.store(true, Ordering::Release);
    if let Some(watcher) = WATCHER.get() {
        watcher.unpark();
    }
}

/// The program has ended.
pub(crate) fn end() {
    RUNNING.store(false, Ordering::Release);
}

/// The process's memory, in bytes.
struct Memory {
    address_space: usize,
    resident: usize,
}

#[cfg(target_os = "linux")]
fn memory() -> Option<Memory> {
    use std::os::unix::fs::FileExt;
    let mut buffer = [0; 128];
    let length = STATISTICS.get()?.read_at(&mut buffer, 0).ok()?;
    let text = std::str::from_utf8(buffer.get(..length)?).ok()?;
    let mut pages = text.split_ascii_whitespace().map(str::parse::<usize>);
    let (address_space, resident) = (pages.next()?.ok()?, pages.next()?.ok()?);
    let page = rustix::param::page_size();
    Some(Memory { address_space: address_space * page, resident: resident * page })
}

#[cfg(not(target_os = "linux"))]
fn memory() -> Option<Memory> {
    None
}

#[cfg(target_os = "linux")]
fn limit_address_space(now: u64, memory_bytes: u64) {
    use rustix::process::{Resource, Rlimit, getrlimit, setrlimit};
    let current = now.saturating_add(memory_bytes).saturating_add(ADDRESS_SLACK);
    let _ = setrlimit(Resource::As, Rlimit { current: Some(current), maximum: getrlimit(Resource::As).maximum });
}

#[cfg(not(target_os = "linux"))]
fn limit_address_space(_now: u64, _memory_bytes: u64) {}

/// Gives up every system call but those for memory, threads' waiting, time, and the pipes that are open. A program
/// that broke out of its interpreter would find nothing to do here. Elsewhere than on Linux the interpreter alone, which has
/// no functions for files or network, stands between.
#[cfg(target_os = "linux")]
pub(crate) fn confine() -> Result<(), Box<dyn std::error::Error>> {
    Ok(seccompiler::apply_filter_all_threads(&filter()?)?)
}

#[cfg(not(target_os = "linux"))]
pub(crate) fn confine() -> Result<(), Box<dyn std::error::Error>> {
    Ok(())
}

#[cfg(target_os = "linux")]
fn filter() -> Result<seccompiler::BpfProgram, Box<dyn std::error::Error>> {
    use libc::{
        SYS_brk, SYS_clock_gettime, SYS_clock_nanosleep, SYS_close, SYS_exit, SYS_exit_group, SYS_fstat, SYS_futex, SYS_getcpu,
        SYS_getpid, SYS_getrandom, SYS_gettid, SYS_gettimeofday, SYS_lseek, SYS_madvise, SYS_mmap, SYS_mprotect, SYS_mremap,
        SYS_munmap, SYS_nanosleep, SYS_ppoll, SYS_pread64, SYS_prlimit64, SYS_read, SYS_readv, SYS_restart_syscall, SYS_rseq,
        SYS_rt_sigaction, SYS_rt_sigprocmask, SYS_rt_sigreturn, SYS_sched_getaffinity, SYS_sched_yield, SYS_set_robust_list,
        SYS_sigaltstack, SYS_tgkill, SYS_write, SYS_writev,
    };
    use seccompiler::{SeccompAction, SeccompCmpArgLen, SeccompCmpOp, SeccompCondition, SeccompFilter, SeccompRule};
    let allowed = [
        SYS_brk,
        SYS_clock_gettime,
        SYS_clock_nanosleep,
        SYS_close,
        SYS_exit,
        SYS_exit_group,
        SYS_fstat,
        SYS_futex,
        SYS_getcpu,
        SYS_getpid,
        SYS_getrandom,
        SYS_gettid,
        SYS_gettimeofday,
        SYS_lseek,
        SYS_madvise,
        SYS_mmap,
        SYS_mprotect,
        SYS_mremap,
        SYS_munmap,
        SYS_nanosleep,
        SYS_ppoll,
        SYS_pread64,
        SYS_read,
        SYS_readv,
        SYS_restart_syscall,
        SYS_rseq,
        SYS_rt_sigaction,
        SYS_rt_sigprocmask,
        SYS_rt_sigreturn,
        SYS_sched_getaffinity,
        SYS_sched_yield,
        SYS_set_robust_list,
        SYS_sigaltstack,
        SYS_write,
        SYS_writev,
    ];
    let first_is = |value: u64| -> Result<Vec<SeccompRule>, seccompiler::BackendError> {
        let condition = SeccompCondition::new(0, SeccompCmpArgLen::Dword, SeccompCmpOp::Eq, value)?;
        Ok(vec![SeccompRule::new(vec![condition])?])
    };
    let mut rules: std::collections::BTreeMap<i64, Vec<SeccompRule>> =
        allowed.into_iter().map(|call| (call, Vec::new())).collect();
    // Its own limits, and a signal to itself: that is how a process aborts.
    rules.insert(SYS_prlimit64, first_is(0)?);
    rules.insert(SYS_tgkill, first_is(u64::from(std::process::id()))?);
    let refuse = SeccompAction::Errno(libc::EPERM.unsigned_abs());
    let filter = SeccompFilter::new(rules, refuse, SeccompAction::Allow, std::env::consts::ARCH.try_into()?)?;
    Ok(filter.try_into()?)
}
