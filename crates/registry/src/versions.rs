//! Finds the versions of a tool: the current one, the earlier ones in its folder, and those in the trash.

use std::{
    collections::BTreeMap,
    fs,
    path::{Path, PathBuf},
    sync::Arc,
};

use skillz_tool::{Manifest, Origin, Tool, ToolKind, ToolName, Version};

use crate::{
    RegistryError, VersionEntry,
    layout::{LEGACY_VERSIONS, Layout, VERSIONS},
    load::Found,
    lock::FolderLock,
    manifest_file::{self, ManifestFile},
    walk::Walk,
};

/// The earlier versions that a tool's folder holds, in no order; the new place wins over the old.
pub(crate) fn in_folder(folder: &Path) -> Vec<(Version, PathBuf)> {
    let mut versions = BTreeMap::new();
    for history in [LEGACY_VERSIONS, VERSIONS] {
        let Ok(entries) = fs::read_dir(folder.join(history)) else { continue };
        for entry in entries.flatten() {
            let version = entry.file_name().to_str().and_then(|name| name.parse().ok());
            if let (Some(version), true) = (version, entry.file_type().is_ok_and(|kind| kind.is_dir())) {
                versions.insert(version, entry.path());
            }
        }
    }
    versions.into_iter().collect()
}

/// The folders of a deleted tool, the newest last.
pub(crate) fn trashed_folders(layout: &Layout, name: &ToolName) -> Vec<PathBuf> {
    let Ok(entries) = fs::read_dir(layout.trash(name.as_str())) else { return Vec::new() };
    let mut folders: Vec<_> =
        entries.flatten().filter(|entry| entry.file_type().is_ok_and(|kind| kind.is_dir())).map(|entry| entry.path()).collect();
    // Their names start with the time.
    folders.sort_unstable();
    folders
}

/// The versions in the trash: each deleted folder is one, and holds earlier ones.
pub(crate) fn in_trash(layout: &Layout, name: &ToolName) -> Vec<(Version, PathBuf)> {
    let mut versions = Vec::new();
    for folder in trashed_folders(layout, name) {
        versions.extend(in_folder(&folder));
        if let Some(found) = read_folder(&folder, name, None) {
            versions.push((found.version, folder));
        }
    }
    versions
}

/// Reads the folder of one version. Versions of Skillz 0.8 may come without a manifest; `fallback` is used then.
pub(crate) fn read_folder(folder: &Path, name: &ToolName, fallback: Option<&Manifest>) -> Option<Found> {
    let (manifest, file) = match manifest_file::read(folder) {
        Ok(ManifestFile::Tool(manifest, file)) => (*manifest, file),
        Ok(ManifestFile::Missing) => {
            let mut manifest = fallback?.clone();
            (manifest.version, manifest.hash, manifest.updated_at, manifest.source) = (None, None, None, None);
            (manifest, crate::layout::MANIFEST)
        }
        _ => return None,
    };
    let walk = Walk::of(folder).ok()?;
    Found::new(name.clone(), folder.to_owned(), walk, manifest, file).ok()?.ok()
}

/// Reads the folder of an earlier version, whose number is its folder's name.
pub(crate) fn read_version(folder: &Path, name: &ToolName, version: Version, fallback: Option<&Manifest>) -> Option<Found> {
    let mut found = read_folder(folder, name, fallback)?;
    found.version = version;
    found.manifest.version = Some(version.to_string());
    Some(found)
}

/// The highest number that a tool was ever given, told by the names of folders as far as they tell it.
pub(crate) fn highest(layout: &Layout, name: &ToolName, current: Option<Version>) -> Option<Version> {
    let _lock = layout.lock().exists().then(|| FolderLock::take(layout).ok()).flatten();
    let found = in_folder(&layout.tool(name.as_str())).into_iter().chain(in_trash(layout, name));
    found.map(|(version, _)| version).chain(current).max()
}

/// All versions of a tool, the current one included; of several places for one number the first wins.
pub(crate) struct KnownVersions {
    pub(crate) current: Option<Arc<Tool>>,
    folders: BTreeMap<Version, PathBuf>,
}

impl KnownVersions {
    pub(crate) fn of(layout: &Layout, name: &ToolName, current: Option<Arc<Tool>>) -> Self {
        // While a publish hands the history over it is on its way. Without a lock it is found nearly always, and where
        // nothing can be locked nothing is published either.
        let _lock = layout.lock().exists().then(|| FolderLock::take(layout).ok()).flatten();
        let mut folders = BTreeMap::new();
        if let Some(current) = &current {
            folders.insert(current.version, current.directory.clone());
        }
        for (version, folder) in in_folder(&layout.tool(name.as_str())).into_iter().chain(in_trash(layout, name)) {
            // Of several that bear one number, one that cannot be read must not hide the others.
            let before = folders.entry(version).or_insert_with(|| folder.clone());
            if *before != folder && !manifest_file::is_there(before) {
                *before = folder;
            }
        }
        Self { current, folders }
    }

    pub(crate) fn is_empty(&self) -> bool {
        self.folders.is_empty()
    }

    /// Reads one version.
    pub(crate) fn read(&self, name: &ToolName, version: Version) -> Result<Found, RegistryError> {
        if self.is_empty() {
            return Err(RegistryError::UnknownTool { name: name.clone() });
        }
        let Some(folder) = self.folders.get(&version) else { return Err(self.unknown(name, version)) };
        read_version(folder, name, version, self.fallback()).ok_or_else(|| RegistryError::Invalid {
            reason: format!("Version `{version}` of `{name}` cannot be read; its files are in `{}`", folder.display()),
        })
    }

    /// Describes all versions, the newest first. What cannot be read is left out.
    pub(crate) fn entries(&self, name: &ToolName) -> Vec<VersionEntry> {
        let newest_first = self.folders.iter().rev();
        newest_first
            .filter_map(|(version, folder)| Some(entry_of(read_version(folder, name, *version, self.fallback())?)))
            .collect()
    }

    fn fallback(&self) -> Option<&Manifest> {
        self.current.as_ref().map(|tool| &tool.manifest)
    }

    fn unknown(&self, name: &ToolName, version: Version) -> RegistryError {
        let known: Vec<String> = self.folders.keys().rev().take(20).map(|version| format!("`{version}`")).collect();
        RegistryError::UnknownVersion { name: name.clone(), version, known: known.join(", ") }
    }
}

fn entry_of(found: Found) -> VersionEntry {
    VersionEntry {
        version: found.version,
        time: found.manifest.updated_at.clone().or_else(|| found.manifest.created_at.clone()),
        origin: origin_of(&found.manifest),
        hash: found.hash,
        directory: found.folder,
    }
}

/// How a version came to be; folders that do not say so were made by the built-in of their kind.
pub(crate) fn origin_of(manifest: &Manifest) -> Origin {
    let recorded = manifest.source.as_ref().and_then(|source| source.get("origin"));
    if let Some(origin) = recorded.and_then(|origin| skillz_json::from_value(origin.clone()).ok()) {
        return origin;
    }
    match manifest.tool_type {
        ToolKind::Wasm => Origin::Build,
        ToolKind::Script => Origin::Register,
        ToolKind::Pipeline => Origin::Pipeline,
        ToolKind::Mcp => Origin::Import,
    }
}
