//! Private working folders: one for each process script's call, one for each worker, gone afterwards.

use std::{
    fs, io,
    path::{Path, PathBuf},
    sync::{
        Once,
        atomic::{AtomicU64, Ordering},
    },
};

/// Makes working folders below one base.
#[derive(Debug)]
pub(crate) struct WorkingFolders {
    base: PathBuf,
    swept: Once,
    count: AtomicU64,
}

/// A folder that is removed when this is dropped, after whatever used it has ended.
#[derive(Debug)]
pub(crate) struct WorkingFolder {
    path: PathBuf,
}

impl WorkingFolders {
    /// Touches no file yet.
    pub(crate) fn new(base: PathBuf) -> Self {
        Self { base, swept: Once::new(), count: AtomicU64::new(0) }
    }

    /// Makes an empty folder that only its owner may enter.
    pub(crate) fn create(&self) -> io::Result<WorkingFolder> {
        self.swept.call_once(|| sweep(&self.base));
        loop {
            let number = self.count.fetch_add(1, Ordering::Relaxed);
            let path = self.base.join(format!("{}-{number}", std::process::id()));
            match private_directory(&path) {
                // A sandbox shows writable folders at their real paths only.
                Ok(()) => return path.canonicalize().map(|path| WorkingFolder { path }),
                Err(error) if error.kind() == io::ErrorKind::NotFound => fs::create_dir_all(&self.base)?,
                // Left by a process that had the same id.
                Err(error) if error.kind() == io::ErrorKind::AlreadyExists => {}
                Err(error) => return Err(error),
            }
        }
    }
}

impl WorkingFolder {
    pub(crate) fn path(&self) -> &Path {
        &self.path
    }
}

impl Drop for WorkingFolder {
    fn drop(&mut self) {
        // Empty is the rule, and costs one system call.
        if fs::remove_dir(&self.path).is_ok() {
            return;
        }
        let path = std::mem::take(&mut self.path);
        let remove = move || remove_all(&path);
        match tokio::runtime::Handle::try_current() {
            Ok(runtime) => drop(runtime.spawn_blocking(remove)),
            Err(_) => remove(),
        }
    }
}

fn private_directory(path: &Path) -> io::Result<()> {
    use std::os::unix::fs::DirBuilderExt;
    fs::DirBuilder::new().mode(0o700).create(path)
}

/// Removes a tree, folders without permissions included. What cannot be removed is left to the next sweep.
fn remove_all(path: &Path) {
    if fs::remove_dir_all(path).is_ok() {
        return;
    }
    open_up(path, 0);
    if let Err(error) = fs::remove_dir_all(path) {
        tracing::debug!(path = %path.display(), %error, "a working folder stays for now");
    }
}

fn open_up(path: &Path, depth: usize) {
    use std::os::unix::fs::PermissionsExt;
    // Deeper trees than this are not made by accident.
    if depth > 64 || fs::set_permissions(path, fs::Permissions::from_mode(0o700)).is_err() {
        return;
    }
    let Ok(entries) = fs::read_dir(path) else { return };
    for entry in entries.flatten() {
        if entry.file_type().is_ok_and(|kind| kind.is_dir()) {
            open_up(&entry.path(), depth + 1);
        }
    }
}

/// Removes the folders of servers that are gone.
fn sweep(base: &Path) {
    let Ok(entries) = fs::read_dir(base) else { return };
    for entry in entries.flatten() {
        let name = entry.file_name();
        let owner = name.to_str().and_then(|name| name.split_once('-')?.0.parse::<u32>().ok());
        let own_or_alive = owner.is_none_or(|pid| pid == std::process::id() || Path::new("/proc").join(pid.to_string()).exists());
        if !own_or_alive && cfg!(target_os = "linux") {
            remove_all(&entry.path());
        }
    }
}

#[cfg(test)]
mod tests {
    use std::os::unix::fs::PermissionsExt;

    use super::*;

    #[test]
    fn folders_are_private_and_leave_nothing() {
        let base = tempfile::tempdir().unwrap();
        let stale = base.path().join("work/999999999-0");
        fs::create_dir_all(stale.join("x")).unwrap();
        let folders = WorkingFolders::new(base.path().join("work"));
        let one = folders.create().unwrap();
        let other = folders.create().unwrap();
        assert!(!stale.exists(), "the folder of a dead server is swept");
        assert_ne!(one.path(), other.path());
        assert_eq!(fs::metadata(one.path()).unwrap().permissions().mode() & 0o777, 0o700);
        fs::create_dir(one.path().join("locked")).unwrap();
        fs::write(one.path().join("locked/file"), "x").unwrap();
        fs::set_permissions(one.path().join("locked"), fs::Permissions::from_mode(0o000)).unwrap();
        let paths = [one.path().to_path_buf(), other.path().to_path_buf()];
        drop((one, other));
        assert!(paths.iter().all(|path| !path.exists()));
    }
}
