//! Who the confined process is, and that it holds no rights.

use std::{fs, io, os::fd::OwnedFd};

use rustix::{
    fs::{Gid, Uid, fchown},
    process::{DumpableBehavior, set_dumpable_behavior},
    thread::{
        CapabilitiesSecureBits, CapabilitySet, CapabilitySets, capabilities, clear_ambient_capability_set,
        remove_capability_from_bounding_set, set_capabilities, set_capabilities_secure_bits, set_no_new_privs, set_thread_groups,
        set_thread_res_gid, set_thread_res_uid,
    },
};

use super::error::{Context, SandboxError};

/// User and group that own nothing.
pub(super) const NOBODY: u32 = 65534;

/// What an administrator needs for a sandbox without a user namespace.
const NEEDED: CapabilitySet = CapabilitySet::SYS_ADMIN
    .union(CapabilitySet::SETUID)
    .union(CapabilitySet::SETGID)
    .union(CapabilitySet::SETPCAP)
    .union(CapabilitySet::CHOWN)
    .union(CapabilitySet::DAC_OVERRIDE)
    .union(CapabilitySet::NET_ADMIN);

/// Who the confined process is.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) struct Identity {
    pub(super) uid: u32,
    pub(super) gid: u32,
}

impl Identity {
    pub(super) const NOBODY: Self = Self { uid: NOBODY, gid: NOBODY };
}

/// Whether this process may do all that a sandbox needs, without a user namespace of its own.
pub(super) fn is_administrator() -> bool {
    let has_rights = rustix::process::geteuid().is_root() && capabilities(None).is_ok_and(|sets| sets.effective.contains(NEEDED));
    // Root of a small container has all rights in there, and cannot become anybody else.
    has_rights && knows_nobody("/proc/self/uid_map") && knows_nobody("/proc/self/gid_map")
}

fn knows_nobody(map: &str) -> bool {
    fs::read_to_string(map).is_ok_and(|map| map.lines().any(|line| covers(line, NOBODY)))
}

/// Whether a line of a map (first id inside, first id outside, count) has `id` inside.
fn covers(line: &str, id: u32) -> bool {
    let numbers: Vec<u64> = line.split_whitespace().filter_map(|number| number.parse().ok()).collect();
    matches!(numbers.as_slice(), [first, _, count] if (*first..first + count).contains(&u64::from(id)))
}

/// Makes the user known in the user namespace that this process was forked into, under its own number.
pub(super) fn map_self(uid: Uid, gid: Gid) -> io::Result<()> {
    fs::write("/proc/self/setgroups", "deny")?;
    fs::write("/proc/self/uid_map", format!("{0} {0} 1", uid.as_raw()))?;
    fs::write("/proc/self/gid_map", format!("{0} {0} 1", gid.as_raw()))
}

/// Becomes `identity`, which only an administrator can, without capabilities and without a way to get any.
pub(super) fn take_on(identity: Identity, administrator: bool, streams: &[&OwnedFd]) -> Result<(), SandboxError> {
    drop_bounding_set();
    let bits = CapabilitiesSecureBits::NO_ROOT
        | CapabilitiesSecureBits::NO_ROOT_LOCKED
        | CapabilitiesSecureBits::NO_SETUID_FIXUP
        | CapabilitiesSecureBits::NO_SETUID_FIXUP_LOCKED
        | CapabilitiesSecureBits::KEEP_CAPS_LOCKED;
    set_capabilities_secure_bits(bits).context("lock the capabilities")?;
    if administrator {
        become_other(identity, streams)?;
    }
    // Kernels before 4.3 have no ambient set to clear.
    let _ = clear_ambient_capability_set();
    let none = CapabilitySet::empty();
    let sets = CapabilitySets { effective: none, permitted: none, inheritable: none };
    set_capabilities(None, sets).context("drop the capabilities")?;
    set_no_new_privs(true).context("forbid new privileges")?;
    // What runs in here as the same user must not look into this process.
    set_dumpable_behavior(DumpableBehavior::NotDumpable).context("hide this process")
}

fn become_other(identity: Identity, streams: &[&OwnedFd]) -> Result<(), SandboxError> {
    let (uid, gid) = (Uid::from_raw(identity.uid), Gid::from_raw(identity.gid));
    // `echo > /dev/stderr` opens the pipe anew, which only its owner may.
    for stream in streams {
        fchown(stream, Some(uid), Some(gid)).context("hand over the standard streams")?;
    }
    set_thread_groups(&[]).context("leave the groups")?;
    set_thread_res_gid(gid, gid, gid).context("change the group")?;
    set_thread_res_uid(uid, uid, uid).context("change the user")
}

fn drop_bounding_set() {
    for bit in 0..64 {
        let Some(capability) = CapabilitySet::from_bits(1 << bit) else { continue };
        // The first one that the kernel does not know ends the list.
        if remove_capability_from_bounding_set(capability).is_err() {
            return;
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn maps_tell_who_is_known() {
        assert!(covers("         0          0 4294967295", NOBODY));
        assert!(covers("0 100000 65536", NOBODY));
        assert!(!covers("0 1000 1", NOBODY));
        assert!(!covers("1 100000 65533", NOBODY));
        assert!(!covers("nonsense", NOBODY));
    }
}
