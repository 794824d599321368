//! Builds one Rust program: its dependencies first, if it has some, then itself, confined.

use std::{
    ffi::OsString,
    fs,
    path::Path,
    sync::{Arc, OnceLock},
    time::Duration,
};

use skillz_process::Launcher;
use skillz_sandbox::Policy;
use skillz_tool::{Host, ToolError};
use tokio::sync::Semaphore;

use super::{
    compiler::{Run, run},
    crates::{BuiltCrates, CODE_OPTIONS, CrateStore, cannot_write},
    dependency,
    diagnostics::Diagnostics,
    progress::BuildProgress,
    project::DependencySet,
    source,
    stamp::{self, SourceHash},
    toolchain::{TARGET, Toolchain, Toolchains},
};
use crate::WasmSettings;

/// How much more time than a tool its crates may take: they are many, and compiled once.
const CRATES_TAKE_LONGER: u32 = 3;

/// What to build.
pub(crate) struct RustSource<'a> {
    pub(crate) name: &'a str,
    pub(crate) code: &'a str,
    pub(crate) dependencies: &'a [String],
    /// The lock file that came with the tool, or was made at an earlier build.
    pub(crate) lock: Option<String>,
}

/// What was built.
pub(crate) struct Built {
    pub(crate) module: Vec<u8>,
    pub(crate) lock: Option<String>,
    pub(crate) notes: Vec<String>,
}

/// Builds Rust programs, as many at once as there are cores.
pub(crate) struct RustBuilder {
    settings: WasmSettings,
    launcher: Launcher,
    toolchains: Arc<Toolchains>,
    crates: CrateStore,
    places: Semaphore,
    swept: OnceLock<()>,
}

impl RustBuilder {
    pub(crate) fn new(settings: &WasmSettings) -> Self {
        let directory = settings.cache_directory.join("wasm");
        let launcher = settings.launcher.clone();
        let toolchains = Arc::new(Toolchains::new(settings.toolchain.clone(), launcher.clone(), directory.join("work")));
        let crates = CrateStore::new(
            directory,
            launcher.clone(),
            Arc::clone(&toolchains),
            settings.build_timeout * CRATES_TAKE_LONGER,
            settings.build_memory_bytes,
        );
        Self {
            settings: settings.clone(),
            launcher,
            toolchains,
            crates,
            places: Semaphore::new(settings.cores.max(1)),
            swept: OnceLock::new(),
        }
    }

    /// Builds what a tool with `#[skillz::tool]` and no further dependencies needs.
    pub(crate) async fn build_guest_crate(&self, host: &dyn Host) -> Result<(), ToolError> {
        let _place = self.places.acquire().await.map_err(ToolError::internal)?;
        let progress = BuildProgress::new(host);
        let toolchain = self.toolchains.find(&progress).await?;
        let set = DependencySet { listed: Vec::new(), guest: true };
        self.crates.get(&toolchain, &set, None, &progress).await.map(drop)
    }

    /// Builds a program. Dropping the future stops the compilers.
    pub(crate) async fn build(&self, source: RustSource<'_>, host: &dyn Host) -> Result<Built, ToolError> {
        let listed = dependency::parse(source.dependencies)?;
        let guest = source::names_skillz(source.code) || listed.iter().any(|dependency| dependency.name == "skillz");
        let listed = listed.into_iter().filter(|dependency| dependency.name != "skillz").collect();
        let set = DependencySet { listed, guest };
        let edition = source::edition(source.code).map_err(ToolError::invalid)?;
        let _place = self.places.acquire().await.map_err(ToolError::internal)?;
        let progress = BuildProgress::new(host);
        let toolchain = self.toolchains.find(&progress).await?;
        let crates = self.crates.get(&toolchain, &set, source.lock.clone(), &progress).await?;
        progress.report(format!("Compiling {}", source.name));
        let mut built = self.compile(&source, edition, &toolchain, &crates, &set).await?;
        built.lock = crates.lock;
        stamp::write(&mut built.module, SourceHash::of(source.code, source.dependencies));
        Ok(built)
    }

