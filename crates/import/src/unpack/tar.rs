//! Reads tar archives, compressed with gzip or not.

use std::{
    fs::File,
    io::{self, BufReader, Read},
    path::Path,
};

use flate2::read::MultiGzDecoder;
use tar::{Archive, EntryType};

use super::{UnpackError, Unpacker, entry};
use crate::limits;

/// Room for headers beside the files' own bytes: half a kilobyte each, and names.
const HEADERS: u64 = 32 << 20;

/// Unpacks a `.tar.gz`.
pub(super) fn unpack_compressed(file: &Path, unpacker: &mut Unpacker<'_>) -> Result<(), UnpackError> {
    unpack(MultiGzDecoder::new(BufReader::new(File::open(file)?)), unpacker)
}

/// Unpacks a `.tar`.
pub(super) fn unpack_plain(file: &Path, unpacker: &mut Unpacker<'_>) -> Result<(), UnpackError> {
    unpack(BufReader::new(File::open(file)?), unpacker)
}

/// Whether a file is a tar archive that is not compressed; only the newer formats say so.
pub(super) fn is_plain(file: &Path) -> io::Result<bool> {
    let mut header = Vec::new();
    File::open(file)?.take(512).read_to_end(&mut header)?;
    Ok(header.get(257..262) == Some(b"ustar"))
}

fn unpack(bytes: impl Read, unpacker: &mut Unpacker<'_>) -> Result<(), UnpackError> {
    // Long names are read into memory by the library, so that the whole stream is bounded too.
    let mut archive = Archive::new(bytes.take(limits::BYTES + HEADERS));
    for found in archive.entries()? {
        let mut found = found?;
        let name = found.path_bytes().into_owned();
        match found.header().entry_type() {
            EntryType::Regular | EntryType::Continuous => {
                let executable = found.header().mode().is_ok_and(|mode| mode & 0o111 != 0);
                unpacker.file(&name, executable, &mut found)?;
            }
            EntryType::Directory => unpacker.folder(&name)?,
            EntryType::Symlink | EntryType::Link => unpacker.link(&name)?,
            // What it says of all entries, such as git's commit, is no file.
            EntryType::XGlobalHeader => {}
            _ => return Err(entry(&name, "is neither a file nor a folder")),
        }
    }
    Ok(())
}
