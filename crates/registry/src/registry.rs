//! The registry as the engine uses it: async at the outside, blocking work on threads made for it.

use std::{path::PathBuf, sync::Arc, time::Duration};

use skillz_tool::{Tool, ToolName, Version};
use tokio::sync::{broadcast, watch};

use crate::{
    Catalog, Expectation, Generation, Publication, RegistryError, RegistryEvent, StagedEdit, StagedFolder, StagedVersion,
    StagingDirectory, VersionList, diff, edit,
    publish::publish,
    shared::Shared,
    trash, tree,
    versions::{self, KnownVersions},
    watch as watcher,
};

/// Pause between two looks at another process's lock.
const LOCK_PAUSE: Duration = Duration::from_millis(50);

/// What a registry is opened with.
#[derive(Debug, Clone)]
pub struct RegistrySettings {
    /// The folder of all tools; made at the first publish if it is missing.
    pub tools_directory: PathBuf,
    /// Follow what others change in the folder.
    pub watch: bool,
}

/// All tools on disk. Cheap to clone; clones share one state. Watching ends with the last clone.
#[derive(Debug, Clone)]
pub struct Registry {
    shared: Arc<Shared>,
}

impl Registry {
    /// Opens the folder and returns at once; tools are loaded in the background. Needs a tokio runtime.
    pub fn open(settings: RegistrySettings) -> Self {
        let shared = Arc::new(Shared::new(settings.tools_directory));
        let loading = Arc::clone(&shared);
        tokio::task::spawn_blocking(move || {
            loading.load_all();
            if settings.watch {
                watcher::start(&loading);
                loading.tidy();
            }
        });
        Self { shared }
    }

    /// Waits until the tools that were on disk at the start are loaded.
    pub async fn ready(&self) {
        // The other end lives as long as `self`.
        let _ = self.shared.loaded.subscribe().wait_for(|loaded| *loaded).await;
    }

    /// All tools as of now. Costs no IO and no waiting.
    pub fn snapshot(&self) -> Arc<Catalog> {
        self.shared.snapshot()
    }

    /// Changes whenever [`Self::snapshot`] gives something new.
    pub fn changes(&self) -> watch::Receiver<Generation> {
        self.shared.generation.subscribe()
    }

    /// What happens from now on. A receiver that lags loses events, not state: it reads the catalog anew.
    pub fn events(&self) -> broadcast::Receiver<RegistryEvent> {
        self.shared.events.subscribe()
    }

    /// The folder that people see and edit, whether there is such a tool or not. Calls run from
    /// [`Tool::directory`] instead.
    pub fn folder(&self, name: &ToolName) -> PathBuf {
        self.shared.layout.tool(name.as_str())
    }

    /// Makes an empty staging folder.
    pub async fn stage(&self) -> Result<StagingDirectory, RegistryError> {
        self.blocking(|shared| StagingDirectory::make(&shared.layout)).await
    }

    /// Copies a folder from anywhere to a staging folder, with all files that belong to a version.
    pub async fn stage_folder(&self, from: PathBuf) -> Result<StagedFolder, RegistryError> {
        self.blocking(move |shared| StagedFolder::make(&shared.layout, &from)).await
    }

    /// Makes a staged folder the current version of its tool, durably; the tool before it becomes an earlier version.
    /// If the future is dropped before its turn has come, nothing is published; once begun it goes on to its end, so
    /// that whatever is published later comes after it.
    ///
    /// # Errors
    ///
    /// Where something else is there than was expected, the folder is no tool, or the disk refuses. Nothing has
    /// changed then.
    pub async fn publish(&self, publication: Publication) -> Result<Arc<Tool>, RegistryError> {
        let caller = Arc::new(());
        let waiting = Arc::downgrade(&caller);
        let published = self
            .blocking(move |shared| {
                let tool = publish(&shared.layout, publication, None, &|| waiting.strong_count() > 0)?;
                Ok(shared.published(tool))
            })
            .await;
        drop(caller);
        published
    }

    /// Takes a tool out of service and moves its folder, with all versions, to the trash. Gives what was in service;
    /// nothing for a folder that was broken from the start.
    pub async fn delete(&self, name: &ToolName) -> Result<Option<Arc<Tool>>, RegistryError> {
        let name = name.clone();
        self.blocking(move |shared| {
            let tool = shared.snapshot().get(name.as_str()).cloned();
            trash::delete(&shared.layout, &name)?;
            if let Some(tool) = &tool {
                crate::live::supersede(&shared.layout, tool);
            }
            shared.refresh([name.as_str()]);
            Ok(tool)
        })
        .await
    }

    /// All versions of a tool, deleted ones included.
    pub async fn versions(&self, name: &ToolName) -> Result<VersionList, RegistryError> {
        let name = name.clone();
        self.blocking(move |shared| {
            let known = shared.known_versions(&name);
            if known.is_empty() {
                return Err(RegistryError::UnknownTool { name });
            }
            let versions = known.entries(&name);
            Ok(VersionList { current: known.current.map(|tool| tool.version), name, versions })
        })
        .await
    }