    /// Runs rustc on the program.
    async fn compile(
        &self,
        source: &RustSource<'_>,
        edition: &str,
        toolchain: &Toolchain,
        crates: &BuiltCrates,
        set: &DependencySet,
    ) -> Result<Built, ToolError> {
        let work = self.work_directory()?;
        let write_error = |error: std::io::Error| cannot_write(work.path(), &error);
        fs::write(work.path().join("src.rs"), source.code).map_err(write_error)?;
        fs::create_dir(work.path().join("temporary")).map_err(write_error)?;
        let output = work.path().join("tool.wasm");
        let command = Run {
            program: toolchain.rustc.clone(),
            arguments: arguments(edition, crates),
            environment: environment(toolchain, work.path()),
            directory: work.path().to_owned(),
            policy: Some(Policy {
                read_only: [Some(toolchain.sysroot.clone()), crates.directory.clone()].into_iter().flatten().collect(),
                read_write: vec![work.path().to_owned()],
                ..Policy::default()
            }),
            memory_bytes: Some(self.settings.build_memory_bytes),
            timeout: self.settings.build_timeout,
            on_line: None,
        };
        let ran = run(&self.launcher, command).await?;
        let stderr = ran.stderr_text();
        let diagnostics = Diagnostics::of_rustc(&stderr);
        if !ran.success() {
            return Err(compile_error(source.name, &diagnostics, &stderr, set));
        }
        crate::run::check_size(fs::metadata(&output).map_or(0, |metadata| metadata.len()), self.settings.max_module_bytes)?;
        let module = fs::read(&output).map_err(|error| ToolError::internal(format!("rustc wrote no module: {error}")))?;
        Ok(Built { module, lock: None, notes: diagnostics.warning_notes() })
    }

    fn work_directory(&self) -> Result<tempfile::TempDir, ToolError> {
        let directory = self.settings.cache_directory.join("wasm").join("work");
        self.swept.get_or_init(|| remove_leftovers(&directory));
        let made = fs::create_dir_all(&directory)
            .and_then(|()| directory.canonicalize())
            .and_then(|directory| tempfile::Builder::new().prefix("build-").tempdir_in(directory));
        made.map_err(|error| cannot_write(&directory, &error))
    }
}

/// Deletes the folders of builds whose server was killed. None is at work for a day.
fn remove_leftovers(directory: &Path) {
    const AGE: Duration = Duration::from_hours(24);
    for entry in fs::read_dir(directory).into_iter().flatten().flatten() {
        let modified = entry.metadata().and_then(|metadata| metadata.modified());
        if modified.is_ok_and(|modified| modified.elapsed().is_ok_and(|age| age > AGE)) {
            let _ = fs::remove_dir_all(entry.path());
        }
    }
}

/// The compiler's arguments. Paths are relative to the working folder, so that no message shows where that is.
fn arguments(edition: &str, crates: &BuiltCrates) -> Vec<OsString> {
    let edition = format!("--edition={edition}");
    let target = format!("--target={TARGET}");
    let fixed = [
        "src.rs",
        "--crate-name=tool",
        "--crate-type=bin",
        &edition,
        &target,
        "-Copt-level=3",
        // A tool is small: in one piece its code is better, and is made with less work in all.
        "-Ccodegen-units=1",
        "-Cstrip=symbols",
        "--error-format=json",
        "-otool.wasm",
    ];
    fixed.into_iter().chain(CODE_OPTIONS).map(OsString::from).chain(crates.arguments.iter().cloned()).collect()
}

/// Nothing of the user's: what a program reads by `env!` is in its module.
fn environment(toolchain: &Toolchain, work: &Path) -> Vec<(OsString, OsString)> {
    let path = std::env::join_paths([toolchain.sysroot.join("bin"), "/usr/bin".into(), "/bin".into()]);
    vec![("PATH".into(), path.unwrap_or_default()), ("TMPDIR".into(), work.join("temporary").into())]
}

fn compile_error(name: &str, diagnostics: &Diagnostics, stderr: &str, set: &DependencySet) -> ToolError {
    let text = diagnostics.error_text();
    let missing = source::missing_crates(&text, &set.packages());
    // Without a message of its own the compiler crashed, or the linker failed.
    let text = if text.is_empty() { last_part(stderr) } else { text };
    let error = ToolError::failed(format!("`{name}` does not compile")).with_output(text);
    if missing.is_empty() {
        return error;
    }
    let list: Vec<String> = missing.iter().map(|name| format!("\"{name}\"")).collect();
    let guest = if missing.iter().any(|name| name == "serde" || name == "serde_json") {
        ". `serde` and `serde_json` also come with the crate `skillz` (`#[skillz::tool]`)"
    } else {
        ""
    };
    error.with_hint(format!("Add the crate to the dependencies: `\"dependencies\": [{}]`{guest}", list.join(", ")))
}

fn last_part(stderr: &str) -> String {
    const LENGTH: usize = 3_000;
    let start = stderr.ceil_char_boundary(stderr.len().saturating_sub(LENGTH));
    stderr.get(start..).unwrap_or_default().to_owned()
}
