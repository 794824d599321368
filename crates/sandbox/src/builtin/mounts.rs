//! The mount calls, each behind a safe function.
#![expect(unsafe_code, reason = "`mount_setattr` has no safe wrapper")]

use std::{
    io,
    os::fd::{AsFd, AsRawFd, BorrowedFd, OwnedFd},
    path::Path,
};

use rustix::{
    io::Errno,
    mount::{
        FsMountFlags, FsOpenFlags, MountAttrFlags, MountPropagationFlags, MoveMountFlags, OpenTreeFlags, UnmountFlags,
        fsconfig_create, fsconfig_set_flag, fsconfig_set_string, fsmount, fsopen, mount_change, move_mount, open_tree, unmount,
    },
    process::{chdir, fchdir, pivot_root},
};

/// What every shown folder loses: device files and programs that run as their owner.
const TAME: MountAttrFlags = MountAttrFlags::MOUNT_ATTR_NOSUID.union(MountAttrFlags::MOUNT_ATTR_NODEV);

/// How a folder is shown.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum Access {
    ReadOnly,
    ReadWrite,
    /// A device file: writable, and works as one.
    Device,
}

/// Keeps what is mounted here from showing outside; what is mounted outside still shows here.
pub(super) fn make_one_way() -> Result<(), Errno> {
    mount_change("/", MountPropagationFlags::DOWNSTREAM | MountPropagationFlags::REC)
}

/// A copy of the mounts from `source` down, not attached to anything yet.
pub(super) fn copy_tree(source: impl AsFd) -> Result<OwnedFd, Errno> {
    let flags = OpenTreeFlags::OPEN_TREE_CLONE
        | OpenTreeFlags::OPEN_TREE_CLOEXEC
        | OpenTreeFlags::AT_RECURSIVE
        | OpenTreeFlags::AT_EMPTY_PATH;
    open_tree(source, "", flags)
}

/// Sets how a copied tree may be used, all mounts in it.
pub(super) fn restrict(tree: impl AsFd, access: Access) -> io::Result<()> {
    let flags = match access {
        Access::ReadOnly => TAME | MountAttrFlags::MOUNT_ATTR_RDONLY,
        Access::ReadWrite => TAME,
        Access::Device => MountAttrFlags::MOUNT_ATTR_NOSUID | MountAttrFlags::MOUNT_ATTR_NOEXEC,
    };
    set_attributes(tree.as_fd(), flags, None)
}

/// Shows a copied tree's files under other owners, by the map of a user namespace.
pub(super) fn map_owners(tree: impl AsFd, map: BorrowedFd<'_>) -> io::Result<()> {
    set_attributes(tree.as_fd(), MountAttrFlags::MOUNT_ATTR_IDMAP, Some(map))
}

/// Mounts a tree over `target`.
pub(super) fn attach(tree: impl AsFd, target: impl AsFd) -> Result<(), Errno> {
    let flags = MoveMountFlags::MOVE_MOUNT_F_EMPTY_PATH | MoveMountFlags::MOVE_MOUNT_T_EMPTY_PATH;
    move_mount(tree, "", target, "", flags)
}

/// Mounts a tree over the process's root; whoever enters it afterwards sees it, paths still lead to the old root.
pub(super) fn attach_over_root(tree: impl AsFd) -> Result<(), Errno> {
    move_mount(tree, "", rustix::fs::CWD, "/", MoveMountFlags::MOVE_MOUNT_F_EMPTY_PATH)
}

/// A new memory file system of at most `bytes`, not attached yet.
pub(super) fn new_tmpfs(bytes: u64, mode: &str) -> Result<OwnedFd, Errno> {
    let context = fsopen("tmpfs", FsOpenFlags::FSOPEN_CLOEXEC)?;
    fsconfig_set_string(context.as_fd(), "size", bytes.to_string())?;
    fsconfig_set_string(context.as_fd(), "mode", mode)?;
    fsconfig_create(context.as_fd())?;
    fsmount(context.as_fd(), FsMountFlags::FSMOUNT_CLOEXEC, TAME)
}

