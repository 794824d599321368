//! The built-in sandbox of Linux: namespaces, a root of its own, Landlock, seccomp, no rights.
//!
//! [`Confinement::prepare`] runs once in the process that forks. A child that was forked into
//! [`Confinement::namespaces`] calls [`Confinement::lay_out`], which needs no policy and so can be done ahead of need,
//! and then [`Confinement::enter`]. No outside program takes part. A process in there is alone with the system's folders
//! (read-only) and what its [`Policy`] lists; it cannot get out of its namespaces, and what it may not see is not there.

pub(crate) mod error;
mod id_map;
mod identity;
mod landlock;
mod loopback;
pub(crate) mod mounts;
mod root;
pub(crate) mod seccomp;
pub(crate) mod sources;
pub(crate) mod system;
mod view;

use std::os::fd::OwnedFd;

use rustix::fs::{Gid, Uid};

use self::error::Context;
pub use self::error::SandboxError;
use crate::Policy;

/// Everything about confinement that is the same for all children.
#[derive(Debug)]
pub struct Confinement {
    rights: Rights,
    filter: seccomp::Filter,
    landlock: landlock::Wall,
    system: system::Entries,
}

/// By which rights namespaces are made, and who the confined process is.
#[derive(Debug)]
enum Rights {
    /// As administrator: no user namespace is needed; the process becomes `nobody`. The namespace lets `nobody` act as
    /// root inside granted folders (an id-mapped mount), and as nothing anywhere else.
    Administrator { root_as_nobody: Option<OwnedFd> },
    /// As anybody else: in a user namespace that knows this user only.
    User { uid: Uid, gid: Gid },
}

/// What a child entered.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Entered {
    /// Version of Landlock's interface in force, 0 where the kernel has none.
    pub landlock_abi: u32,
}

/// What the confined process gets besides its policy.
#[derive(Debug, Clone, Copy, Default)]
pub struct Bounds {
    /// Largest size of the private `/tmp`, in bytes; `None` is a gigabyte.
    pub temporary_bytes: Option<u64>,
}

impl Confinement {
    /// Finds out what this process can do and prepares what all children share. Cheap, and does not fail: what is
    /// missing shows when a child enters.
    pub fn prepare() -> Self {
        let rights = if identity::is_administrator() {
            Rights::Administrator { root_as_nobody: id_map::swapped(0, 0, identity::NOBODY).ok() }
        } else {
            Rights::User { uid: rustix::process::geteuid(), gid: rustix::process::getegid() }
        };
        Self { rights, filter: seccomp::Filter::new(), landlock: landlock::Wall::new(), system: system::Entries::default() }
    }

    /// Flags of `clone` for a child with or without the host's network.
    pub fn namespaces(&self, network: bool) -> libc::c_int {
        let mut flags = libc::CLONE_NEWNS | libc::CLONE_NEWPID | libc::CLONE_NEWIPC | libc::CLONE_NEWUTS;
        if !network {
            flags |= libc::CLONE_NEWNET;
        }
        if matches!(self.rights, Rights::User { .. }) {
            flags |= libc::CLONE_NEWUSER;
        }
        flags
    }

    /// Looks at the system's folders again, for the children to come.
    pub fn refresh(&mut self) {
        self.system.refresh();
    }

    /// What is said when the child could not even be forked.
    pub fn refused(error: &std::io::Error) -> SandboxError {
        SandboxError::new("make namespaces", error.raw_os_error())
    }

    /// Prepares the calling process, which is the first of its namespaces: makes everything that does not depend on the
    /// policy. The process still sees everything.
    pub fn lay_out(&self, network: bool) -> Result<Layout, SandboxError> {
        if let Rights::User { uid, gid } = &self.rights {
            identity::map_self(*uid, *gid).context("map the user into its namespace")?;
        }
        mounts::make_one_way().context("part from the mounts outside")?;
        let root = view::lay_out(&self.system)?;
        rustix::system::sethostname(b"sandbox").context("name the namespace")?;
        if !network {
            // Programs talk to themselves over loopback; in this namespace nobody else is there to answer.
            loopback::bring_up().context("start the loopback device")?;
        }
        Ok(Layout { root, network })
    }

    /// Confines the process that was laid out, for good. It sees everything up to here and only its policy from here on;
    /// its standard streams are handed to the identity that it takes on.
    pub fn enter(
        mut self,
        layout: Layout,
        policy: &Policy,
        bounds: Bounds,
        streams: &[&OwnedFd],
    ) -> Result<Entered, SandboxError> {
        let Layout { mut root, network } = layout;
        if self.system.refresh() {
            root.discard()?;
            root = view::lay_out(&self.system)?;
        }
        if network != policy.network {
            return Err(SandboxError::refused("use what was prepared", "it is for another kind of network".to_owned()));
        }
        let identity = view::finish(root, &self, policy, bounds)?;
        identity::take_on(identity, matches!(self.rights, Rights::Administrator { .. }), streams)?;
        let landlock_abi = self.landlock.raise(policy)?;
        self.filter.install().context("install the system call filter")?;
        Ok(Entered { landlock_abi })
    }
}

/// A child's view as far as it does not depend on a policy.
#[derive(Debug)]
pub struct Layout {
    root: root::Root,
    network: bool,
}
