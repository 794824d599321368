//! The state that all clones of a registry and its watcher share.

use std::{
    collections::{BTreeMap, BTreeSet, HashMap},
    path::{Path, PathBuf},
    sync::{Arc, Mutex, MutexGuard, PoisonError, RwLock},
    thread,
};

use skillz_tool::{Tool, ToolName, Version};
use tokio::sync::{broadcast, watch};

use crate::{
    BrokenTool, Catalog, Generation, RegistryError, RegistryEvent, StagedEdit,
    folders::{self, Change, Condition, Folder},
    layout::Layout,
    live,
    load::{self, Loaded},
    lock::FolderLock,
    staging, swap, trash,
    versions::KnownVersions,
};

/// Threads that load tools at the start; more than that only wait for each other in the kernel.
const LOADERS: usize = 4;
/// Events that a slow receiver may lag behind.
const EVENTS: usize = 1_024;
/// Earlier versions kept ready for calls.
const EARLIER_VERSIONS: usize = 256;

pub(crate) struct Shared {
    pub(crate) layout: Layout,
    /// Locked while the disk is looked at and the outcome is told, so that what is told is never older than
    /// what was told before. Only threads for blocking work take it.
    folders: Mutex<BTreeMap<String, Folder>>,
    catalog: RwLock<Arc<Catalog>>,
    earlier: Mutex<HashMap<(ToolName, Version), Arc<Tool>>>,
    pub(crate) generation: watch::Sender<Generation>,
    pub(crate) events: broadcast::Sender<RegistryEvent>,
    pub(crate) loaded: watch::Sender<bool>,
    /// Holds the watcher, which ends with this.
    pub(crate) watcher: Mutex<Option<crate::watch::Watching>>,
}

impl std::fmt::Debug for Shared {
    fn fmt(&self, formatter: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        formatter.debug_struct("Registry").field("tools", &self.layout.tools()).finish_non_exhaustive()
    }
}

impl Shared {
    pub(crate) fn new(tools: PathBuf) -> Self {
        Self {
            layout: Layout::new(tools),
            folders: Mutex::default(),
            catalog: RwLock::default(),
            earlier: Mutex::default(),
            generation: watch::Sender::default(),
            events: broadcast::Sender::new(EVENTS),
            loaded: watch::Sender::new(false),
            watcher: Mutex::default(),
        }
    }

    pub(crate) fn snapshot(&self) -> Arc<Catalog> {
        Arc::clone(&self.catalog.read().unwrap_or_else(PoisonError::into_inner))
    }

    /// Loads everything for the first time. Blocks.
    pub(crate) fn load_all(&self) {
        let mut folders = self.folders();
        let mut names = load::list(&self.layout).unwrap_or_default();
        if std::fs::read_dir(self.layout.tools()).is_ok_and(has_aside) {
            if let Ok(_lock) = FolderLock::take(&self.layout) {
                swap::recover(&self.layout);
            }
            names = load::list(&self.layout).unwrap_or_default();
        }
        let found = in_parallel(&names, |name| folders::look(&self.layout, name, None));
        // A tool that is simply there at the start is no news; one that wants something is.
        let is_news = |event: &RegistryEvent| matches!(event, RegistryEvent::Edited { .. } | RegistryEvent::Broken { .. });
        let mut events = Vec::new();
        for (name, change) in found {
            if let Some(folder) = change.folder {
                folders.insert(name, folder);
            }
            events.extend(change.event.filter(is_news));
        }
        self.tell(&folders, events);
        drop(folders);
        self.loaded.send_replace(true);
    }

