//! Tools that are WebAssembly: Rust compiled here, WebAssembly text, and ready modules.
//!
//! `build` turns a draft into a module, by the Rust toolchain in a sandbox; `run` compiles modules to machine code,
//! keeps it, and runs guests on threads of their own; `http` is the one thing that guests reach outside through
//! this crate. Everything else a guest asks for goes through `skillz_tool::Host`.

mod build;
mod http;
mod prepare;
mod run;
mod schema;
mod settings;
#[cfg(test)]
mod test_host;

#[cfg(test)]
skillz_process::helper_entry!();

use std::sync::Arc;

use async_trait::async_trait;
use skillz_tool::{Draft, Host, Prepared, Tool, ToolCall, ToolError, ToolOutcome, ToolRuntime};

use prepare::Maker;
use run::{Place, Runner};
pub use settings::{ToolchainSettings, WasmSettings};

/// Makes and runs WASM tools. Cheap to make: engines, threads and compilers start when they are first needed.
pub struct WasmRuntime {
    runner: Runner,
    maker: Maker,
}

impl WasmRuntime {
    /// A runtime with these settings. Starts nothing.
    #[expect(clippy::needless_pass_by_value, reason = "a runtime takes its settings over")]
    pub fn new(settings: WasmSettings) -> Self {
        Self { runner: Runner::new(&settings), maker: Maker::new(&settings) }
    }

    /// Makes ready for the first call, in the background: for a server that has WASM tools and nothing else to do.
    /// Takes a few megabytes of memory. Without it the first call does the same, and takes about a millisecond longer.
    pub fn warm_up(&self) {
        if let Err(error) = self.runner.warm_up() {
            tracing::warn!(%error, "WASM tools could not be made ready");
        }
    }

    /// Finds the toolchain, adds the target if it is missing, and builds the crate `skillz`, so that a first tool
    /// with `#[skillz::tool]` does not wait for it. For set-up scripts; takes about ten seconds, once.
    pub async fn prepare_builds(&self, host: Arc<dyn Host>) -> Result<(), ToolError> {
        self.maker.build_guest_crate(&*host).await
    }

    /// Runs a call on the thread that polls it. For benches: the difference to `call` is what handing over costs.
    #[doc(hidden)]
    pub async fn call_here(&self, call: ToolCall, host: Arc<dyn Host>) -> Result<ToolOutcome, ToolError> {
        self.call_at(call, host, Place::Here).await
    }

    async fn call_at(&self, call: ToolCall, host: Arc<dyn Host>, place: Place) -> Result<ToolOutcome, ToolError> {
        let path = call.tool.module_path();
        let module = if let Some(module) = self.runner.loaded(&path) {
            module
        } else {
            // Compiling is not the call's own doing, and does not count against its time.
            let _pause = call.clock.pause();
            let path = self.maker.module_of(&call.tool, &*host).await?;
            self.runner.load(&path).await?
        };
        self.runner.call(call, host, module, place).await
    }

    /// How many guests run at this moment, those that wait for the server left out. For metrics.
    pub fn running_guests(&self) -> usize {
        self.runner.running()
    }
}

#[async_trait]
impl ToolRuntime for WasmRuntime {
    async fn prepare(&self, draft: Draft, host: Arc<dyn Host>) -> Result<Prepared, ToolError> {
        self.maker.prepare(draft, &*host, &self.runner).await
    }

    async fn call(&self, call: ToolCall, host: Arc<dyn Host>) -> Result<ToolOutcome, ToolError> {
        self.call_at(call, host, Place::GuestThreads).await
    }

    fn retire(&self, tool: &Tool) {
        self.runner.forget(&tool.directory);
    }
}
