//! Built sets of dependencies. A set is resolved (with the network), then built (without) from a project that holds
//! no tool's code, and kept read-only for every tool with the same set: no build of one tool can plant something
//! for the next, and nobody waits for another's lock. A tool's own code is compiled against it by rustc alone.

mod contents;
mod resolve;

use std::{
    collections::HashMap,
    ffi::OsString,
    fs, io,
    path::{Path, PathBuf},
    sync::{
        Arc, Mutex, PoisonError, Weak,
        atomic::{AtomicUsize, Ordering},
    },
    time::{Duration, SystemTime},
};

use skillz_process::Launcher;
use skillz_sandbox::Policy;
use skillz_tool::{ErrorKind, ToolError};

use self::contents::{Contents, contents_of};
use super::{
    compiler::{Run, run},
    diagnostics::{Diagnostics, resolve_error},
    guest_crate,
    progress::BuildProgress,
    project::{DependencySet, PACKAGE, is_trustworthy_lock},
    toolchain::{TARGET, Toolchain, Toolchains},
};

/// Sets kept; those unused for longest go first. One takes some 30 to 100 MB.
const MAX_SETS: usize = 40;
/// Compiler options that dependencies and tools have in common. Nothing that tells LLVM how to work belongs here: it holds
/// for code of every kind, and some of that never ends then.
pub(crate) const CODE_OPTIONS: [&str; 1] = ["-Ctarget-feature=+simd128"];

/// A built set: what rustc needs to know of it.
#[derive(Debug, Default)]
pub(crate) struct BuiltCrates {
    /// The folder that a build must see.
    pub(crate) directory: Option<PathBuf>,
    /// Arguments for rustc.
    pub(crate) arguments: Vec<OsString>,
    /// The lock file, for the tool's folder.
    pub(crate) lock: Option<String>,
}

/// What building a set takes.
pub(crate) struct CrateStore {
    pub(crate) directory: PathBuf,
    pub(crate) launcher: Launcher,
    pub(crate) toolchains: Arc<Toolchains>,
    pub(crate) timeout: Duration,
    pub(crate) memory_bytes: u64,
    /// One build of a set at a time; the second finds it done.
    building: Mutex<HashMap<String, Weak<tokio::sync::Mutex<()>>>>,
}

impl CrateStore {
    pub(crate) fn new(
        directory: PathBuf,
        launcher: Launcher,
        toolchains: Arc<Toolchains>,
        timeout: Duration,
        memory_bytes: u64,
    ) -> Self {
        Self { directory, launcher, toolchains, timeout, memory_bytes, building: Mutex::default() }
    }

    /// A set, built now if it has not been. `lock` is the tool's own lock file, where it came with one.
    pub(crate) async fn get(
        &self,
        toolchain: &Toolchain,
        set: &DependencySet,
        lock: Option<String>,
        progress: &BuildProgress<'_>,
    ) -> Result<BuiltCrates, ToolError> {
        if set.is_empty() {
            return Ok(BuiltCrates::default());
        }
        let guest = guest_crate::write(&self.directory).map_err(|error| cannot_write(&self.directory, &error))?;
        let identity = identity(toolchain, set, &guest);
        let lock = lock.filter(|lock| is_trustworthy_lock(lock)).or_else(|| fs::read_to_string(self.lock_path(&identity)).ok());
        if let Some(lock) = &lock
            && let Some(built) = self.find(&set_name(&identity, lock))
        {
            return Ok(built);
        }
        let turn = self.turn(&identity);
        let _turn = turn.lock().await;
        if let Some(lock) = fs::read_to_string(self.lock_path(&identity)).ok().filter(|_| lock.is_none())
            && let Some(built) = self.find(&set_name(&identity, &lock))
        {
            return Ok(built);
        }
        self.make(&Making { toolchain, set, guest: &guest, identity: &identity, progress }, lock).await
    }

    /// A built set, if it is there and whole.
    fn find(&self, name: &str) -> Option<BuiltCrates> {
        let directory = self.directory.join("sets").join(name);
        let contents = fs::read(directory.join("contents.json")).ok()?;
        let contents: Contents = serde_json::from_slice(&contents).ok()?;
        if !contents.externs.iter().all(|(_, path)| directory.join(path).is_file()) {
            return None;
        }
        let lock = fs::read_to_string(directory.join("Cargo.lock")).ok()?;
        // Marks it as used, for the sweep.
        let _ = fs::File::open(&directory).and_then(|folder| folder.set_modified(SystemTime::now()));
        Some(BuiltCrates { arguments: contents.arguments(&directory), directory: Some(directory), lock: Some(lock) })
    }

