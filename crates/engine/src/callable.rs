//! A tool made ready to be called: everything about it that no single call decides.

use std::{
    fs,
    path::{Path, PathBuf},
    sync::{
        Arc,
        atomic::{AtomicBool, Ordering},
    },
};

use skillz_tool::{EffectiveLimits, ErrorKind, Tool, ToolError, ToolKind, ToolRuntime};

use crate::{EngineSettings, engine::Runtimes, policy::Wishes};

/// Default memory of a WASM tool, in MiB.
const WASM_MEMORY_MB: u64 = 256;
/// Default memory of any other tool, in MiB.
const OTHER_MEMORY_MB: u64 = 1_024;

/// A tool made ready to be called; made once for each version in service.
pub(crate) struct Callable {
    pub(crate) tool: Arc<Tool>,
    /// Its name, to be shared by all that goes on in its calls.
    pub(crate) name: Arc<str>,
    pub(crate) limits: EffectiveLimits,
    pub(crate) wishes: Wishes,
    runtime: Option<Arc<dyn ToolRuntime>>,
    data_directory: PathBuf,
    /// Set once the data folder is there.
    data_is_there: AtomicBool,
}

impl Callable {
    pub(crate) fn new(tool: Arc<Tool>, settings: &EngineSettings, runtimes: &Runtimes) -> Self {
        let memory_mb = if tool.kind() == ToolKind::Wasm { WASM_MEMORY_MB } else { OTHER_MEMORY_MB };
        Self {
            limits: EffectiveLimits::with_memory_mb(memory_mb).asked(&tool.manifest.limits).capped(&settings.caps),
            wishes: Wishes::read(&tool, settings),
            runtime: runtimes.get(&tool.kind()).cloned(),
            data_directory: settings.home.join("data").join(tool.name.as_str()),
            data_is_there: AtomicBool::new(false),
            name: tool.name.as_str().into(),
            tool,
        }
    }

    /// The runtime for the tool's kind.
    pub(crate) fn runtime(&self) -> Result<&Arc<dyn ToolRuntime>, ToolError> {
        self.runtime.as_ref().ok_or_else(|| {
            let message =
                format!("`{}` is a tool of a kind ({:?}) that this server cannot run", self.tool.name, self.tool.kind());
            ToolError::new(ErrorKind::Unavailable, message)
        })
    }

    /// Whether a call starts a process.
    pub(crate) fn is_script(&self) -> bool {
        self.tool.kind() == ToolKind::Script
    }

    /// The folder that lasts between calls.
    pub(crate) fn data_directory(&self) -> &Path {
        &self.data_directory
    }

    /// Makes the data folder where the tool can see it. Done once; a folder that is removed later by hand is
    /// missing until the tool changes or the server starts anew.
    pub(crate) fn make_data_directory(&self) -> Result<(), ToolError> {
        if self.data_is_there.load(Ordering::Relaxed) || !(self.is_script() || self.wishes.names_data()) {
            return Ok(());
        }
        fs::create_dir_all(&self.data_directory).map_err(|error| {
            let message =
                format!("The data folder `{}` of `{}` could not be made: {error}", self.data_directory.display(), self.tool.name);
            ToolError::new(ErrorKind::Unavailable, message)
                .with_hint("Make the server's data folder writable, or free some disk space")
        })?;
        self.data_is_there.store(true, Ordering::Relaxed);
        Ok(())
    }
}
