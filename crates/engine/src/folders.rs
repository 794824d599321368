//! Folders that tools ask for: what they mean here, and whether they may be had.

use std::path::{Component, Path, PathBuf};

use skillz_tool::{ErrorKind, FolderGrant, FolderMode, FolderPermission, Tool, ToolError};

use crate::{EngineSettings, PolicyMode};

/// One folder of a manifest, read.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(crate) struct FolderWish {
    base: Base,
    mode: FolderMode,
}

#[derive(Debug, Clone, PartialEq, Eq)]
enum Base {
    /// Below each workspace root.
    Root(PathBuf),
    /// Below the tool's data folder.
    Data(PathBuf),
    /// An absolute path.
    Absolute(PathBuf),
}

/// Folders of one call.
#[derive(Debug, Default)]
pub(crate) struct ResolvedFolders {
    pub(crate) grants: Vec<FolderGrant>,
    /// What the user must agree to first, in words.
    pub(crate) asks: Vec<String>,
}

impl FolderWish {
    /// Reads one entry of `permissions.fs`; the error is a sentence.
    pub(crate) fn read(permission: &FolderPermission) -> Result<Self, String> {
        let path = permission.path.as_str();
        let refuse = |reason: &str| Err(format!("the folder `{}` {reason}", path.chars().take(200).collect::<String>()));
        if path.starts_with("$SKILLZ_HOME") || path.starts_with("${SKILLZ_HOME}") {
            return refuse("is the server's own data folder, which no tool can have; `$DATA` is the tool's own part of it");
        }
        if path.split('/').any(|part| part == "..") {
            return refuse("leads upwards; write it without `..`");
        }
        let below = |variable: &str| path.strip_prefix(variable).filter(|rest| rest.is_empty() || rest.starts_with('/'));
        let relative = |rest: &str| PathBuf::from(rest.trim_matches('/'));
        let base = if let Some(rest) = below("$ROOT") {
            Base::Root(relative(rest))
        } else if let Some(rest) = below("$DATA") {
            Base::Data(relative(rest))
        } else if Path::new(path).is_absolute() {
            Base::Absolute(PathBuf::from(path))
        } else {
            return refuse(
                "is neither absolute nor starts with `$ROOT` (each workspace root) or `$DATA` (the tool's own folder)",
            );
        };
        Ok(Self { base, mode: permission.mode })
    }

    pub(crate) fn names_root(&self) -> bool {
        matches!(self.base, Base::Root(_))
    }

    pub(crate) fn is_own_data(&self) -> bool {
        matches!(self.base, Base::Data(_))
    }
}

/// Turns wishes into real folders. Links are followed first: what counts is where a path ends. Folders that
/// are not there are left out; the tool then finds that out by itself.
pub(crate) fn resolve(
    tool: &Tool,
    wishes: &[FolderWish],
    roots: &[PathBuf],
    data_directory: &Path,
    settings: &EngineSettings,
) -> Result<ResolvedFolders, ToolError> {
    let roots: Vec<PathBuf> = roots.iter().filter_map(|root| root.canonicalize().ok()).collect();
    let protected = Protected::of(settings);
    let own_data = data_directory.canonicalize().ok();
    let mut folders = ResolvedFolders::default();
    for wish in wishes {
        let candidates = match &wish.base {
            Base::Root(below) => roots.iter().map(|root| join(root, below)).collect(),
            Base::Data(below) => vec![join(data_directory, below)],
            Base::Absolute(path) => vec![path.clone()],
        };
        for path in candidates {
            let Ok(real) = path.canonicalize() else { continue };
            let within_data = wish.is_own_data() && own_data.as_ref().is_some_and(|data| real.starts_with(data));
            if !within_data {
                protected.check(tool, &path, &real, wish.mode)?;
                if must_ask(&real, &roots, settings.policy.folders) {
                    folders.asks.push(in_words(&real, wish.mode));
                }
            }
            folders.grant(real.clone(), wish.mode);
            if plain(&path) != real {
                // Tools find a folder under the name that the manifest gives it, too.
                folders.grant(plain(&path), wish.mode);
            }
        }
    }
    Ok(folders)
}

impl ResolvedFolders {
    fn grant(&mut self, path: PathBuf, mode: FolderMode) {
        match self.grants.iter_mut().find(|grant| grant.path == path) {
            Some(grant) if mode == FolderMode::Rw => grant.mode = mode,
            Some(_) => {}
            None => self.grants.push(FolderGrant { path, mode }),
        }
    }
}

/// What no tool may have.
struct Protected {
    home: PathBuf,
    tools: PathBuf,
}

impl Protected {
    fn of(settings: &EngineSettings) -> Self {
        Self { home: real_or_plain(&settings.home), tools: real_or_plain(&settings.tools_directory) }
    }

    /// Refuses a folder that is, holds, or lies in the data folder; and writing where the tools lie.
    fn check(&self, tool: &Tool, path: &Path, real: &Path, mode: FolderMode) -> Result<(), ToolError> {
        let overlaps = |protected: &Path| real.starts_with(protected) || protected.starts_with(real);
        let what = if overlaps(&self.home) {
            "the server's data folder"
        } else if mode == FolderMode::Rw && overlaps(&self.tools) {
            "the folder of all tools"
        } else {
            return Ok(());
        };
        let message = format!(
            "`{}` asks for the folder `{}`, which is, holds or lies in {what}; no tool can have that",
            tool.name,
            path.display()
        );
        Err(ToolError::new(ErrorKind::Denied, message)
            .with_hint("Ask for a narrower folder in `permissions.fs`; `$DATA` is a folder of the tool's own"))
    }
}

fn must_ask(real: &Path, roots: &[PathBuf], policy: Option<PolicyMode>) -> bool {
    match policy {
        Some(mode) => mode == PolicyMode::Ask,
        None => !roots.iter().any(|root| real.starts_with(root)),
    }
}

fn in_words(path: &Path, mode: FolderMode) -> String {
    let mode = match mode {
        FolderMode::Ro => "to read",
        FolderMode::Rw => "to read and write",
    };
    format!("the folder `{}` {mode}", path.display())
}

/// Joins without the trailing slash that an empty second part would leave.
fn join(base: &Path, below: &Path) -> PathBuf {
    if below.as_os_str().is_empty() { base.to_owned() } else { base.join(below) }
}

/// The path without `.` and doubled slashes; links stay.
fn plain(path: &Path) -> PathBuf {
    path.components().filter(|part| !matches!(part, Component::CurDir)).collect()
}

/// Where the path ends, or would end: the part of it that is there is resolved.
fn real_or_plain(path: &Path) -> PathBuf {
    for ancestor in path.ancestors() {
        if let (Ok(real), Ok(rest)) = (ancestor.canonicalize(), path.strip_prefix(ancestor)) {
            return join(&real, rest);
        }
    }
    path.to_owned()
}
