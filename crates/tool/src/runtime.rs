//! The seam that every way of running tools implements.

use std::{path::PathBuf, sync::Arc};

use async_trait::async_trait;

use crate::{Host, Manifest, Tool, ToolCall, ToolError, ToolOutcome};

/// What a new tool is made from.
#[derive(Debug, Clone)]
pub enum SourceCode {
    /// Source text, to be written into the draft's folder by the runtime.
    Text(String),
    /// WebAssembly text (WASM only).
    Wat(String),
    /// A ready module (WASM only).
    Module(Vec<u8>),
    /// Whatever lies in the draft's folder already (imports, hand edits, pipelines).
    Folder,
}

/// A tool on its way to being published: a staging folder, a manifest, a source.
#[derive(Debug, Clone)]
pub struct Draft {
    /// The manifest as asked for; the runtime completes it.
    pub manifest: Manifest,
    /// What to make the tool from.
    pub source: SourceCode,
    /// The staging folder, which becomes the tool's folder.
    pub directory: PathBuf,
}

/// A draft that can be called: files are in its folder, the manifest is complete but for version and hash.
#[derive(Debug, Clone)]
pub struct Prepared {
    /// The completed manifest (entry file, interpreter, protocol, inferred schemas).
    pub manifest: Manifest,
    /// Size of the source, or of the compiled module, in bytes.
    pub size_bytes: u64,
    /// Sentences for whoever published the tool, such as compiler warnings.
    pub notes: Vec<String>,
}

/// One way of making and running tools.
#[async_trait]
pub trait ToolRuntime: Send + Sync {
    /// Makes a draft callable: compiles, installs, infers schemas, writes source files into the draft's folder.
    /// Progress goes to `host`. Dropping the future stops compilers and installers.
    async fn prepare(&self, draft: Draft, host: Arc<dyn Host>) -> Result<Prepared, ToolError>;

    /// Runs one call to its end, within its limits. Dropping the future stops everything the call started.
    async fn call(&self, call: ToolCall, host: Arc<dyn Host>) -> Result<ToolOutcome, ToolError>;

    /// Lets go of what is kept for a version that is no longer current (warm workers, compiled modules).
    fn retire(&self, tool: &Tool);

    /// Removes from the disk what only a deleted tool needed and what can be made again, such as installed dependencies.
    /// `others` are the tools that are still there. What a call still uses stays.
    async fn discard(&self, _tool: &Tool, _others: &[Arc<Tool>]) {}
}
