//! All tools as the engine serves them, made anew after each change and never changed.

use std::{
    collections::HashMap,
    sync::{Arc, PoisonError, RwLock},
};

use skillz_registry::Catalog;
use skillz_tool::{Tool, ToolName, UpstreamTools};

use crate::{EngineSettings, Exposed, callable::Callable, engine::Runtimes, merge};

/// The view of now. Clones share it.
#[derive(Clone, Default)]
pub(crate) struct SharedView(Arc<RwLock<Arc<View>>>);

impl SharedView {
    pub(crate) fn get(&self) -> Arc<View> {
        Arc::clone(&self.0.read().unwrap_or_else(PoisonError::into_inner))
    }

    pub(crate) fn set(&self, view: Arc<View>) {
        *self.0.write().unwrap_or_else(PoisonError::into_inner) = view;
    }
}

/// All tools at one moment, each ready to be called.
#[derive(Default)]
pub(crate) struct View {
    /// The tools on disk and those of imported servers.
    pub(crate) catalog: Arc<Catalog>,
    /// What the catalog was made of.
    local: Arc<Catalog>,
    imported_generation: u64,
    pub(crate) callables: HashMap<ToolName, Arc<Callable>>,
    pub(crate) exposed: Arc<Exposed>,
}

impl View {
    /// The view of what is on disk and what is imported. Tools that are the same as before are taken over from there.
    pub(crate) fn of(
        local: Arc<Catalog>,
        imported: UpstreamTools,
        before: &Self,
        settings: &EngineSettings,
        runtimes: &Runtimes,
    ) -> Self {
        let catalog = merge::catalog(&local, &imported, &before.catalog);
        let mut callables = HashMap::with_capacity(catalog.len());
        for tool in catalog.tools() {
            let known = before.callables.get(&tool.name).filter(|callable| Arc::ptr_eq(&callable.tool, tool));
            let callable = known.map_or_else(|| Arc::new(Callable::new(Arc::clone(tool), settings, runtimes)), Arc::clone);
            callables.insert(tool.name.clone(), callable);
        }
        let exposed = Arc::new(Exposed::of(&catalog, settings.exposure));
        Self { catalog, local, imported_generation: imported.generation, callables, exposed }
    }

    /// Whether this is the view of exactly these.
    pub(crate) fn is_of(&self, local: &Arc<Catalog>, imported: &UpstreamTools) -> bool {
        Arc::ptr_eq(&self.local, local) && self.imported_generation == imported.generation
    }

    /// Tools of this view that `after` does not serve any more, in this very version.
    pub(crate) fn gone_in(&self, after: &Self) -> Vec<Arc<Tool>> {
        let stays = |callable: &&Arc<Callable>| {
            after
                .callables
                .get(&callable.tool.name)
                .is_some_and(|later| later.tool.hash == callable.tool.hash && later.tool.version == callable.tool.version)
        };
        self.callables.values().filter(|callable| !stays(callable)).map(|callable| Arc::clone(&callable.tool)).collect()
    }

    /// Every tool that is offered, sorted by name.
    pub(crate) fn offered(&self) -> impl Iterator<Item = &Arc<Tool>> {
        self.catalog.tools().filter(|tool| !tool.manifest.disabled)
    }
}
