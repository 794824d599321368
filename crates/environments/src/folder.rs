//! Environments as folders: made aside, stamped when whole, renamed into place, looked at, removed.

use std::{
    fs, io,
    path::{Path, PathBuf},
    sync::atomic::{AtomicU64, Ordering},
    time::{Duration, SystemTime},
};

use serde::{Deserialize, Serialize};

use crate::{Environment, EnvironmentError, lock};

/// The file that says that an environment is whole, and what it was when it was made.
const STAMP: &str = "skillz-environment.json";
/// Prefix of folders that are being made, or taken away.
const ASIDE: &str = ".aside-";

/// What a whole environment was like.
#[derive(Debug, Serialize, Deserialize)]
struct Stamp {
    /// Digest of the lock, by which tools are matched with environments.
    lock_digest: String,
    /// Where its packages lie, relative to it.
    packages: PathBuf,
    /// Its program, relative to it.
    program: Option<PathBuf>,
    /// How many files there are, and how many bytes in them.
    files: u64,
    bytes: u64,
}

/// A folder that is being filled; gone when it is dropped without being published.
pub(crate) struct Staging {
    path: PathBuf,
}

impl Staging {
    /// Makes an empty folder beside the environments.
    pub(crate) fn create(base: &Path) -> Result<Self, EnvironmentError> {
        static COUNT: AtomicU64 = AtomicU64::new(0);
        let count = COUNT.fetch_add(1, Ordering::Relaxed);
        let path = base.join(format!("{ASIDE}{}-{count}", std::process::id()));
        let _ = fs::remove_dir_all(&path);
        fs::create_dir_all(&path).map_err(EnvironmentError::files("A folder for the packages"))?;
        Ok(Self { path })
    }

    pub(crate) fn path(&self) -> &Path {
        &self.path
    }

    /// Stamps the folder and gives it its name. What bore the name before is taken away.
    pub(crate) fn publish(self, base: &Path, hash: &str, made: &Made) -> Result<Environment, EnvironmentError> {
        let failed = || EnvironmentError::files("The environment");
        let (files, bytes) = count(&self.path.join(&made.packages)).map_err(failed())?;
        let stamp = Stamp {
            lock_digest: lock::digest(&[&made.lock]),
            packages: made.packages.clone(),
            program: made.program.clone(),
            files,
            bytes,
        };
        let text = serde_json::to_string(&stamp).map_err(|error| failed()(io::Error::other(error)))?;
        fs::write(self.path.join(STAMP), text).map_err(failed())?;
        let target = base.join(hash);
        if target.exists() {
            let damaged = Self::create(base)?;
            fs::rename(&target, damaged.path.join("damaged")).map_err(failed())?;
        }
        fs::rename(&self.path, &target).map_err(failed())?;
        sync_folder(base);
        open(base, hash, &made.lock).ok_or_else(|| failed()(io::Error::other("it is not whole right after it was made")))
    }
}

impl Drop for Staging {
    fn drop(&mut self) {
        if self.path.exists()
            && let Err(error) = fs::remove_dir_all(&self.path)
        {
            tracing::warn!(path = %self.path.display(), %error, "a half-made environment could not be removed");
        }
    }
}

/// What an installer made in a staging folder. Paths are relative to it.
pub(crate) struct Made {
    pub(crate) packages: PathBuf,
    pub(crate) program: Option<PathBuf>,
    pub(crate) lock: String,
}

/// Gives an environment if it is there and whole to the last file.
pub(crate) fn open(base: &Path, hash: &str, lock: &str) -> Option<Environment> {
    let directory = base.join(hash);
    let stamp: Stamp = serde_json::from_str(&fs::read_to_string(directory.join(STAMP)).ok()?).ok()?;
    let packages = directory.join(&stamp.packages);
    if count(&packages).ok()? != (stamp.files, stamp.bytes) {
        return None;
    }
    let program = stamp.program.map(|program| directory.join(program));
    if program.as_ref().is_some_and(|program| !program.exists()) {
        return None;
    }
    let modified = packages.metadata().ok()?.modified().ok()?;
    Some(Environment { hash: hash.to_owned(), directory, program, lock: lock.to_owned(), packages, modified })
}

/// Whether an environment still looks as it did when it was opened: three questions to the kernel.
pub(crate) fn is_unchanged(environment: &Environment) -> bool {
    let modified = environment.packages.metadata().and_then(|metadata| metadata.modified());
    modified.is_ok_and(|modified| modified == environment.modified)
        && environment.directory.join(STAMP).exists()
        && environment.program.as_ref().is_none_or(|program| program.exists())
}

/// Every environment, with the digest of its lock; `None` where it has no readable stamp or its program is gone.
pub(crate) fn list(base: &Path) -> io::Result<Vec<(String, PathBuf, Option<String>)>> {
    let entries = match fs::read_dir(base) {
        Err(error) if error.kind() == io::ErrorKind::NotFound => return Ok(Vec::new()),
        entries => entries?,
    };
    let mut list = Vec::new();
    for entry in entries.flatten() {
        let Some(name) = entry.file_name().to_str().map(str::to_owned) else { continue };
        let directory = entry.path();
        if !is_hash(&name) || !directory.is_dir() {
            continue;
        }
        let stamp: Option<Stamp> =
            fs::read_to_string(directory.join(STAMP)).ok().and_then(|text| serde_json::from_str(&text).ok());
        let usable = stamp.filter(|stamp| stamp.program.as_ref().is_none_or(|program| directory.join(program).exists()));
        list.push((name, directory, usable.map(|stamp| stamp.lock_digest)));
    }
    Ok(list)
}

