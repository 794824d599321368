//! Opening what a policy lists, without being led astray by symbolic links.

use std::{
    fs, io,
    os::{fd::OwnedFd, unix::fs::MetadataExt},
    path::{Component, Path, PathBuf},
};

use rustix::{
    fs::{CWD, FileType, Mode, OFlags, ResolveFlags, fstat, openat2},
    io::Errno,
};

use super::{error::SandboxError, mounts::Access};
use crate::Policy;

/// Places that the sandbox makes itself; nothing of the host's may be shown there.
const OWN_PLACES: [&str; 4] = ["/", "/proc", "/dev", "/tmp"];

/// Something that a policy lists, opened.
#[derive(Debug)]
pub(crate) enum Source {
    /// A file or folder, open by path only.
    Real { path: PathBuf, descriptor: OwnedFd, folder: bool, owner: Owner, access: Access },
    /// A symbolic link on the way to a listed path: it is shown as the link that it is.
    Link { path: PathBuf, target: PathBuf },
}

/// Whom something belongs to.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) struct Owner {
    pub(crate) uid: u32,
    pub(crate) gid: u32,
}

/// Opens everything that a policy lists, parents before what is inside them.
pub(crate) fn open_all(policy: &Policy, already_shown: &[PathBuf]) -> Result<Vec<Source>, SandboxError> {
    let mut listed: Vec<(&Path, Access)> = Vec::new();
    listed.extend(policy.read_only.iter().map(|path| (path.as_path(), Access::ReadOnly)));
    listed.extend(policy.read_write.iter().map(|path| (path.as_path(), Access::ReadWrite)));
    // Stable: where one path is listed both ways, the writable one comes second and lies on top.
    listed.sort_by_key(|(path, _)| path.components().count());
    let mut sources = Vec::with_capacity(listed.len());
    for (index, (path, access)) in listed.iter().enumerate() {
        check_form(path)?;
        let before = listed.get(..index).unwrap_or_default();
        if *access == Access::ReadOnly && is_shown_read_only(path, before, already_shown) {
            continue;
        }
        sources.extend(open(path, *access)?);
    }
    Ok(sources)
}

/// Whether the nearest folder around `path` that is shown is shown read-only, `path` included.
fn is_shown_read_only(path: &Path, listed: &[(&Path, Access)], system: &[PathBuf]) -> bool {
    let nearest =
        listed.iter().rev().filter(|(other, _)| path.starts_with(other)).max_by_key(|(other, _)| other.components().count());
    match nearest {
        Some((_, access)) => *access == Access::ReadOnly,
        None => system.iter().any(|folder| path.starts_with(folder)),
    }
}

fn check_form(path: &Path) -> Result<(), SandboxError> {
    let plain = path.components().all(|part| matches!(part, Component::RootDir | Component::Normal(_)));
    if !path.is_absolute() || !plain {
        return Err(SandboxError::path(path, "it is not an absolute path without `..`. List its full path"));
    }
    if OWN_PLACES.iter().any(|place| path == Path::new(place)) {
        return Err(SandboxError::path(path, "the sandbox has its own one there. List a folder inside it"));
    }
    Ok(())
}

fn open(path: &Path, access: Access) -> Result<Option<Source>, SandboxError> {
    let flags = OFlags::PATH | OFlags::NOFOLLOW | OFlags::CLOEXEC;
    let resolve = ResolveFlags::NO_SYMLINKS | ResolveFlags::NO_MAGICLINKS;
    // Opened by path only, a link at the very end is no error: the link itself is opened.
    let opened = openat2(CWD, path, flags, Mode::empty(), resolve).and_then(|descriptor| {
        let stat = fstat(&descriptor)?;
        if FileType::from_raw_mode(stat.st_mode).is_symlink() { Err(Errno::LOOP) } else { Ok((descriptor, stat)) }
    });
    match opened {
        Ok((descriptor, stat)) => {
            let folder = FileType::from_raw_mode(stat.st_mode).is_dir();
            let owner = Owner { uid: stat.st_uid, gid: stat.st_gid };
            Ok(Some(Source::Real { path: path.to_owned(), descriptor, folder, owner, access }))
        }
        Err(error) if access == Access::ReadWrite => Err(SandboxError::path(path, refusal(path, error))),
        Err(Errno::LOOP) => Ok(first_link(path)),
        // Missing, or not to be seen by this user: then there is nothing to show.
        Err(_) => Ok(None),
    }
}

fn refusal(path: &Path, error: Errno) -> String {
    if error == Errno::LOOP {
        let real = path.canonicalize().map_or_else(|_| "its real path".to_owned(), |real| format!("`{}`", real.display()));
        return format!("it leads through a symbolic link, which is not followed for a writable folder. List {real} instead");
    }
    format!("{}. A folder that is to be written to must be there", io::Error::from(error))
}

