//! From a draft to a callable tool: whatever it is made from, its folder holds a checked module in the end.

use std::{
    collections::HashMap,
    fs,
    path::{Component, Path, PathBuf},
    sync::{Arc, Mutex, PoisonError, Weak},
    time::Duration,
};

use skillz_tool::{Draft, ErrorKind, Host, Manifest, Prepared, SourceCode, Tool, ToolError};

use crate::{
    WasmSettings,
    build::{Built, RustBuilder, RustSource, SourceHash, Stamped, cannot_write, read_stamp, write_whole},
    run::{Runner, check_form, check_size},
    schema,
};

/// Copies and checkouts write source and module within moments, in any order.
const SLACK: Duration = Duration::from_secs(10);
/// The source file of Rust tools, and of those written in WebAssembly text.
const RUST_SOURCE: &str = "src.rs";
const TEXT_SOURCE: &str = "src.wat";
const LOCK: &str = "Cargo.lock";

/// Makes tools.
pub(crate) struct Maker {
    builder: RustBuilder,
    max_module_bytes: u64,
    /// Modules built for tools whose folders hold only source.
    built: PathBuf,
    building: Mutex<HashMap<SourceHash, Weak<tokio::sync::Mutex<()>>>>,
}

impl Maker {
    pub(crate) fn new(settings: &WasmSettings) -> Self {
        Self {
            builder: RustBuilder::new(settings),
            max_module_bytes: settings.max_module_bytes,
            built: settings.cache_directory.join("wasm").join("built"),
            building: Mutex::default(),
        }
    }

    /// Builds ahead what most tools need.
    pub(crate) async fn build_guest_crate(&self, host: &dyn Host) -> Result<(), ToolError> {
        self.builder.build_guest_crate(host).await
    }

    /// Makes a draft callable.
    pub(crate) async fn prepare(&self, draft: Draft, host: &dyn Host, runner: &Runner) -> Result<Prepared, ToolError> {
        let Draft { mut manifest, source, directory } = draft;
        if manifest.wasm_dependencies.is_empty() {
            manifest.wasm_dependencies = std::mem::take(&mut manifest.dependencies);
        }
        let module_path = directory.join(format!("{}.wasm", manifest.name));
        let notes = match source {
            SourceCode::Text(code) => {
                manifest.entry_file = Some(RUST_SOURCE.to_owned());
                write(&directory.join(RUST_SOURCE), code.as_bytes())?;
                self.build(&manifest, &code, &directory, &module_path, host).await?
            }
            SourceCode::Wat(text) => {
                manifest.entry_file = Some(TEXT_SOURCE.to_owned());
                write(&directory.join(TEXT_SOURCE), text.as_bytes())?;
                self.assemble(&text, &module_path)?
            }
            SourceCode::Module(bytes) => {
                check_size(bytes.len() as u64, self.max_module_bytes)?;
                check_form(&bytes)?;
                write(&module_path, &bytes)?;
                Vec::new()
            }
            SourceCode::Folder => self.use_folder(&manifest, &directory, &module_path, host).await?,
        };
        if let Ok(code) = fs::read_to_string(source_in(&directory, &manifest)?) {
            let told = schema::of_tool(&code);
            manifest.infer(told.input, told.output);
        }
        // Compiles to machine code, and so finds out whether it can be run at all.
        runner.load(&module_path).await?;
        let size_bytes = fs::metadata(&module_path).map_or(0, |metadata| metadata.len());
        Ok(Prepared { manifest, size_bytes, notes })
    }

    /// The module of a published tool. One that lacks its module is built from its source, once.
    pub(crate) async fn module_of(&self, tool: &Tool, host: &dyn Host) -> Result<PathBuf, ToolError> {
        let path = tool.module_path();
        if path.is_file() {
            return Ok(path);
        }
        let source = source_in(&tool.directory, &tool.manifest)?;
        let Ok(text) = fs::read_to_string(&source) else {
            let message = format!("`{}` has neither a module `{}.wasm` nor a source `src.rs`", tool.name, tool.name);
            return Err(ToolError::new(ErrorKind::Unavailable, message)
                .with_hint("Build the tool again, or restore an earlier version with `version`"));
        };
        let dependencies = dependencies(&tool.manifest);
        let hash = SourceHash::of(&text, dependencies);
        let built = self.built.join(hash.file_name());
        let turn = self.turn(hash);
        let _turn = turn.lock().await;
        if built.is_file() {
            return Ok(built);
        }
        let module = if is_text(&source) {
            assemble(&text)?
        } else {
            let lock = fs::read_to_string(tool.directory.join(LOCK)).ok();
            let source = RustSource { name: tool.name.as_str(), code: &text, dependencies, lock };
            self.builder.build(source, host).await?.module
        };
        write(&built, &module)?;
        Ok(built)
    }

