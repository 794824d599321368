//! Puts together what a confined process sees, and decides as whom it sees it.

use std::{
    io,
    os::fd::{AsFd, OwnedFd},
    path::{Path, PathBuf},
};

use rustix::fs::{CWD, Mode, OFlags, openat};

use super::{
    Bounds, Confinement, Rights,
    error::{Context, SandboxError},
    id_map,
    identity::{Identity, NOBODY},
    mounts::{self, Access},
    root::Root,
    sources::{self, Owner, Source},
    system::{Entries, Entry, NETWORK_SETTINGS},
};
use crate::Policy;

/// Largest size of `/tmp` unless said otherwise.
const TEMPORARY_BYTES: u64 = 1 << 30;

/// Devices that every program may use.
const DEVICES: [&str; 5] = ["/dev/null", "/dev/zero", "/dev/full", "/dev/random", "/dev/urandom"];

/// Links that programs expect in `/dev`.
const DEVICE_LINKS: [(&str, &str); 5] = [
    ("/dev/fd", "/proc/self/fd"),
    ("/dev/stdin", "/proc/self/fd/0"),
    ("/dev/stdout", "/proc/self/fd/1"),
    ("/dev/stderr", "/proc/self/fd/2"),
    ("/dev/ptmx", "pts/ptmx"),
];

/// Something to be mounted at its path.
struct Shown {
    path: PathBuf,
    tree: OwnedFd,
    folder: bool,
}

/// Makes what is the same for all policies.
pub(super) fn lay_out(system: &Entries) -> Result<Root, SandboxError> {
    let root = Root::new()?;
    show_system(&root, system)?;
    show_devices(&root)?;
    let processes = mounts::new_proc().context("mount a process file system")?;
    root.mount(Path::new("/proc"), &processes, true)?;
    root.folder(Path::new("/var"))?;
    root.folder(Path::new("/run"))?;
    root.link(Path::new("/var/tmp"), Path::new("/tmp"))?;
    root.link(Path::new("/var/run"), Path::new("/run"))?;
    Ok(root)
}

/// Adds what the policy shows and enters the view. Gives the identity in which the policy's folders can be used as it says.
pub(super) fn finish(
    mut root: Root,
    confinement: &Confinement,
    policy: &Policy,
    bounds: Bounds,
) -> Result<Identity, SandboxError> {
    let sources = sources::open_all(policy, confinement.system.folders())?;
    let (shown, identity) = choose_identity(&confinement.rights, &sources)?;
    let temporary = bounds.temporary_bytes.unwrap_or(TEMPORARY_BYTES);
    for path in ["/tmp", "/dev/shm"] {
        root.temporary(Path::new(path), temporary)?;
    }
    name_users(&root, identity)?;
    show_names(&root, policy.network)?;
    for source in &sources {
        if let Source::Link { path, target } = source {
            root.link(path, target)?;
        }
    }
    for Shown { path, tree, folder } in &shown {
        root.mount(path, tree, *folder)?;
    }
    root.enter()?;
    Ok(identity)
}

/// Copies the policy's trees so that one identity can use all of them.
///
/// An administrator's processes become nobody, for whom the owner of each folder is put on by an id-mapped mount. Where
/// a file system cannot do that, they become the owner of the first writable folder instead, without any capability.
fn choose_identity(rights: &Rights, sources: &[Source]) -> Result<(Vec<Shown>, Identity), SandboxError> {
    match rights {
        Rights::User { uid, gid } => {
            let identity = Identity { uid: uid.as_raw(), gid: gid.as_raw() };
            Ok((copy_all(sources, &|_, _| Ok(()))?, identity))
        }
        Rights::Administrator { root_as_nobody } => {
            let map = |tree: &OwnedFd, owner: Owner| put_on_owner(tree, owner, root_as_nobody.as_ref());
            match copy_all(sources, &map) {
                Ok(shown) => Ok((shown, Identity::NOBODY)),
                Err(CopyError::NotMapped) => Ok((copy_all(sources, &|_, _| Ok(()))?, first_writable_owner(sources))),
                Err(CopyError::Sandbox(error)) => Err(error),
            }
        }
    }
}

enum CopyError {
    /// The file system of a writable folder cannot change owners.
    NotMapped,
    Sandbox(SandboxError),
}

impl From<CopyError> for SandboxError {
    fn from(error: CopyError) -> Self {
        match error {
            CopyError::Sandbox(error) => error,
            CopyError::NotMapped => Self::new("map the owners of a folder", Some(libc::EINVAL)),
        }
    }
}

