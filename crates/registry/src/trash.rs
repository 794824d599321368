//! Deleted tools: their folders move to the trash, whole, and come back by rollback.

use std::{
    fs,
    path::{Path, PathBuf},
    time::{SystemTime, UNIX_EPOCH},
};

use skillz_tool::ToolName;
use uuid::Uuid;

use crate::{
    BrokenTool, RegistryError,
    layout::{Layout, VERSIONS},
    live,
    load::{self, Loaded},
    lock::FolderLock,
    tree, versions,
};

/// Moves a tool's folder to the trash. Blocks.
pub(crate) fn delete(layout: &Layout, name: &ToolName) -> Result<(), RegistryError> {
    let _lock = FolderLock::take(layout)?;
    let folder = layout.tool(name.as_str());
    match load::load(layout, name.as_str()) {
        Loaded::Nothing | Loaded::Skill => return Err(RegistryError::UnknownTool { name: name.clone() }),
        Loaded::Broken(broken) if folder.is_symlink() => return Err(RegistryError::Broken { broken: Box::new(broken) }),
        Loaded::Broken(BrokenTool { .. }) => keep_version_before_edit(layout, name, None)?,
        Loaded::Good(found) if !found.is_recorded() => keep_version_before_edit(layout, name, found.recorded_hash.as_deref())?,
        Loaded::Good(_) => {}
    }
    let trash = layout.trash(name.as_str());
    fs::create_dir_all(&trash).map_err(RegistryError::io("Making the folder", &trash))?;
    let place = trash.join(stamp());
    tree::make_writable(&folder).map_err(RegistryError::io("Moving", &folder))?;
    fs::rename(&folder, &place).map_err(RegistryError::io("Moving", &folder))?;
    for changed in [trash.as_path(), layout.tools()] {
        tree::sync_folder(changed).map_err(RegistryError::io("Writing", changed))?;
    }
    Ok(())
}

/// Puts the version that was in service before an edit among the earlier versions of an edited folder, so that
/// both go to the trash.
fn keep_version_before_edit(layout: &Layout, name: &ToolName, recorded_hash: Option<&str>) -> Result<(), RegistryError> {
    let Some(before) = live::before_edit(layout, name, recorded_hash) else { return Ok(()) };
    let history = layout.tool(name.as_str()).join(VERSIONS);
    let place = history.join(before.version.to_string());
    if place.exists() {
        return Ok(());
    }
    let failed = RegistryError::io("Keeping a version in", &place);
    fs::create_dir_all(&history).and_then(|()| tree::link(&before.folder, &before.walk, &place)).map_err(failed)?;
    let folders = [history.clone(), place, layout.tool(name.as_str())];
    tree::sync(&folders).map_err(RegistryError::io("Writing", &history))
}

/// Puts the copy of a tool whose folder was removed by hand into the trash, unless the trash has it already.
/// The tools folder's lock must be held.
pub(crate) fn rescue(layout: &Layout, name: &ToolName, live: &Path) {
    let Some(found) = live::read(live, name) else { return };
    let known = versions::in_trash(layout, name);
    let is_there = known.iter().any(|(version, folder)| {
        *version == found.version
            && versions::read_version(folder, name, *version, None).is_some_and(|kept| kept.hash == found.hash)
    });
    if is_there {
        return;
    }
    let trash = layout.trash(name.as_str());
    let place = trash.join(stamp());
    let moved = fs::create_dir_all(&trash)
        .and_then(|()| tree::link(live, &found.walk, &place))
        .and_then(|()| tree::sync(&[place.clone(), trash.clone()]));
    match moved {
        Ok(()) => {
            tracing::info!(tool = %name, "removed by hand; a rollback brings its last version back");
        }
        Err(error) => tracing::warn!(tool = %name, %error, "the last version of a removed tool could not be kept"),
    }
}

/// A folder name that sorts by time.
pub(crate) fn stamp() -> String {
    let milliseconds = SystemTime::now().duration_since(UNIX_EPOCH).unwrap_or_default().as_millis();
    format!("{milliseconds:015}-{}", Uuid::new_v4().simple())
}

/// Removes the folders that were merged into a new one, which holds all of their versions now. Each leaves the trash
/// in one step: one that was half removed when the process was killed would hide the whole versions elsewhere.
pub(crate) fn remove_merged(layout: &Layout, name: &ToolName, merged: &[PathBuf]) {
    for folder in merged {
        let aside = layout.staging().join(Uuid::new_v4().to_string());
        let moved = fs::create_dir_all(layout.staging()).and_then(|()| fs::rename(folder, &aside));
        if let Err(error) = moved {
            tracing::warn!(folder = %folder.display(), %error, "a folder of the trash could not be removed");
            continue;
        }
        tree::remove_if_possible(&aside);
    }
    // Goes only if it is empty.
    let _ = fs::remove_dir(layout.trash(name.as_str()));
}
