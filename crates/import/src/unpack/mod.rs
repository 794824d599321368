//! Writes the entries of an archive below one folder, under limits. Formats are read next door.

mod tar;
mod zip;

use std::{
    collections::HashSet,
    fs::{self, OpenOptions},
    io::{self, Read, Write},
    path::{Component, Path, PathBuf},
};

use crate::limits;

/// Bytes that are checked against the limits at a time.
const CHUNK: usize = 64 << 10;

/// Why an archive is not unpacked.
#[derive(Debug, thiserror::Error)]
pub(crate) enum UnpackError {
    /// An entry that wants to lie elsewhere, or to be what no file of a tool is.
    #[error("its entry `{name}` {reason}")]
    Entry { name: String, reason: &'static str },
    /// Too much of anything.
    #[error("{0}")]
    Limit(String),
    /// It cannot be read.
    #[error("it cannot be read: {0}")]
    Broken(#[from] io::Error),
    /// No format that is known.
    #[error("it is no `.tar.gz`, `.tar` or `.zip`")]
    Unknown,
}

/// What becomes of links.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum Links {
    /// The archive is refused.
    Refuse,
    /// They are left out and told: repositories have them for good reasons.
    LeaveOut,
}

/// Unpacks a file into an empty folder; gives the links that were left out. Blocks.
pub(crate) fn unpack(file: &Path, into: &Path, links: Links) -> Result<Vec<String>, UnpackError> {
    let packed = fs::metadata(file)?.len();
    let mut start = [0; 4];
    let read = fs::File::open(file)?.read(&mut start)?;
    let mut unpacker = Unpacker::new(into, packed, links);
    match start.get(..read).unwrap_or_default() {
        [0x1f, 0x8b, ..] => tar::unpack_compressed(file, &mut unpacker)?,
        b"PK\x03\x04" | b"PK\x05\x06" => zip::unpack(file, &mut unpacker)?,
        _ if tar::is_plain(file)? => tar::unpack_plain(file, &mut unpacker)?,
        _ => return Err(UnpackError::Unknown),
    }
    Ok(unpacker.left_out)
}

/// The one place where entries become files.
pub(crate) struct Unpacker<'a> {
    root: &'a Path,
    packed: u64,
    links: Links,
    files: HashSet<PathBuf>,
    entries: usize,
    bytes: u64,
    left_out: Vec<String>,
}

impl<'a> Unpacker<'a> {
    fn new(root: &'a Path, packed: u64, links: Links) -> Self {
        Self { root, packed, links, files: HashSet::new(), entries: 0, bytes: 0, left_out: Vec::new() }
    }

    /// Makes a folder.
    fn folder(&mut self, name: &[u8]) -> Result<(), UnpackError> {
        self.count()?;
        let path = plain(name)?;
        if path.as_os_str().is_empty() {
            return Ok(());
        }
        self.make_folder(&path, name)
    }

    /// Writes a file with what `content` gives.
    fn file(&mut self, name: &[u8], executable: bool, content: &mut dyn Read) -> Result<(), UnpackError> {
        self.count()?;
        let path = plain(name)?;
        if path.as_os_str().is_empty() {
            return Err(entry(name, "has no name"));
        }
        if let Some(parent) = path.parent().filter(|parent| !parent.as_os_str().is_empty()) {
            self.make_folder(parent, name)?;
        }
        if !self.files.insert(path.clone()) {
            return Err(entry(name, "is there twice"));
        }
        let place = self.root.join(&path);
        // Never into what is there: neither a file nor, whatever came before, a link.
        let created = OpenOptions::new().write(true).create_new(true).open(&place);
        let mut file = match created {
            Ok(file) => file,
            Err(error) if error.kind() == io::ErrorKind::AlreadyExists => return Err(entry(name, "is there twice")),
            Err(error) => return Err(error.into()),
        };
        self.copy(content, &mut file)?;
        if executable {
            make_executable(&place)?;
        }
        Ok(())
    }

    /// A symbolic or hard link.
    fn link(&mut self, name: &[u8]) -> Result<(), UnpackError> {
        self.count()?;
        if self.links == Links::Refuse {
            return Err(entry(name, "is a link, and links are not followed"));
        }
        let path = plain(name)?;
        self.left_out.push(path.display().to_string());
        Ok(())
    }

