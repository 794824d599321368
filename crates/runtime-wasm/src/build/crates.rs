//! Built sets of dependencies. A set is resolved (with the network), then built (without) from a project that holds
//! no tool's code, and kept read-only for every tool with the same set: no build of one tool can plant something
//! for the next, and nobody waits for another's lock. A tool's own code is compiled against it by rustc alone.

#![allow(clippy::indexing_slicing, reason = "JSON values are indexed by name, which gives null where there is nothing")]

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

use serde::{Deserialize, Serialize};
use serde_json::Value;
use skillz_process::Launcher;
use skillz_sandbox::Policy;
use skillz_tool::{ErrorKind, Host, Progress, ToolError};

use super::{
    compiler::{Ran, Run, run},
    dependency::crate_name,
    diagnostics::{Diagnostics, resolve_error},
    guest_crate,
    project::{DependencySet, PACKAGE, crate_count, is_trustworthy_lock, locked_versions},
    toolchain::{TARGET, Toolchain, Toolchains},
};

/// Sets kept; those unused for longest go first. One takes some 30 to 100 MB.
const MAX_SETS: usize = 40;
/// Compiler options that dependencies and tools have in common.
pub(crate) const TARGET_FEATURES: &str = "target-feature=+simd128";

/// Stands for a set's own folder in what is written about it.
const PLACE: &str = "{set}";

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

/// What is written beside a built set. Paths are relative to its folder.
#[derive(Serialize, Deserialize, Default)]
struct Contents {
    /// Crate names with their libraries.
    externs: Vec<(String, PathBuf)>,
    /// Folders of native libraries that build scripts name.
    native: Vec<String>,
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
        host: &dyn Host,
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
        self.make(&Making { toolchain, set, guest: &guest, identity: &identity, host }, lock).await
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

    /// Fetches the crates and settles their versions. The only step with a network.
    async fn resolve(&self, making: &Making<'_>, project: &Path, locked: bool) -> Result<String, ToolError> {
        let progress = |line: &str| {
            let line = line.trim();
            if line.starts_with("Updating") || line.starts_with("Download") || line.starts_with("Locking") {
                making.host.progress(Progress { current: 0.0, total: None, message: Some(line.to_owned()) });
            }
        };
        let attempts: &[&[&str]] = if locked {
            // A lock that no longer fits is brought up to date. Without a network, what is there must do.
            &[&["--locked", "--offline"], &["--locked"], &[], &["--offline"]]
        } else {
            &[&[], &["--offline"]]
        };
        let mut online = None;
        for options in attempts {
            let fetched = self.fetch(making.toolchain, project, options, &progress).await?;
            if fetched.success() {
                let path = project.join("Cargo.lock");
                return fs::read_to_string(&path).map_err(|error| cannot_write(&path, &error));
            }
            if options.is_empty() {
                online = Some(fetched);
            }
        }
        let stderr = online.map(|ran| ran.stderr_text()).unwrap_or_default();
        let hidden = [project.to_string_lossy().into_owned()];
        let text = resolve_error(&stderr, &hidden.each_ref().map(String::as_str));
        let hint = if stderr.contains("Could not resolve host")
            || stderr.contains("Couldn't connect")
            || stderr.contains("failed to download")
        {
            "The crate registry could not be reached, and the crates are not all there yet: try again with a network"
        } else {
            "Check names, versions and features of the dependencies on crates.io"
        };
        Err(ToolError::invalid("The dependencies could not be resolved").with_output(text).with_hint(hint))
    }

    async fn fetch(
        &self,
        toolchain: &Toolchain,
        project: &Path,
        options: &[&str],
        on_line: &(dyn Fn(&str) + Send + Sync),
    ) -> Result<Ran, ToolError> {
        let cargo = toolchain.cargo.as_ref().ok_or_else(no_cargo)?;
        let mut arguments = vec!["fetch", "--target", TARGET, "--target", &toolchain.host];
        arguments.extend(options);
        let mut environment = self.toolchains.download_environment(Some(toolchain));
        // Without a network there is another way; whoever waits for the tool should not wait for the network too.
        environment
            .extend([("CARGO_NET_RETRY", "2"), ("CARGO_HTTP_TIMEOUT", "20")].map(|(name, value)| (name.into(), value.into())));
        let mut command = Run::plain(cargo, &arguments, environment, project);
        command.timeout = self.timeout;
        command.on_line = Some(on_line);
        run(&self.launcher, command).await
    }

    /// Builds the set: confined, without a network, since build scripts and macros of the crates run here.
    async fn build(&self, making: &Making<'_>, staging: &Path, lock: &str) -> Result<(), ToolError> {
        let toolchain = making.toolchain;
        let cargo = toolchain.cargo.as_ref().ok_or_else(no_cargo)?;
        let total = crate_count(lock);
        let compiled = AtomicUsize::new(0);
        let progress = |line: &str| {
            let Some(name) = line.trim().strip_prefix("Compiling ") else { return };
            // Cargo counts this one's predecessors as begun, not as done; near enough for a reader.
            let count = compiled.fetch_add(1, Ordering::Relaxed) + 1;
            let name = name.split(" (").next().unwrap_or(name);
            let message = format!("Compiling {name} ({count} crates so far)");
            making.host.progress(Progress {
                current: count as f64,
                total: Some(total.max(count) as f64),
                message: Some(message),
            });
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
        let flags = [Some(format!("-C{TARGET_FEATURES}")), registry].into_iter().flatten().collect::<Vec<_>>().join("\u{1f}");
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
             features (for example `default-features`), choose another crate, or write a script tool",
        )
    }

