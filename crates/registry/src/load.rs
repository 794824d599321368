//! Reads one tool's folder as it stands.

use std::{
    fs, io,
    path::{Component, Path, PathBuf},
    sync::Arc,
    time::SystemTime,
};

use skillz_tool::{Manifest, Tool, ToolKind, ToolName, Version};
use time::{OffsetDateTime, format_description::well_known::Rfc3339};

use crate::{
    BrokenTool,
    hash::content_hash,
    layout::{Layout, MANIFEST},
    manifest_file::{self, ManifestFile},
    versions,
    walk::Walk,
};

/// The source of WASM tools that name none.
const RUST_SOURCE: &str = "src.rs";

/// What a folder turned out to be.
#[derive(Debug)]
pub(crate) enum Loaded {
    /// There is nothing of that name, or nothing that looks like a tool.
    Nothing,
    /// A knowledge skill.
    Skill,
    /// It looks like a tool and cannot be used.
    Broken(BrokenTool),
    /// A tool.
    Good(Box<Found>),
}

/// A tool as its folder holds it.
#[derive(Debug, Clone)]
pub(crate) struct Found {
    pub(crate) name: ToolName,
    pub(crate) folder: PathBuf,
    pub(crate) walk: Walk,
    /// With the folder's name and the entry file filled in.
    pub(crate) manifest: Manifest,
    /// The file that held it.
    pub(crate) manifest_file: &'static str,
    pub(crate) version: Version,
    /// The hash of what is there now.
    pub(crate) hash: String,
    /// The hash at the last publish, where there was one.
    pub(crate) recorded_hash: Option<String>,
    /// No file was touched since it was published.
    pub(crate) pristine: bool,
    /// The source is there, and its compiled module is not.
    pub(crate) needs_build: bool,
}

impl Found {
    /// Whether the folder is exactly what was published.
    pub(crate) fn is_recorded(&self) -> bool {
        self.recorded_hash.as_ref() == Some(&self.hash)
    }

    /// The tool, run from `directory`.
    pub(crate) fn tool_in(&self, directory: PathBuf) -> Arc<Tool> {
        Arc::new(Tool::new(self.name.clone(), self.version, directory, self.manifest.clone(), self.hash.clone()))
    }
}

/// Lists the folders of the tools folder that may be tools, by name.
pub(crate) fn list(layout: &Layout) -> io::Result<Vec<String>> {
    let mut names = Vec::new();
    for entry in fs::read_dir(layout.tools())? {
        let entry = entry?;
        let name = entry.file_name().to_string_lossy().into_owned();
        let kind = entry.file_type()?;
        if !name.starts_with('.') && (kind.is_dir() || kind.is_symlink()) {
            names.push(name);
        }
    }
    names.sort_unstable();
    Ok(names)
}

/// Lists the files of a tool's folder; `None` if there is no such folder, or only a link.
pub(crate) fn walk(layout: &Layout, name: &str) -> io::Result<Option<Walk>> {
    let folder = layout.tool(name);
    match fs::symlink_metadata(&folder) {
        Ok(metadata) if metadata.is_dir() => {}
        Ok(_) => return Ok(None),
        Err(error) if error.kind() == io::ErrorKind::NotFound => return Ok(None),
        Err(error) => return Err(error),
    }
    match Walk::of(&folder) {
        Err(error) if error.kind() == io::ErrorKind::NotFound => Ok(None),
        outcome => outcome.map(Some),
    }
}

/// Reads a folder of the tools folder, whatever it is.
pub(crate) fn load(layout: &Layout, name: &str) -> Loaded {
    let folder = layout.tool(name);
    let broken = |reason: String| Loaded::Broken(BrokenTool::new(name, folder.clone(), None, reason));
    match walk(layout, name) {
        Ok(Some(walk)) => load_walked(layout, name, walk),
        Ok(None) if folder.is_symlink() && folder.is_dir() => {
            broken("It is a symbolic link, and links are not followed; copy the folder itself here".to_owned())
        }
        Ok(None) => Loaded::Nothing,
        Err(error) => broken(format!("The folder cannot be read: {error}")),
    }
}

/// Reads a folder whose files are known.
pub(crate) fn load_walked(layout: &Layout, name: &str, walk: Walk) -> Loaded {
    let folder = layout.tool(name);
    let (manifest, manifest_file) = match manifest_file::read(&folder) {
        Ok(ManifestFile::Tool(manifest, file)) => (*manifest, file),
        Ok(ManifestFile::Skill) => return Loaded::Skill,
        Ok(ManifestFile::Missing) => return Loaded::Nothing,
        Err(fault) => return Loaded::Broken(BrokenTool::new(name, fault.file, fault.line, fault.reason)),
    };
    let broken = |reason: String| Loaded::Broken(BrokenTool::new(name, folder.join(manifest_file), None, reason));
    let tool_name = match ToolName::for_existing(name) {
        Ok(tool_name) => tool_name,
        Err(error) => return broken(format!("{error}. Rename the folder")),
    };
    match Found::new(tool_name, folder.clone(), walk, manifest, manifest_file) {
        Ok(Ok(found)) => Loaded::Good(Box::new(found)),
        Ok(Err(reason)) => broken(reason),
        Err(error) => broken(format!("Its files cannot be read: {error}")),
    }
}

