//! The registry as the engine uses it.

use std::{path::PathBuf, sync::Arc};

use skillz_tool::{Tool, ToolName, Version};
use tokio::sync::{broadcast, watch};

use crate::{Catalog, Generation, Publication, RegistryError, RegistryEvent, StagedEdit, StagedVersion, StagingDirectory, VersionList};

/// What a registry is opened with.
#[derive(Debug, Clone)]
pub struct RegistrySettings {
    /// The folder of all tools; made at the first publish if it is missing.
    pub tools_directory: PathBuf,
    /// Follow what others change in the folder.
    pub watch: bool,
}

/// All tools on disk. Cheap to clone; clones share one state.
#[derive(Debug, Clone)]
pub struct Registry {}

#[expect(clippy::unused_async, clippy::todo, unused_variables, clippy::needless_pass_by_value, reason = "the signatures come first")]
impl Registry {
    /// Opens the folder and returns at once; tools are loaded in the background. Needs a tokio runtime.
    pub fn open(settings: RegistrySettings) -> Self {
        todo!()
    }

    /// Waits until the tools that were on disk at the start are loaded.
    pub async fn ready(&self) {
        todo!()
    }

    /// All tools as of now. Costs no IO and no waiting.
    pub fn snapshot(&self) -> Arc<Catalog> {
        todo!()
    }

    /// Changes whenever [`Self::snapshot`] gives something new.
    pub fn changes(&self) -> watch::Receiver<Generation> {
        todo!()
    }

    /// What happens from now on. A receiver that lags loses events, not state: it reads the catalog anew.
    pub fn events(&self) -> broadcast::Receiver<RegistryEvent> {
        todo!()
    }

    /// Makes an empty staging folder.
    pub async fn stage(&self) -> Result<StagingDirectory, RegistryError> {
        todo!()
    }

    /// Makes a staged folder the current version of its tool, durably; the tool before it becomes an older version.
    pub async fn publish(&self, publication: Publication) -> Result<Arc<Tool>, RegistryError> {
        todo!()
    }

    /// Takes a tool out of service and moves its folder, with all versions, to the trash. Gives what was removed.
    pub async fn delete(&self, name: &ToolName) -> Result<Arc<Tool>, RegistryError> {
        todo!()
    }

    /// All versions of a tool, deleted ones included.
    pub async fn versions(&self, name: &ToolName) -> Result<VersionList, RegistryError> {
        todo!()
    }

    /// One version of a tool, ready to be called; the current one comes from the catalog.
    pub async fn tool_version(&self, name: &ToolName, version: Version) -> Result<Arc<Tool>, RegistryError> {
        todo!()
    }

    /// Unified diff of manifest and source files between two versions; empty where nothing differs.
    pub async fn diff(&self, name: &ToolName, from: Version, to: Version) -> Result<String, RegistryError> {
        todo!()
    }

    /// Copies a version, of a deleted tool too, to a staging folder; publish it with [`skillz_tool::Origin::Rollback`].
    pub async fn stage_version(&self, name: &ToolName, version: Version) -> Result<StagedVersion, RegistryError> {
        todo!()
    }

    /// Copies a hand-edited folder to a staging folder. `None` if there is no edit (any more), for example
    /// because another process has recorded it. Waits while another process is at it.
    pub async fn stage_edit(&self, name: &ToolName) -> Result<Option<StagedEdit>, RegistryError> {
        todo!()
    }

    /// Publishes a prepared edit as a version of its own. A further edit meanwhile is a conflict, and comes
    /// as an event of its own.
    pub async fn record_edit(&self, edit: StagedEdit) -> Result<Arc<Tool>, RegistryError> {
        todo!()
    }

    /// Leaves an edit unrecorded: the last good version stays in service, and the tool is reported as broken
    /// with `reason` until its files change again.
    pub async fn refuse_edit(&self, edit: StagedEdit, reason: String) {
        todo!()
    }

    /// Looks at the folder now instead of waiting for the watcher; for `watch: false` and for tests.
    pub async fn reload(&self) {
        todo!()
    }
}
