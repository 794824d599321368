//! Lists the files of a tool's folder, with what tells a changed file from an unchanged one.

use std::{
    fs, io,
    path::{Path, PathBuf},
    time::SystemTime,
};

use skillz_tool::Version;

use crate::layout::{LEGACY_VERSIONS, VERSIONS, is_scrap};

/// Deepest folder looked into.
const DEPTH: usize = 16;
/// Most files of one tool; more is a mistake, such as a whole project copied in.
const FILES: usize = 20_000;

/// The files of a version. Links are listed apart and never followed.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub(crate) struct Walk {
    /// Sorted by path.
    pub(crate) files: Vec<FileStamp>,
    /// Folders below the tool's, relative to it, parents first.
    pub(crate) folders: Vec<PathBuf>,
    /// Symbolic links, relative to the tool's folder.
    pub(crate) links: Vec<PathBuf>,
    /// The folders that hold earlier versions.
    pub(crate) histories: Vec<PathBuf>,
}

/// A file as it was when it was seen.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(crate) struct FileStamp {
    /// Relative to the tool's folder.
    pub(crate) path: PathBuf,
    pub(crate) size: u64,
    pub(crate) modified: Option<SystemTime>,
    pub(crate) inode: u64,
}

/// The files that belong to the version in a folder, relative to it, sorted: no links, no caches, no earlier versions.
pub fn version_files(folder: &Path) -> io::Result<Vec<PathBuf>> {
    Ok(Walk::of(folder)?.files.into_iter().map(|stamp| stamp.path).collect())
}

impl Walk {
    /// Lists a folder. A file that vanishes meanwhile is left out.
    pub(crate) fn of(folder: &Path) -> io::Result<Self> {
        let mut walk = Self::default();
        walk.enter(folder, Path::new(""), 0)?;
        walk.files.sort_unstable_by(|left, right| left.path.cmp(&right.path));
        walk.folders.sort_unstable();
        walk.links.sort_unstable();
        Ok(walk)
    }

    pub(crate) fn file(&self, path: impl AsRef<Path>) -> Option<&FileStamp> {
        let index = self.files.binary_search_by(|stamp| stamp.path.as_path().cmp(path.as_ref())).ok()?;
        self.files.get(index)
    }

    fn enter(&mut self, root: &Path, relative: &Path, depth: usize) -> io::Result<()> {
        for entry in fs::read_dir(root.join(relative))? {
            let entry = entry?;
            let name = entry.file_name();
            if is_scrap(&name) {
                continue;
            }
            let path = relative.join(&name);
            let kind = entry.file_type()?;
            if kind.is_symlink() {
                self.links.push(path);
            } else if kind.is_dir() {
                if depth == 0 && (name == VERSIONS || (name == LEGACY_VERSIONS && is_history(&entry.path()))) {
                    self.histories.push(path);
                } else if depth == DEPTH {
                    return Err(io::Error::other(format!("`{}` is nested more than {DEPTH} folders deep", path.display())));
                } else {
                    self.folders.push(path.clone());
                    self.enter(root, &path, depth + 1)?;
                }
            } else if kind.is_file() {
                match entry.metadata() {
                    Ok(metadata) => self.files.push(FileStamp::new(path, &metadata)),
                    Err(error) if error.kind() == io::ErrorKind::NotFound => {}
                    Err(error) => return Err(error),
                }
                if self.files.len() > FILES {
                    return Err(io::Error::other(format!("There are more than {FILES} files")));
                }
            }
        }
        Ok(())
    }
}

impl FileStamp {
    fn new(path: PathBuf, metadata: &fs::Metadata) -> Self {
        #[cfg(unix)]
        let inode = std::os::unix::fs::MetadataExt::ino(metadata);
        #[cfg(not(unix))]
        let inode = 0;
        Self { path, size: metadata.len(), modified: metadata.modified().ok(), inode }
    }
}

/// Whether a folder `versions` is Skillz 0.8's: it holds folders named by versions, and nothing else.
fn is_history(folder: &Path) -> bool {
    let Ok(entries) = fs::read_dir(folder) else { return false };
    let mut any = false;
    for entry in entries.flatten() {
        let is_version = entry.file_name().to_str().is_some_and(|name| name.parse::<Version>().is_ok());
        if !is_version || !entry.file_type().is_ok_and(|kind| kind.is_dir()) {
            return false;
        }
        any = true;
    }
    any
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn only_the_files_of_the_version_are_listed() {
        let folder = tempfile::tempdir().unwrap();
        let write = |path: &str| {
            let path = folder.path().join(path);
            fs::create_dir_all(path.parent().unwrap()).unwrap();
            fs::write(path, "x").unwrap();
        };
        for path in [
            "b.py",
            "a.py",
            "lib/x/y.py",
            ".versions/1.0.0/b.py",
            "versions/1.0.0/b.py",
            "__pycache__/b.pyc",
            "b.py~",
            "lib/versions/a",
        ] {
            write(path);
        }
        std::os::unix::fs::symlink("/etc/passwd", folder.path().join("lib/link")).unwrap();
        let walk = Walk::of(folder.path()).unwrap();
        let files: Vec<_> = walk.files.iter().map(|stamp| stamp.path.to_str().unwrap()).collect();
        assert_eq!(files, ["a.py", "b.py", "lib/versions/a", "lib/x/y.py"]);
        assert_eq!(walk.links, [Path::new("lib/link")]);
        assert_eq!(walk.histories.len(), 2);
        assert!(walk.file("lib/x/y.py").is_some() && walk.file("lib").is_none());
        write("versions/notes.txt");
        let walk = Walk::of(folder.path()).unwrap();
        assert!(walk.file("versions/notes.txt").is_some(), "a folder of that name may be the tool's own");
    }
}
