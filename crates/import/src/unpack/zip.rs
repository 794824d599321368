//! Reads zip archives by their central directory: stored and deflated entries, without encryption and without the
//! extensions for more than 4 GB, which no tool needs.

use std::{
    fs::File,
    io::{self, BufReader, Read, Seek, SeekFrom},
    path::Path,
};

use flate2::{Crc, read::DeflateDecoder};

use super::{UnpackError, Unpacker, entry};
use crate::limits;

/// Signature and length of the record at the end.
const END: &[u8; 4] = b"PK\x05\x06";
const END_LENGTH: usize = 22;
/// Longest comment after that record.
const COMMENT: usize = 65_535;
const CENTRAL: &[u8; 4] = b"PK\x01\x02";
const CENTRAL_LENGTH: usize = 46;
const LOCAL: &[u8; 4] = b"PK\x03\x04";
const LOCAL_LENGTH: usize = 30;
/// Systems whose attributes hold a Unix mode.
const UNIX: u8 = 3;
const MAC: u8 = 19;

/// An entry as the central directory describes it.
struct Listed {
    name: Vec<u8>,
    method: u16,
    encrypted: bool,
    crc: u32,
    packed: u64,
    size: u64,
    mode: Option<u32>,
    offset: u64,
}

/// Unpacks a `.zip`.
pub(super) fn unpack(file: &Path, unpacker: &mut Unpacker<'_>) -> Result<(), UnpackError> {
    let mut file = File::open(file)?;
    let entries = list(&mut file)?;
    for listed in entries {
        match kind(&listed) {
            Kind::Folder => unpacker.folder(&listed.name)?,
            Kind::Link => unpacker.link(&listed.name)?,
            Kind::Other => return Err(entry(&listed.name, "is neither a file nor a folder")),
            Kind::File => unpack_file(&mut file, &listed, unpacker)?,
        }
    }
    Ok(())
}

enum Kind {
    File,
    Folder,
    Link,
    Other,
}

fn kind(listed: &Listed) -> Kind {
    match listed.mode.map(|mode| mode & 0o170_000) {
        Some(0o120_000) => Kind::Link,
        Some(0o040_000) => Kind::Folder,
        Some(0 | 0o100_000) | None if listed.name.ends_with(b"/") => Kind::Folder,
        Some(0 | 0o100_000) | None => Kind::File,
        Some(_) => Kind::Other,
    }
}

fn unpack_file(file: &mut File, listed: &Listed, unpacker: &mut Unpacker<'_>) -> Result<(), UnpackError> {
    if listed.encrypted {
        return Err(entry(&listed.name, "is encrypted"));
    }
    file.seek(SeekFrom::Start(listed.offset))?;
    let mut header = [0; LOCAL_LENGTH];
    file.read_exact(&mut header)?;
    if header.get(..4) != Some(LOCAL.as_slice()) {
        return Err(broken("an entry is not where the directory says"));
    }
    let skipped = u64::from(u16_at(&header, 26)?) + u64::from(u16_at(&header, 28)?);
    file.seek(SeekFrom::Current(i64::try_from(skipped).unwrap_or(i64::MAX)))?;
    let packed = BufReader::new(&mut *file).take(listed.packed);
    let executable = listed.mode.is_some_and(|mode| mode & 0o111 != 0);
    let checked: Box<dyn Read + '_> = match listed.method {
        0 => Box::new(packed),
        8 => Box::new(DeflateDecoder::new(packed)),
        _ => return Err(entry(&listed.name, "is packed in a way that is not known here")),
    };
    // One byte more than told, so that an entry that lies about its size is found out.
    let mut checked = Checked { inner: checked.take(listed.size + 1), crc: Crc::new(), size: 0 };
    unpacker.file(&listed.name, executable, &mut checked)?;
    if checked.size != listed.size || checked.crc.sum() != listed.crc {
        return Err(entry(&listed.name, "does not have the size and checksum that the archive tells"));
    }
    Ok(())
}

/// Notes size and checksum of what passes.
struct Checked<R> {
    inner: R,
    crc: Crc,
    size: u64,
}

impl<R: Read> Read for Checked<R> {
    fn read(&mut self, buffer: &mut [u8]) -> io::Result<usize> {
        let read = self.inner.read(buffer)?;
        self.crc.update(buffer.get(..read).unwrap_or_default());
        self.size += read as u64;
        Ok(read)
    }
}

