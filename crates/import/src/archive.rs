//! Archives and single files, from this machine or downloaded: hashed, unpacked, and looked at for the folder that is meant.

use std::{
    fs::{self, File},
    io,
    path::{Path, PathBuf},
};

use sha2::{Digest, Sha256};
use skillz_tool::{ErrorKind, ToolError};

use crate::{
    download::hexadecimal,
    error::{refused, too_large},
    limits,
    unpack::{Links, UnpackError, unpack},
};

/// Unpacks an archive into an empty folder. Blocks.
pub(crate) fn open(file: &Path, shown: &str, into: &Path) -> Result<(), ToolError> {
    unpack(file, into, Links::Refuse).map(drop).map_err(|error| {
        let kind = match &error {
            UnpackError::Entry { .. } => ErrorKind::Denied,
            UnpackError::Limit(_) => ErrorKind::LimitExceeded,
            UnpackError::Broken(_) | UnpackError::Unknown => ErrorKind::InvalidInput,
        };
        ToolError::new(kind, format!("The archive `{shown}` is not imported: {error}"))
    })
}

/// The folder that `path` names; archives often hold all of their files in one folder of their own. Blocks.
pub(crate) fn folder_in(root: &Path, path: Option<&Path>, shown: &str) -> Result<PathBuf, ToolError> {
    let Some(path) = path else { return Ok(root.to_owned()) };
    let direct = root.join(path);
    let within = only_folder(root).map(|only| only.join(path));
    [Some(direct), within].into_iter().flatten().find(|folder| folder.is_dir()).ok_or_else(|| {
        let message = format!("There is no folder `{}` in `{shown}`", path.display());
        ToolError::new(ErrorKind::NotFound, message).with_hint("`path` is a folder of the source, such as `tools/mine`")
    })
}

/// SHA-256 of a file, in hexadecimal; refuses what is too large. Blocks.
pub(crate) fn hash(file: &Path, shown: &str) -> Result<String, ToolError> {
    let failed = |error: io::Error| ToolError::new(ErrorKind::NotFound, format!("`{shown}` cannot be read: {error}"));
    let metadata = fs::metadata(file).map_err(failed)?;
    // A device or a pipe may never end.
    if !metadata.is_file() {
        return Err(refused(format!("`{shown}` is neither a file nor a folder")));
    }
    if metadata.len() > limits::BYTES {
        return Err(too_large(&format!("`{shown}`")));
    }
    let mut hasher = Sha256::new();
    io::copy(&mut File::open(file).map_err(failed)?, &mut hasher).map_err(failed)?;
    Ok(hexadecimal(&hasher.finalize()))
}

fn only_folder(root: &Path) -> Option<PathBuf> {
    let mut entries = fs::read_dir(root).ok()?.flatten();
    let only = entries.next().filter(|entry| entry.file_type().is_ok_and(|kind| kind.is_dir()))?;
    entries.next().is_none().then(|| only.path())
}
