//! Hand edits: copies an edited folder so that it can be checked while the editor goes on.

use std::{sync::Arc, thread, time::Duration};

use skillz_tool::{Tool, ToolName};

use crate::{
    RegistryError, StagedEdit, StagingDirectory,
    layout::Layout,
    live::differing_files,
    load::{self, Found, Loaded},
    lock::FolderLock,
    tree,
    walk::Walk,
};

/// How often a folder that changes while it is copied is copied anew.
const ATTEMPTS: usize = 20;
/// Pause between two attempts.
const PAUSE: Duration = Duration::from_millis(100);

/// The lock of whoever checks edits of a tool; `None` while another process has it.
pub(crate) fn try_lock(layout: &Layout, name: &ToolName) -> Result<Option<FolderLock>, RegistryError> {
    let folder = layout.staging();
    std::fs::create_dir_all(&folder).map_err(RegistryError::io("Making the folder", &folder))?;
    let path = folder.join(format!("edit-{name}.lock"));
    FolderLock::try_take(&path).map_err(RegistryError::io("Locking", &path))
}

/// Copies an edited folder; `None` if it does not hold a tool (any more). Blocks.
pub(crate) fn stage(
    layout: &Layout,
    name: &ToolName,
    in_service: Option<&Arc<Tool>>,
    lock: FolderLock,
) -> Result<Option<StagedEdit>, RegistryError> {
    for _ in 0..ATTEMPTS {
        let Loaded::Good(found) = load::load(layout, name.as_str()) else { return Ok(None) };
        let staging = StagingDirectory::make(layout)?;
        let copied = tree::copy(&found.folder, &found.walk, staging.path());
        // A file that changed or went while it was copied makes the copy worthless.
        let unchanged = load::walk(layout, name.as_str()).ok().flatten().is_some_and(|walk| walk == found.walk);
        match copied {
            Ok(()) if unchanged => return Ok(Some(staged(*found, staging, in_service, lock))),
            Err(error) if unchanged => return Err(RegistryError::io("Copying", &found.folder)(error)),
            _ => thread::sleep(PAUSE),
        }
    }
    Err(RegistryError::Invalid {
        reason: format!("The files of `{name}` keep changing; the edit is looked at when they are at rest"),
    })
}

fn staged(found: Found, staging: StagingDirectory, in_service: Option<&Arc<Tool>>, lock: FolderLock) -> StagedEdit {
    let before = in_service.filter(|tool| tool.directory != found.folder);
    let before_walk = before.and_then(|tool| Walk::of(&tool.directory).ok()).unwrap_or_default();
    let changed_files = match before {
        Some(tool) => differing_files((&found.folder, &found.walk), (&tool.directory, &before_walk)),
        None => found.walk.files.iter().map(|stamp| stamp.path.to_string_lossy().into_owned()).collect(),
    };
    StagedEdit {
        name: found.name,
        staging,
        manifest: found.manifest,
        changed_files,
        previous: in_service.map(|tool| tool.version),
        hash: found.hash,
        walk: found.walk,
        _lock: lock,
    }
}
