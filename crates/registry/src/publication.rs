//! What goes into the registry, and what it tells of versions.

use std::path::PathBuf;

use skillz_tool::{Manifest, Origin, ToolName, Version};

use crate::{StagingDirectory, lock::FolderLock, walk::Walk};

/// What a publisher believes to be there; anything else is an error, so that two publishers never mix.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Expectation {
    /// No tool of that name.
    Absent,
    /// This version is current.
    Current(Version),
    /// Whatever is there is replaced.
    Anything,
}

/// A prepared folder, to become the current version of a tool.
#[derive(Debug)]
pub struct Publication {
    /// The tool's name.
    pub name: ToolName,
    /// Folder with all files of the tool; its manifest file is written by the registry.
    pub staging: StagingDirectory,
    /// The completed manifest. A `version` in it is kept if it is newer than every version so far, and
    /// replaced otherwise; `hash`, `created_at` and `updated_at` are set by the registry.
    pub manifest: Manifest,
    /// How this version came to be.
    pub origin: Origin,
    /// What the publisher believes to be there.
    pub expected: Expectation,
}

/// An older version (or a deleted tool's), copied to a staging folder to be published again.
#[derive(Debug)]
pub struct StagedVersion {
    /// Its files.
    pub staging: StagingDirectory,
    /// Its manifest.
    pub manifest: Manifest,
    /// What to pass on as [`Publication::expected`].
    pub expected: Expectation,
}

/// A tool's folder as somebody edited it, copied to a staging folder to be prepared, tried and recorded.
#[derive(Debug)]
pub struct StagedEdit {
    /// The tool.
    pub name: ToolName,
    /// The edited files.
    pub staging: StagingDirectory,
    /// The edited manifest.
    pub manifest: Manifest,
    /// Names of files that were changed, added or removed, relative to the folder; the manifest is `manifest.json`.
    pub changed_files: Vec<String>,
    /// The version that was current before the edit; `None` for a folder that was never in service.
    pub previous: Option<Version>,
    /// The hash of the edited files.
    pub(crate) hash: String,
    /// The state of the folder.
    pub(crate) walk: Walk,
    /// Keeps other processes from checking the same edit.
    pub(crate) _lock: FolderLock,
}

/// All versions of a tool.
#[derive(Debug, Clone, PartialEq)]
pub struct VersionList {
    /// The tool.
    pub name: ToolName,
    /// The version in service; `None` for a deleted tool.
    pub current: Option<Version>,
    /// Every version, the newest first.
    pub versions: Vec<VersionEntry>,
}

/// One version of a tool.
#[derive(Debug, Clone, PartialEq)]
pub struct VersionEntry {
    /// Its number.
    pub version: Version,
    /// When it was published (RFC 3339); `None` where nothing tells.
    pub time: Option<String>,
    /// SHA-256 of manifest and source, in hexadecimal.
    pub hash: String,
    /// How it came to be.
    pub origin: Origin,
    /// The folder that holds it.
    pub directory: PathBuf,
}
