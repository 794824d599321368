//! A folder for one import, which leaves nothing behind.

use std::{
    fs, io,
    path::{Path, PathBuf},
};

use skillz_tool::ToolError;
use tempfile::TempDir;

/// A private folder; dropping it removes it, and the folders above that are empty then.
#[derive(Debug)]
pub(crate) struct Scratch {
    folder: Option<TempDir>,
    above: PathBuf,
}

impl Scratch {
    /// Makes one in `above`, which is made too.
    pub(crate) fn make(above: &Path) -> Result<Self, ToolError> {
        let failed = |error: io::Error| ToolError::internal(format!("The folder `{}` cannot be made: {error}", above.display()));
        fs::create_dir_all(above).map_err(failed)?;
        let folder = tempfile::Builder::new().prefix("import-").tempdir_in(above).map_err(failed)?;
        Ok(Self { folder: Some(folder), above: above.to_owned() })
    }

    /// A new folder within it.
    pub(crate) fn folder(&self, name: &str) -> Result<PathBuf, ToolError> {
        let folder = self.path().join(name);
        fs::create_dir(&folder)
            .map_err(|error| ToolError::internal(format!("The folder `{}` cannot be made: {error}", folder.display())))?;
        Ok(folder)
    }

    /// The folder.
    pub(crate) fn path(&self) -> &Path {
        self.folder.as_ref().map_or(&self.above, TempDir::path)
    }
}

impl Drop for Scratch {
    fn drop(&mut self) {
        drop(self.folder.take());
        // Goes only where nothing else lies.
        if fs::remove_dir(&self.above).is_ok()
            && let Some(cache) = self.above.parent()
        {
            let _ = fs::remove_dir(cache);
        }
    }
}