    /// The highest number that a tool was ever given, deleted versions included; costs no reading of versions.
    pub async fn highest_version(&self, name: &ToolName) -> Option<Version> {
        let name = name.clone();
        let found = self.blocking(move |shared| {
            let current = shared.snapshot().get(name.as_str()).map(|tool| tool.version);
            Ok(versions::highest(&shared.layout, &name, current))
        });
        found.await.ok().flatten()
    }

    /// One version of a tool, ready to be called; the current one comes from the catalog.
    pub async fn tool_version(&self, name: &ToolName, version: Version) -> Result<Arc<Tool>, RegistryError> {
        if let Some(tool) = self.snapshot().get(name.as_str()).filter(|tool| tool.version == version) {
            return Ok(Arc::clone(tool));
        }
        let name = name.clone();
        self.blocking(move |shared| shared.earlier_version(&name, version)).await
    }

    /// Unified diff of manifest and source files between two versions; empty where nothing differs.
    pub async fn diff(&self, name: &ToolName, from: Version, to: Version) -> Result<String, RegistryError> {
        let name = name.clone();
        self.blocking(move |shared| {
            let known = shared.known_versions(&name);
            Ok(diff::unified(&known.read(&name, from)?, &known.read(&name, to)?))
        })
        .await
    }

    /// Copies a version, of a deleted tool too, to a staging folder; publish it with [`skillz_tool::Origin::Rollback`].
    pub async fn stage_version(&self, name: &ToolName, version: Version) -> Result<StagedVersion, RegistryError> {
        let name = name.clone();
        self.blocking(move |shared| {
            let known = shared.known_versions(&name);
            let found = known.read(&name, version)?;
            let staging = StagingDirectory::make(&shared.layout)?;
            tree::copy(&found.folder, &found.walk, staging.path()).map_err(RegistryError::io("Copying", &found.folder))?;
            let mut manifest = found.manifest;
            let mut source = manifest.source.take().and_then(|source| source.as_object().cloned()).unwrap_or_default();
            source.insert("rolled_back_to".to_owned(), skillz_json::json!(version));
            (manifest.source, manifest.version) = (Some(source.into()), None);
            let expected = known.current.map_or(Expectation::Absent, |tool| Expectation::Current(tool.version));
            Ok(StagedVersion { staging, manifest, expected })
        })
        .await
    }

    /// Copies a hand-edited folder to a staging folder. `None` if there is no edit (any more), for example
    /// because another process has recorded it. Waits while another process is at it.
    pub async fn stage_edit(&self, name: &ToolName) -> Result<Option<StagedEdit>, RegistryError> {
        loop {
            let name = name.clone();
            let lock = self.blocking({
                let name = name.clone();
                move |shared| edit::try_lock(&shared.layout, &name)
            });
            let Some(lock) = lock.await? else {
                tokio::time::sleep(LOCK_PAUSE).await;
                continue;
            };
            return self
                .blocking(move |shared| {
                    shared.refresh([name.as_str()]);
                    let catalog = shared.snapshot();
                    if !catalog.edited().contains(&name) {
                        return Ok(None);
                    }
                    edit::stage(&shared.layout, &name, catalog.get(name.as_str()), lock)
                })
                .await;
        }
    }

    /// Publishes a prepared edit as a version of its own. A further edit meanwhile is a conflict; it is told of by
    /// another [`RegistryEvent::Edited`].
    pub async fn record_edit(&self, edit: StagedEdit) -> Result<Arc<Tool>, RegistryError> {
        self.blocking(move |shared| {
            let StagedEdit { name, staging, manifest, walk, _lock: held, .. } = edit;
            let edited = name.clone();
            let publication =
                Publication { name, staging, manifest, origin: skillz_tool::Origin::Edit, expected: Expectation::Anything };
            match publish(&shared.layout, publication, Some(&walk), &|| true) {
                Ok(tool) => Ok(shared.published(tool)),
                Err(error) => {
                    drop(held);
                    shared.tell_of_edit(edited);
                    Err(error)
                }
            }
        })
        .await
    }

    /// Leaves an edit unrecorded: the last good version stays in service, and the tool is reported as broken
    /// with `reason` until its files change again.
    pub async fn refuse_edit(&self, edit: StagedEdit, reason: String) {
        let outcome = self.blocking(move |shared| {
            shared.refuse(&edit, reason);
            Ok(())
        });
        // Fails only while the server ends.
        let _ = outcome.await;
    }

    /// Looks at the whole folder now instead of waiting for the watcher.
    pub async fn reload(&self) {
        let outcome = self.blocking(|shared| {
            shared.refresh_all();
            Ok(())
        });
        // Fails only while the server ends.
        let _ = outcome.await;
    }

    async fn blocking<T: Send + 'static>(
        &self,
        work: impl FnOnce(&Shared) -> Result<T, RegistryError> + Send + 'static,
    ) -> Result<T, RegistryError> {
        let shared = Arc::clone(&self.shared);
        tokio::task::spawn_blocking(move || work(&shared)).await.map_err(|_| RegistryError::Stopped)?
    }
}

impl Shared {
    fn known_versions(&self, name: &ToolName) -> KnownVersions {
        KnownVersions::of(&self.layout, name, self.snapshot().get(name.as_str()).cloned())
    }
}
