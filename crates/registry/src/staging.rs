//! Folders in which tools are put together before they are published.

use std::path::{Path, PathBuf};

/// A private folder in the tools folder, on the same file system; removed when dropped.
#[derive(Debug)]
pub struct StagingDirectory {
    path: PathBuf,
}

impl StagingDirectory {
    /// The folder.
    pub fn path(&self) -> &Path {
        &self.path
    }
}