    /// Looks at some tools again, and tells what changed. Blocks.
    pub(crate) fn refresh<'a>(&self, names: impl IntoIterator<Item = &'a str>) {
        let mut folders = self.folders();
        let mut events = Vec::new();
        let mut visible = false;
        for name in names {
            let Some(Change { folder, event }) = folders::look(&self.layout, name, folders.get(name)) else { continue };
            if matches!(event, Some(RegistryEvent::Removed { .. })) {
                self.rescue(folders.get(name));
            }
            visible |= folders::is_visible(folders.get(name), folder.as_ref());
            match folder {
                Some(folder) => folders.insert(name.to_owned(), folder),
                None => folders.remove(name),
            };
            events.extend(event);
        }
        if visible {
            self.tell(&folders, events);
        } else {
            // An edit that goes on changes nothing for readers, and is news for whoever checks it.
            self.send(events);
        }
    }

    /// Looks at every tool that is there or was there. Blocks.
    pub(crate) fn refresh_all(&self) {
        self.refresh(self.names().iter().map(String::as_str));
    }

    /// Takes note of a tool that was just published here. Gives the tool as the catalog has it, unless others were
    /// faster still.
    pub(crate) fn published(&self, tool: Arc<Tool>) -> Arc<Tool> {
        self.refresh([tool.name.as_str()]);
        match self.snapshot().get(tool.name.as_str()) {
            Some(current) if current.version == tool.version && current.hash == tool.hash => Arc::clone(current),
            _ => tool,
        }
    }

    /// Tells once more of an edit that could not be recorded because it went on.
    pub(crate) fn tell_of_edit(&self, name: ToolName) {
        self.refresh([name.as_str()]);
        if self.snapshot().edited().contains(&name) {
            self.send(vec![RegistryEvent::Edited { name }]);
        }
    }

    /// Notes that an edit was refused, if it is still what the folder holds.
    pub(crate) fn refuse(&self, edit: &StagedEdit, reason: String) {
        let mut folders = self.folders();
        let Some(folder) = folders.get_mut(edit.name.as_str()) else { return };
        if folder.condition != Condition::Edited || folder.walk.as_ref() != Some(&edit.walk) {
            return;
        }
        let file = edit.manifest.entry_file.as_deref().unwrap_or(crate::layout::MANIFEST);
        let mut broken = BrokenTool::new(edit.name.as_str(), self.layout.tool(edit.name.as_str()).join(file), None, reason);
        broken.in_service = folder.service.is_some();
        folder.condition = Condition::Refused { hash: edit.hash.clone(), broken };
        self.tell(&folders, vec![RegistryEvent::Broken { name: edit.name.to_string() }]);
    }

    /// An earlier version, ready to be called; kept, since its schemas are compiled once only.
    pub(crate) fn earlier_version(&self, name: &ToolName, version: Version) -> Result<Arc<Tool>, RegistryError> {
        let key = (name.clone(), version);
        if let Some(tool) = self.earlier().get(&key).filter(|tool| tool.directory.is_dir()) {
            return Ok(Arc::clone(tool));
        }
        let known = KnownVersions::of(&self.layout, name, self.snapshot().get(name.as_str()).cloned());
        let found = known.read(name, version)?;
        let tool = found.tool_in(found.folder.clone());
        let mut earlier = self.earlier();
        if earlier.len() >= EARLIER_VERSIONS {
            earlier.clear();
        }
        earlier.insert(key, Arc::clone(&tool));
        Ok(tool)
    }

    /// Housekeeping that nobody waits for: removes leftovers, and makes the copies to run from for tools that
    /// came into the folder by hand. Blocks.
    pub(crate) fn tidy(&self) {
        staging::sweep(&self.layout);
        let catalog = self.snapshot();
        let Ok(_lock) = FolderLock::take(&self.layout) else { return };
        let current: BTreeSet<PathBuf> =
            catalog.tools().map(|tool| self.layout.live_copy(tool.name.as_str(), tool.version, &tool.hash)).collect();
        live::collect(&self.layout, |place| current.contains(place));
        for tool in catalog.tools().filter(|tool| !tool.directory.starts_with(self.layout.live())) {
            self.keep(tool);
        }
    }

    fn keep(&self, tool: &Tool) {
        let Loaded::Good(found) = load::load(&self.layout, tool.name.as_str()) else { return };
        let is_same = found.hash == tool.hash && found.version == tool.version;
        if is_same && live::of(&self.layout, tool.name.as_str(), tool.version, &tool.hash).is_none() {
            live::keep(&self.layout, &found);
        }
    }

    /// A tool that vanished without being deleted: what was in service goes to the trash.
    fn rescue(&self, folder: Option<&Folder>) {
        let Some(tool) = folder.and_then(|folder| folder.service.as_ref()) else { return };
        let Some(place) = live::of(&self.layout, tool.name.as_str(), tool.version, &tool.hash) else { return };
        let Ok(_lock) = FolderLock::take(&self.layout) else { return };
        if !self.layout.tool(tool.name.as_str()).exists() {
            trash::rescue(&self.layout, &tool.name, &place);
            live::supersede(&self.layout, tool);
        }
    }

    fn tell(&self, folders: &BTreeMap<String, Folder>, events: Vec<RegistryEvent>) {
        let generation = Generation(self.generation.borrow().0 + 1);
        let catalog = Arc::new(folders::catalog(&self.layout, generation, folders));
        *self.catalog.write().unwrap_or_else(PoisonError::into_inner) = catalog;
        self.earlier().retain(|_, tool| tool.directory.is_dir());
        self.generation.send_replace(generation);
        self.send(events);
    }

    fn send(&self, events: Vec<RegistryEvent>) {
        for event in events {
            log(&event);
            // Nobody may be listening.
            let _ = self.events.send(event);
        }
    }

    fn folders(&self) -> MutexGuard<'_, BTreeMap<String, Folder>> {
        self.folders.lock().unwrap_or_else(PoisonError::into_inner)
    }

    fn earlier(&self) -> MutexGuard<'_, HashMap<(ToolName, Version), Arc<Tool>>> {
        self.earlier.lock().unwrap_or_else(PoisonError::into_inner)
    }

    /// The folders whose changes are changes of tools.
    pub(crate) fn watched_folders(&self, name: &str) -> Vec<PathBuf> {
        let root = self.layout.tool(name);
        let folders = self.folders();
        let Some(walk) = folders.get(name).and_then(|folder| folder.walk.as_ref()) else {
            return if root.is_dir() && !root.is_symlink() { vec![root] } else { Vec::new() };
        };
        let inner = walk.folders.iter().map(|folder| root.join(folder));
        std::iter::once(root.clone()).chain(inner).collect()
    }

    /// The tools that are known, and the folders that may be tools. Blocks.
    pub(crate) fn names(&self) -> BTreeSet<String> {
        let mut names: BTreeSet<String> = self.folders().keys().cloned().collect();
        names.extend(load::list(&self.layout).unwrap_or_default());
        names
    }

    /// The tool that a path belongs to; `None` for what is no tool's.
    pub(crate) fn name_of(&self, path: &Path) -> Option<String> {
        let first = path.strip_prefix(self.layout.tools()).ok()?.components().next()?;
        let name = first.as_os_str().to_str()?;
        (!name.starts_with('.')).then(|| name.to_owned())
    }
}