/// A new process file system of this process's pid namespace, read-only: what the kernel offers there to write is for
/// the machine's owner.
pub(super) fn new_proc() -> Result<OwnedFd, Errno> {
    let flags = TAME | MountAttrFlags::MOUNT_ATTR_NOEXEC | MountAttrFlags::MOUNT_ATTR_RDONLY;
    let open = |only_processes: bool| {
        let context = fsopen("proc", FsOpenFlags::FSOPEN_CLOEXEC)?;
        if only_processes {
            fsconfig_set_string(context.as_fd(), "subset", "pid")?;
        }
        fsconfig_create(context.as_fd())?;
        fsmount(context.as_fd(), FsMountFlags::FSMOUNT_CLOEXEC, flags)
    };
    // Inside containers the whole of it may be refused.
    open(false).or_else(|error| open(true).map_err(|_| error))
}

/// New pseudo-terminals that no other process can reach.
pub(super) fn new_terminals() -> Result<OwnedFd, Errno> {
    let context = fsopen("devpts", FsOpenFlags::FSOPEN_CLOEXEC)?;
    fsconfig_set_flag(context.as_fd(), "newinstance")?;
    fsconfig_set_string(context.as_fd(), "ptmxmode", "0666")?;
    fsconfig_set_string(context.as_fd(), "mode", "0620")?;
    fsconfig_create(context.as_fd())?;
    let flags = MountAttrFlags::MOUNT_ATTR_NOSUID | MountAttrFlags::MOUNT_ATTR_NOEXEC;
    fsmount(context.as_fd(), FsMountFlags::FSMOUNT_CLOEXEC, flags)
}

/// Makes `root` the root of this process and lets go of the old one.
pub(super) fn change_root(root: impl AsFd) -> Result<(), Errno> {
    fchdir(root)?;
    // Both in one place: the old root ends up on top of the new one, and is taken off there.
    pivot_root(".", ".")?;
    unmount(".", UnmountFlags::DETACH)?;
    chdir(Path::new("/"))?;
    // Were anything left on top of the root, this would lead there.
    let (root, above) = (rustix::fs::stat("/")?, rustix::fs::stat("/..")?);
    if (root.st_dev, root.st_ino) == (above.st_dev, above.st_ino) { Ok(()) } else { Err(Errno::BUSY) }
}

/// Takes a tree that was mounted over the root off again.
pub(super) fn detach_from_root(root: impl AsFd) -> Result<(), Errno> {
    fchdir(root)?;
    unmount(".", UnmountFlags::DETACH)?;
    chdir(Path::new("/"))
}

/// Makes the root's own file system read-only, not what is mounted in it.
pub(super) fn seal_root() -> io::Result<()> {
    let root = rustix::fs::open("/", rustix::fs::OFlags::PATH | rustix::fs::OFlags::CLOEXEC, rustix::fs::Mode::empty())?;
    set_one(root.as_fd(), TAME | MountAttrFlags::MOUNT_ATTR_RDONLY)
}

/// The kernel's `struct mount_attr`.
#[repr(C)]
#[derive(Default)]
struct Attributes {
    set: u64,
    clear: u64,
    propagation: u64,
    user_namespace: u64,
}

fn set_attributes(tree: BorrowedFd<'_>, flags: MountAttrFlags, map: Option<BorrowedFd<'_>>) -> io::Result<()> {
    let user_namespace = map.map_or(0, |map| u64::from(map.as_raw_fd().unsigned_abs()));
    let attributes = Attributes { set: u64::from(flags.bits()), user_namespace, ..Attributes::default() };
    call(tree, libc::AT_EMPTY_PATH | libc::AT_RECURSIVE, &attributes)
}

fn set_one(mount: BorrowedFd<'_>, flags: MountAttrFlags) -> io::Result<()> {
    let attributes = Attributes { set: u64::from(flags.bits()), ..Attributes::default() };
    call(mount, libc::AT_EMPTY_PATH, &attributes)
}

fn call(mount: BorrowedFd<'_>, flags: libc::c_int, attributes: &Attributes) -> io::Result<()> {
    let size = size_of::<Attributes>();
    // SAFETY: the descriptors are open, the path is a C string, and `attributes` is of the kernel's form and given size.
    let result = unsafe {
        libc::syscall(libc::SYS_mount_setattr, mount.as_raw_fd(), c"".as_ptr(), flags, std::ptr::from_ref(attributes), size)
    };
    if result < 0 { Err(io::Error::last_os_error()) } else { Ok(()) }
}
