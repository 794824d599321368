//! Machine code of compiled modules, as files that are mapped and not read.
//!
//! Mapping a file as code means trusting it, and cache/ may hold anything: half files, files of other machines.
//! So a file counts only if it belongs to this user, nobody else may write it, and it ends with the keyed hash of
//! its name and content under a key that this home made for itself. Whoever can forge that can read and write all
//! of the user's files anyway. Everything else is as good as absent, and made again. Confined builds never see
//! this folder.

use std::{
    fs::{self, File},
    io::{self, Read, Seek, Write},
    path::{Path, PathBuf},
    sync::{
        OnceLock,
        atomic::{AtomicU32, Ordering},
    },
    time::SystemTime,
};

use wasmtime::Module;

use super::engine::GuestEngine;

/// Length of the keyed hash at the end of a file.
const SEAL: usize = blake3::OUT_LEN;
/// Most bytes kept; the files unused for longest go first. A large module takes about 4 MB.
const MAX_BYTES: u64 = 2 << 30;
/// Files written between two looks at the folder's size.
const SWEEP_AFTER: u32 = 100;

/// The folder of machine code.
pub(crate) struct CodeCache {
    directory: PathBuf,
    key: OnceLock<Option<[u8; 32]>>,
    written: AtomicU32,
}

/// Names a module by its content.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash)]
pub(crate) struct ModuleKey([u8; 32]);

impl ModuleKey {
    pub(crate) fn of(module: &[u8]) -> Self {
        Self(*blake3::hash(module).as_bytes())
    }
}

impl CodeCache {
    /// Uses `directory`, which is made when the first file is written.
    pub(crate) fn new(directory: PathBuf) -> Self {
        Self { directory, key: OnceLock::new(), written: AtomicU32::new(0) }
    }

    /// Maps the machine code of a module, if it is there and can be trusted.
    pub(crate) fn load(&self, engine: &GuestEngine, module: ModuleKey) -> Option<Module> {
        let name = file_name(engine, module);
        let mut file = File::open(self.directory.join(&name)).ok()?;
        if let Err(reason) = self.verify(&name, &mut file) {
            tracing::warn!(file = name, reason, "Compiled code in the cache is not trusted and made again");
            return None;
        }
        // Marks it as used, for the sweep.
        let _ = file.set_modified(SystemTime::now());
        map(engine, file).inspect_err(|error| tracing::warn!(file = name, %error, "Compiled code could not be mapped")).ok()
    }

    /// Keeps machine code. Failing to is no fault of the caller's: the code is then compiled again next time.
    pub(crate) fn store(&self, engine: &GuestEngine, module: ModuleKey, code: &[u8]) -> io::Result<()> {
        create_private_directory(&self.directory)?;
        let key = self.key().ok_or_else(|| io::Error::other("the cache has no key"))?;
        let name = file_name(engine, module);
        let seal = blake3::Hasher::new_keyed(key).update(name.as_bytes()).update(code).finalize();
        let mut file = tempfile::NamedTempFile::new_in(&self.directory)?;
        file.write_all(code)?;
        file.write_all(seal.as_bytes())?;
        file.persist(self.directory.join(&name)).map_err(|error| error.error)?;
        if self.written.fetch_add(1, Ordering::Relaxed).is_multiple_of(SWEEP_AFTER) {
            sweep(&self.directory, MAX_BYTES);
        }
        Ok(())
    }

    /// Checks owner, permissions and seal.
    fn verify(&self, name: &str, file: &mut File) -> Result<(), &'static str> {
        let metadata = file.metadata().map_err(|_| "it cannot be looked at")?;
        if !is_private(&metadata) {
            return Err("it belongs to someone else, or others may write it");
        }
        let key = self.key().ok_or("the cache has no key")?;
        let length = metadata.len().checked_sub(SEAL as u64).ok_or("it is too short")?;
        let mut hasher = blake3::Hasher::new_keyed(key);
        hasher.update(name.as_bytes());
        hasher.update_reader(Read::by_ref(file).take(length)).map_err(|_| "it cannot be read")?;
        let mut seal = [0; SEAL];
        file.read_exact(&mut seal).map_err(|_| "it cannot be read")?;
        file.rewind().map_err(|_| "it cannot be read")?;
        // Compared in constant time by the type.
        if hasher.finalize() == seal { Ok(()) } else { Err("its seal is wrong") }
    }

    /// This home's key, made at the first use.
    fn key(&self) -> Option<&[u8; 32]> {
        let key = self.key.get_or_init(|| {
            read_or_make_key(&self.directory)
                .inspect_err(|error| tracing::warn!(%error, "Compiled code is not kept: the cache's key cannot be made"))
                .ok()
        });
        key.as_ref()
    }
}

