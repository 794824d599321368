//! The copies that calls run from. A version in service is never the folder that people edit, so that an edit
//! takes effect only when it is recorded, and the version before it is never lost.

use std::{
    fs::{self, File},
    path::{Path, PathBuf},
    time::{Duration, SystemTime},
};

use skillz_tool::{Tool, ToolName, Version};

use crate::{
    RegistryError, StagingDirectory,
    hash::content_hash,
    layout::{Layout, LiveName},
    load::Found,
    trash, tree, versions,
    walk::Walk,
};

/// How long a copy that is no longer current stays: calls that began before may still read from it.
const LINGER: Duration = Duration::from_mins(10);

/// The copy of exactly what was found, where there is one.
pub(crate) fn of(layout: &Layout, name: &str, version: Version, hash: &str) -> Option<PathBuf> {
    let place = layout.live_copy(name, version, hash);
    place.is_dir().then_some(place)
}

/// The copy that was in service before a folder was edited: the one with the hash that the manifest still tells,
/// else the newest. It is read and checked.
pub(crate) fn before_edit(layout: &Layout, name: &ToolName, recorded_hash: Option<&str>) -> Option<Found> {
    let entries = fs::read_dir(layout.live()).ok()?;
    let names = entries.flatten().filter_map(|entry| LiveName::parse(entry.file_name().to_str()?));
    let copies: Vec<LiveName> = names.filter(|live| live.name == name.as_str()).collect();
    let told = recorded_hash.and_then(|hash| copies.iter().filter(|live| live.has_hash(hash)).max_by_key(|live| live.version));
    let live = told.or_else(|| copies.iter().max_by_key(|live| live.version))?;
    let found = read(&layout.live_copy(&live.name, live.version, &live.short_hash), name)?;
    live.has_hash(&found.hash).then_some(found)
}

/// Reads a copy, and what it really holds.
pub(crate) fn read(folder: &Path, name: &ToolName) -> Option<Found> {
    let mut found = versions::read_folder(folder, name, None)?;
    let live = LiveName::parse(folder.file_name()?.to_str()?)?;
    found.version = live.version;
    found.manifest.version = Some(live.version.to_string());
    found.hash = content_hash(folder, &found.walk, &found.manifest, found.manifest_file, name.as_str()).ok()?;
    Some(found)
}

/// Moves a finished copy to where calls run it from. The caller brings it to the disk.
pub(crate) fn put_in_place(
    layout: &Layout,
    staging: &StagingDirectory,
    name: &str,
    version: Version,
    hash: &str,
) -> Result<PathBuf, RegistryError> {
    let place = layout.live_copy(name, version, hash);
    let live = layout.live();
    fs::create_dir_all(&live).map_err(RegistryError::io("Making the folder", &live))?;
    // A publish that was cut off may have left one of the same name.
    tree::remove(&place).map_err(RegistryError::io("Removing", &place))?;
    fs::rename(staging.path(), &place).map_err(RegistryError::io("Moving a folder to", &place))?;
    Ok(place)
}

/// Makes the copy of a tool that came into the folder by hand. Fails silently where nothing may be written.
pub(crate) fn keep(layout: &Layout, found: &Found) -> Option<PathBuf> {
    let copy = || -> Result<PathBuf, RegistryError> {
        let staging = StagingDirectory::make(layout)?;
        tree::copy(&found.folder, &found.walk, staging.path()).map_err(RegistryError::io("Copying to", staging.path()))?;
        tree::sync(&tree::parts(staging.path(), &found.walk)).map_err(RegistryError::io("Writing", staging.path()))?;
        put_in_place(layout, &staging, found.name.as_str(), found.version, &found.hash)
    };
    match copy() {
        Ok(place) => Some(place),
        Err(error) => {
            tracing::debug!(tool = %found.name, %error, "no copy to run from could be made; calls run from the tool's folder");
            None
        }
    }
}

/// Marks a copy as no longer current, from now on.
pub(crate) fn supersede(layout: &Layout, tool: &Tool) {
    let place = layout.live_copy(tool.name.as_str(), tool.version, &tool.hash);
    if let Ok(folder) = File::open(place) {
        let _ = folder.set_modified(SystemTime::now());
    }
}

/// Removes copies that have not been current for a while, and moves those of tools that vanished to the trash.
/// The tools folder's lock must be held; `is_current` tells what is in service.
pub(crate) fn collect(layout: &Layout, is_current: impl Fn(&Path) -> bool) {
    for (live, path) in outdated(layout, |_| true, is_current) {
        if let (false, Ok(name)) = (layout.tool(&live.name).exists(), ToolName::for_existing(&live.name)) {
            trash::rescue(layout, &name, &path);
        }
        tree::remove_if_possible(&path);
    }
}

/// As [`collect`], for one tool that was just published to `current`; needs no lock.
pub(crate) fn collect_of(layout: &Layout, name: &ToolName, current: &Path) {
    for (_, path) in outdated(layout, |live| live.name == name.as_str(), |path| path == current) {
        tree::remove_if_possible(&path);
    }
}

/// Copies that have not been current for a while.
fn outdated(
    layout: &Layout,
    is_meant: impl Fn(&LiveName) -> bool,
    is_current: impl Fn(&Path) -> bool,
) -> Vec<(LiveName, PathBuf)> {
    let entries = fs::read_dir(layout.live()).into_iter().flatten().flatten();
    let outdated = entries.filter_map(|entry| {
        let live = entry.file_name().to_str().and_then(LiveName::parse).filter(&is_meant)?;
        let age = entry.metadata().and_then(|metadata| metadata.modified()).ok()?.elapsed().ok()?;
        let path = entry.path();
        (age >= LINGER && !is_current(&path)).then_some((live, path))
    });
    outdated.collect()
}

/// Whether the compiled module in a tool's folder is another than the one in service.
pub(crate) fn module_differs(found: &Found, live: &Path) -> bool {
    let module = format!("{}.wasm", found.name);
    found.walk.file(&module).is_some() && !tree::same_bytes(&found.folder.join(&module), &live.join(&module)).unwrap_or(true)
}

/// Names of the files in which two folders differ, relative to them.
pub(crate) fn differing_files(left: (&Path, &Walk), right: (&Path, &Walk)) -> Vec<String> {
    let mut names: Vec<&Path> = left.1.files.iter().chain(&right.1.files).map(|stamp| stamp.path.as_path()).collect();
    names.sort_unstable();
    names.dedup();
    let same = |path: &Path| {
        left.1.file(path).is_some()
            && right.1.file(path).is_some()
            && tree::same_bytes(&left.0.join(path), &right.0.join(path)).unwrap_or(false)
    };
    names.into_iter().filter(|path| !same(path)).map(|path| path.to_string_lossy().into_owned()).collect()
}