    async fn use_folder(
        &self,
        manifest: &Manifest,
        directory: &Path,
        module_path: &Path,
        host: &dyn Host,
    ) -> Result<Vec<String>, ToolError> {
        adopt_module(directory, module_path)?;
        let source = source_in(directory, manifest)?;
        let Ok(text) = fs::read_to_string(&source) else {
            if module_path.is_file() {
                return Ok(Vec::new());
            }
            return Err(ToolError::invalid(format!(
                "The folder of `{}` holds neither a module `{}.wasm` nor a source `src.rs`",
                manifest.name, manifest.name
            )));
        };
        if is_text(&source) {
            return self.assemble(&text, module_path);
        }
        if is_up_to_date(manifest, &text, &source, module_path) {
            return Ok(Vec::new());
        }
        self.build(manifest, &text, directory, module_path, host).await
    }

    /// Builds Rust source into a module, with the lock file beside it.
    async fn build(
        &self,
        manifest: &Manifest,
        code: &str,
        directory: &Path,
        module_path: &Path,
        host: &dyn Host,
    ) -> Result<Vec<String>, ToolError> {
        let lock = fs::read_to_string(directory.join(LOCK)).ok();
        let source = RustSource { name: &manifest.name, code, dependencies: dependencies(manifest), lock };
        let Built { module, lock, notes } = self.builder.build(source, host).await?;
        write(module_path, &module)?;
        if let Some(lock) = lock {
            write(&directory.join(LOCK), lock.as_bytes())?;
        }
        Ok(notes)
    }

    fn assemble(&self, text: &str, module_path: &Path) -> Result<Vec<String>, ToolError> {
        check_size(text.len() as u64, self.max_module_bytes)?;
        write(module_path, &assemble(text)?)?;
        Ok(Vec::new())
    }

    fn turn(&self, hash: SourceHash) -> Arc<tokio::sync::Mutex<()>> {
        let mut building = self.building.lock().unwrap_or_else(PoisonError::into_inner);
        building.retain(|_, turn| turn.strong_count() > 0);
        let there = building.get(&hash).and_then(Weak::upgrade);
        there.unwrap_or_else(|| {
            let turn = Arc::default();
            building.insert(hash, Arc::downgrade(&turn));
            turn
        })
    }
}

fn dependencies(manifest: &Manifest) -> &[String] {
    if manifest.wasm_dependencies.is_empty() { &manifest.dependencies } else { &manifest.wasm_dependencies }
}

/// The source file of a tool. It may come from anywhere, and what a compiler says quotes it: neither its name nor a
/// link may lead out of the tool's folder.
fn source_in(directory: &Path, manifest: &Manifest) -> Result<PathBuf, ToolError> {
    let entry = manifest.entry_file.as_deref().unwrap_or(RUST_SOURCE);
    let path = directory.join(entry);
    let plain = Path::new(entry).components().all(|part| matches!(part, Component::Normal(_)));
    // A file that is not there leads nowhere.
    let inside =
        path.canonicalize().is_ok_and(|path| directory.canonicalize().is_ok_and(|directory| path.starts_with(directory)));
    if plain && !entry.is_empty() && (inside || !path.exists()) {
        return Ok(path);
    }
    let message = format!("The source `{entry}` of `{}` does not stay in the tool's folder", manifest.name);
    Err(ToolError::new(ErrorKind::Denied, message).with_hint("Put the source itself into the folder, as `src.rs`"))
}

fn is_text(source: &Path) -> bool {
    source.extension().is_some_and(|extension| extension == "wat")
}

fn assemble(text: &str) -> Result<Vec<u8>, ToolError> {
    wat::parse_str(text).map_err(|error| {
        ToolError::invalid(format!("The WebAssembly text does not parse: {error}"))
            .with_hint("Write one `(module ...)` that exports `memory` and a function `_start`")
    })
}

/// A module of another name, from a tool that was renamed on its way here, takes the tool's name.
fn adopt_module(directory: &Path, module_path: &Path) -> Result<(), ToolError> {
    if module_path.is_file() {
        return Ok(());
    }
    let entries = fs::read_dir(directory).map_err(|error| cannot_write(directory, &error))?;
    let modules: Vec<PathBuf> = entries
        .flatten()
        .map(|entry| entry.path())
        .filter(|path| path.extension().is_some_and(|extension| extension == "wasm"))
        .collect();
    match modules.as_slice() {
        [only] => fs::rename(only, module_path).map_err(|error| cannot_write(module_path, &error)),
        _ => Ok(()),
    }
}

/// Whether a module belongs to the source beside it. Those built here say so; of others, the times must do.
fn is_up_to_date(manifest: &Manifest, code: &str, source: &Path, module_path: &Path) -> bool {
    let Ok(module) = fs::read(module_path) else { return false };
    match read_stamp(&module, SourceHash::of(code, dependencies(manifest))) {
        Stamped::Fresh => true,
        Stamped::Stale => false,
        Stamped::Unknown => {
            let modified = |path: &Path| fs::metadata(path).and_then(|metadata| metadata.modified()).ok();
            match (modified(source), modified(module_path)) {
                (Some(source), Some(module)) => source <= module + SLACK,
                _ => true,
            }
        }
    }
}

fn write(path: &Path, bytes: &[u8]) -> Result<(), ToolError> {
    write_whole(path, bytes).map_err(|error| cannot_write(path, &error))
}