/// The first symbolic link on the way to `path`.
fn first_link(path: &Path) -> Option<Source> {
    let mut ancestors: Vec<&Path> = path.ancestors().collect();
    ancestors.reverse();
    let link = ancestors.into_iter().find(|ancestor| ancestor.is_symlink())?;
    let target = fs::read_link(link).ok()?;
    Some(Source::Link { path: link.to_owned(), target })
}

/// When something was last changed.
pub(crate) fn modified(path: &str) -> Option<(i64, i64)> {
    let metadata = fs::symlink_metadata(path).ok()?;
    Some((metadata.mtime(), metadata.mtime_nsec()))
}

#[cfg(test)]
mod tests {
    use std::os::unix::fs::symlink;

    use super::*;

    /// What a policy shows, as `path access` and `path -> target`, with the test's folder cut off.
    fn shown(folder: &Path, read_only: &[&str], read_write: &[&str]) -> Result<Vec<String>, String> {
        let absolute = |paths: &[&str]| paths.iter().map(|path| folder.join(path)).collect();
        let policy = Policy { read_only: absolute(read_only), read_write: absolute(read_write), network: false };
        let sources = open_all(&policy, &["/usr".into()]).map_err(|error| error.to_string())?;
        let short = |path: &Path| path.strip_prefix(folder).unwrap_or(path).display().to_string();
        let line = |source: &Source| match source {
            Source::Real { path, access, .. } => format!("{} {access:?}", short(path)),
            Source::Link { path, target } => format!("{} -> {}", short(path), short(target)),
        };
        Ok(sources.iter().map(line).collect())
    }

    fn folder() -> (tempfile::TempDir, PathBuf) {
        let temporary = tempfile::tempdir().expect("a folder");
        let folder = temporary.path().canonicalize().expect("it is there");
        for name in ["a/b/c", "w/inner"] {
            fs::create_dir_all(folder.join(name)).expect("made");
        }
        fs::write(folder.join("a/file"), "").expect("written");
        symlink(folder.join("a"), folder.join("link")).expect("linked");
        symlink("/etc", folder.join("w/out")).expect("linked");
        (temporary, folder)
    }

    #[test]
    fn parents_come_first_and_what_is_shown_already_is_left_out() {
        let (_keep, folder) = folder();
        assert_eq!(shown(&folder, &["a/b/c", "a"], &[]).expect("fine"), ["a ReadOnly"]);
        assert_eq!(shown(&folder, &["a/file", "/usr/bin"], &[]).expect("fine"), ["a/file ReadOnly"]);
        assert_eq!(shown(&folder, &["w/inner"], &["w"]).expect("fine"), ["w ReadWrite", "w/inner ReadOnly"]);
        assert_eq!(shown(&folder, &["a"], &["a/b"]).expect("fine"), ["a ReadOnly", "a/b ReadWrite"]);
        assert_eq!(shown(&folder, &["a"], &["a"]).expect("fine"), ["a ReadOnly", "a ReadWrite"]);
    }

    #[test]
    fn links_are_shown_and_not_followed() {
        let (_keep, folder) = folder();
        assert_eq!(shown(&folder, &["link"], &[]).expect("fine"), ["link -> a"]);
        assert_eq!(shown(&folder, &["link/b", "missing", "a/file/x"], &[]).expect("fine"), ["link -> a"]);
        assert_eq!(shown(&folder, &["w/out/shadow"], &[]).expect("fine"), ["w/out -> /etc"]);
        let error = shown(&folder, &[], &["link/b"]).expect_err("a writable link");
        assert!(error.contains("symbolic link") && error.contains(folder.join("a/b").to_str().expect("plain")), "{error}");
        assert!(shown(&folder, &[], &["w/out"]).is_err());
    }

    #[test]
    fn what_cannot_be_shown_is_an_error() {
        let (_keep, folder) = folder();
        assert!(shown(&folder, &[], &["missing"]).expect_err("missing").contains("must be there"));
        for path in ["/", "/proc", "/tmp", "relative", "/usr/../etc"] {
            let policy = Policy { read_only: vec![path.into()], ..Policy::default() };
            assert!(open_all(&policy, &[]).is_err(), "{path}");
        }
    }

    #[test]
    fn allowed_reading_covers_the_link_and_what_it_means() {
        let (_keep, folder) = folder();
        let mut policy = Policy::default();
        policy.allow_reading(&folder.join("link"));
        policy.allow_reading(&folder.join("w"));
        policy.allow_reading(&folder.join("missing"));
        assert_eq!(policy.read_only, [folder.join("link"), folder.join("a"), folder.join("w"), folder.join("missing")]);
    }
}
