//! Compiled modules: found by their file, kept in memory while they are used, and on disk for the next start.
//!
//! A module that has no machine code yet is compiled by Winch, so that it can be called at once; Cranelift's code
//! takes its place when it is done, in the background.

use std::{
    collections::HashMap,
    fs::{self, Metadata},
    path::{Path, PathBuf},
    sync::{
        Arc, Mutex, OnceLock, PoisonError, RwLock, Weak,
        atomic::{AtomicBool, Ordering},
    },
    thread,
    time::SystemTime,
};

use skillz_tool::{ErrorKind, ToolError};
use tokio::sync::OnceCell;
use wasmtime::{ExternType, Module};

use super::{
    background::Background,
    code_cache::{CodeCache, ModuleKey},
    engine::{Code, Engines, GuestEngine, Tier},
    guest_threads::GuestThreads,
};

/// Modules kept in memory. Each costs about 100 kB that are its own; its code is mapped from a file.
const MAX_LOADED: usize = 256;
/// Files remembered with their module.
const MAX_PATHS: usize = 8_192;

/// What [`Modules`] is made from.
pub(crate) struct ModulesSettings {
    pub(crate) directory: PathBuf,
    pub(crate) max_module_bytes: u64,
    pub(crate) threads: Arc<GuestThreads>,
    pub(crate) engines: Engines,
}

/// All modules that this server has loaded.
pub(crate) struct Modules {
    shared: Arc<Shared>,
    threads: Arc<GuestThreads>,
    index: Mutex<Index>,
}

struct Shared {
    engines: Engines,
    cache: CodeCache,
    background: Background,
    max_module_bytes: u64,
}

#[derive(Default)]
struct Index {
    paths: HashMap<PathBuf, (Stamp, ModuleKey)>,
    entries: HashMap<ModuleKey, Entry>,
    uses: u64,
}

struct Entry {
    cell: Arc<OnceCell<Arc<Loaded>>>,
    used_at: u64,
}

/// Tells whether a file is still the one that was read.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
struct Stamp {
    length: u64,
    modified: Option<SystemTime>,
    inode: u64,
}

/// A module's file, and what the cache has of it.
struct Found {
    key: ModuleKey,
    bytes: Vec<u8>,
    code: Option<Code>,
}

/// A module that can be started.
pub(crate) struct Loaded {
    key: ModuleKey,
    code: RwLock<Arc<Code>>,
    unpooled: OnceLock<Option<Arc<Code>>>,
    /// Whether the optimising compiler has been asked for it, or is not needed.
    optimising: AtomicBool,
}

impl Modules {
    pub(crate) fn new(settings: ModulesSettings) -> Self {
        let shared = Shared {
            engines: settings.engines,
            cache: CodeCache::new(settings.directory),
            background: Background::default(),
            max_module_bytes: settings.max_module_bytes,
        };
        Self { shared: Arc::new(shared), threads: settings.threads, index: Mutex::default() }
    }

    /// Makes the engine, so that the first call finds it there.
    pub(crate) fn warm_up(&self) -> Result<(), ToolError> {
        let shared = Arc::clone(&self.shared);
        self.threads.detach_blocking(move || drop(shared.engines.get(Tier::Optimised)))
    }

    /// The module in a file, if it is in memory and the file has not changed.
    pub(crate) fn loaded(&self, path: &Path) -> Option<Arc<Loaded>> {
        let loaded = self.find(path, Stamp::of(&fs::metadata(path).ok()?))?;
        self.optimise(&loaded, path);
        Some(loaded)
    }

