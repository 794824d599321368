//! Landlock, the second wall: should a mount ever show more than it ought to, the kernel still refuses.
//!
//! It says nothing about the network: a namespace without one lets programs talk to themselves, and should.
#![expect(unsafe_code, reason = "asking for the version has no safe wrapper")]

use std::path::Path;

use landlock::{
    ABI, Access, AccessFs, CompatLevel, Compatible, PathBeneath, PathFd, Ruleset, RulesetAttr, RulesetCreatedAttr, RulesetError,
    Scope,
};

use super::error::SandboxError;
use crate::Policy;

/// The newest version whose rules are known here.
const NEWEST: ABI = ABI::V6;

/// What the running kernel offers.
#[derive(Debug)]
pub(super) struct Wall {
    version: u32,
}

impl Wall {
    pub(super) fn new() -> Self {
        const VERSION_FLAG: libc::c_uint = 1;
        // SAFETY: with this flag the call takes no ruleset and only gives a number.
        let version = unsafe { libc::syscall(libc::SYS_landlock_create_ruleset, std::ptr::null::<u8>(), 0_usize, VERSION_FLAG) };
        let version = u32::try_from(version).unwrap_or(0);
        Self { version }
    }

    /// Restricts this process and all that it starts; gives the version in force. Where the kernel has no Landlock, the
    /// namespaces stand alone.
    pub(super) fn raise(&self, policy: &Policy) -> Result<u32, SandboxError> {
        if self.version > 0 {
            restrict(policy).map_err(|error| SandboxError::refused("restrict itself by Landlock", error.to_string()))?;
        }
        Ok(self.version)
    }
}

fn restrict(policy: &Policy) -> Result<(), RulesetError> {
    let everything = AccessFs::from_all(NEWEST);
    let ruleset = Ruleset::default()
        .set_compatibility(CompatLevel::BestEffort)
        .handle_access(everything)?
        .scope(Scope::Signal | Scope::AbstractUnixSocket)?;
    let device_use = AccessFs::ReadFile | AccessFs::WriteFile | AccessFs::Truncate | AccessFs::IoctlDev;
    let own = [
        (Path::new("/"), AccessFs::from_read(NEWEST)),
        (Path::new("/dev"), device_use),
        (Path::new("/dev/shm"), everything),
        (Path::new("/tmp"), everything),
    ];
    let granted = policy.read_write.iter().map(|path| {
        let folder = path.is_dir();
        (path.as_path(), if folder { everything } else { everything & AccessFs::from_file(NEWEST) })
    });
    let mut ruleset = ruleset.create()?;
    for (path, access) in own.into_iter().chain(granted) {
        // What cannot be opened cannot be used either; it gets no rule, and so no right.
        if let Ok(descriptor) = PathFd::new(path) {
            ruleset = ruleset.add_rule(PathBeneath::new(descriptor, access))?;
        }
    }
    ruleset.restrict_self().map(drop)
}
