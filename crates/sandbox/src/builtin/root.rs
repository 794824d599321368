//! A root of its own: a small memory file system in which everything else is mounted.
//!
//! Folders and files are made in it and in its own memory folders only, never in what is shown there of the host; and
//! no link is followed on the way.

use std::{
    ffi::OsStr,
    io::Write,
    os::fd::{AsFd, OwnedFd},
    path::{Component, Path},
};

use rustix::{
    fs::{Mode, OFlags, ResolveFlags, fstat, mkdirat, openat, openat2, symlinkat},
    io::Errno,
};

use super::{
    error::{Context, SandboxError},
    mounts,
};

/// Room for folders, links and small files; the root holds no data.
const SIZE: u64 = 4 << 20;

/// The new root, mounted but not entered.
#[derive(Debug)]
pub(super) struct Root {
    descriptor: OwnedFd,
    /// The file systems that belong to it.
    devices: Vec<u64>,
}

impl Root {
    pub(super) fn new() -> Result<Self, SandboxError> {
        let descriptor = mounts::new_tmpfs(SIZE, "0755").context("make a root")?;
        mounts::attach_over_root(&descriptor).context("mount the root")?;
        let device = fstat(&descriptor).context("look at the root")?.st_dev;
        Ok(Self { descriptor, devices: vec![device] })
    }

    /// Makes a folder, and those above it; gives it opened.
    pub(super) fn folder(&self, path: &Path) -> Result<OwnedFd, SandboxError> {
        let mut folder = self.descriptor.try_clone().context("open the root")?;
        for part in path.components() {
            if let Component::Normal(name) = part {
                folder = self.step(&folder, name).map_err(|error| refused(path, error))?;
            }
        }
        Ok(folder)
    }

    fn step(&self, folder: &OwnedFd, name: &OsStr) -> Result<OwnedFd, Errno> {
        match open_plain(folder, name, OFlags::DIRECTORY) {
            Err(Errno::NOENT) if self.is_own(folder)? => {
                mkdirat(folder, name, Mode::from_raw_mode(0o755))?;
                open_plain(folder, name, OFlags::DIRECTORY)
            }
            other => other,
        }
    }

    /// Whether a folder is the root's own, and not something of the host's.
    fn is_own(&self, folder: impl AsFd) -> Result<bool, Errno> {
        Ok(self.devices.contains(&fstat(folder)?.st_dev))
    }

    /// Mounts a folder for temporary files, of at most `bytes`, which everybody may use.
    pub(super) fn temporary(&mut self, path: &Path, bytes: u64) -> Result<(), SandboxError> {
        let tree = mounts::new_tmpfs(bytes, "1777").context("make a folder for temporary files")?;
        self.mount(path, &tree, true)?;
        self.devices.push(fstat(&tree).context("look at a folder for temporary files")?.st_dev);
        Ok(())
    }

    /// Mounts a tree at its path.
    pub(super) fn mount(&self, path: &Path, tree: impl AsFd, is_folder: bool) -> Result<(), SandboxError> {
        let place = if is_folder {
            self.folder(path)?
        } else {
            let (folder, name) = self.parent(path)?;
            self.file_place(&folder, name).map_err(|error| refused(path, error))?
        };
        mounts::attach(tree, place).map_err(|error| refused(path, error))
    }

    fn file_place(&self, folder: &OwnedFd, name: &OsStr) -> Result<OwnedFd, Errno> {
        match open_plain(folder, name, OFlags::empty()) {
            Err(Errno::NOENT) if self.is_own(folder)? => {
                openat(folder, name, OFlags::CREATE | OFlags::EXCL | OFlags::CLOEXEC, Mode::from_raw_mode(0o444))?;
                open_plain(folder, name, OFlags::empty())
            }
            other => other,
        }
    }

    /// Makes a symbolic link; leaves what is there already.
    pub(super) fn link(&self, path: &Path, target: &Path) -> Result<(), SandboxError> {
        let (folder, name) = self.parent(path)?;
        match symlinkat(target, &folder, name) {
            // A read-only folder that is shown holds the link itself.
            Ok(()) | Err(Errno::EXIST | Errno::ROFS) => Ok(()),
            Err(error) => Err(refused(path, error)),
        }
    }

    /// Writes a small file.
    pub(super) fn file(&self, path: &Path, content: &str) -> Result<(), SandboxError> {
        let (folder, name) = self.parent(path)?;
        let flags = OFlags::WRONLY | OFlags::CREATE | OFlags::EXCL | OFlags::CLOEXEC;
        let file = openat(&folder, name, flags, Mode::from_raw_mode(0o644)).map_err(|error| refused(path, error))?;
        std::fs::File::from(file).write_all(content.as_bytes()).context("write a file of the root")
    }

    /// Takes the root down again.
    pub(super) fn discard(self) -> Result<(), SandboxError> {
        mounts::detach_from_root(&self.descriptor).context("take down an old root")
    }

    /// Makes the root the process's own.
    pub(super) fn enter(self) -> Result<(), SandboxError> {
        mounts::change_root(&self.descriptor).context("change the root")?;
        mounts::seal_root().context("make the root read-only")
    }

    fn parent<'path>(&self, path: &'path Path) -> Result<(OwnedFd, &'path OsStr), SandboxError> {
        match (path.parent(), path.file_name()) {
            (Some(parent), Some(name)) => Ok((self.folder(parent)?, name)),
            _ => Err(SandboxError::path(path, "it has no name")),
        }
    }
}

/// Opens an entry by path only, and only if it is no link.
fn open_plain(folder: &OwnedFd, name: &OsStr, extra: OFlags) -> Result<OwnedFd, Errno> {
    let flags = OFlags::PATH | OFlags::NOFOLLOW | OFlags::CLOEXEC | extra;
    openat2(folder, name, flags, Mode::empty(), ResolveFlags::NO_SYMLINKS | ResolveFlags::BENEATH)
}

fn refused(path: &Path, error: Errno) -> SandboxError {
    SandboxError::path(path, format!("its place could not be made: {}", std::io::Error::from(error)))
}