    /// The module in a file, compiled if that has not been done yet. Several callers at once wait for one compiler.
    pub(crate) async fn load(&self, path: &Path) -> Result<Arc<Loaded>, ToolError> {
        let stamp = Stamp::of(&fs::metadata(path).map_err(|error| unreadable(path, &error))?);
        if let Some(loaded) = self.loaded(path) {
            return Ok(loaded);
        }
        let shared = Arc::clone(&self.shared);
        let source = path.to_owned();
        let Found { key, bytes, code } =
            self.threads.spawn_blocking(move || shared.find(&source))?.await.map_err(ToolError::internal)??;
        let cell = self.remember(path, stamp, key);
        let loaded = cell.get_or_try_init(|| self.compile(key, bytes, code)).await?;
        self.optimise(loaded, path);
        Ok(Arc::clone(loaded))
    }

    /// Forgets the modules whose files are in a folder.
    pub(crate) fn forget(&self, directory: &Path) {
        let mut index = self.index.lock().unwrap_or_else(PoisonError::into_inner);
        let gone: Vec<ModuleKey> =
            index.paths.extract_if(|path, _| path.starts_with(directory)).map(|(_, (_, key))| key).collect();
        for key in gone {
            if !index.paths.values().any(|(_, other)| *other == key) {
                index.entries.remove(&key);
            }
        }
    }

    /// The same code with memory from the system, for when the pool is empty.
    pub(crate) fn without_pool(&self, module: &Loaded) -> Option<Arc<Code>> {
        let make = || {
            let engine = self.shared.engines.unpooled().ok()?;
            let mapped = self.shared.cache.load(engine, module.key)?;
            engine.link(&mapped).ok().map(Arc::new)
        };
        module.unpooled.get_or_init(make).clone()
    }

    fn find(&self, path: &Path, stamp: Stamp) -> Option<Arc<Loaded>> {
        let mut index = self.index.lock().unwrap_or_else(PoisonError::into_inner);
        let key = index.paths.get(path).filter(|(known, _)| *known == stamp)?.1;
        index.uses += 1;
        let now = index.uses;
        let entry = index.entries.get_mut(&key)?;
        entry.used_at = now;
        entry.cell.get().cloned()
    }

    /// Notes which module a file holds, and gives the place for it. What has not been used for longest makes room.
    fn remember(&self, path: &Path, stamp: Stamp, key: ModuleKey) -> Arc<OnceCell<Arc<Loaded>>> {
        let mut index = self.index.lock().unwrap_or_else(PoisonError::into_inner);
        if index.paths.len() >= MAX_PATHS {
            index.paths.clear();
        }
        index.paths.insert(path.to_owned(), (stamp, key));
        if index.entries.len() >= MAX_LOADED && !index.entries.contains_key(&key) {
            let oldest = index.entries.iter().min_by_key(|(_, entry)| entry.used_at).map(|(key, _)| *key);
            oldest.and_then(|oldest| index.entries.remove(&oldest));
        }
        index.uses += 1;
        let used_at = index.uses;
        let entry = index.entries.entry(key).or_insert_with(|| Entry { cell: Arc::default(), used_at });
        entry.used_at = used_at;
        Arc::clone(&entry.cell)
    }

    async fn compile(&self, key: ModuleKey, bytes: Vec<u8>, code: Option<Code>) -> Result<Arc<Loaded>, ToolError> {
        let shared = Arc::clone(&self.shared);
        let code = match code {
            Some(code) => code,
            None => {
                self.threads.spawn_blocking(move || shared.compile_now(key, &bytes))?.await.map_err(ToolError::internal)??
            }
        };
        let optimising = AtomicBool::new(code.tier == Tier::Optimised);
        Ok(Arc::new(Loaded { key, code: RwLock::new(Arc::new(code)), unpooled: OnceLock::new(), optimising }))
    }

    /// Has a module optimised in the background, if nobody has asked for that yet.
    fn optimise(&self, loaded: &Arc<Loaded>, path: &Path) {
        if loaded.optimising.swap(true, Ordering::Relaxed) {
            return;
        }
        let (shared, loaded, path) = (Arc::downgrade(&self.shared), Arc::downgrade(loaded), path.to_owned());
        self.shared.background.run(move || optimise(&shared, &loaded, &path));
    }
}

