//! Copies, links, syncs and removes whole folders.

use std::{
    fs::{self, File},
    io,
    path::{Path, PathBuf},
    thread,
    time::SystemTime,
};

use crate::walk::Walk;

/// Files that are brought to the disk at once; more gain nothing.
const SYNC_THREADS: usize = 8;

/// Copies the files of a version into a folder that exists already.
pub(crate) fn copy(from: &Path, walk: &Walk, to: &Path) -> io::Result<()> {
    for folder in &walk.folders {
        fs::create_dir(to.join(folder))?;
    }
    for stamp in &walk.files {
        copy_file(&from.join(&stamp.path), &to.join(&stamp.path))?;
    }
    Ok(())
}

/// As [`copy`], into a new folder, which is on the disk afterwards.
pub(crate) fn copy_apart(from: &Path, walk: &Walk, to: &Path) -> io::Result<()> {
    fs::create_dir(to)?;
    copy(from, walk, to)?;
    sync(&parts(to, walk))
}

/// Makes `to` a second place for the files of a version. They share their content, so nobody may write into
/// either of them afterwards.
pub(crate) fn link(from: &Path, walk: &Walk, to: &Path) -> io::Result<()> {
    fs::create_dir(to)?;
    for folder in &walk.folders {
        fs::create_dir(to.join(folder))?;
    }
    for stamp in &walk.files {
        link_file(&from.join(&stamp.path), &to.join(&stamp.path))?;
    }
    Ok(())
}

/// As [`link`], for everything in a folder but symbolic links.
pub(crate) fn link_all(from: &Path, to: &Path) -> io::Result<()> {
    fs::create_dir(to)?;
    for entry in fs::read_dir(from)? {
        let entry = entry?;
        let (source, target) = (entry.path(), to.join(entry.file_name()));
        let kind = entry.file_type()?;
        if kind.is_dir() {
            link_all(&source, &target)?;
        } else if kind.is_file() {
            link_file(&source, &target)?;
        }
    }
    Ok(())
}

fn link_file(from: &Path, to: &Path) -> io::Result<()> {
    match fs::hard_link(from, to) {
        Ok(()) => Ok(()),
        Err(error) if matches!(error.kind(), io::ErrorKind::NotFound | io::ErrorKind::StorageFull) => Err(error),
        // Not every file system has hard links, and not every file takes another one.
        Err(_) => {
            copy_file(from, to)?;
            File::open(to)?.sync_all()
        }
    }
}

/// Copies one file with its permission to be executed, and never into a link.
fn copy_file(from: &Path, to: &Path) -> io::Result<()> {
    fs::copy(from, to)?;
    make_writable(to)
}

/// Brings files and folders to the disk, each for itself. They go side by side, since a file system writes what
/// arrives together in one go: ten take hardly longer than one.
pub(crate) fn sync(paths: &[PathBuf]) -> io::Result<()> {
    let share = paths.len().div_ceil(SYNC_THREADS).max(1);
    thread::scope(|scope| {
        let threads: Vec<_> =
            paths.chunks(share).map(|share| scope.spawn(|| share.iter().try_for_each(|path| sync_one(path)))).collect();
        // A thread that panics has synced nothing that could be relied on.
        threads.into_iter().try_for_each(|thread| {
            thread.join().unwrap_or_else(|_| Err(io::Error::other("a thread that writes to the disk died")))
        })
    })
}

/// Brings the names in a folder to the disk.
pub(crate) fn sync_folder(folder: &Path) -> io::Result<()> {
    sync_one(folder)
}

fn sync_one(path: &Path) -> io::Result<()> {
    let file = match File::open(path) {
        // Only Unix opens folders, and only there their names have to be synced.
        Err(_) if cfg!(not(unix)) && path.is_dir() => return Ok(()),
        opened => opened?,
    };
    file.sync_all()
}

