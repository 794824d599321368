//! Which tools stand in the protocol's tool list.

use std::sync::Arc;

use skillz_registry::Catalog;
use skillz_tool::{BUILTIN_NAMES, Tool};

use crate::Exposure;

/// Most entries of a tool list that a client reads whole, the built-ins included.
const MOST_ENTRIES: usize = 40;

/// The tools that belong in `tools/list` now, besides the built-ins.
#[derive(Debug, Default)]
pub struct Exposed {
    /// Sorted by name.
    pub tools: Vec<Arc<Tool>>,
    /// Whether there are more tools, which are reached by `list_tools`, `call_tool` and code.
    pub more: bool,
}

impl Exposed {
    pub(crate) fn of(catalog: &Catalog, exposure: Exposure) -> Self {
        let offered = || catalog.tools().filter(|tool| !tool.manifest.disabled);
        let count = offered().count();
        let all = match exposure {
            Exposure::All => true,
            Exposure::Pinned => false,
            Exposure::Auto => count + BUILTIN_NAMES.len() <= MOST_ENTRIES,
        };
        let tools: Vec<Arc<Tool>> = offered().filter(|tool| all || tool.manifest.pinned).cloned().collect();
        Self { more: tools.len() < count, tools }
    }
}
