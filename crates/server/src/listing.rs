//! `tools/list`: the built-ins and the exposed tools in the form of each era, made once per change and paged.

use std::{
    collections::HashMap,
    sync::{Arc, Mutex, PoisonError},
};

use rmcp::{
    ErrorData,
    model::{CacheScope, ListToolsResult, Tool as McpTool},
};
use skillz_engine::Engine;
use skillz_tool::Tool;

use crate::{builtin, convert, page, schema_form::Form};

/// Tools on one page. Clients that do not page see the first one only, so it is generous.
const PAGE: usize = 250;
/// How long a client may trust a list, in milliseconds: changes are told, but not every client listens.
pub(crate) const TTL_MS: u64 = 5_000;

/// Keeps the lists until something changes.
#[derive(Default)]
pub(crate) struct Listing {
    cached: Mutex<Option<Arc<Lists>>>,
}

/// The lists at one moment.
struct Lists {
    /// The engine's set of exposed tools that these were made from.
    exposed: Arc<skillz_engine::Exposed>,
    legacy: Vec<Entry>,
    modern: Vec<Entry>,
}

/// A tool in the form of one era.
#[derive(Clone)]
struct Entry {
    /// The version it was made from; `None` for a built-in.
    source: Option<Arc<Tool>>,
    tool: Arc<McpTool>,
}

impl Listing {
    /// One page of the list for clients of an era.
    pub(crate) fn page(&self, engine: &Engine, form: Form, cursor: Option<&str>) -> Result<ListToolsResult, ErrorData> {
        let lists = self.lists(engine);
        let entries = lists.of(form);
        let page = page::slice(entries, cursor, PAGE, |entry| &entry.tool.name)?;
        let mut result = ListToolsResult::with_all_items(page.items.iter().map(|entry| McpTool::clone(&entry.tool)).collect());
        result.next_cursor = page.next_cursor;
        Ok(result.with_ttl_ms(TTL_MS).with_cache_scope(CacheScope::Private))
    }

    /// The listed tool of that name.
    pub(crate) fn find(&self, engine: &Engine, form: Form, name: &str) -> Option<McpTool> {
        let lists = self.lists(engine);
        let entries = lists.of(form);
        let index = entries.binary_search_by(|entry| entry.tool.name.as_ref().cmp(name)).ok()?;
        entries.get(index).map(|entry| McpTool::clone(&entry.tool))
    }

    fn lists(&self, engine: &Engine) -> Arc<Lists> {
        let exposed = engine.exposed();
        let mut cached = self.cached.lock().unwrap_or_else(PoisonError::into_inner);
        if let Some(lists) = cached.as_ref().filter(|lists| Arc::ptr_eq(&lists.exposed, &exposed)) {
            return Arc::clone(lists);
        }
        let lists = Arc::new(Lists::new(exposed, cached.as_deref()));
        *cached = Some(Arc::clone(&lists));
        lists
    }
}

impl Lists {
    fn new(exposed: Arc<skillz_engine::Exposed>, previous: Option<&Self>) -> Self {
        let legacy = entries(&exposed, Form::Legacy, previous);
        let modern = entries(&exposed, Form::Modern, previous);
        Self { exposed, legacy, modern }
    }

    fn of(&self, form: Form) -> &[Entry] {
        match form {
            Form::Legacy => &self.legacy,
            Form::Modern => &self.modern,
        }
    }
}

/// All entries in the form of an era, sorted by name. What has not changed is taken over from `previous`.
fn entries(exposed: &skillz_engine::Exposed, form: Form, previous: Option<&Lists>) -> Vec<Entry> {
    let known: HashMap<&str, &Entry> =
        previous.map(|lists| lists.of(form).iter().map(|entry| (entry.tool.name.as_ref(), entry)).collect()).unwrap_or_default();
    let mut entries: Vec<Entry> = builtin::ALL
        .into_iter()
        .map(|builtin| match known.get(builtin.name) {
            Some(entry) => Entry::clone(entry),
            None => Entry { source: None, tool: Arc::new(convert::builtin(builtin)) },
        })
        .collect();
    entries.extend(exposed.tools.iter().map(|tool| match known.get(tool.name.as_str()) {
        Some(entry) if entry.source.as_ref().is_some_and(|source| Arc::ptr_eq(source, tool)) => Entry::clone(entry),
        _ => Entry { source: Some(Arc::clone(tool)), tool: Arc::new(convert::tool(tool, form)) },
    }));
    entries.sort_by(|left, right| left.tool.name.cmp(&right.tool.name));
    entries
}
