//! The system call filter: what could reach out of the namespaces, or attacks the kernel where few programs need to go.
//!
//! Everything is allowed but a list, because tools are programs of any kind. Most of the list is refused to a process
//! without rights anyway; the filter keeps a fault in that code from mattering.
#![expect(unsafe_code, reason = "installing a filter has no safe wrapper")]

use std::io;

use libc::{EAFNOSUPPORT, ENOSYS, EPERM, c_long, sock_filter};

/// Marks system calls of the 32-bit form on 64-bit machines, which would pass a filter by number.
#[cfg(target_arch = "x86_64")]
const X32_BIT: u32 = 0x4000_0000;

#[cfg(target_arch = "x86_64")]
const ARCHITECTURE: u32 = 0xc000_003e;
#[cfg(target_arch = "aarch64")]
const ARCHITECTURE: u32 = 0xc000_00b7;
#[cfg(target_arch = "riscv64")]
const ARCHITECTURE: u32 = 0xc000_00f3;

/// Places in the data that a filter looks at.
const NUMBER_OFFSET: u32 = 0;
const ARCHITECTURE_OFFSET: u32 = 4;
const FIRST_ARGUMENT_OFFSET: u32 = 16;
const SECOND_ARGUMENT_OFFSET: u32 = 24;

const ALLOW: u32 = libc::SECCOMP_RET_ALLOW;
const KILL: u32 = libc::SECCOMP_RET_KILL_PROCESS;

/// New namespaces give rights inside them, and with these a way to more of the kernel.
const NAMESPACE_FLAGS: u32 = (libc::CLONE_NEWNS
    | libc::CLONE_NEWCGROUP
    | libc::CLONE_NEWUTS
    | libc::CLONE_NEWIPC
    | libc::CLONE_NEWUSER
    | libc::CLONE_NEWPID
    | libc::CLONE_NEWNET)
    .cast_unsigned();

/// Refused with "not permitted".
const REFUSED: &[c_long] = &[
    // Namespaces, mounts, roots.
    libc::SYS_unshare,
    libc::SYS_setns,
    libc::SYS_mount,
    libc::SYS_umount2,
    libc::SYS_pivot_root,
    libc::SYS_chroot,
    libc::SYS_open_tree,
    libc::SYS_move_mount,
    libc::SYS_fsopen,
    libc::SYS_fsconfig,
    libc::SYS_fsmount,
    libc::SYS_fspick,
    libc::SYS_mount_setattr,
    libc::SYS_open_by_handle_at,
    // Other processes.
    libc::SYS_ptrace,
    libc::SYS_process_vm_readv,
    libc::SYS_process_vm_writev,
    libc::SYS_pidfd_getfd,
    libc::SYS_kcmp,
    libc::SYS_migrate_pages,
    libc::SYS_move_pages,
    // Keys are not kept apart by namespaces.
    libc::SYS_add_key,
    libc::SYS_request_key,
    libc::SYS_keyctl,
    // Wide gates into the kernel.
    libc::SYS_bpf,
    libc::SYS_perf_event_open,
    libc::SYS_userfaultfd,
    libc::SYS_io_uring_setup,
    libc::SYS_io_uring_enter,
    libc::SYS_io_uring_register,
    libc::SYS_fanotify_init,
    // The machine.
    libc::SYS_init_module,
    libc::SYS_finit_module,
    libc::SYS_delete_module,
    libc::SYS_kexec_load,
    #[cfg(not(target_arch = "riscv64"))]
    libc::SYS_kexec_file_load,
    libc::SYS_reboot,
    libc::SYS_swapon,
    libc::SYS_swapoff,
    libc::SYS_acct,
    libc::SYS_quotactl,
    libc::SYS_syslog,
    libc::SYS_sethostname,
    libc::SYS_setdomainname,
    libc::SYS_settimeofday,
    libc::SYS_clock_settime,
    libc::SYS_adjtimex,
    libc::SYS_clock_adjtime,
    libc::SYS_vhangup,
    #[cfg(target_arch = "x86_64")]
    libc::SYS_iopl,
    #[cfg(target_arch = "x86_64")]
    libc::SYS_ioperm,
];

/// Socket families that reach the machine or the host past the network namespace.
const REFUSED_FAMILIES: &[i32] =
    &[libc::AF_VSOCK, libc::AF_ALG, libc::AF_PACKET, libc::AF_TIPC, libc::AF_BLUETOOTH, libc::AF_CAN];

/// Pushing input into a terminal, as its user would type it.
const REFUSED_TERMINAL_REQUESTS: &[u32] = &[0x5412, 0x541c];

/// A filter, ready to be installed in any number of processes.
#[derive(Debug)]
pub(crate) struct Filter {
    program: Vec<sock_filter>,
}