    async fn make(&self, making: &Making<'_>, lock: Option<String>) -> Result<BuiltCrates, ToolError> {
        let staging = self.staging().map_err(|error| cannot_write(&self.directory, &error))?;
        let project = staging.path().join("project");
        making.set.write(&project, making.guest, lock.as_deref()).map_err(|error| cannot_write(&project, &error))?;
        self.prepare_cargo_home(staging.path()).map_err(|error| cannot_write(staging.path(), &error))?;
        let lock = self.resolve(making, &project, lock.is_some()).await?;
        let name = set_name(making.identity, &lock);
        let built = if let Some(built) = self.find(&name) {
            built
        } else {
            self.build(making, staging.path(), &lock).await?;
            self.keep(staging.path(), &name, &lock).map_err(|error| cannot_write(&self.directory, &error))?;
            self.find(&name).ok_or_else(|| ToolError::internal("The built dependencies vanished from the cache"))?
        };
        write_whole(&self.lock_path(making.identity), lock.as_bytes()).map_err(|error| cannot_write(&self.directory, &error))?;
        Ok(built)
    }

    /// Builds the set: confined, without a network, since build scripts and macros of the crates run here.
    async fn build(&self, making: &Making<'_>, staging: &Path, lock: &str) -> Result<(), ToolError> {
        let toolchain = making.toolchain;
        let cargo = toolchain.cargo.as_ref().ok_or_else(no_cargo)?;
        let compiled = AtomicUsize::new(0);
        let progress = |line: &str| {
            let Some(name) = line.trim().strip_prefix("Compiling ") else { return };
            // Cargo counts this one's predecessors as begun, not as done; near enough for a reader.
            let count = compiled.fetch_add(1, Ordering::Relaxed) + 1;
            let name = name.split(" (").next().unwrap_or(name);
            making.progress.report(format!("Compiling {name} ({count} crates so far)"));
        };
        let arguments = ["build", "--release", "--target", TARGET, "--offline", "--locked", "--message-format", "json"];
        let mut read_only = vec![toolchain.sysroot.clone(), making.guest.parent().unwrap_or(making.guest).to_owned()];
        read_only.extend(self.registry());
        let command = Run {
            program: cargo.clone(),
            arguments: arguments.map(OsString::from).to_vec(),
            environment: self.build_environment(toolchain, staging),
            directory: staging.join("project"),
            policy: Some(Policy { read_only, read_write: vec![staging.to_owned()], ..Policy::default() }),
            memory_bytes: Some(self.memory_bytes),
            timeout: self.timeout,
            on_line: Some(&progress),
        };
        let built = run(&self.launcher, command).await?;
        let stdout = String::from_utf8_lossy(&built.stdout);
        if !built.success() {
            return Err(self.build_error(&stdout, &built.stderr_text(), staging));
        }
        let contents = contents_of(&stdout, staging, lock);
        let bytes = serde_json::to_vec(&contents).map_err(ToolError::internal)?;
        fs::write(staging.join("contents.json"), bytes).map_err(|error| cannot_write(staging, &error))
    }

    fn build_environment(&self, toolchain: &Toolchain, staging: &Path) -> Vec<(OsString, OsString)> {
        let path = std::env::join_paths([toolchain.sysroot.join("bin"), "/usr/bin".into(), "/bin".into()]);
        // Paths inside the crates must tell nothing of this machine.
        let registry = self.registry().map(|registry| format!("--remap-path-prefix={}=/crates", registry.join("src").display()));
        let flags = CODE_OPTIONS.map(str::to_owned).into_iter().chain(registry).collect::<Vec<_>>().join("\u{1f}");
        [
            ("PATH", path.unwrap_or_default()),
            ("HOME", staging.join("temporary").into()),
            ("TMPDIR", staging.join("temporary").into()),
            ("CARGO_HOME", staging.join("cargo-home").into()),
            ("CARGO_TARGET_DIR", staging.join("target").into()),
            ("CARGO_ENCODED_RUSTFLAGS", flags.into()),
            ("CARGO_INCREMENTAL", "0".into()),
            ("CARGO_TERM_COLOR", "never".into()),
            ("RUSTC", toolchain.rustc.clone().into()),
        ]
        .map(|(name, value)| (OsString::from(name), value))
        .to_vec()
    }

    fn build_error(&self, stdout: &str, stderr: &str, staging: &Path) -> ToolError {
        let diagnostics = Diagnostics::of_cargo(stdout);
        let registry = self.registry().map(|registry| registry.join("src").to_string_lossy().into_owned());
        let staging = staging.to_string_lossy().into_owned();
        let mut hidden = vec![staging.as_str()];
        hidden.extend(registry.as_deref());
        let mut text = diagnostics.error_text();
        if text.is_empty() {
            text = resolve_error(stderr, &hidden);
        }
        for folder in hidden {
            text = text.replace(folder, "");
        }
        ToolError::failed("A dependency does not compile for WebAssembly").with_output(text).with_hint(
            "Crates that need C code, threads, sockets or an async runtime's network do not work here: leave out such \
             features (`name[default-features=false]`), choose another crate, or write a script tool",
        )
    }

