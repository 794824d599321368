//! What the runtime needs to know of its surroundings. Nothing here is read from the environment.

use std::{ffi::OsString, path::PathBuf, time::Duration};

use skillz_process::Launcher;

/// Settings of a [`WasmRuntime`](crate::WasmRuntime).
#[derive(Debug, Clone)]
pub struct WasmSettings {
    /// The cache folder of the home; compiled modules and build targets live below it and may vanish at any time.
    pub cache_directory: PathBuf,
    /// Starts compilers, confined.
    pub launcher: Launcher,
    /// Threads that run guests, and builds at once. The number of cores by default.
    pub cores: usize,
    /// Where the Rust toolchain is looked for.
    pub toolchain: ToolchainSettings,
    /// Longest build; 120 s by default.
    pub build_timeout: Duration,
    /// Most memory of one build; 3 GiB by default.
    pub build_memory_bytes: u64,
    /// Largest module taken, in bytes; 32 MiB by default. Compiling one cannot be interrupted, so its size is bounded.
    pub max_module_bytes: u64,
}

/// Where the Rust toolchain is, and what its downloads need.
#[derive(Debug, Clone, Default)]
pub struct ToolchainSettings {
    /// Folders of `PATH`, in order.
    pub search_path: Vec<PathBuf>,
    /// The user's home folder, for `~/.cargo/bin` and the crates that are already there.
    pub user_home: Option<PathBuf>,
    /// `CARGO_HOME`, where it is set.
    pub cargo_home: Option<PathBuf>,
    /// `RUSTUP_HOME`, where it is set.
    pub rustup_home: Option<PathBuf>,
    /// Variables for programs that download (`HTTPS_PROXY`, `SSL_CERT_FILE` and the like), and for nothing else.
    pub download_environment: Vec<(OsString, OsString)>,
}

impl WasmSettings {
    /// Settings with every default; the toolchain is looked for in the usual places below `user_home`.
    pub fn new(cache_directory: PathBuf, launcher: Launcher) -> Self {
        Self {
            cache_directory,
            launcher,
            cores: std::thread::available_parallelism().map_or(2, usize::from),
            toolchain: ToolchainSettings::default(),
            build_timeout: Duration::from_mins(2),
            build_memory_bytes: 3 << 30,
            max_module_bytes: 32 << 20,
        }
    }
}
