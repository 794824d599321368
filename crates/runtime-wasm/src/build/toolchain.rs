//! Finds the Rust toolchain: the real compiler behind rustup's shim, and whether it can build for WASI.

use std::{
    ffi::OsString,
    path::{Path, PathBuf},
    sync::Arc,
    time::SystemTime,
};

use skillz_process::Launcher;
use skillz_tool::{ErrorKind, ToolError};
use tokio::sync::Mutex;

use super::{
    compiler::{Run, run},
    progress::BuildProgress,
};
use crate::ToolchainSettings;

/// What modules are built for.
pub(crate) const TARGET: &str = "wasm32-wasip1";

/// A toolchain that can build tools.
#[derive(Debug)]
pub(crate) struct Toolchain {
    pub(crate) rustc: PathBuf,
    pub(crate) cargo: Option<PathBuf>,
    pub(crate) sysroot: PathBuf,
    /// All of `rustc -vV`: artifacts of one compiler are of no use to another.
    pub(crate) version: String,
    /// The machine's own target.
    pub(crate) host: String,
    /// Files whose change means that the toolchain may be another one.
    stamps: Vec<(PathBuf, Option<SystemTime>)>,
}

/// Looks for the toolchain once and remembers it.
pub(crate) struct Toolchains {
    settings: ToolchainSettings,
    launcher: Launcher,
    scratch: PathBuf,
    found: Mutex<Option<Arc<Toolchain>>>,
}

impl Toolchains {
    /// `scratch` is a folder that is there when commands run.
    pub(crate) fn new(settings: ToolchainSettings, launcher: Launcher, scratch: PathBuf) -> Self {
        Self { settings, launcher, scratch, found: Mutex::default() }
    }

    /// The toolchain, with the target installed.
    pub(crate) async fn find(&self, progress: &BuildProgress<'_>) -> Result<Arc<Toolchain>, ToolError> {
        // Held over the search on purpose: ten builds at once look, and install the target, once.
        let mut found = self.found.lock().await;
        if let Some(toolchain) = found.as_ref().filter(|toolchain| toolchain.is_current()) {
            return Ok(Arc::clone(toolchain));
        }
        let toolchain = Arc::new(self.search().await?);
        self.ensure_target(&toolchain, progress).await?;
        *found = Some(Arc::clone(&toolchain));
        Ok(toolchain)
    }

    /// `CARGO_HOME`, or where it is by default; of a user without a home, a folder in the cache.
    pub(crate) fn cargo_home(&self) -> PathBuf {
        let by_default = || self.settings.user_home.as_ref().map(|home| home.join(".cargo"));
        self.settings.cargo_home.clone().or_else(by_default).unwrap_or_else(|| self.scratch.with_file_name("cargo"))
    }

    /// The environment of programs that download: the user's own, but no more of it than they need.
    pub(crate) fn download_environment(&self, toolchain: Option<&Toolchain>) -> Vec<(OsString, OsString)> {
        let mut path: Vec<PathBuf> = toolchain.map(|toolchain| toolchain.sysroot.join("bin")).into_iter().collect();
        path.extend(self.settings.search_path.iter().cloned());
        path.extend(["/usr/bin", "/bin"].map(PathBuf::from));
        let mut environment = self.settings.download_environment.clone();
        let mut add = |name: &str, value: Option<OsString>| environment.extend(value.map(|value| (name.into(), value)));
        add("PATH", std::env::join_paths(path).ok());
        add("HOME", self.settings.user_home.as_ref().map(|home| home.clone().into_os_string()));
        add("CARGO_HOME", Some(self.cargo_home().into_os_string()));
        add("RUSTUP_HOME", self.settings.rustup_home.as_ref().map(|home| home.clone().into_os_string()));
        add("CARGO_TERM_COLOR", Some("never".into()));
        environment
    }

