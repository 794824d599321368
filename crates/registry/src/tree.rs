//! Copies, links, syncs and removes whole folders.

use std::{
    fs::{self, File},
    io,
    path::Path,
    time::SystemTime,
};

use crate::walk::Walk;

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

/// Brings a folder and everything in it to the disk.
pub(crate) fn sync(folder: &Path) -> io::Result<()> {
    for entry in fs::read_dir(folder)? {
        let entry = entry?;
        let kind = entry.file_type()?;
        if kind.is_dir() {
            sync(&entry.path())?;
        } else if kind.is_file() {
            File::open(entry.path())?.sync_all()?;
        }
    }
    sync_folder(folder)
}

/// Brings the names in a folder to the disk.
pub(crate) fn sync_folder(folder: &Path) -> io::Result<()> {
    #[cfg(unix)]
    File::open(folder)?.sync_all()?;
    #[cfg(not(unix))]
    let _ = folder;
    Ok(())
}

/// As [`sync_folder`], for a folder and the folders in it, whose files are on the disk already.
pub(crate) fn sync_folders(folder: &Path) -> io::Result<()> {
    for entry in fs::read_dir(folder)? {
        let entry = entry?;
        if entry.file_type()?.is_dir() {
            sync_folders(&entry.path())?;
        }
    }
    sync_folder(folder)
}

/// Sets the time of the files of a version, and brings them to the disk.
pub(crate) fn settle(folder: &Path, walk: &Walk, time: SystemTime) -> io::Result<()> {
    for stamp in &walk.files {
        settle_file(&folder.join(&stamp.path), time)?;
    }
    for inner in walk.folders.iter().rev() {
        settle_folder(&folder.join(inner), time)?;
    }
    Ok(())
}

/// Sets the time of a folder, and brings the names in it to the disk.
pub(crate) fn settle_folder(folder: &Path, time: SystemTime) -> io::Result<()> {
    #[cfg(unix)]
    File::open(folder)?.set_modified(time)?;
    #[cfg(not(unix))]
    let _ = time;
    sync_folder(folder)
}

/// Sets the time of a file, and brings it to the disk.
pub(crate) fn settle_file(path: &Path, time: SystemTime) -> io::Result<()> {
    let file = File::open(path)?;
    file.set_modified(time)?;
    file.sync_all()
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
