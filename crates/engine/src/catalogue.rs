//! The tools as pipelines see them when they are made.

use std::sync::Arc;

use skillz_pipeline::Catalogue;
use skillz_tool::Tool;

use crate::{find::closest, view::SharedView};

/// The tools in service, for whoever checks pipelines.
#[derive(Clone)]
pub(crate) struct ServedTools(SharedView);

impl ServedTools {
    /// The tools of a view that goes with the time.
    pub(crate) fn new(view: SharedView) -> Self {
        Self(view)
    }
}

impl Catalogue for ServedTools {
    fn find(&self, name: &str) -> Option<Arc<Tool>> {
        self.0.get().catalog.get(name).filter(|tool| !tool.manifest.disabled).cloned()
    }

    fn closest(&self, name: &str) -> Vec<String> {
        let view = self.0.get();
        closest(name, view.offered().map(|tool| tool.name.as_str())).into_iter().map(str::to_owned).collect()
    }
}
