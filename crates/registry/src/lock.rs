//! Locks between processes, on files; the kernel lets go of them when a process dies.

use std::{
    fs::{self, File, OpenOptions},
    io,
    path::Path,
    thread,
    time::{Duration, Instant},
};

use crate::{RegistryError, layout::Layout};

/// How long a change waits for other processes' changes, which take milliseconds each.
const PATIENCE: Duration = Duration::from_secs(30);
/// How often a taken lock is tried again.
const RETRY: Duration = Duration::from_millis(2);

/// Held while the tools folder is being changed.
#[derive(Debug)]
pub(crate) struct FolderLock {
    _file: File,
}

impl FolderLock {
    /// Takes the lock on the tools folder, which is made if it is missing. Blocks.
    pub(crate) fn take(layout: &Layout) -> Result<Self, RegistryError> {
        fs::create_dir_all(layout.tools()).map_err(RegistryError::io("Making the tools folder", layout.tools()))?;
        let path = layout.lock();
        let started = Instant::now();
        loop {
            if let Some(lock) = Self::try_take(&path).map_err(RegistryError::io("Locking", &path))? {
                return Ok(lock);
            }
            if started.elapsed() > PATIENCE {
                let source = io::Error::new(io::ErrorKind::TimedOut, "another process holds it");
                return Err(RegistryError::io("Locking", &path)(source));
            }
            thread::sleep(RETRY);
        }
    }

    /// Takes the lock on a file, which is made if it is missing; `None` while another holds it.
    pub(crate) fn try_take(path: &Path) -> io::Result<Option<Self>> {
        let file = OpenOptions::new().read(true).write(true).create(true).truncate(false).open(path)?;
        Ok(try_lock(&file)?.then_some(Self { _file: file }))
    }

    /// Takes the lock on a folder that exists; `None` while another holds it.
    pub(crate) fn try_take_folder(path: &Path) -> io::Result<Option<Self>> {
        let file = File::open(path)?;
        Ok(try_lock(&file)?.then_some(Self { _file: file }))
    }
}

fn try_lock(file: &File) -> io::Result<bool> {
    match file.try_lock() {
        Ok(()) => Ok(true),
        Err(fs::TryLockError::WouldBlock) => Ok(false),
        Err(fs::TryLockError::Error(error)) => Err(error),
    }
}