/// Lists a version's files and folders, the folder itself included.
pub(crate) fn parts(folder: &Path, walk: &Walk) -> Vec<PathBuf> {
    let files = walk.files.iter().map(|stamp| folder.join(&stamp.path));
    let folders = walk.folders.iter().map(|inner| folder.join(inner));
    files.chain(folders).chain([folder.to_owned()]).collect()
}

/// Lists the folders whose names must reach the disk when a tree of folders was made of files that are there
/// already: the topmost is enough where one journal covers them all.
pub(crate) fn new_folders(root: &Path) -> io::Result<Vec<PathBuf>> {
    let mut folders = vec![root.to_owned()];
    if journal_covers_all(root) {
        return Ok(folders);
    }
    let mut next = 0;
    while let Some(folder) = folders.get(next).cloned() {
        for entry in fs::read_dir(folder)? {
            let entry = entry?;
            if entry.file_type()?.is_dir() {
                folders.push(entry.path());
            }
        }
        next += 1;
    }
    Ok(folders)
}

/// Whether syncing a folder also brings the new folders below it to the disk. So it is on ext4 and XFS, whose
/// journal is written in order, and on btrfs, which logs new folders with their parent.
fn journal_covers_all(folder: &Path) -> bool {
    #[cfg(target_os = "linux")]
    {
        // From the kernel's list of file systems.
        const EXT4: i64 = 0xEF53;
        const XFS: i64 = 0x5846_5342;
        const BTRFS: i64 = 0x9123_683E;
        #[allow(clippy::useless_conversion, reason = "the kind of number differs between machines")]
        rustix::fs::statfs(folder).is_ok_and(|stat| [EXT4, XFS, BTRFS].contains(&i64::from(stat.f_type)))
    }
    #[cfg(not(target_os = "linux"))]
    {
        let _ = folder;
        false
    }
}

/// Sets the time of the files and folders of a version.
pub(crate) fn set_times(folder: &Path, walk: &Walk, time: SystemTime) -> io::Result<()> {
    for path in parts(folder, walk) {
        if cfg!(unix) || path.is_file() {
            File::open(path)?.set_modified(time)?;
        }
    }
    Ok(())
}

/// Removes a folder with everything in it, write-protected parts too. Nothing there is fine.
pub(crate) fn remove(folder: &Path) -> io::Result<()> {
    match fs::remove_dir_all(folder) {
        Err(error) if error.kind() == io::ErrorKind::NotFound => Ok(()),
        Err(error) if error.kind() == io::ErrorKind::PermissionDenied => {
            unprotect(folder)?;
            fs::remove_dir_all(folder)
        }
        outcome => outcome,
    }
}

/// As [`remove`], where a failure only leaves something behind that the next start sweeps.
pub(crate) fn remove_if_possible(folder: &Path) {
    if let Err(error) = remove(folder) {
        tracing::debug!(folder = %folder.display(), %error, "a folder could not be removed");
    }
}

fn unprotect(folder: &Path) -> io::Result<()> {
    make_writable(folder)?;
    for entry in fs::read_dir(folder)? {
        let entry = entry?;
        if entry.file_type()?.is_dir() {
            unprotect(&entry.path())?;
        }
    }
    Ok(())
}

/// Lets the owner write: a folder that was copied from a read-only place could otherwise not be moved.
pub(crate) fn make_writable(path: &Path) -> io::Result<()> {
    #[cfg(unix)]
    {
        use std::os::unix::fs::PermissionsExt;
        let metadata = fs::symlink_metadata(path)?;
        let mode = metadata.permissions().mode();
        let wanted = if metadata.is_dir() { 0o700 } else { 0o600 };
        if mode & wanted != wanted {
            fs::set_permissions(path, fs::Permissions::from_mode(mode | wanted))?;
        }
    }
    #[cfg(not(unix))]
    let _ = path;
    Ok(())
}

/// Whether two files hold the same bytes.
pub(crate) fn same_bytes(left: &Path, right: &Path) -> io::Result<bool> {
    if fs::metadata(left)?.len() != fs::metadata(right)?.len() {
        return Ok(false);
    }
    Ok(fs::read(left)? == fs::read(right)?)
}
