//! Hands a tool's earlier versions over from its old folder to the new one, at the same cost however many they are.
//!
//! While the folders change places the history lies in the trash, where everybody looks for versions too. So a crash at
//! any moment leaves all of them in one of the places where they are found, and the next publish brings them together.

use std::{fs, io, path::PathBuf, time::SystemTime};

use skillz_tool::ToolName;

use crate::{
    layout::{Layout, VERSIONS},
    swap, trash, tree,
};

/// Puts a finished folder, with what its history lacks in its `.versions`, in a tool's place.
pub(crate) fn put_in_place(layout: &Layout, name: &ToolName, staged: &std::path::Path, time: SystemTime) -> io::Result<()> {
    let place = layout.tool(name.as_str());
    let present = place.join(VERSIONS);
    if !fs::symlink_metadata(&present).is_ok_and(|metadata| metadata.is_dir()) {
        return swap::put_in_place(staged, &place);
    }
    complete(&staged.join(VERSIONS), &present)?;
    let between = Between::make(layout, name)?;
    fs::rename(&present, between.history())?;
    if let Err(error) = swap::put_in_place(staged, &place) {
        fs::rename(between.history(), &present)?;
        return Err(error);
    }
    // From here on the new version is in service; a history that stays in the trash is found there.
    let back = fs::rename(between.history(), &present).and_then(|()| {
        // The folder's time says that nobody has touched it since it was published.
        if cfg!(unix) {
            fs::File::open(&place)?.set_modified(time)?;
        }
        tree::sync_folder(&place)
    });
    if let Err(error) = back {
        tracing::warn!(tool = %name, %error, "the earlier versions stay in the trash until the next publish");
    }
    Ok(())
}

/// Adds the new entries to the history as it is: copies of what is in service, so that nothing is told twice.
fn complete(new: &std::path::Path, present: &std::path::Path) -> io::Result<()> {
    match fs::read_dir(new) {
        Ok(entries) => {
            for entry in entries {
                let entry = entry?;
                fs::rename(entry.path(), present.join(entry.file_name()))?;
            }
            fs::remove_dir(new)?;
        }
        Err(error) if error.kind() == io::ErrorKind::NotFound => {}
        Err(error) => return Err(error),
    }
    tree::sync_folder(present)
}

/// A folder in the trash; goes away if it is empty.
struct Between {
    folder: PathBuf,
    trash: PathBuf,
}

impl Between {
    fn make(layout: &Layout, name: &ToolName) -> io::Result<Self> {
        let trash = layout.trash(name.as_str());
        let folder = trash.join(trash::stamp());
        fs::create_dir_all(&folder)?;
        Ok(Self { folder, trash })
    }

    fn history(&self) -> PathBuf {
        self.folder.join(VERSIONS)
    }
}

impl Drop for Between {
    fn drop(&mut self) {
        let _ = fs::remove_dir(&self.folder);
        let _ = fs::remove_dir(&self.trash);
    }
}
