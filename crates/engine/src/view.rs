//! All tools as the engine serves them, made anew after each change and never changed.

use std::{collections::HashMap, sync::Arc};

use skillz_registry::Catalog;
use skillz_tool::{Tool, ToolName};

use crate::{EngineSettings, Exposed, callable::Callable, engine::Runtimes};

/// All tools at one moment, each ready to be called.
#[derive(Default)]
pub(crate) struct View {
    pub(crate) catalog: Arc<Catalog>,
    pub(crate) callables: HashMap<ToolName, Arc<Callable>>,
    pub(crate) exposed: Arc<Exposed>,
}

impl View {
    /// The view of a catalog. Tools that are the same as before are taken over from there.
    pub(crate) fn of(catalog: Arc<Catalog>, before: &Self, settings: &EngineSettings, runtimes: &Runtimes) -> Self {
        let mut callables = HashMap::with_capacity(catalog.len());
        for tool in catalog.tools() {
            let known = before.callables.get(&tool.name).filter(|callable| Arc::ptr_eq(&callable.tool, tool));
            let callable = known.map_or_else(|| Arc::new(Callable::new(Arc::clone(tool), settings, runtimes)), Arc::clone);
            callables.insert(tool.name.clone(), callable);
        }
        let exposed = Arc::new(Exposed::of(&catalog, settings.exposure));
        Self { catalog, callables, exposed }
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