/// Removes what builders that are gone have left: their folders carry their process id.
pub(crate) fn sweep(base: &Path) {
    for entry in fs::read_dir(base).into_iter().flatten().flatten() {
        let name = entry.file_name();
        let owner = name.to_str().and_then(|name| name.strip_prefix(ASIDE)?.split_once('-')?.0.parse::<u32>().ok());
        // Where processes cannot be looked up, age decides.
        let is_stale = owner.is_some_and(|pid| {
            if Path::new("/proc/self").exists() {
                pid != std::process::id() && !Path::new("/proc").join(pid.to_string()).exists()
            } else {
                let age = entry
                    .metadata()
                    .and_then(|metadata| metadata.modified())
                    .ok()
                    .and_then(|time| SystemTime::now().duration_since(time).ok());
                age.is_some_and(|age| age > Duration::from_hours(24))
            }
        });
        if is_stale {
            let _ = fs::remove_dir_all(entry.path());
        }
    }
}

/// Takes an environment away: at once out of sight, and file by file when what this gives is dropped.
pub(crate) fn take_away(base: &Path, hash: &str) -> io::Result<Staging> {
    if !is_hash(hash) {
        return Err(io::Error::new(io::ErrorKind::InvalidInput, format!("`{hash}` names no environment")));
    }
    let aside = Staging::create(base).map_err(io::Error::other)?;
    fs::rename(base.join(hash), aside.path.join("removed"))?;
    Ok(aside)
}

/// Bytes in a folder.
pub(crate) fn size(folder: &Path) -> u64 {
    count(folder).map_or(0, |(_, bytes)| bytes)
}

fn is_hash(name: &str) -> bool {
    name.len() == 32 && name.bytes().all(|byte| matches!(byte, b'0'..=b'9' | b'a'..=b'f'))
}

/// Files and bytes below a folder, links not followed. Compiled bytecode is left out: Python may write it itself where
/// nothing confines it.
fn count(folder: &Path) -> io::Result<(u64, u64)> {
    let mut counted = (0, 0);
    for entry in fs::read_dir(folder)? {
        let entry = entry?;
        let kind = entry.file_type()?;
        if kind.is_dir() {
            if entry.file_name() != "__pycache__" {
                let (files, bytes) = count(&entry.path())?;
                counted = (counted.0 + files, counted.1 + bytes);
            }
        } else {
            let bytes = if kind.is_file() { entry.metadata()?.len() } else { 0 };
            counted = (counted.0 + 1, counted.1 + bytes);
        }
    }
    Ok(counted)
}

/// Makes a rename durable; an environment that is lost all the same is made again.
fn sync_folder(folder: &Path) {
    if let Ok(folder) = fs::File::open(folder) {
        let _ = folder.sync_all();
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn made(base: &Path, hash: &str) -> Environment {
        let staging = Staging::create(base).unwrap();
        fs::create_dir_all(staging.path().join("node_modules/a/__pycache__")).unwrap();
        fs::write(staging.path().join("node_modules/a/index.js"), "1").unwrap();
        let made = Made { packages: "node_modules".into(), program: None, lock: "the lock".into() };
        staging.publish(base, hash, &made).unwrap()
    }

    #[test]
    fn environments_are_published_whole_and_damage_is_seen() {
        let base = tempfile::tempdir().unwrap();
        let hash = "0123456789abcdef0123456789abcdef";
        let environment = made(base.path(), hash);
        assert!(is_unchanged(&environment));
        assert_eq!(open(base.path(), hash, "the lock"), Some(environment.clone()));
        fs::write(environment.packages.join("a/__pycache__/x.pyc"), "bytecode").unwrap();
        assert!(open(base.path(), hash, "").is_some(), "bytecode is no damage");
        fs::write(environment.packages.join("a/index.js"), "").unwrap();
        assert!(open(base.path(), hash, "").is_none(), "a cut file is seen");
        let again = made(base.path(), hash);
        assert!(is_unchanged(&again));
        fs::remove_dir_all(again.packages.join("a")).unwrap();
        assert!(!is_unchanged(&again), "a missing package is seen at once");
        assert_eq!(fs::read_dir(base.path()).unwrap().count(), 1, "nothing is left aside");
    }

    #[test]
    fn environments_are_listed_and_removed_by_hash_only() {
        let base = tempfile::tempdir().unwrap();
        let hash = "0123456789abcdef0123456789abcdef";
        made(base.path(), hash);
        fs::create_dir_all(base.path().join(format!("{ASIDE}999999999-1"))).unwrap();
        let listed = list(base.path()).unwrap();
        assert_eq!(listed.len(), 1);
        assert_eq!(listed[0].2.as_deref(), Some(lock::digest(&["the lock"]).as_str()));
        for name in ["..", "", "x", "../0123456789abcdef0123456789abcdef"] {
            assert!(take_away(base.path(), name).is_err(), "{name}");
        }
        drop(take_away(base.path(), hash).unwrap());
        sweep(base.path());
        assert_eq!(fs::read_dir(base.path()).unwrap().count(), 0);
        assert!(list(&base.path().join("none")).unwrap().is_empty());
    }
}
