//! The tools there are, grouped by kind or ranked for a question.

use std::{path::PathBuf, sync::Arc};

use skillz_json::{Map, Value, json};
use skillz_tool::{Tool, ToolError, ToolKind};

use crate::{Detail, ListRequest, engine::Engine, signature, view::View};

/// Tools in one answer where nobody says how many.
const GROUPED_LIMIT: usize = 100;
/// The same with a question: whoever asks wants the best few.
const RANKED_LIMIT: usize = 10;
/// Most tools in one answer.
const MOST: usize = 1_000;
/// The groups, in order.
const KINDS: [(ToolKind, &str); 4] =
    [(ToolKind::Wasm, "wasm"), (ToolKind::Script, "script"), (ToolKind::Pipeline, "pipeline"), (ToolKind::Mcp, "mcp")];

impl Engine {
    /// Lists tools, as the built-in `list_tools` answers.
    pub async fn list(&self, request: ListRequest) -> Result<Value, ToolError> {
        let view = self.view();
        let question = request.query.as_deref().map(str::trim).filter(|question| !question.is_empty());
        match question {
            Some(question) => self.list_ranked(&view, question, &request).await,
            None => self.list_grouped(&view, &request).await,
        }
    }

    async fn list_grouped(&self, view: &View, request: &ListRequest) -> Result<Value, ToolError> {
        let limit = request.limit.unwrap_or(GROUPED_LIMIT).clamp(1, MOST);
        let after = request.cursor.as_deref().map(GroupedCursor::read).transpose()?;
        let mut tools: Vec<&Arc<Tool>> = view.offered().filter(|tool| fits(tool, request)).collect();
        tools.sort_by(|left, right| group_order(left).cmp(&group_order(right)));
        let total = tools.len();
        let start = after.map_or(0, |after| tools.partition_point(|tool| group_order(tool) <= (after.group, after.name)));
        let page = tools.get(start..).unwrap_or_default();
        let (page, more) = page.split_at(limit.min(page.len()));

        let mut answer = Map::from_iter([("total".to_owned(), json!(total))]);
        for (kind, name) in KINDS {
            let mut entries = Vec::new();
            for tool in page.iter().filter(|tool| tool.kind() == kind) {
                entries.push(self.entry(tool, request.detail).await);
            }
            answer.insert(name.to_owned(), Value::Array(entries));
        }
        if request.cursor.is_none() {
            add_remarks(&mut answer, view, &self.warnings().await);
        }
        if let (Some(last), false) = (page.last(), more.is_empty()) {
            answer.insert("next_cursor".to_owned(), json!(GroupedCursor::after(last)));
        }
        Ok(Value::Object(answer))
    }

    async fn list_ranked(&self, view: &View, question: &str, request: &ListRequest) -> Result<Value, ToolError> {
        let limit = request.limit.unwrap_or(RANKED_LIMIT).clamp(1, MOST);
        let filtered = request.kind.is_some() || request.tag.is_some();
        // The first page of everything is all that is usually wanted, and the cheapest to rank.
        let wanted = if filtered || request.cursor.is_some() { usize::MAX } else { limit + 1 };
        let mut hits = self.search().find(view, question, wanted);
        hits.retain(|tool| fits(tool, request));
        let start = request.cursor.as_deref().map(|cursor| ranked_start(cursor, &hits)).transpose()?.unwrap_or(0);
        let total = match (hits.is_empty(), wanted) {
            (true, _) => 0,
            (false, usize::MAX) => hits.len(),
            (false, _) => view.offered().count(),
        };
        let page = hits.get(start..).unwrap_or_default();
        let (page, more) = page.split_at(limit.min(page.len()));

        let mut ranked = Vec::with_capacity(page.len());
        for tool in page {
            ranked.push(with_kind(self.entry(tool, request.detail).await, tool, request.detail));
        }
        let mut answer = Map::from_iter([("total".to_owned(), json!(total)), ("ranked".to_owned(), Value::Array(ranked))]);
        if let (Some(last), false) = (page.last(), more.is_empty()) {
            answer.insert("next_cursor".to_owned(), json!(format!("{}/{}", start + page.len(), last.name)));
        }
        Ok(Value::Object(answer))
    }

    /// One tool in full, with a line that shows how to call it in each language.
    pub(crate) async fn describe(&self, name: &str) -> Result<Value, ToolError> {
        let callable = self.find(name, None).await?;
        let mut entry = self.full(&callable.tool).await;
        entry.insert("python".to_owned(), json!(signature::python(&callable.tool)));
        entry.insert("typescript".to_owned(), json!(signature::typescript(&callable.tool)));
        Ok(Value::Object(entry))
    }

    /// The tools as running tools see them: the best for a question, or all; of those in `only` where that is given.
    pub(crate) fn tools_for_tools(&self, query: Option<&str>, only: Option<&[String]>) -> Value {
        let view = self.view();
        let allowed = |tool: &&Arc<Tool>| only.is_none_or(|only| only.iter().any(|name| name == tool.name.as_str()));
        let brief = |tool: &Arc<Tool>| {
            json!({
                "name": tool.name.as_str(), "kind": tool.kind(), "description": tool.manifest.description, "version": tool.version,
                "input_schema": tool.input_schema.as_value(),
            })
        };
        let tools: Vec<Value> = match query.map(str::trim).filter(|query| !query.is_empty()) {
            Some(query) => {
                let wanted = if only.is_some() { usize::MAX } else { RANKED_LIMIT };
                self.search().find(&view, query, wanted).iter().filter(allowed).take(RANKED_LIMIT).map(brief).collect()
            }
            None => view.offered().filter(allowed).map(brief).collect(),
        };
        json!({"tools": tools})
    }