#[expect(unsafe_code, reason = "mapping machine code is the point of this cache; `verify` has established whose it is")]
fn map(engine: &GuestEngine, file: File) -> wasmtime::Result<Module> {
    // SAFETY: the file carries this home's seal, so it is what `store` wrote from this engine's compiler. It is
    // the file that was verified, not its name, and files are replaced by renaming and never written in place.
    unsafe { Module::deserialize_open_file(&engine.engine, file) }
}

fn file_name(engine: &GuestEngine, module: ModuleKey) -> String {
    let module = blake3::Hash::from_bytes(module.0).to_hex();
    format!("{module}-{}.cwasm", engine.fingerprint)
}

fn read_or_make_key(directory: &Path) -> io::Result<[u8; 32]> {
    create_private_directory(directory)?;
    let path = directory.join("key");
    if let Some(key) = read_key(&path) {
        return Ok(key);
    }
    let mut key = [0; 32];
    let provider = rustls::crypto::ring::default_provider();
    provider.secure_random.fill(&mut key).map_err(|_| io::Error::other("the system gives no random numbers"))?;
    let mut file = tempfile::NamedTempFile::new_in(directory)?;
    file.write_all(&key)?;
    // Another server may make one at the same moment: the first wins. A broken one is replaced.
    let written = if path.exists() { file.persist(&path).map(drop) } else { file.persist_noclobber(&path).map(drop) };
    match (written, read_key(&path)) {
        (_, Some(key)) => Ok(key),
        (Err(error), None) => Err(error.error),
        (Ok(()), None) => Err(io::Error::other("the key vanished")),
    }
}

fn read_key(path: &Path) -> Option<[u8; 32]> {
    let file = File::open(path).ok()?;
    if !is_private(&file.metadata().ok()?) {
        return None;
    }
    let mut key = Vec::new();
    file.take(64).read_to_end(&mut key).ok()?;
    key.try_into().ok()
}

fn create_private_directory(directory: &Path) -> io::Result<()> {
    let mut builder = fs::DirBuilder::new();
    builder.recursive(true);
    #[cfg(unix)]
    std::os::unix::fs::DirBuilderExt::mode(&mut builder, 0o700);
    builder.create(directory)
}

#[cfg(unix)]
fn is_private(metadata: &fs::Metadata) -> bool {
    use std::os::unix::fs::MetadataExt;
    metadata.is_file() && metadata.uid() == rustix::process::geteuid().as_raw() && metadata.mode() & 0o022 == 0
}

#[cfg(not(unix))]
fn is_private(metadata: &fs::Metadata) -> bool {
    metadata.is_file()
}

/// Deletes the files unused for longest until what is left fits.
fn sweep(directory: &Path, max_bytes: u64) {
    let Ok(entries) = fs::read_dir(directory) else { return };
    let mut files: Vec<(SystemTime, u64, PathBuf)> = entries
        .flatten()
        .filter(|entry| entry.path().extension().is_some_and(|extension| extension == "cwasm"))
        .filter_map(|entry| {
            let metadata = entry.metadata().ok()?;
            Some((metadata.modified().ok()?, metadata.len(), entry.path()))
        })
        .collect();
    files.sort();
    let mut total: u64 = files.iter().map(|(_, length, _)| length).sum();
    for (_, length, path) in files {
        if total <= max_bytes {
            return;
        }
        // A mapped file stays readable for whoever maps it.
        let _ = fs::remove_file(path);
        total -= length;
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_sweep_takes_the_oldest_first() {
        let directory = tempfile::tempdir().unwrap();
        for (name, age) in [("a.cwasm", 30), ("b.cwasm", 10), ("c.cwasm", 20), ("key", 99)] {
            let path = directory.path().join(name);
            fs::write(&path, [0; 100]).unwrap();
            let time = SystemTime::now() - std::time::Duration::from_secs(age);
            File::options().write(true).open(&path).unwrap().set_modified(time).unwrap();
        }
        sweep(directory.path(), 200);
        let left = |name: &str| directory.path().join(name).exists();
        assert!(!left("a.cwasm") && left("b.cwasm") && left("c.cwasm") && left("key"));
    }

    #[test]
    fn the_key_is_made_once_and_a_broken_one_replaced() {
        let directory = tempfile::tempdir().unwrap();
        let key = read_or_make_key(directory.path()).unwrap();
        assert_eq!(read_or_make_key(directory.path()).unwrap(), key);
        fs::write(directory.path().join("key"), "short").unwrap();
        let other = read_or_make_key(directory.path()).unwrap();
        assert_ne!(other, key);
        assert_eq!(read_or_make_key(directory.path()).unwrap(), other);
    }
}
