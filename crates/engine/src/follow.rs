//! Follows the registry: what is published by others is served, what is edited by hand is prepared, tried, and
//! recorded as a version of its own. An edit that does not hold leaves the last good version in service.

use std::{
    collections::{HashSet, VecDeque},
    sync::{Arc, Weak},
};

use futures::{StreamExt, future::BoxFuture, stream::FuturesUnordered};
use skillz_registry::{Registry, RegistryEvent, StagedEdit};
use skillz_tool::{Prepared, SourceCode, ToolError, ToolKind, ToolName, Upstreams, Version};
use tokio::sync::{broadcast::error::RecvError, oneshot};

use crate::{
    NoClient, draft,
    engine::{Engine, Inner},
    publish::list_failures,
    tree::CallTree,
};

/// Edits worked on at once: each may mean a compiler.
const MOST_EDITS: usize = 2;

/// Starts to follow the registry; `ended` fires when the engine is gone.
pub(crate) fn start(engine: Weak<Inner>, registry: Registry, ended: oneshot::Receiver<()>) {
    tokio::spawn(async move {
        tokio::select! {
            _ = ended => {}
            () = follow(engine, registry) => {}
        }
    });
}

async fn follow(engine: Weak<Inner>, registry: Registry) {
    let mut changes = registry.changes();
    let mut events = registry.events();
    registry.ready().await;
    let mut edits = Edits::default();
    edits.add(registry.snapshot().edited());
    let upstreams = engine.upgrade().and_then(|inner| Engine { inner }.upstreams().cloned());
    let mut imported = 0;
    if let Some(inner) = engine.upgrade() {
        let engine = Engine { inner };
        engine.refresh();
        engine.results().sweep().await;
    }
    loop {
        edits.start_waiting(&engine);
        tokio::select! {
            changed = changes.changed() => {
                let (Ok(()), Some(inner)) = (changed, engine.upgrade()) else { return };
                Engine { inner }.refresh();
            }
            seen = changed(upstreams.as_ref(), imported) => {
                let Some(inner) = engine.upgrade() else { return };
                imported = seen;
                Engine { inner }.refresh();
            }
            event = events.recv() => match event {
                Ok(RegistryEvent::Edited { name }) => edits.add(&[name]),
                Ok(_) => {}
                Err(RecvError::Lagged(_)) => edits.add(registry.snapshot().edited()),
                Err(RecvError::Closed) => return,
            },
            Some(done) = edits.running.next(), if !edits.running.is_empty() => {
                edits.names.remove(&done);
            }
        }
    }
}

/// Waits until the tools of imported servers are others than those of generation `seen`.
async fn changed(upstreams: Option<&Arc<dyn Upstreams>>, seen: u64) -> u64 {
    match upstreams {
        Some(upstreams) => upstreams.changed(seen).await,
        None => std::future::pending().await,
    }
}

/// Edits that wait and edits that are worked on; never two of one tool at a time.
#[derive(Default)]
struct Edits {
    waiting: VecDeque<ToolName>,
    names: HashSet<ToolName>,
    running: FuturesUnordered<BoxFuture<'static, ToolName>>,
}

impl Edits {
    fn add(&mut self, names: &[ToolName]) {
        for name in names {
            if !self.waiting.contains(name) {
                self.waiting.push_back(name.clone());
            }
        }
    }

    fn start_waiting(&mut self, engine: &Weak<Inner>) {
        while self.running.len() < MOST_EDITS {
            let Some(position) = self.waiting.iter().position(|name| !self.names.contains(name)) else { return };
            let (Some(name), Some(inner)) = (self.waiting.remove(position), engine.upgrade()) else { return };
            self.names.insert(name.clone());
            let engine = Engine { inner };
            self.running.push(Box::pin(async move {
                engine.take_edit(&name).await;
                name
            }));
        }
    }
}

impl Engine {
    /// Makes a version of what somebody did to a tool's files, or refuses it with a reason.
    pub(crate) async fn take_edit(&self, name: &ToolName) {
        let edit = match self.registry().stage_edit(name).await {
            Ok(Some(edit)) => edit,
            Ok(None) => return,
            Err(error) => {
                tracing::warn!(tool = %name, %error, "An edit could not be looked at");
                return;
            }
        };
        match self.try_edit(&edit).await {
            Ok(prepared) => self.record_edit(edit, prepared).await,
            Err(error) => {
                tracing::warn!(tool = %name, %error, "An edit was refused; the last good version stays in service");
                self.registry().refuse_edit(edit, error.text()).await;
            }
        }
        self.refresh();
    }

    async fn try_edit(&self, edit: &StagedEdit) -> Result<Prepared, ToolError> {
        draft::check(&edit.manifest)?;
        let tree = Arc::new(CallTree::new(Arc::new(NoClient)));
        let directory = edit.staging.path();
        let source = source_of(edit).await;
        let prepared = self.prepare(&edit.name, edit.manifest.clone(), source, directory, &tree).await?;
        draft::check_schemas(&prepared.manifest)?;
        let version = edit.previous.map_or(Version::FIRST, |previous| previous.next(false));
        let (_, examples) = self.try_version(edit.name.clone(), version, directory, prepared.manifest.clone(), &tree).await;
        if examples.failed > 0 {
            let message = format!("{} of its examples do not hold:{}", examples.failed, list_failures(&examples));
            return Err(ToolError::failed(message));
        }
        Ok(prepared)
    }

    async fn record_edit(&self, mut edit: StagedEdit, prepared: Prepared) {
        let name = edit.name.clone();
        edit.manifest = prepared.manifest;
        match self.registry().record_edit(edit).await {
            Ok(tool) => tracing::info!(tool = %name, version = %tool.version, "An edit by hand became a version"),
            // A further edit meanwhile: it comes as an event of its own.
            Err(error) => tracing::debug!(tool = %name, %error, "An edit was not recorded"),
        }
    }
}

/// What to make an edited tool from. Its files as they lie there; but where the Rust source of a WASM tool was
/// changed, or its module is missing, the module is made anew from the source.
async fn source_of(edit: &StagedEdit) -> SourceCode {
    if edit.manifest.tool_type != ToolKind::Wasm {
        return SourceCode::Folder;
    }
    let entry = edit.manifest.entry_file.as_deref().unwrap_or("src.rs");
    let module = edit.staging.path().join(format!("{}.wasm", edit.name));
    let source_changed = edit.changed_files.iter().any(|file| file == entry);
    let module_changed = edit.changed_files.iter().any(|file| *file == format!("{}.wasm", edit.name));
    let module_is_there = tokio::fs::try_exists(&module).await.unwrap_or(false);
    if module_is_there && (!source_changed || module_changed) {
        return SourceCode::Folder;
    }
    match tokio::fs::read_to_string(edit.staging.path().join(entry)).await {
        Ok(source) => SourceCode::Text(source),
        Err(_) => SourceCode::Folder,
    }
}
