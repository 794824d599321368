//! A tools folder of its own with a registry on it, for tests.
#![allow(dead_code, unreachable_pub, reason = "each test program uses a part of it")]

use std::{
    fs,
    path::{Path, PathBuf},
    sync::Arc,
    time::Duration,
};

use skillz_json::{Value, json};
use skillz_registry::{Catalog, Expectation, Publication, Registry, RegistryError, RegistryEvent, RegistrySettings, VersionList};
use skillz_tool::{Manifest, Origin, Tool, ToolKind, ToolName, Version};
use tempfile::TempDir;

/// How long a test waits for something to happen.
pub const DEADLINE: Duration = Duration::from_secs(30);

pub struct Workshop {
    pub registry: Registry,
    folder: TempDir,
}

pub fn name(name: &str) -> ToolName {
    ToolName::for_existing(name).unwrap()
}

pub fn version(text: &str) -> Version {
    text.parse().unwrap()
}

pub fn script(tool: &str) -> Manifest {
    Manifest { entry_file: Some("main.py".to_owned()), ..Manifest::new(tool, "A tool", ToolKind::Script) }
}

#[expect(clippy::unnecessary_wraps, reason = "as a manifest has it")]
pub fn schema(required: &[&str]) -> Option<Value> {
    Some(json!({"type": "object", "properties": {"a": {"type": "string"}}, "required": required}))
}

impl Workshop {
    /// An empty folder that is not watched.
    pub async fn new() -> Self {
        Self::in_folder(tempfile::tempdir().unwrap(), false).await
    }

    /// An empty folder that is watched.
    pub async fn watched() -> Self {
        let workshop = Self::in_folder(tempfile::tempdir().unwrap(), true).await;
        workshop.watching().await;
        workshop
    }

    pub async fn in_folder(folder: TempDir, watch: bool) -> Self {
        let registry = open(&folder.path().join("tools"), watch).await;
        Self { registry, folder }
    }

    /// A second server on the same folder.
    pub async fn second(&self, watch: bool) -> Registry {
        open(&self.tools(), watch).await
    }

    /// The same folder after a restart of the server.
    pub async fn restarted(self, watch: bool) -> Self {
        let Self { registry, folder } = self;
        drop(registry);
        Self::in_folder(folder, watch).await
    }

    pub fn tools(&self) -> PathBuf {
        self.folder.path().join("tools")
    }

    pub fn path(&self, path: &str) -> PathBuf {
        self.tools().join(path)
    }

    pub fn read(&self, path: &str) -> String {
        fs::read_to_string(self.path(path)).unwrap_or_else(|error| panic!("{path}: {error}"))
    }

    pub fn write(&self, path: &str, content: &str) {
        let path = self.path(path);
        fs::create_dir_all(path.parent().unwrap()).unwrap();
        fs::write(path, content).unwrap();
    }

    pub fn catalog(&self) -> Arc<Catalog> {
        self.registry.snapshot()
    }

    /// Publishes `code` as the script `tool`, whatever is there.
    pub async fn publish(&self, tool: &str, code: &str) -> Result<Arc<Tool>, RegistryError> {
        self.publish_manifest(script(tool), code, Expectation::Anything).await
    }

    pub async fn publish_manifest(
        &self,
        manifest: Manifest,
        code: &str,
        expected: Expectation,
    ) -> Result<Arc<Tool>, RegistryError> {
        publish(&self.registry, manifest, code, expected).await
    }

    pub async fn rollback(&self, tool: &str, to: &str) -> Result<Arc<Tool>, RegistryError> {
        let staged = self.registry.stage_version(&name(tool), version(to)).await?;
        let publication = Publication {
            name: name(tool),
            staging: staged.staging,
            manifest: staged.manifest,
            origin: Origin::Rollback,
            expected: staged.expected,
        };
        self.registry.publish(publication).await
    }

    pub async fn versions(&self, tool: &str) -> VersionList {
        self.registry.versions(&name(tool)).await.unwrap()
    }

