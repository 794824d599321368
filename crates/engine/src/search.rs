//! Search among the tools in service. The index is brought up to date when somebody searches.

use std::sync::{Arc, PoisonError, RwLock};

use skillz_registry::Generation;
use skillz_search::{Document, Index};
use skillz_tool::Tool;

use crate::view::View;

/// The search index with the state of the catalog that it shows.
#[derive(Default)]
pub(crate) struct ToolSearch(RwLock<Indexed>);

#[derive(Default)]
struct Indexed {
    index: Index,
    generation: Option<Generation>,
}

impl ToolSearch {
    /// The tools of `view` that fit a question best, best first, at most `limit`.
    pub(crate) fn find(&self, view: &View, question: &str, limit: usize) -> Vec<Arc<Tool>> {
        self.bring_up_to_date(view);
        let indexed = self.0.read().unwrap_or_else(PoisonError::into_inner);
        let hits = indexed.index.search(question, limit);
        hits.iter().filter_map(|hit| view.catalog.get(&hit.name)).cloned().collect()
    }

    fn bring_up_to_date(&self, view: &View) {
        let generation = Some(view.catalog.generation());
        if self.0.read().unwrap_or_else(PoisonError::into_inner).generation >= generation {
            return;
        }
        let mut indexed = self.0.write().unwrap_or_else(PoisonError::into_inner);
        if indexed.generation >= generation {
            return;
        }
        indexed.index.update(view.offered().map(document));
        indexed.generation = generation;
    }
}

fn document(tool: &Arc<Tool>) -> Document<'_> {
    Document {
        name: tool.name.as_str(),
        revision: &tool.hash,
        description: &tool.manifest.description,
        tags: &tool.manifest.tags,
        input_schema: tool.manifest.input_schema.as_ref(),
    }
}
