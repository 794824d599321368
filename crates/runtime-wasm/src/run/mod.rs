//! Running guests: engines, compiled modules, the guests' own threads, and one call from start to end.

mod background;
mod call;
mod code_cache;
mod engine;
mod failure;
mod guest;
mod guest_threads;
mod import;
mod log_lines;
mod modules;
mod output;
mod ticker;
mod wasi;

use std::{
    path::Path,
    sync::{Arc, Mutex},
};

use skillz_tool::{Host, ToolCall, ToolError, ToolOutcome};

pub(crate) use self::call::Place;
pub(crate) use self::modules::{Loaded, check_form, check_size};
use self::{
    call::Caller,
    engine::Engines,
    guest_threads::GuestThreads,
    modules::{Modules, ModulesSettings},
    ticker::Ticker,
};
use crate::WasmSettings;

/// Everything that runs guests.
pub(crate) struct Runner {
    caller: Caller,
}

impl Runner {
    pub(crate) fn new(settings: &WasmSettings) -> Self {
        let threads = Arc::new(GuestThreads::new(settings.cores));
        let ticker = Arc::new(Ticker::default());
        let modules = Modules::new(ModulesSettings {
            directory: settings.cache_directory.join("wasm").join("code"),
            max_module_bytes: settings.max_module_bytes,
            threads: Arc::clone(&threads),
            engines: Engines::new(Arc::clone(&ticker)),
        });
        Self { caller: Caller { threads, ticker, modules: Arc::new(modules), http: Arc::default(), turn: Mutex::default() } }
    }

    /// Starts threads and engine.
    pub(crate) fn warm_up(&self) -> Result<(), ToolError> {
        self.caller.modules.warm_up()
    }

    /// The module in a file, if it is in memory.
    pub(crate) fn loaded(&self, path: &Path) -> Option<Arc<Loaded>> {
        self.caller.modules.loaded(path)
    }

    /// The module in a file, ready to start.
    pub(crate) async fn load(&self, path: &Path) -> Result<Arc<Loaded>, ToolError> {
        self.caller.modules.load(path).await
    }

    /// Runs one call.
    pub(crate) async fn call(
        &self,
        call: ToolCall,
        host: Arc<dyn Host>,
        module: Arc<Loaded>,
        place: Place,
    ) -> Result<ToolOutcome, ToolError> {
        self.caller.call(call, host, module, place).await
    }

    /// How many guests are alive, those that wait for the host left out.
    pub(crate) fn running(&self) -> usize {
        self.caller.ticker.running()
    }

    /// Lets go of the modules in a folder.
    pub(crate) fn forget(&self, directory: &Path) {
        self.caller.modules.forget(directory);
    }
}