    async fn entry(&self, tool: &Arc<Tool>, detail: Detail) -> Value {
        match detail {
            Detail::Names => json!(tool.name.as_str()),
            Detail::Summary => {
                json!({"name": tool.name.as_str(), "description": tool.manifest.description, "version": tool.version})
            }
            Detail::Signature => json!(signature::python(tool)),
            Detail::Full => Value::Object(self.full(tool).await),
        }
    }

    /// The manifest, and what stands beside it.
    pub(crate) async fn full(&self, tool: &Tool) -> Map<String, Value> {
        let mut entry = object(json!({
            "name": tool.name.as_str(), "kind": tool.kind(), "description": tool.manifest.description, "version": tool.version,
            "input_schema": tool.input_schema.as_value(), "output_schema": tool.manifest.output_schema,
            "examples": tool.manifest.examples, "permissions": tool.manifest.permissions,
        }));
        for (field, value) in object(skillz_json::to_value(&tool.manifest).unwrap_or_default()) {
            if field != "tool_type" && field != "inferred" && !entry.contains_key(&field) {
                entry.insert(field, value);
            }
        }
        entry.insert("hash".to_owned(), json!(tool.hash));
        if tool.kind() == ToolKind::Mcp {
            // It lies at its server: there is no folder of it, and no other version.
            return entry;
        }
        let versions = self.registry().versions(&tool.name).await.map(|list| list.versions).unwrap_or_default();
        entry.insert("versions".to_owned(), versions.iter().map(|entry| json!(entry.version)).collect());
        entry.insert("path".to_owned(), json!(self.path_of(tool)));
        entry
    }

    /// The folder to look at: the one that people edit for the version in service, an older version's own otherwise.
    fn path_of(&self, tool: &Tool) -> PathBuf {
        let is_current = self.view().callables.get(&tool.name).is_some_and(|current| current.tool.version == tool.version);
        if is_current { self.registry().folder(&tool.name) } else { tool.directory.clone() }
    }
}

/// The members of a value that is an object.
pub(crate) fn object(value: Value) -> Map<String, Value> {
    match value {
        Value::Object(members) => members,
        _ => Map::new(),
    }
}

fn fits(tool: &Tool, request: &ListRequest) -> bool {
    let has_tag = |tag: &String| tool.manifest.tags.iter().any(|own| own.eq_ignore_ascii_case(tag));
    request.kind.is_none_or(|kind| tool.kind() == kind) && request.tag.as_ref().is_none_or(has_tag)
}

/// Where a tool stands in a grouped list.
fn group_order(tool: &Tool) -> (usize, &str) {
    let group = KINDS.iter().position(|(kind, _)| *kind == tool.kind()).unwrap_or(KINDS.len());
    (group, tool.name.as_str())
}

/// A place in a grouped list, named by the last tool before it: tools that come and go do not shift it.
struct GroupedCursor<'a> {
    group: usize,
    name: &'a str,
}

impl<'a> GroupedCursor<'a> {
    fn read(cursor: &'a str) -> Result<Self, ToolError> {
        let (kind, name) = cursor.split_once('/').ok_or_else(|| foreign_cursor(cursor))?;
        let group = KINDS.iter().position(|(_, own)| *own == kind).ok_or_else(|| foreign_cursor(cursor))?;
        Ok(Self { group, name })
    }

    fn after(tool: &Tool) -> String {
        let kind = KINDS.iter().find(|(kind, _)| *kind == tool.kind()).map_or("", |(_, name)| *name);
        format!("{kind}/{}", tool.name)
    }
}

/// Where a ranked list goes on: after the last tool of the page before, or at its place if that tool is gone.
fn ranked_start(cursor: &str, hits: &[Arc<Tool>]) -> Result<usize, ToolError> {
    let (place, name) = cursor.split_once('/').ok_or_else(|| foreign_cursor(cursor))?;
    let place: usize = place.parse().map_err(|_| foreign_cursor(cursor))?;
    Ok(hits.iter().position(|tool| tool.name.as_str() == name).map_or(place, |last| last + 1))
}

fn foreign_cursor(cursor: &str) -> ToolError {
    let shown: String = cursor.chars().take(80).collect();
    ToolError::invalid(format!("The cursor `{shown}` does not belong to this list"))
        .with_hint("Pass the `next_cursor` of the answer before, with the same `query`, `kind` and `tag`; leave it out to start from the first page")
}

/// Adds what stands beside the tools: broken and disabled ones, and warnings about this machine.
fn add_remarks(answer: &mut Map<String, Value>, view: &View, warnings: &[String]) {
    let disabled: Vec<&str> = view.catalog.tools().filter(|tool| tool.manifest.disabled).map(|tool| tool.name.as_str()).collect();
    if !view.catalog.broken().is_empty() {
        answer.insert("broken".to_owned(), json!(view.catalog.broken()));
    }
    if !disabled.is_empty() {
        answer.insert("disabled".to_owned(), json!(disabled));
    }
    if !warnings.is_empty() {
        answer.insert("warnings".to_owned(), json!(warnings));
    }
}

/// Ranked entries stand in no group, so each says its kind.
fn with_kind(entry: Value, tool: &Tool, detail: Detail) -> Value {
    match entry {
        Value::Object(mut entry) => {
            entry.insert("kind".to_owned(), json!(tool.kind()));
            Value::Object(entry)
        }
        line if detail == Detail::Names => json!({"name": line, "kind": tool.kind()}),
        line => json!({"signature": line, "kind": tool.kind()}),
    }
}