    /// The folder of downloaded crates.
    fn registry(&self) -> Option<PathBuf> {
        let registry = self.toolchains.cargo_home().join("registry");
        fs::create_dir_all(&registry).ok()?;
        registry.canonicalize().ok()
    }

    /// Moves a built set to its place. Another server may have put the same one there.
    fn keep(&self, staging: &Path, name: &str, lock: &str) -> io::Result<()> {
        let sets = self.directory.join("sets");
        fs::create_dir_all(&sets)?;
        for part in ["project", "cargo-home", "temporary"] {
            fs::remove_dir_all(staging.join(part))?;
        }
        fs::write(staging.join("Cargo.lock"), lock)?;
        let target = sets.join(name);
        if target.exists() {
            // It was found broken before.
            fs::remove_dir_all(&target)?;
        }
        fs::rename(staging, &target)?;
        sweep(&sets, MAX_SETS);
        Ok(())
    }

    fn staging(&self) -> io::Result<tempfile::TempDir> {
        let directory = self.directory.join("work");
        fs::create_dir_all(&directory)?;
        tempfile::Builder::new().prefix("crates-").tempdir_in(directory.canonicalize()?)
    }

    fn lock_path(&self, identity: &str) -> PathBuf {
        self.directory.join("locks").join(format!("{identity}.lock"))
    }

    fn turn(&self, identity: &str) -> Arc<tokio::sync::Mutex<()>> {
        let mut building = self.building.lock().unwrap_or_else(PoisonError::into_inner);
        building.retain(|_, turn| turn.strong_count() > 0);
        let there = building.get(identity).and_then(Weak::upgrade);
        there.unwrap_or_else(|| {
            let turn = Arc::default();
            building.insert(identity.to_owned(), Arc::downgrade(&turn));
            turn
        })
    }
}

/// One set on its way.
struct Making<'a> {
    toolchain: &'a Toolchain,
    set: &'a DependencySet,
    guest: &'a Path,
    identity: &'a str,
    progress: &'a BuildProgress<'a>,
}

/// Identifies a set but for its versions.
fn identity(toolchain: &Toolchain, set: &DependencySet, guest: &Path) -> String {
    let mut hasher = blake3::Hasher::new();
    hasher.update(toolchain.version.as_bytes()).update(CODE_OPTIONS.concat().as_bytes());
    hasher.update(set.manifest(guest).as_bytes());
    hasher.finalize().to_hex().chars().take(24).collect()
}

fn set_name(identity: &str, lock: &str) -> String {
    let versions: String = blake3::hash(lock.as_bytes()).to_hex().chars().take(16).collect();
    format!("{identity}-{versions}")
}

/// Writes a file so that a reader sees all of it or none.
pub(crate) fn write_whole(path: &Path, bytes: &[u8]) -> io::Result<()> {
    let directory = path.parent().unwrap_or(Path::new("."));
    fs::create_dir_all(directory)?;
    let mut file = tempfile::NamedTempFile::new_in(directory)?;
    io::Write::write_all(&mut file, bytes)?;
    file.persist(path).map(drop).map_err(|error| error.error)
}

/// Deletes the folders unused for longest until `keep` are left.
fn sweep(directory: &Path, keep: usize) {
    let Ok(entries) = fs::read_dir(directory) else { return };
    let mut folders: Vec<(SystemTime, PathBuf)> =
        entries.flatten().filter_map(|entry| Some((entry.metadata().ok()?.modified().ok()?, entry.path()))).collect();
    folders.sort();
    let surplus = folders.len().saturating_sub(keep);
    for (_, folder) in folders.into_iter().take(surplus) {
        let _ = fs::remove_dir_all(folder);
    }
}

pub(crate) fn cannot_write(path: &Path, error: &io::Error) -> ToolError {
    ToolError::new(ErrorKind::Unavailable, format!("`{}` could not be written: {error}", path.display()))
        .with_hint("Check free space and permissions of the cache folder; it may be deleted at any time")
}

fn no_cargo() -> ToolError {
    ToolError::new(ErrorKind::Unavailable, "There is no `cargo` beside `rustc`, and dependencies need it").with_hint(format!(
        "Install Rust with rustup (https://rustup.rs), or build the tool without dependencies; `{PACKAGE}` needs no more"
    ))
}

#[cfg(test)]
mod tests;
