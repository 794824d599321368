//! What a confined process tree may see and do.

use std::path::{Path, PathBuf};

use serde::{Deserialize, Serialize};

/// What one process tree may see and do. The default sees system folders read-only and nothing else.
///
/// Symbolic links are never followed on the way to a listed path, since whoever may write there could have put them
/// there to be let in elsewhere: see [`Policy::read_only`] and [`Policy::read_write`]. [`Policy::allow_reading`] is for
/// paths of the server's own choice.
#[derive(Debug, Clone, PartialEq, Eq, Default, Serialize, Deserialize)]
pub struct Policy {
    /// Folders or files visible read-only at their own paths, besides the system's (`/usr`, `/lib`, `/bin`, `/etc` basics).
    /// What is missing is skipped; where a path leads through a symbolic link, the link itself is shown, not its target.
    pub read_only: Vec<PathBuf>,
    /// Folders visible and writable at their own paths. The working folder must be listed to be writable.
    /// What is missing, or is reached only through a symbolic link, is an error.
    pub read_write: Vec<PathBuf>,
    /// Whether the network of the host is reachable.
    pub network: bool,
}

impl Policy {
    /// Shows a file or folder that the server itself chose (an interpreter, a toolchain, an environment), and where it
    /// is or leads through a symbolic link, also what that leads to. Missing paths are skipped.
    pub fn allow_reading(&mut self, path: &Path) {
        self.read_only.push(path.to_owned());
        if let Ok(real) = path.canonicalize()
            && real != path
        {
            self.read_only.push(real);
        }
    }
}