fn list(file: &mut File) -> Result<Vec<Listed>, UnpackError> {
    let length = file.seek(SeekFrom::End(0))?;
    let tail_length = length.min((END_LENGTH + COMMENT) as u64);
    file.seek(SeekFrom::Start(length - tail_length))?;
    let mut tail = Vec::new();
    file.take(tail_length).read_to_end(&mut tail)?;
    let end = tail.windows(4).rposition(|window| window == END).and_then(|start| tail.get(start..));
    let end = end.filter(|end| end.len() >= END_LENGTH).ok_or_else(|| broken("its directory is missing"))?;
    let count = usize::from(u16_at(end, 10)?);
    let (size, start) = (u64::from(u32_at(end, 12)?), u64::from(u32_at(end, 16)?));
    if count == 0xFFFF || start == 0xFFFF_FFFF {
        return Err(UnpackError::Limit("it is a zip for more than 4 GB or 65,534 entries".to_owned()));
    }
    if count > limits::ENTRIES {
        return Err(UnpackError::Limit(format!("it has more than {} entries", limits::ENTRIES)));
    }
    if start.checked_add(size).is_none_or(|end| end > length) {
        return Err(broken("its directory is cut off"));
    }
    file.seek(SeekFrom::Start(start))?;
    let mut directory = Vec::new();
    file.take(size).read_to_end(&mut directory)?;
    let mut entries = Vec::with_capacity(count);
    let mut rest = directory.as_slice();
    while entries.len() < count {
        let (listed, behind) = read_entry(rest)?;
        entries.push(listed);
        rest = behind;
    }
    check_overlaps(&entries)?;
    Ok(entries)
}

fn read_entry(bytes: &[u8]) -> Result<(Listed, &[u8]), UnpackError> {
    if bytes.len() < CENTRAL_LENGTH || bytes.get(..4) != Some(CENTRAL.as_slice()) {
        return Err(broken("its directory is damaged"));
    }
    let name_length = usize::from(u16_at(bytes, 28)?);
    let behind = CENTRAL_LENGTH + name_length + usize::from(u16_at(bytes, 30)?) + usize::from(u16_at(bytes, 32)?);
    let name = bytes.get(CENTRAL_LENGTH..CENTRAL_LENGTH + name_length).ok_or_else(|| broken("its directory is cut off"))?;
    let system = bytes.get(5).copied().unwrap_or_default();
    let attributes = u32_at(bytes, 38)?;
    let listed = Listed {
        name: name.to_vec(),
        method: u16_at(bytes, 10)?,
        encrypted: u16_at(bytes, 8)? & 0x2041 != 0,
        crc: u32_at(bytes, 16)?,
        packed: u64::from(u32_at(bytes, 20)?),
        size: u64::from(u32_at(bytes, 24)?),
        mode: (system == UNIX || system == MAC).then_some(attributes >> 16),
        offset: u64::from(u32_at(bytes, 42)?),
    };
    Ok((listed, bytes.get(behind..).ok_or_else(|| broken("its directory is cut off"))?))
}

/// Entries that share their bytes are how a small file becomes a bomb.
fn check_overlaps(entries: &[Listed]) -> Result<(), UnpackError> {
    let mut spans: Vec<(u64, u64)> = entries.iter().map(|listed| (listed.offset, listed.offset + listed.packed)).collect();
    spans.sort_unstable();
    let overlap = spans.windows(2).any(|pair| matches!(pair, [(_, end), (start, _)] if start < end));
    if overlap { Err(broken("its entries overlap")) } else { Ok(()) }
}

fn u16_at(bytes: &[u8], at: usize) -> Result<u16, UnpackError> {
    let found = bytes.get(at..at + 2).and_then(|bytes| bytes.try_into().ok());
    found.map(u16::from_le_bytes).ok_or_else(|| broken("it is cut off"))
}

fn u32_at(bytes: &[u8], at: usize) -> Result<u32, UnpackError> {
    let found = bytes.get(at..at + 4).and_then(|bytes| bytes.try_into().ok());
    found.map(u32::from_le_bytes).ok_or_else(|| broken("it is cut off"))
}

fn broken(reason: &'static str) -> UnpackError {
    UnpackError::Broken(io::Error::new(io::ErrorKind::InvalidData, reason))
}