    fn copy(&mut self, content: &mut dyn Read, file: &mut fs::File) -> Result<(), UnpackError> {
        let mut buffer = vec![0; CHUNK];
        loop {
            let read = match content.read(&mut buffer) {
                Ok(0) => return Ok(()),
                Ok(read) => read,
                Err(error) if error.kind() == io::ErrorKind::Interrupted => continue,
                Err(error) => return Err(error.into()),
            };
            self.bytes += read as u64;
            if self.bytes > limits::BYTES {
                return Err(UnpackError::Limit(format!("unpacked it is larger than {} MB", limits::BYTES >> 20)));
            }
            if self.bytes > limits::FREE_GROWTH && self.bytes > self.packed.saturating_mul(limits::GROWTH) {
                return Err(UnpackError::Limit(format!("it grows more than {} times when it is unpacked", limits::GROWTH)));
            }
            file.write_all(buffer.get(..read).unwrap_or_default())?;
        }
    }

    fn make_folder(&self, path: &Path, name: &[u8]) -> Result<(), UnpackError> {
        match fs::create_dir_all(self.root.join(path)) {
            Err(error) if matches!(error.kind(), io::ErrorKind::AlreadyExists | io::ErrorKind::NotADirectory) => {
                Err(entry(name, "is a file and a folder"))
            }
            outcome => Ok(outcome?),
        }
    }

    fn count(&mut self) -> Result<(), UnpackError> {
        self.entries += 1;
        if self.entries > limits::ENTRIES {
            return Err(UnpackError::Limit(format!("it has more than {} entries", limits::ENTRIES)));
        }
        Ok(())
    }
}

/// An entry's name as a path that stays below its folder.
fn plain(name: &[u8]) -> Result<PathBuf, UnpackError> {
    let Ok(text) = std::str::from_utf8(name) else { return Err(entry(name, "has a name that is no UTF-8")) };
    if text.contains(['\0', '\\']) || text.chars().any(char::is_control) {
        return Err(entry(name, "has a name with a backslash or control characters"));
    }
    let mut path = PathBuf::new();
    for part in Path::new(text).components() {
        match part {
            Component::Normal(part) if part.len() <= 255 => path.push(part),
            Component::Normal(_) => return Err(entry(name, "has a name that is too long")),
            Component::CurDir => {}
            Component::ParentDir => return Err(entry(name, "leads out of the archive with `..`")),
            Component::RootDir | Component::Prefix(_) => return Err(entry(name, "has an absolute path")),
        }
    }
    // As Windows would write one; on Linux it would be a strange name and nothing more.
    if text.as_bytes().get(1) == Some(&b':') && text.as_bytes().first().is_some_and(u8::is_ascii_alphabetic) {
        return Err(entry(name, "has an absolute path"));
    }
    if path.components().count() > limits::DEPTH {
        return Err(entry(name, "is nested too deep"));
    }
    Ok(path)
}

fn entry(name: &[u8], reason: &'static str) -> UnpackError {
    UnpackError::Entry { name: String::from_utf8_lossy(name).chars().take(120).collect(), reason }
}

#[cfg(unix)]
fn make_executable(path: &Path) -> io::Result<()> {
    use std::os::unix::fs::PermissionsExt;
    fs::set_permissions(path, fs::Permissions::from_mode(0o755))
}

#[cfg(not(unix))]
fn make_executable(_path: &Path) -> io::Result<()> {
    Ok(())
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn names_stay_below_their_folder() {
        for (name, path) in [("a/b", "a/b"), ("./a", "a"), ("a//b/", "a/b"), ("./", ""), ("...", "...")] {
            let plain = plain(name.as_bytes());
            assert_eq!(plain.unwrap(), Path::new(path), "{name}");
        }
        let deep = "a/".repeat(limits::DEPTH + 1);
        let long = "a".repeat(256);
        for name in ["../a", "a/../../b", "/etc/x", "a\\b", "C:\\x", "c:/x", "a\0", "a\nb", deep.as_str(), long.as_str()] {
            assert!(plain(name.as_bytes()).is_err(), "{name}");
        }
        assert!(plain(b"\xff").is_err());
    }
}