    /// A private `CARGO_HOME` for the sandbox: the user's crates, and of their settings only where crates come from.
    fn prepare_cargo_home(&self, staging: &Path) -> io::Result<()> {
        let home = staging.join("cargo-home");
        fs::create_dir_all(&home)?;
        fs::create_dir_all(staging.join("temporary"))?;
        if let Some(registry) = self.registry() {
            link_folder(&registry, &home.join("registry"))?;
        }
        let Some(user) = self.toolchains.cargo_home() else { return Ok(()) };
        let settings = ["config.toml", "config"].into_iter().find_map(|name| fs::read_to_string(user.join(name)).ok());
        let sources = settings.and_then(|text| text.parse::<toml::Table>().ok()).and_then(|mut table| table.remove("source"));
        match sources {
            Some(sources) => {
                let table = toml::Table::from_iter([("source".to_owned(), sources)]);
                fs::write(home.join("config.toml"), table.to_string())
            }
            None => Ok(()),
        }
    }

    /// The folder of downloaded crates.
    fn registry(&self) -> Option<PathBuf> {
        let registry = self.toolchains.cargo_home()?.join("registry");
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
    host: &'a dyn Host,
}

impl Contents {
    fn arguments(&self, directory: &Path) -> Vec<OsString> {
        let mut arguments = Vec::new();
        let mut add = |name: &str, value: OsString| arguments.extend([OsString::from(name), value]);
        for (name, path) in &self.externs {
            let mut value = OsString::from(format!("{name}="));
            value.push(directory.join(path));
            add("--extern", value);
        }
        for target in ["release/deps", &format!("{TARGET}/release/deps")] {
            let mut value = OsString::from("dependency=");
            value.push(directory.join("target").join(target));
            add("-L", value);
        }
        for folder in &self.native {
            add("-L", folder.replace(PLACE, &directory.to_string_lossy()).into());
        }
        arguments
    }
}

/// Finds the libraries of the direct dependencies in cargo's messages.
fn contents_of(messages: &str, staging: &Path, lock: &str) -> Contents {
    let versions = locked_versions(lock).unwrap_or_default();
    let mut contents = Contents::default();
    for line in messages.lines() {
        let Ok(message) = serde_json::from_str::<Value>(line) else { continue };
        let list = |field: &str| message[field].as_array().into_iter().flatten().filter_map(Value::as_str);
        match message["reason"].as_str() {
            Some("build-script-executed") => {
                let paths = list("linked_paths").map(|path| path.replace(&*staging.to_string_lossy(), PLACE));
                contents.native.extend(paths);
            }
            Some("compiler-artifact") => {
                let Some((package, version)) = package_of(message["package_id"].as_str().unwrap_or_default()) else { continue };
                if versions.get(package).map(String::as_str) != Some(version) {
                    continue;
                }
                let is_macro = message["target"]["kind"][0] == "proc-macro";
                let library = list("filenames").map(Path::new).find(|path| {
                    let for_target = path.components().any(|part| part.as_os_str() == TARGET);
                    let is_library = path.extension().is_some_and(|extension| extension == "rlib");
                    if is_macro { !is_library } else { is_library && for_target }
                });
                let relative = library.and_then(|path| path.strip_prefix(staging).ok());
                if let Some(relative) = relative {
                    let name = message["target"]["name"].as_str().unwrap_or_default();
                    contents.externs.push((crate_name(name), relative.to_owned()));
                }
            }
            _ => {}
        }
    }
    contents
}

/// Name and version in a package id, such as `registry+https://...#serde@1.0.2` or `path+file:///.../skillz#skillz-guest@0.1.0`.
fn package_of(id: &str) -> Option<(&str, &str)> {
    let (place, package) = id.rsplit_once('#')?;
    match package.split_once('@') {
        Some(parts) => Some(parts),
        None => Some((place.rsplit_once('/')?.1, package)),
    }
}

/// Identifies a set but for its versions.
fn identity(toolchain: &Toolchain, set: &DependencySet, guest: &Path) -> String {
    let mut hasher = blake3::Hasher::new();
    hasher.update(toolchain.version.as_bytes()).update(TARGET_FEATURES.as_bytes());
    hasher.update(set.manifest(guest).as_bytes());
    hasher.finalize().to_hex().chars().take(24).collect()
}

fn set_name(identity: &str, lock: &str) -> String {
    let versions: String = blake3::hash(lock.as_bytes()).to_hex().chars().take(16).collect();
    format!("{identity}-{versions}")
}

#[cfg(unix)]
fn link_folder(target: &Path, link: &Path) -> io::Result<()> {
    std::os::unix::fs::symlink(target, link)
}

#[cfg(windows)]
fn link_folder(target: &Path, link: &Path) -> io::Result<()> {
    std::os::windows::fs::symlink_dir(target, link)
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