impl Filter {
    pub(crate) fn new() -> Self {
        let mut program = vec![
            load(ARCHITECTURE_OFFSET),
            // A program of another architecture has other numbers: it cannot run here.
            jump_if_equal(ARCHITECTURE, 1, 0),
            give(KILL),
            load(NUMBER_OFFSET),
        ];
        #[cfg(target_arch = "x86_64")]
        program.extend([jump_if_at_least(X32_BIT, 0, 1), give(errno(EPERM))]);
        // Its flags are in memory, where a filter cannot look: libraries fall back to `clone` when it is missing.
        program.extend([jump_if_equal(number(libc::SYS_clone3), 0, 1), give(errno(ENOSYS))]);
        program.extend(clone_without_namespaces());
        program.extend(argument_rule(
            libc::SYS_socket,
            FIRST_ARGUMENT_OFFSET,
            REFUSED_FAMILIES.iter().map(|family| family.cast_unsigned()),
            EAFNOSUPPORT,
        ));
        program.extend(argument_rule(libc::SYS_ioctl, SECOND_ARGUMENT_OFFSET, REFUSED_TERMINAL_REQUESTS.iter().copied(), EPERM));
        for refused in REFUSED {
            program.extend([jump_if_equal(number(*refused), 0, 1), give(errno(EPERM))]);
        }
        program.push(give(ALLOW));
        Self { program }
    }

    /// The filter as the kernel takes it.
    pub(crate) fn bytes(&self) -> Vec<u8> {
        let instruction = |step: &sock_filter| {
            let [code_low, code_high] = step.code.to_ne_bytes();
            let [a, b, c, d] = step.k.to_ne_bytes();
            [code_low, code_high, step.jt, step.jf, a, b, c, d]
        };
        self.program.iter().flat_map(instruction).collect()
    }

    /// Installs the filter in this process, for good. It must have given up new privileges before.
    pub(super) fn install(&self) -> io::Result<()> {
        let length = u16::try_from(self.program.len()).map_err(io::Error::other)?;
        let program = libc::sock_fprog { len: length, filter: self.program.as_ptr().cast_mut() };
        // SAFETY: `program` points to `len` instructions, which the kernel copies, checks and does not write to.
        let result =
            unsafe { libc::prctl(libc::PR_SET_SECCOMP, libc::c_ulong::from(libc::SECCOMP_MODE_FILTER), &raw const program) };
        if result < 0 { Err(io::Error::last_os_error()) } else { Ok(()) }
    }
}

fn clone_without_namespaces() -> [sock_filter; 5] {
    [
        jump_if_equal(number(libc::SYS_clone), 0, 4),
        load(FIRST_ARGUMENT_OFFSET),
        jump_if_any_bit(NAMESPACE_FLAGS, 0, 1),
        give(errno(EPERM)),
        give(ALLOW),
    ]
}

/// Refuses a call with any of `values` in an argument's lower half, and allows it with all others.
fn argument_rule(call: c_long, offset: u32, values: impl Iterator<Item = u32>, error: i32) -> Vec<sock_filter> {
    let mut body = vec![load(offset)];
    for value in values {
        body.extend([jump_if_equal(value, 0, 1), give(errno(error))]);
    }
    body.push(give(ALLOW));
    let skip = u8::try_from(body.len()).unwrap_or(u8::MAX);
    let mut rule = vec![jump_if_equal(number(call), 0, skip)];
    rule.append(&mut body);
    rule
}

fn number(call: c_long) -> u32 {
    u32::try_from(call).unwrap_or(u32::MAX)
}

fn errno(error: i32) -> u32 {
    libc::SECCOMP_RET_ERRNO | error.unsigned_abs()
}

const fn instruction(code: u16, value: u32, on_true: u8, on_false: u8) -> sock_filter {
    sock_filter { code, jt: on_true, jf: on_false, k: value }
}

/// Loads the 32 bits at `offset` (the lower half of an argument on the little-endian machines that this is for).
const fn load(offset: u32) -> sock_filter {
    instruction(0x20, offset, 0, 0)
}

const fn jump_if_equal(value: u32, on_true: u8, on_false: u8) -> sock_filter {
    instruction(0x15, value, on_true, on_false)
}

#[cfg(target_arch = "x86_64")]
const fn jump_if_at_least(value: u32, on_true: u8, on_false: u8) -> sock_filter {
    instruction(0x35, value, on_true, on_false)
}

const fn jump_if_any_bit(value: u32, on_true: u8, on_false: u8) -> sock_filter {
    instruction(0x45, value, on_true, on_false)
}

const fn give(action: u32) -> sock_filter {
    instruction(0x06, action, 0, 0)
}
