//! Folders in which tools are put together before they are published.
//!
//! Each is locked by its owner for as long as it lives, so that whoever sweeps can tell the work of a dead
//! process from that of a living one.

use std::{
    fs, io,
    path::{Path, PathBuf},
};

use uuid::Uuid;

use crate::{RegistryError, layout::Layout, lock::FolderLock, tree, walk::Walk};

/// A private folder in the tools folder, on the same file system; removed when dropped.
#[derive(Debug)]
pub struct StagingDirectory {
    path: PathBuf,
    /// Let go of only after the folder is gone.
    _lock: FolderLock,
}

/// A copy of somebody's folder, to be published.
#[derive(Debug)]
pub struct StagedFolder {
    /// The copy.
    pub staging: StagingDirectory,
    /// Links that were left out, relative to the folder.
    pub links: Vec<PathBuf>,
}

impl StagedFolder {
    /// Copies the files of a version: no links, no caches, no earlier versions. Blocks.
    pub(crate) fn make(layout: &Layout, from: &Path) -> Result<Self, RegistryError> {
        let walk = Walk::of(from).map_err(RegistryError::io("Reading", from))?;
        let staging = StagingDirectory::make(layout)?;
        tree::copy(from, &walk, staging.path()).map_err(RegistryError::io("Copying", from))?;
        Ok(Self { staging, links: walk.links })
    }
}

impl StagingDirectory {
    /// The folder.
    pub fn path(&self) -> &Path {
        &self.path
    }

    /// Makes an empty folder. Blocks.
    pub(crate) fn make(layout: &Layout) -> Result<Self, RegistryError> {
        let staging = layout.staging();
        fs::create_dir_all(&staging).map_err(RegistryError::io("Making the folder", &staging))?;
        loop {
            let path = staging.join(Uuid::new_v4().to_string());
            fs::create_dir(&path).map_err(RegistryError::io("Making the folder", &path))?;
            match FolderLock::try_take_folder(&path) {
                // A sweeper may have been faster than this lock; then the folder is gone, or about to go.
                Ok(Some(lock)) if path.exists() => return Ok(Self { path, _lock: lock }),
                Ok(_) => {}
                Err(error) if error.kind() == io::ErrorKind::NotFound => {}
                Err(error) => return Err(RegistryError::io("Locking", &path)(error)),
            }
        }
    }
}

impl Drop for StagingDirectory {
    fn drop(&mut self) {
        tree::remove_if_possible(&self.path);
    }
}

/// Removes the folders of processes that are no more.
pub(crate) fn sweep(layout: &Layout) {
    let Ok(entries) = fs::read_dir(layout.staging()) else { return };
    for entry in entries.flatten() {
        if !entry.file_type().is_ok_and(|kind| kind.is_dir()) {
            continue;
        }
        if let Ok(Some(_lock)) = FolderLock::try_take_folder(&entry.path()) {
            tracing::info!(folder = %entry.path().display(), "removing what a process that died left behind");
            tree::remove_if_possible(&entry.path());
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn sweeping_spares_the_living() {
        let tools = tempfile::tempdir().unwrap();
        let layout = Layout::new(tools.path().to_owned());
        let living = StagingDirectory::make(&layout).unwrap();
        fs::write(living.path().join("a"), "x").unwrap();
        let dead = layout.staging().join("dead");
        fs::create_dir_all(dead.join("deep/er")).unwrap();
        sweep(&layout);
        assert!(living.path().join("a").exists() && !dead.exists());
        let path = living.path().to_owned();
        drop(living);
        assert!(!path.exists());
    }
}
