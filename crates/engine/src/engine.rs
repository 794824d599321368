//! The engine as everybody uses it, and the parts it is made of.

use std::{collections::HashMap, sync::Arc};

use serde_json::Value;
use skillz_registry::{Catalog, Registry};
use skillz_tool::{HistoryStore, MemoryStore, ToolError, ToolKind, ToolRuntime};
use tokio::sync::watch;

use crate::{
    CallFailure, CallReply, CallRequest, ClientPort, CodeRequest, DeleteReport, EngineSettings, Exposed, ListRequest, PipelineRequest,
    PublishReport, PublishRequest, ResourceSource, ResultStore, VersionAction,
};

/// What an engine is made of.
pub struct EngineParts {
    /// Tools on disk.
    pub registry: Registry,
    /// One runtime for each kind of tool; calls of a kind without one fail and say so.
    pub runtimes: HashMap<ToolKind, Arc<dyn ToolRuntime>>,
    /// The tools' memory.
    pub memory: Arc<dyn MemoryStore>,
    /// The call log.
    pub history: Arc<dyn HistoryStore>,
    /// What the operator decided.
    pub settings: EngineSettings,
}

/// The heart of the server. Cheap to clone; clones share everything.
#[derive(Clone)]
pub struct Engine {
    #[expect(dead_code, reason = "the signatures come first")]
    pub(crate) inner: Arc<Inner>,
}

pub(crate) struct Inner {}

#[expect(clippy::todo, clippy::unused_async, unused_variables, clippy::needless_pass_by_value, reason = "the signatures come first")]
impl Engine {
    /// Puts an engine together. Needs a tokio runtime, in which it follows the registry for as long as it lives.
    pub fn new(parts: EngineParts) -> Self {
        todo!()
    }

    /// Waits until the tools that were on disk at the start are loaded.
    pub async fn ready(&self) {
        todo!()
    }

    /// All tools as of now.
    pub fn catalog(&self) -> Arc<Catalog> {
        todo!()
    }

    /// A number that grows with each change of what is published.
    pub fn changes(&self) -> watch::Receiver<u64> {
        todo!()
    }

    /// The tools that belong in `tools/list` now.
    pub fn exposed(&self) -> Arc<Exposed> {
        todo!()
    }

    /// Calls a tool for a client. Dropping the future stops the call and everything it started.
    pub async fn call(&self, request: CallRequest) -> Result<CallReply, CallFailure> {
        todo!()
    }

    /// Prepares, tries and publishes a new version of a tool.
    pub async fn publish(&self, request: PublishRequest) -> Result<PublishReport, ToolError> {
        todo!()
    }

    /// Moves a tool with all its versions to the trash.
    pub async fn delete(&self, name: &str) -> Result<DeleteReport, ToolError> {
        todo!()
    }

    /// Runs the stored examples of one tool, or of all.
    pub async fn test(&self, name: Option<&str>, client: Arc<dyn ClientPort>) -> Result<Value, ToolError> {
        todo!()
    }

    /// Lists tools, as the built-in `list_tools` answers.
    pub async fn list(&self, request: ListRequest) -> Result<Value, ToolError> {
        todo!()
    }

    /// Looks at, compares and restores versions, as the built-in `version` answers.
    pub async fn versions(&self, action: VersionAction, tool_name: &str, client: Arc<dyn ClientPort>) -> Result<Value, ToolError> {
        todo!()
    }

    /// Makes, shows and runs pipelines, as the built-in `pipeline` answers.
    pub async fn pipeline(&self, request: PipelineRequest, client: Arc<dyn ClientPort>) -> Result<Value, ToolError> {
        todo!()
    }

    /// Runs a program that calls tools, as the built-in `execute_code` answers.
    pub async fn execute_code(&self, request: CodeRequest, client: Arc<dyn ClientPort>) -> Result<Value, ToolError> {
        todo!()
    }

    /// The tools' memory.
    pub fn memory(&self) -> &Arc<dyn MemoryStore> {
        todo!()
    }

    /// The call log.
    pub fn history(&self) -> &Arc<dyn HistoryStore> {
        todo!()
    }

    /// Results that were too long for one answer.
    pub fn results(&self) -> &ResultStore {
        todo!()
    }

    /// Sets where running tools read resources from; the first caller wins.
    pub fn set_resources(&self, resources: Arc<dyn ResourceSource>) {
        todo!()
    }
}