impl Found {
    /// Completes what a manifest says by what its folder holds; the inner error says what is missing.
    pub(crate) fn new(
        name: ToolName,
        folder: PathBuf,
        walk: Walk,
        mut manifest: Manifest,
        manifest_file: &'static str,
    ) -> io::Result<Result<Self, String>> {
        let needs_build = match complete(&name, &walk, &mut manifest, manifest_file) {
            Ok(needs_build) => needs_build,
            Err(reason) => return Ok(Err(reason)),
        };
        let recorded_hash = manifest.hash.clone();
        let pristine = recorded_hash.is_some() && is_untouched(&folder, &walk, &manifest);
        let hash = match &recorded_hash {
            Some(hash) if pristine => hash.clone(),
            _ => content_hash(&folder, &walk, &manifest, manifest_file, name.as_str())?,
        };
        let version = match manifest.version.as_deref().map(str::parse) {
            Some(Ok(version)) => version,
            // Skillz 0.8 numbers no current script; it comes after the earlier versions.
            _ => versions::in_folder(&folder).into_iter().map(|(version, _)| version.next(false)).max().unwrap_or(Version::FIRST),
        };
        manifest.name = name.to_string();
        Ok(Ok(Self { name, folder, walk, manifest, manifest_file, version, hash, recorded_hash, pristine, needs_build }))
    }
}

/// Finds the entry file, and says whether a module has yet to be built; or what is missing.
fn complete(name: &ToolName, walk: &Walk, manifest: &mut Manifest, manifest_file: &str) -> Result<bool, String> {
    if let Some(entry) = &manifest.entry_file {
        check_entry(entry, walk)?;
    }
    match manifest.tool_type {
        ToolKind::Wasm => {
            let module = format!("{name}.wasm");
            let source = manifest.entry_file.as_deref().unwrap_or(RUST_SOURCE);
            match (walk.file(&module).is_some(), walk.file(source).is_some()) {
                (true, _) => Ok(false),
                (false, true) => Ok(true),
                (false, false) => Err(format!("Neither the module `{module}` nor the source `{source}` is there")),
            }
        }
        ToolKind::Script => {
            if manifest.entry_file.is_none() {
                manifest.entry_file = Some(guess_entry(name, walk, manifest_file)?);
            }
            match manifest.entry_file.as_deref() {
                Some(entry) if walk.file(entry).is_none() => Err(format!("The source `{entry}` is missing")),
                _ => Ok(false),
            }
        }
        ToolKind::Pipeline | ToolKind::Mcp => Ok(false),
    }
}

/// Refuses entries that are not plain paths to files within the folder.
pub(crate) fn check_entry(entry: &str, walk: &Walk) -> Result<(), String> {
    let path = Path::new(entry);
    let plain = !entry.is_empty() && path.components().all(|part| matches!(part, Component::Normal(_)));
    if !plain {
        return Err(format!("The `entry_file` `{entry}` does not stay in the tool's folder"));
    }
    if walk.links.iter().any(|link| path.starts_with(link)) {
        return Err(format!("The `entry_file` `{entry}` is behind a symbolic link, and links are not followed"));
    }
    Ok(())
}

/// The file that a script without `entry_file` must mean.
fn guess_entry(name: &ToolName, walk: &Walk, manifest_file: &str) -> Result<String, String> {
    let candidates: Vec<&Path> = walk
        .files
        .iter()
        .map(|stamp| stamp.path.as_path())
        .filter(|path| path.components().count() == 1 && *path != Path::new(manifest_file) && *path != Path::new("lock"))
        .collect();
    let by_stem = |stem: &str| candidates.iter().find(|path| path.file_stem().is_some_and(|own| own == stem));
    let found = [name.as_str(), "main", "index", "script"].into_iter().find_map(by_stem).or(match candidates.as_slice() {
        [only] => Some(only),
        _ => None,
    });
    match found.and_then(|path| path.to_str()) {
        Some(entry) => Ok(entry.to_owned()),
        None => Err("The manifest names no `entry_file`, and which file is meant cannot be told".to_owned()),
    }
}

/// Whether every file and folder has the time that publishing gave it, so that nothing needs to be read to know
/// that nothing changed. The time of a folder changes when a file comes or goes.
fn is_untouched(folder: &Path, walk: &Walk, manifest: &Manifest) -> bool {
    let Some(published) = manifest.updated_at.as_deref().and_then(parse_time) else { return false };
    let is_untouched =
        |folder: &Path| fs::metadata(folder).and_then(|metadata| metadata.modified()).is_ok_and(|time| time == published);
    walk.file(MANIFEST).is_some()
        && walk.files.iter().all(|stamp| stamp.modified == Some(published))
        && is_untouched(folder)
        && walk.folders.iter().all(|inner| is_untouched(&folder.join(inner)))
}

pub(crate) fn parse_time(text: &str) -> Option<SystemTime> {
    OffsetDateTime::parse(text, &Rfc3339).ok().map(SystemTime::from)
}

impl BrokenTool {
    pub(crate) fn new(name: &str, file: PathBuf, line: Option<usize>, reason: String) -> Self {
        Self { name: name.to_owned(), file, line, reason, in_service: false }
    }
}
