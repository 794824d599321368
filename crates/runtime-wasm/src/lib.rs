//! Tools that are WebAssembly: Rust compiled here, WebAssembly text, and ready modules.
//!
//! `build` turns a draft into a module, by the Rust toolchain in a sandbox; `run` compiles modules to machine code,
//! keeps it, and runs guests on threads of their own; `http` is the one thing that guests reach outside through
//! this crate. Everything else a guest asks for goes through `skillz_tool::Host`.

mod http;
mod run;
mod settings;

use std::sync::Arc;

use async_trait::async_trait;
use skillz_tool::{Draft, Host, Prepared, Tool, ToolCall, ToolError, ToolOutcome, ToolRuntime};

use run::Runner;
pub use settings::{ToolchainSettings, WasmSettings};

/// Makes and runs WASM tools. Cheap to make: engines, threads and compilers start when they are first needed.
pub struct WasmRuntime {
    runner: Runner,
}

impl WasmRuntime {
    /// A runtime with these settings. Starts nothing.
    pub fn new(settings: WasmSettings) -> Self {
        let runner = Runner::new(&settings);
        Self { runner }
    }
}

#[async_trait]
impl ToolRuntime for WasmRuntime {
    async fn prepare(&self, _draft: Draft, _host: Arc<dyn Host>) -> Result<Prepared, ToolError> {
        Err(ToolError::internal("not yet"))
    }

    async fn call(&self, call: ToolCall, host: Arc<dyn Host>) -> Result<ToolOutcome, ToolError> {
        let module = self.runner.load(&call.tool.module_path()).await?;
        self.runner.call(call, host, module).await
    }

    fn retire(&self, tool: &Tool) {
        self.runner.forget(&tool.directory);
    }
}