fn has_aside(entries: std::fs::ReadDir) -> bool {
    entries.flatten().any(|entry| entry.file_name().to_string_lossy().starts_with(".aside-"))
}

/// Runs `work` for each name on a few threads.
fn in_parallel<T: Send>(names: &[String], work: impl Fn(&str) -> Option<T> + Sync) -> Vec<(String, T)> {
    let loaders = thread::available_parallelism().map_or(1, usize::from).min(LOADERS);
    let share = names.len().div_ceil(loaders).max(1);
    let one_share =
        |names: &[String]| -> Vec<(String, T)> { names.iter().filter_map(|name| Some((name.clone(), work(name)?))).collect() };
    thread::scope(|scope| {
        let (own, others) = names.split_at(share.min(names.len()));
        let threads: Vec<_> = others.chunks(share).map(|names| scope.spawn(|| one_share(names))).collect();
        let mut found = one_share(own);
        for thread in threads {
            found.extend(thread.join().unwrap_or_default());
        }
        found
    })
}

fn log(event: &RegistryEvent) {
    match event {
        RegistryEvent::Published { name, version, .. } => tracing::debug!(tool = %name, %version, "in service"),
        RegistryEvent::Edited { name } => tracing::info!(tool = %name, "edited by hand"),
        RegistryEvent::Removed { name } => tracing::debug!(tool = %name, "removed"),
        RegistryEvent::Broken { name } => tracing::warn!(tool = %name, "its folder cannot be used as it stands"),
    }
}