fn copy_all(sources: &[Source], map: &dyn Fn(&OwnedFd, Owner) -> io::Result<()>) -> Result<Vec<Shown>, CopyError> {
    let mut shown = Vec::new();
    for source in sources {
        let Source::Real { path, descriptor, folder, owner, access } = source else { continue };
        let failed = |error: io::Error| CopyError::Sandbox(SandboxError::path(path, error.to_string()));
        let tree = mounts::copy_tree(descriptor).map_err(|error| failed(error.into()))?;
        mounts::restrict(&tree, *access).map_err(failed)?;
        // What is only read can mostly be read by everybody.
        if map(&tree, *owner).is_err() && *access == Access::ReadWrite {
            return Err(CopyError::NotMapped);
        }
        shown.push(Shown { path: path.clone(), tree, folder: *folder });
    }
    Ok(shown)
}

fn put_on_owner(tree: &OwnedFd, owner: Owner, root_as_nobody: Option<&OwnedFd>) -> io::Result<()> {
    if owner.uid == NOBODY {
        return Ok(());
    }
    if owner.uid == 0 && owner.gid == 0 {
        let map = root_as_nobody.ok_or_else(|| io::Error::other("there is no map"))?;
        return mounts::map_owners(tree, map.as_fd());
    }
    mounts::map_owners(tree, id_map::swapped(owner.uid, owner.gid, NOBODY)?.as_fd())
}

fn first_writable_owner(sources: &[Source]) -> Identity {
    let owners = sources.iter().filter_map(|source| match source {
        Source::Real { owner, access: Access::ReadWrite, .. } => Some(Identity { uid: owner.uid, gid: owner.gid }),
        _ => None,
    });
    owners.min_by_key(|identity| identity.uid == 0).unwrap_or(Identity::NOBODY)
}

fn show_system(root: &Root, system: &Entries) -> Result<(), SandboxError> {
    for entry in system.list() {
        match entry {
            Entry::Real(path) => show_host(root, path, Access::ReadOnly)?,
            Entry::Link { path, target } => root.link(path, target)?,
        }
    }
    Ok(())
}

/// How other machines are found, where there is a network. Not laid out ahead: these files are replaced as networks change.
fn show_names(root: &Root, network: bool) -> Result<(), SandboxError> {
    if network {
        return NETWORK_SETTINGS.iter().try_for_each(|path| show_host(root, Path::new(path), Access::ReadOnly));
    }
    root.file(Path::new("/etc/hosts"), "127.0.0.1 localhost sandbox\n::1 localhost sandbox\n")
}

fn show_devices(root: &Root) -> Result<(), SandboxError> {
    for path in DEVICES {
        show_host(root, Path::new(path), Access::Device)?;
    }
    for (path, target) in DEVICE_LINKS {
        root.link(Path::new(path), Path::new(target))?;
    }
    let terminals = mounts::new_terminals().context("make pseudo-terminals")?;
    root.mount(Path::new("/dev/pts"), &terminals, true)
}

/// Shows something of the system's at its own path; what is not there is left out. Links are followed: no tool could
/// have put them there.
fn show_host(root: &Root, path: &Path, access: Access) -> Result<(), SandboxError> {
    const STEP: &str = "show the system's folders";
    let Ok(descriptor) = openat(CWD, path, OFlags::PATH | OFlags::CLOEXEC, Mode::empty()) else { return Ok(()) };
    let folder = rustix::fs::fstat(&descriptor).is_ok_and(|stat| rustix::fs::FileType::from_raw_mode(stat.st_mode).is_dir());
    let tree = mounts::copy_tree(&descriptor).context(STEP)?;
    mounts::restrict(&tree, access).context(STEP)?;
    root.mount(path, &tree, folder)
}

/// Names the two users that there are.
fn name_users(root: &Root, identity: Identity) -> Result<(), SandboxError> {
    let Identity { uid, gid } = identity;
    let mut users = vec!["root:x:0:0:root:/:/usr/sbin/nologin\n".to_owned()];
    let mut groups = vec!["root:x:0:\n".to_owned()];
    if uid != 0 {
        users.push(format!("tool:x:{uid}:{gid}:tool:/tmp:/bin/sh\n"));
    }
    if gid != 0 {
        groups.push(format!("tool:x:{gid}:\n"));
    }
    root.file(Path::new("/etc/passwd"), &users.concat())?;
    root.file(Path::new("/etc/group"), &groups.concat())
}
