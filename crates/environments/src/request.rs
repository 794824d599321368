//! What goes into an install and what comes out.

use std::{
    fmt,
    path::{Path, PathBuf},
    time::SystemTime,
};

/// Languages whose packages can be installed.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash)]
pub enum Language {
    /// pip requirements.
    Python,
    /// npm specifiers.
    Node,
}

impl fmt::Display for Language {
    fn fmt(&self, formatter: &mut fmt::Formatter<'_>) -> fmt::Result {
        formatter.write_str(match self {
            Self::Python => "Python",
            Self::Node => "npm",
        })
    }
}

/// A program, found by whoever asks.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Program {
    /// Absolute path.
    pub path: PathBuf,
    /// Folders and files that a sandbox must show read-only for it to run; system folders are left out.
    pub visible: Vec<PathBuf>,
}

/// What to install, and with what.
#[derive(Clone, Copy)]
pub struct InstallRequest<'a> {
    /// The language.
    pub language: Language,
    /// The interpreter that will use the packages.
    pub interpreter: &'a Program,
    /// `uv` for Python, `npm` for Node, where there is one.
    pub installer: Option<&'a Program>,
    /// pip requirements or npm specifiers.
    pub dependencies: &'a [String],
    /// The lock that came with the tool, if any. One that belongs to other dependencies is not looked at.
    pub lock: Option<&'a str>,
    /// Whether packages may run code while they are installed, and may come from URLs and paths.
    pub install_scripts: bool,
    /// The tool's folder, from which relative paths of dependencies count.
    pub base: &'a Path,
    /// Told in words what is going on.
    pub progress: &'a (dyn Fn(&str) + Send + Sync),
}

/// An environment that is whole.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Environment {
    /// Its name below the folder of all environments.
    pub hash: String,
    /// Its folder.
    pub directory: PathBuf,
    /// Python: the program that sees the packages. Node: absent, the packages are in `node_modules`.
    pub program: Option<PathBuf>,
    /// The exact versions, to be kept beside the manifest.
    pub lock: String,
    /// The folder of the packages.
    pub packages: PathBuf,
    /// When that folder was last changed: it never is, unless by accident.
    pub(crate) modified: SystemTime,
}

/// An environment that nothing needs any more.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct UnusedEnvironment {
    /// Its name, for [`crate::Environments::remove`].
    pub hash: String,
    /// Its folder.
    pub directory: PathBuf,
    /// Its size in bytes.
    pub size_bytes: u64,
}
