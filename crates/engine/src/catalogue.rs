//! The tools as pipelines see them when they are made.

use std::sync::Arc;

use skillz_pipeline::Catalogue;
use skillz_registry::Registry;
use skillz_tool::Tool;

use crate::find::closest;

/// The registry's tools, for whoever checks pipelines.
#[derive(Debug, Clone)]
pub(crate) struct RegistryCatalogue(Registry);

impl RegistryCatalogue {
    /// The catalogue of a registry.
    pub(crate) fn new(registry: Registry) -> Self {
        Self(registry)
    }
}

impl Catalogue for RegistryCatalogue {
    fn find(&self, name: &str) -> Option<Arc<Tool>> {
        self.0.snapshot().get(name).filter(|tool| !tool.manifest.disabled).cloned()
    }

    fn closest(&self, name: &str) -> Vec<String> {
        let catalog = self.0.snapshot();
        let names = catalog.tools().filter(|tool| !tool.manifest.disabled).map(|tool| tool.name.as_str());
        closest(name, names).into_iter().map(str::to_owned).collect()
    }
}
