//! Asks the linker for packed relocations where the system's loader knows them: the binary is position-independent and
//! has more than a hundred thousand, of which 24 bytes each would be read at every start and stay in memory.
#![allow(clippy::disallowed_methods, clippy::print_stdout, reason = "cargo talks to build scripts by variables and lines")]

use std::{env, process::Command};

/// glibc reads packed relocations since this version.
const GLIBC: (u32, u32) = (2, 36);

fn main() {
    println!("cargo::rerun-if-changed=build.rs");
    let is = |name: &str, wanted: &str| env::var(name).is_ok_and(|value| value == wanted);
    let for_this_machine = env::var("HOST").is_ok_and(|host| is("TARGET", &host));
    if for_this_machine && is("CARGO_CFG_TARGET_OS", "linux") && is("CARGO_CFG_TARGET_ENV", "gnu") && glibc() >= Some(GLIBC) {
        println!("cargo::rustc-link-arg-bins=-Wl,-z,pack-relative-relocs");
    }
}

/// The version of this machine's glibc, from a line such as `glibc 2.41`.
fn glibc() -> Option<(u32, u32)> {
    let said = Command::new("getconf").arg("GNU_LIBC_VERSION").output().ok()?;
    let text = String::from_utf8(said.stdout).ok()?;
    let (major, minor) = text.trim().strip_prefix("glibc ")?.split_once('.')?;
    Some((major.parse().ok()?, minor.split('.').next()?.parse().ok()?))
}
