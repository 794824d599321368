//! A folder for one import, which leaves nothing behind.

use std::{
    fs, io,
    path::{Path, PathBuf},
    time::Duration,
};

use skillz_tool::ToolError;
use tempfile::TempDir;

/// A folder this old belongs to a process that was killed: building and trying out all tools of a set takes nowhere near as long.
const ABANDONED: Duration = Duration::from_hours(24);
/// Other imports that may take the folder away just as this one wants to use it.
const TRIES: usize = 8;

/// A private folder; dropping it removes it, and the folders above that were made for it and are empty then.
#[derive(Debug)]
pub(crate) struct Scratch {
    folder: Option<TempDir>,
    above: PathBuf,
    /// Whether the folder two above, the cache, was there before: others rely on it then.
    had_cache: bool,
}

impl Scratch {
    /// Makes one in `above`, which is made too.
    pub(crate) fn make(above: &Path) -> Result<Self, ToolError> {
        let failed = |error: io::Error| ToolError::internal(format!("The folder `{}` cannot be made: {error}", above.display()));
        let had_cache = above.parent().is_some_and(Path::exists);
        let mut tries = 0;
        loop {
            fs::create_dir_all(above).map_err(failed)?;
            sweep(above);
            match tempfile::Builder::new().prefix("import-").tempdir_in(above) {
                Ok(folder) => return Ok(Self { folder: Some(folder), above: above.to_owned(), had_cache }),
                // The last import before this one has removed it.
                Err(error) if error.kind() == io::ErrorKind::NotFound && tries < TRIES => tries += 1,
                Err(error) => return Err(failed(error)),
            }
        }
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

/// Removes what killed processes left behind.
fn sweep(above: &Path) {
    for entry in fs::read_dir(above).into_iter().flatten().flatten() {
        let modified = entry.metadata().and_then(|metadata| metadata.modified());
        let age = modified.ok().and_then(|modified| modified.elapsed().ok());
        if age.is_some_and(|age| age > ABANDONED)
            && let Err(error) = fs::remove_dir_all(entry.path())
        {
            tracing::debug!(folder = %entry.path().display(), %error, "what an import left behind could not be removed");
        }
    }
}

impl Drop for Scratch {
    fn drop(&mut self) {
        drop(self.folder.take());
        // Goes only where nothing else lies.
        if fs::remove_dir(&self.above).is_ok()
            && !self.had_cache
            && let Some(cache) = self.above.parent()
        {
            let _ = fs::remove_dir(cache);
        }
    }
}

#[cfg(test)]
mod tests {
    use std::time::SystemTime;

    use super::*;

    #[test]
    fn imports_that_begin_while_others_end_get_their_folder() {
        let cache = tempfile::tempdir().unwrap();
        let above = cache.path().join("imports");
        std::thread::scope(|scope| {
            for _ in 0..4 {
                scope.spawn(|| (0..200).for_each(|_| drop(Scratch::make(&above).unwrap())));
            }
        });
    }

    #[test]
    fn nothing_is_left_behind_and_what_was_is_swept() {
        let cache = tempfile::tempdir().unwrap();
        let above = cache.path().join("cache").join("imports");
        let old = above.join("import-old");
        fs::create_dir_all(&old).unwrap();
        fs::File::open(&old).unwrap().set_modified(SystemTime::now() - 2 * ABANDONED).unwrap();
        let recent = above.join("import-recent");
        fs::create_dir(&recent).unwrap();
        let scratch = Scratch::make(&above).unwrap();
        fs::write(scratch.folder("files").unwrap().join("a"), "x").unwrap();
        assert!(!old.exists() && recent.exists() && scratch.path().exists());
        fs::remove_dir(recent).unwrap();
        drop(scratch);
        assert!(!above.exists());
    }
}