    async fn search(&self) -> Result<Toolchain, ToolError> {
        let shim = self.program("rustc").ok_or_else(|| self.not_found())?;
        let sysroot = PathBuf::from(self.ask(&shim, &["--print", "sysroot"]).await?.trim());
        let direct = sysroot.join("bin").join(executable("rustc"));
        let rustc = if direct.is_file() { direct } else { shim.clone() };
        let version = self.ask(&rustc, &["-vV"]).await?;
        let host = version.lines().find_map(|line| line.strip_prefix("host: ")).unwrap_or_default().to_owned();
        let direct = sysroot.join("bin").join(executable("cargo"));
        let cargo = if direct.is_file() { Some(direct) } else { self.program("cargo") };
        let rustup = self.settings.rustup_home.clone();
        let rustup = rustup.or_else(|| self.settings.user_home.as_ref().map(|home| home.join(".rustup")));
        let watched = [Some(shim), Some(rustc.clone()), rustup.map(|home| home.join("settings.toml"))];
        let stamps = watched.into_iter().flatten().map(|path| (path.clone(), modified(&path))).collect();
        Ok(Toolchain { rustc, cargo, sysroot, version, host, stamps })
    }

    /// A program on the search path, or where toolchains are installed: programs with windows start servers with a
    /// bare path.
    fn program(&self, name: &str) -> Option<PathBuf> {
        self.places().into_iter().map(|place| place.join(executable(name))).find(|path| path.is_file())
    }

    fn places(&self) -> Vec<PathBuf> {
        let mut places = self.settings.search_path.clone();
        places.push(self.cargo_home().join("bin"));
        places.extend(
            ["/usr/local/cargo/bin", "/usr/local/bin", "/usr/bin", "/opt/homebrew/bin", "/opt/rust/bin"].map(PathBuf::from),
        );
        let mut seen = std::collections::HashSet::new();
        places.retain(|place| seen.insert(place.clone()));
        places
    }

    fn not_found(&self) -> ToolError {
        let places: Vec<String> = self.places().iter().map(|place| place.display().to_string()).collect();
        ToolError::new(ErrorKind::Unavailable, format!("Rust is not installed: there is no `rustc` in `{}`", places.join("`, `")))
            .with_hint(
                "Install it with `curl --proto '=https' --tlsv1.2 -sSf https://sh.rustup.rs | sh -s -- -y` (or see \
             https://rustup.rs), and try again. Ready modules (`wasm_base64`, `wat`) need no toolchain",
            )
    }

    async fn ask(&self, program: &Path, arguments: &[&str]) -> Result<String, ToolError> {
        let output = run(&self.launcher, Run::plain(program, arguments, self.download_environment(None), &self.scratch)).await?;
        if output.success() {
            return Ok(String::from_utf8_lossy(&output.stdout).into_owned());
        }
        let message = format!("`{} {}` failed", program.display(), arguments.join(" "));
        Err(ToolError::new(ErrorKind::Unavailable, message)
            .with_output(output.stderr_text())
            .with_hint("Repair the Rust toolchain, for example with `rustup default stable`, and try again"))
    }

    async fn ensure_target(&self, toolchain: &Toolchain, progress: &BuildProgress<'_>) -> Result<(), ToolError> {
        if toolchain.has_target() {
            return Ok(());
        }
        let Some(rustup) = self.program("rustup") else {
            return Err(missing_target(toolchain, "There is no `rustup` to add it with", String::new()));
        };
        progress.report(format!("Installing the Rust target {TARGET}"));
        let arguments = ["target", "add", TARGET];
        let command = Run::plain(&rustup, &arguments, self.download_environment(None), &self.scratch);
        let output = run(&self.launcher, command).await?;
        if output.success() && toolchain.has_target() {
            return Ok(());
        }
        Err(missing_target(toolchain, "`rustup target add` failed", output.stderr_text()))
    }
}

fn missing_target(toolchain: &Toolchain, reason: &str, output: String) -> ToolError {
    let message = format!("The Rust toolchain in `{}` has no target `{TARGET}`. {reason}", toolchain.sysroot.display());
    ToolError::new(ErrorKind::Unavailable, message).with_output(output).with_hint(format!(
        "Run `rustup target add {TARGET}`, or on Debian install `libstd-rust-dev-wasm32`; `skillz doctor --fix` does it too"
    ))
}