impl Loaded {
    /// The best code there is.
    pub(crate) fn code(&self) -> Arc<Code> {
        Arc::clone(&self.code.read().unwrap_or_else(PoisonError::into_inner))
    }
}

impl Shared {
    fn read(&self, path: &Path) -> Result<Vec<u8>, ToolError> {
        let length = fs::metadata(path).map_err(|error| unreadable(path, &error))?.len();
        check_size(length, self.max_module_bytes)?;
        fs::read(path).map_err(|error| unreadable(path, &error))
    }

    /// Reads a module, and maps the optimised code of it if that is on disk.
    fn find(&self, path: &Path) -> Result<Found, ToolError> {
        let (engine, bytes) = thread::scope(|scope| {
            // After a start the engine is not there yet: it is made beside the reading.
            let making = (!self.engines.is_made(Tier::Optimised)).then(|| scope.spawn(|| self.engines.get(Tier::Optimised)));
            let bytes = self.read(path).map(|bytes| (ModuleKey::of(&bytes), bytes));
            // A panic in there is told by the second attempt.
            let made = making.and_then(|making| making.join().ok());
            (made.unwrap_or_else(|| self.engines.get(Tier::Optimised)), bytes)
        });
        let (engine, (key, bytes)) = (engine?, bytes?);
        let code = match self.cache.load(engine, key) {
            Some(module) => Some(link(engine, &module)?),
            None => None,
        };
        Ok(Found { key, bytes, code })
    }

    /// Winch's code, from disk or made now. Where Winch cannot compile a module, Cranelift does.
    fn compile_now(&self, key: ModuleKey, bytes: &[u8]) -> Result<Code, ToolError> {
        let quick = self.engines.get(Tier::Quick)?;
        if let Some(module) = self.cache.load(quick, key) {
            return link(quick, &module);
        }
        check_form(bytes)?;
        if let Ok(module) = self.compile(quick, key, bytes) {
            return link(quick, &module);
        }
        let optimised = self.engines.get(Tier::Optimised)?;
        let module = self.compile(optimised, key, bytes).map_err(|error| not_valid(&error))?;
        link(optimised, &module)
    }

    fn compile(&self, engine: &GuestEngine, key: ModuleKey, bytes: &[u8]) -> wasmtime::Result<Module> {
        let code = engine.engine.precompile_module(bytes)?;
        if let Err(error) = self.cache.store(engine, key, &code) {
            tracing::warn!(%error, "Compiled code could not be kept in the cache");
        } else if let Some(module) = self.cache.load(engine, key) {
            return Ok(module);
        }
        from_memory(engine, &code)
    }
}

#[expect(unsafe_code, reason = "the machine code was made a moment ago by this engine's compiler")]
fn from_memory(engine: &GuestEngine, code: &[u8]) -> wasmtime::Result<Module> {
    // SAFETY: `code` comes from `precompile_module` of the same engine.
    unsafe { Module::deserialize(&engine.engine, code) }
}

/// Compiles a module again, with the better compiler, and swaps the code.
fn optimise(shared: &Weak<Shared>, loaded: &Weak<Loaded>, path: &Path) {
    let (Some(shared), Some(loaded)) = (shared.upgrade(), loaded.upgrade()) else { return };
    let bytes = shared.read(path).ok().filter(|bytes| ModuleKey::of(bytes) == loaded.key);
    let Some(bytes) = bytes else {
        // The file has moved on, perhaps from staging to its tool's folder: the next call asks again.
        return loaded.optimising.store(false, Ordering::Relaxed);
    };
    let optimised = shared.engines.get(Tier::Optimised).and_then(|engine| {
        let module = match shared.cache.load(engine, loaded.key) {
            Some(module) => module,
            None => shared.compile(engine, loaded.key, &bytes).map_err(|error| not_valid(&error))?,
        };
        link(engine, &module)
    });
    match optimised {
        Ok(code) => *loaded.code.write().unwrap_or_else(PoisonError::into_inner) = Arc::new(code),
        Err(error) => tracing::warn!(%error, "A module stays with the code of the quick compiler"),
    }
}