    /// Version, origin and code of each version, the newest first.
    pub async fn history(&self, tool: &str) -> Vec<(String, Origin, String)> {
        let list = self.versions(tool).await;
        let entry = |entry: skillz_registry::VersionEntry| {
            let code = fs::read_to_string(entry.directory.join("main.py")).unwrap();
            (entry.version.to_string(), entry.origin, code)
        };
        list.versions.into_iter().map(entry).collect()
    }

    /// The code that calls of a tool run.
    pub fn served(&self, tool: &str) -> Option<String> {
        let tool = self.catalog().get(tool).cloned()?;
        Some(fs::read_to_string(tool.source_path().unwrap()).unwrap())
    }

    /// Waits until the catalog is as wanted.
    pub async fn until(&self, what: &str, wanted: impl Fn(&Catalog) -> bool) -> Arc<Catalog> {
        until(&self.registry, what, wanted).await
    }

    /// Waits until the watcher tells of a change.
    async fn watching(&self) {
        self.write("watch_probe/manifest.json", r#"{"name": "watch_probe", "description": "d", "tool_type": "pipeline"}"#);
        self.until("the watcher works", |catalog| catalog.get("watch_probe").is_some()).await;
        fs::remove_dir_all(self.path("watch_probe")).unwrap();
        self.until("the watcher works", skillz_registry::Catalog::is_empty).await;
    }
}

pub async fn open(tools: &Path, watch: bool) -> Registry {
    let registry = Registry::open(RegistrySettings { tools_directory: tools.to_owned(), watch });
    registry.ready().await;
    registry
}

pub async fn publish(
    registry: &Registry,
    manifest: Manifest,
    code: &str,
    expected: Expectation,
) -> Result<Arc<Tool>, RegistryError> {
    let staging = registry.stage().await?;
    fs::write(staging.path().join("main.py"), code).unwrap();
    let publication = Publication { name: name(&manifest.name), staging, manifest, origin: Origin::Register, expected };
    registry.publish(publication).await
}

pub async fn until(registry: &Registry, what: &str, wanted: impl Fn(&Catalog) -> bool) -> Arc<Catalog> {
    let mut changes = registry.changes();
    let waited = tokio::time::timeout(DEADLINE, async {
        loop {
            changes.borrow_and_update();
            let catalog = registry.snapshot();
            if wanted(&catalog) {
                return catalog;
            }
            changes.changed().await.unwrap();
        }
    });
    let never = |_| panic!("{what}: never came about; broken: {:?}", registry.snapshot().broken());
    waited.await.unwrap_or_else(never)
}

/// The next event that is as wanted.
pub async fn next_event(
    events: &mut tokio::sync::broadcast::Receiver<RegistryEvent>,
    wanted: impl Fn(&RegistryEvent) -> bool,
) -> RegistryEvent {
    tokio::time::timeout(DEADLINE, async {
        loop {
            let event = events.recv().await.unwrap();
            if wanted(&event) {
                return event;
            }
        }
    })
    .await
    .expect("the event never came")
}

/// All files below a folder, with their content.
pub fn contents(folder: &Path) -> Vec<(String, Vec<u8>)> {
    let mut files = Vec::new();
    let mut folders = vec![folder.to_owned()];
    while let Some(next) = folders.pop() {
        for entry in fs::read_dir(next).into_iter().flatten().flatten() {
            if entry.file_type().unwrap().is_dir() {
                folders.push(entry.path());
            } else if entry.file_type().unwrap().is_file() {
                let path = entry.path().strip_prefix(folder).unwrap().to_string_lossy().into_owned();
                files.push((path, fs::read(entry.path()).unwrap()));
            }
        }
    }
    files.sort();
    files
}

pub fn copy_all(from: &Path, to: &Path) {
    for (path, content) in contents(from) {
        let place = to.join(path);
        fs::create_dir_all(place.parent().unwrap()).unwrap();
        fs::write(place, content).unwrap();
    }
}