impl Toolchain {
    fn has_target(&self) -> bool {
        let folder = self.sysroot.join("lib/rustlib").join(TARGET).join("lib");
        let Ok(entries) = std::fs::read_dir(folder) else { return false };
        entries.flatten().any(|entry| entry.file_name().to_string_lossy().starts_with("libstd-"))
    }

    fn is_current(&self) -> bool {
        self.stamps.iter().all(|(path, known)| modified(path) == *known)
    }
}

fn modified(path: &Path) -> Option<SystemTime> {
    std::fs::metadata(path).and_then(|metadata| metadata.modified()).ok()
}

fn executable(name: &str) -> String {
    format!("{name}{}", std::env::consts::EXE_SUFFIX)
}

#[cfg(test)]
#[cfg(unix)]
mod tests {
    use std::{fs, os::unix::fs::PermissionsExt};

    use skillz_sandbox::SandboxKind;

    use super::*;
    use crate::test_host::SilentHost;

    /// A toolchain made of scripts: a compiler whose sysroot is empty, and a `rustup` that does what is asked for here.
    fn toolchains(directory: &Path, rustup: &str) -> Toolchains {
        let bin = directory.join("bin");
        fs::create_dir_all(&bin).unwrap();
        let sysroot = directory.join("sysroot");
        let rustc = format!(
            "#!/bin/sh\ncase \"$1\" in\n--print) echo '{}';;\n-vV) printf 'rustc 1.95.0\\nhost: x86_64-unknown-linux-gnu\\n';;\nesac\n",
            sysroot.display()
        );
        for (name, text) in [("rustc", rustc), ("rustup", format!("#!/bin/sh\n{rustup}\n"))] {
            let path = bin.join(name);
            fs::write(&path, text).unwrap();
            fs::set_permissions(&path, fs::Permissions::from_mode(0o755)).unwrap();
        }
        let settings = ToolchainSettings {
            search_path: vec![bin],
            cargo_home: Some(directory.join("cargo")),
            rustup_home: Some(directory.join("rustup")),
            ..ToolchainSettings::default()
        };
        let launcher = Launcher::new(std::env::current_exe().unwrap(), SandboxKind::None);
        Toolchains::new(settings, launcher, directory.join("scratch"))
    }

    #[tokio::test]
    async fn a_missing_target_is_added() {
        let directory = tempfile::tempdir().unwrap();
        let folder = directory.path().join("sysroot/lib/rustlib").join(TARGET).join("lib");
        let rustup =
            format!("test \"$*\" = 'target add {TARGET}' || exit 9\nmkdir -p '{0}'\ntouch '{0}/libstd-1.rlib'", folder.display());
        let toolchain = toolchains(directory.path(), &rustup).find(&BuildProgress::new(&SilentHost)).await.unwrap();
        assert_eq!(toolchain.host, "x86_64-unknown-linux-gnu");
        assert!(toolchain.has_target());
    }

    #[tokio::test]
    async fn a_target_that_cannot_be_added_is_an_error_that_says_how() {
        let directory = tempfile::tempdir().unwrap();
        let toolchains = toolchains(directory.path(), "echo 'error: no route to the server' >&2\nexit 1");
        let error = toolchains.find(&BuildProgress::new(&SilentHost)).await.unwrap_err();
        assert_eq!(error.kind, ErrorKind::Unavailable);
        for part in ["has no target `wasm32-wasip1`", "no route to the server", "Run `rustup target add wasm32-wasip1`"] {
            assert!(error.text().contains(part), "{part:?} is not in {error}");
        }
    }

    #[test]
    fn a_missing_compiler_is_told_with_the_places_searched() {
        let directory = tempfile::tempdir().unwrap();
        let error = toolchains(directory.path(), "").not_found();
        let text = error.text();
        let bin = directory.path().join("cargo/bin").display().to_string();
        assert!(text.contains("Rust is not installed") && text.contains(&bin) && text.contains("rustup.rs"), "{text}");
    }
}
