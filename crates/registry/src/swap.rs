//! Puts a finished folder in the place of another in one step.

use std::{
    fs, io,
    path::{Path, PathBuf},
};

use crate::{layout::Layout, tree};

/// Makes the folder `new` the folder `place`. What was there before is at `new` afterwards.
pub(crate) fn put_in_place(new: &Path, place: &Path) -> io::Result<()> {
    if !place.exists() {
        return fs::rename(new, place);
    }
    tree::make_writable(place)?;
    tree::make_writable(new)?;
    match exchange(new, place) {
        Err(error) if is_unsupported(&error) => exchange_in_steps(new, place),
        outcome => outcome,
    }
}

#[cfg(any(target_os = "linux", target_os = "macos"))]
fn exchange(left: &Path, right: &Path) -> io::Result<()> {
    use rustix::fs::{CWD, RenameFlags, renameat_with};
    Ok(renameat_with(CWD, left, CWD, right, RenameFlags::EXCHANGE)?)
}

#[cfg(not(any(target_os = "linux", target_os = "macos")))]
fn exchange(_left: &Path, _right: &Path) -> io::Result<()> {
    Err(io::ErrorKind::Unsupported.into())
}

/// Network and user-space file systems often cannot exchange.
fn is_unsupported(error: &io::Error) -> bool {
    matches!(error.kind(), io::ErrorKind::Unsupported | io::ErrorKind::InvalidInput)
}

/// For file systems that cannot exchange: a crash in between is made good by [`recover`].
fn exchange_in_steps(new: &Path, place: &Path) -> io::Result<()> {
    let aside = aside_of(place)?;
    tree::remove(&aside)?;
    fs::rename(place, &aside)?;
    if let Err(error) = fs::rename(new, place) {
        fs::rename(&aside, place)?;
        return Err(error);
    }
    // The new folder is in place, whatever happens to the old one.
    if fs::rename(&aside, new).is_err() {
        tree::remove_if_possible(&aside);
    }
    Ok(())
}

/// `.aside-<name>` beside the folder.
fn aside_of(place: &Path) -> io::Result<PathBuf> {
    let name = place.file_name().ok_or(io::ErrorKind::InvalidInput)?;
    Ok(place.with_file_name(format!("{ASIDE}{}", name.to_string_lossy())))
}

const ASIDE: &str = ".aside-";

/// Brings back what a crash left aside: the old folder where the new one never came, and nothing otherwise.
/// The tools folder's lock must be held.
pub(crate) fn recover(layout: &Layout) {
    let Ok(entries) = fs::read_dir(layout.tools()) else { return };
    for entry in entries.flatten() {
        let name = entry.file_name();
        let Some(name) = name.to_str().and_then(|name| name.strip_prefix(ASIDE)) else { continue };
        let place = layout.tool(name);
        if place.exists() {
            tree::remove_if_possible(&entry.path());
        } else if let Err(error) = fs::rename(entry.path(), &place) {
            tracing::warn!(folder = %entry.path().display(), %error, "a tool that was left aside cannot be brought back");
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn folder_with(path: &Path, content: &str) {
        fs::create_dir(path).unwrap();
        fs::write(path.join("f"), content).unwrap();
    }

    fn content(path: &Path) -> Option<String> {
        fs::read_to_string(path.join("f")).ok()
    }

    #[test]
    fn both_ways_put_the_new_in_place_and_hand_back_the_old() {
        for step in [put_in_place, exchange_in_steps] {
            let folder = tempfile::tempdir().unwrap();
            let (new, place) = (folder.path().join("new"), folder.path().join("place"));
            folder_with(&new, "new");
            folder_with(&place, "old");
            step(&new, &place).unwrap();
            assert_eq!((content(&place).as_deref(), content(&new).as_deref()), (Some("new"), Some("old")));
            assert_eq!(fs::read_dir(folder.path()).unwrap().count(), 2, "nothing is left aside");
        }
    }

    #[test]
    fn a_crash_between_the_steps_is_made_good() {
        let tools = tempfile::tempdir().unwrap();
        let layout = Layout::new(tools.path().to_owned());
        folder_with(&tools.path().join(".aside-lost"), "old");
        folder_with(&tools.path().join(".aside-done"), "old");
        folder_with(&tools.path().join("done"), "new");
        recover(&layout);
        assert_eq!(content(&layout.tool("lost")).as_deref(), Some("old"));
        assert_eq!(content(&layout.tool("done")).as_deref(), Some("new"));
        assert_eq!(fs::read_dir(tools.path()).unwrap().count(), 2);
    }
}