/// Refuses what cannot be a tool's module, before any compiler sees it.
pub(crate) fn check_form(bytes: &[u8]) -> Result<(), ToolError> {
    match bytes.get(..8) {
        Some(b"\0asm\x01\0\0\0") => Ok(()),
        Some([b'\0', b'a', b's', b'm', _, _, 1, _]) => {
            Err(ToolError::invalid("This is a WebAssembly component; a tool is a core module for WASI preview 1")
                .with_hint("Build it for the target `wasm32-wasip1`"))
        }
        _ => Err(ToolError::invalid("This is not a WebAssembly module: it does not start with `\\0asm`")
            .with_hint("Give a module built for the target `wasm32-wasip1`")),
    }
}

/// Refuses modules that would occupy a compiler for too long.
pub(crate) fn check_size(length: u64, max_module_bytes: u64) -> Result<(), ToolError> {
    if length <= max_module_bytes {
        return Ok(());
    }
    let message = format!("The module is {length} bytes long; at most {max_module_bytes} are taken");
    Err(ToolError::new(ErrorKind::LimitExceeded, message)
        .with_hint("Leave out large data or dependencies, and strip debug information"))
}

/// Links a module, and says what it lacks or asks for too much.
fn link(engine: &GuestEngine, module: &Module) -> Result<Code, ToolError> {
    let start = module.get_export("_start");
    let is_command = matches!(&start, Some(ExternType::Func(kind)) if kind.params().len() == 0 && kind.results().len() == 0);
    if !is_command {
        let reason = if start.is_some() { "its `_start` has parameters or results" } else { "it exports no function `_start`" };
        return Err(ToolError::invalid(format!("The module is not a WASI command: {reason}"))
            .with_hint("Build a program with `fn main()` (a `bin`, not a library) for the target `wasm32-wasip1`"));
    }
    engine.link(module).map_err(|error| {
        let unknown = foreign_imports(module).unwrap_or_else(|| format!("{error:#}"));
        ToolError::invalid(format!("The module imports what is not there: {unknown}")).with_hint(
            "A tool may import `wasi_snapshot_preview1` and the module `skillz`; build it for `wasm32-wasip1` without \
             wasm-bindgen or other JavaScript glue",
        )
    })
}

/// Imports from other modules than the two that exist.
fn foreign_imports(module: &Module) -> Option<String> {
    /// Enough to see where they come from.
    const SHOWN: usize = 5;
    let unknown: Vec<String> = module
        .imports()
        .filter(|import| !matches!(import.module(), "wasi_snapshot_preview1" | "skillz"))
        .map(|import| format!("`{}::{}`", import.module(), import.name()))
        .collect();
    let more = unknown.len().saturating_sub(SHOWN);
    let shown = unknown.get(..SHOWN).unwrap_or(&unknown).join(", ");
    match (unknown.is_empty(), more) {
        (true, _) => None,
        (false, 0) => Some(shown),
        (false, more) => Some(format!("{shown} and {more} more")),
    }
}

fn not_valid(error: &wasmtime::Error) -> ToolError {
    ToolError::invalid(format!("The module is not valid WebAssembly: {error:#}"))
        .with_hint("Build it for the target `wasm32-wasip1`, without threads and experimental features")
}

fn unreadable(path: &Path, error: &std::io::Error) -> ToolError {
    ToolError::new(ErrorKind::Unavailable, format!("The module `{}` cannot be read: {error}", path.display()))
        .with_hint("Build the tool again, or restore an earlier version with `version`")
}

impl Stamp {
    fn of(metadata: &Metadata) -> Self {
        #[cfg(unix)]
        let inode = std::os::unix::fs::MetadataExt::ino(metadata);
        #[cfg(not(unix))]
        let inode = 0;
        Self { length: metadata.len(), modified: metadata.modified().ok(), inode }
    }
}
