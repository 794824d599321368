//! Where things are in the tools folder, and which files make up a version.
//!
//! ```text
//! <tools>/<name>/             the tool, as people see and edit it
//! <tools>/<name>/.versions/   every earlier version, whole
//! <tools>/.live/              a copy of each current version, which calls run from and edits do not reach
//! <tools>/.staging/           folders being put together
//! <tools>/.trash/<name>/      deleted folders, whole
//! <tools>/.lock               taken by whoever changes any of this
//! ```

use std::{
    ffi::OsStr,
    path::{Path, PathBuf},
};

use skillz_tool::Version;

/// The manifest's file.
pub(crate) const MANIFEST: &str = "manifest.json";
/// The manifest of script tools of Skillz 0.8, and of knowledge skills.
pub(crate) const SKILL: &str = "SKILL.md";
/// Earlier versions of a tool.
pub(crate) const VERSIONS: &str = ".versions";
/// Earlier versions of a tool of Skillz 0.8.
pub(crate) const LEGACY_VERSIONS: &str = "versions";
/// Characters of the hash that tell live copies of one version apart.
const SHORT_HASH: usize = 16;

/// Paths in the tools folder.
#[derive(Debug, Clone)]
pub(crate) struct Layout {
    tools: PathBuf,
}

/// What the name of a live copy says.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(crate) struct LiveName {
    pub(crate) name: String,
    pub(crate) version: Version,
    pub(crate) short_hash: String,
}

impl Layout {
    pub(crate) fn new(tools: PathBuf) -> Self {
        Self { tools }
    }

    pub(crate) fn tools(&self) -> &Path {
        &self.tools
    }

    pub(crate) fn tool(&self, name: &str) -> PathBuf {
        self.tools.join(name)
    }

    pub(crate) fn lock(&self) -> PathBuf {
        self.tools.join(".lock")
    }

    pub(crate) fn staging(&self) -> PathBuf {
        self.tools.join(".staging")
    }

    pub(crate) fn trash(&self, name: &str) -> PathBuf {
        self.tools.join(".trash").join(name)
    }

    pub(crate) fn live(&self) -> PathBuf {
        self.tools.join(".live")
    }

    /// Where the copy of a version with that hash, or the start of one, is.
    pub(crate) fn live_copy(&self, name: &str, version: Version, hash: &str) -> PathBuf {
        self.live().join(format!("{name}@{version}-{}", short(hash)))
    }
}

impl LiveName {
    pub(crate) fn parse(folder: &str) -> Option<Self> {
        let (name, rest) = folder.split_once('@')?;
        let (version, short_hash) = rest.split_once('-')?;
        Some(Self { name: name.to_owned(), version: version.parse().ok()?, short_hash: short_hash.to_owned() })
    }

    pub(crate) fn has_hash(&self, hash: &str) -> bool {
        self.short_hash == short(hash)
    }
}

fn short(hash: &str) -> &str {
    hash.get(..SHORT_HASH).unwrap_or(hash)
}

/// Whether a file or folder is left out of versions: caches, the work of editors, foreign bookkeeping.
pub(crate) fn is_scrap(name: &OsStr) -> bool {
    let Some(name) = name.to_str() else { return false };
    let exact = ["__pycache__", ".git", ".hg", ".svn", ".DS_Store", "4913", "___jb_tmp___", "___jb_old___"];
    exact.contains(&name)
        || name.ends_with('~')
        || Path::new(name).extension().is_some_and(|extension| extension == "pyc")
        || name.starts_with(".#")
        || (name.len() > 2 && name.starts_with('#') && name.ends_with('#'))
        || (name.starts_with('.') && [".swp", ".swo", ".swx"].iter().any(|suffix| name.ends_with(suffix)))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn scrap_is_told_from_files() {
        for name in ["main.py~", ".main.py.swp", "#main.py#", ".#main.py", "__pycache__", "a.pyc", "4913", ".git"] {
            assert!(is_scrap(OsStr::new(name)), "{name}");
        }
        for name in ["main.py", "lock", ".env", "#", "##", "swp", "a.swp", "Cargo.lock", "versions", "~a"] {
            assert!(!is_scrap(OsStr::new(name)), "{name}");
        }
    }

    #[test]
    fn names_of_live_copies_come_back() {
        let layout = Layout::new("/tools".into());
        let path = layout.live_copy("a-b_C", Version { major: 1, minor: 20, patch: 3 }, &"ab".repeat(32));
        let live = LiveName::parse(path.file_name().unwrap().to_str().unwrap()).unwrap();
        assert_eq!((live.name.as_str(), live.version.to_string().as_str()), ("a-b_C", "1.20.3"));
        assert!(live.has_hash(&"ab".repeat(32)) && !live.has_hash(&"ba".repeat(32)));
        assert_eq!(LiveName::parse("x"), None);
    }
}
