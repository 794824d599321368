//! `skillz list [QUERY]`

use clap::Args;
use skillz_engine::{Detail, ListRequest};
use skillz_json::Value;
use skillz_tool::ToolKind;

use crate::{context::Context, report::Failure, table};

/// Most tools on one page of the engine.
const PAGE: usize = 1_000;
/// Answers to a question that are worth reading.
const BEST: usize = 10;

#[derive(Debug, Args)]
pub(crate) struct ListArguments {
    /// A question in plain words: the best tools for it come first.
    query: Option<String>,
    /// Only tools of this kind: wasm, script, pipeline or mcp.
    #[arg(long, value_parser = parse_kind)]
    kind: Option<ToolKind>,
    /// Only tools with this tag.
    #[arg(long)]
    tag: Option<String>,
    /// Most tools listed; all of them by default, and the ten best with a question.
    #[arg(long)]
    limit: Option<usize>,
}

pub(crate) fn run(arguments: ListArguments, context: &Context) -> anyhow::Result<()> {
    context.with_engine_as_it_is(|engine| async move {
        let limit = arguments.limit.unwrap_or(if arguments.query.is_some() { BEST } else { usize::MAX });
        let mut request = ListRequest {
            query: arguments.query,
            kind: arguments.kind,
            tag: arguments.tag,
            detail: Detail::Summary,
            limit: Some(limit.clamp(1, PAGE)),
            cursor: None,
        };
        let mut listed = engine.list(request.clone()).await.map_err(Failure::from)?;
        while let Some(cursor) = next_cursor(&mut listed).filter(|_| count(&listed) < limit) {
            request.cursor = Some(cursor);
            let page = engine.list(request.clone()).await.map_err(Failure::from)?;
            append(&mut listed, page);
        }
        Ok(context.printer.print(&listed, text)?)
    })
}

fn parse_kind(text: &str) -> Result<ToolKind, String> {
    skillz_json::from_value(Value::from(text)).map_err(|_| "the kinds are wasm, script, pipeline and mcp".to_owned())
}

fn next_cursor(listed: &mut Value) -> Option<String> {
    listed.as_object_mut()?.shift_remove("next_cursor")?.as_str().map(str::to_owned)
}

/// The lists in an answer: one for each kind, or one that is ranked.
const GROUPS: [&str; 5] = ["wasm", "script", "pipeline", "mcp", "ranked"];

fn count(listed: &Value) -> usize {
    GROUPS.iter().filter_map(|group| listed.get(group)?.as_array()).map(Vec::len).sum()
}

fn append(listed: &mut Value, mut page: Value) {
    for group in GROUPS {
        let more = page.get_mut(group).and_then(Value::as_array_mut).map(std::mem::take).unwrap_or_default();
        match listed.get_mut(group).and_then(Value::as_array_mut) {
            Some(there) => there.extend(more),
            None if more.is_empty() => {}
            None => listed[group] = Value::Array(more),
        }
    }
    if let Some(cursor) = page.get_mut("next_cursor") {
        listed["next_cursor"] = cursor.take();
    }
}

fn text(listed: &Value) -> String {
    let mut rows = Vec::new();
    for group in GROUPS {
        for tool in listed.get(group).and_then(Value::as_array).into_iter().flatten() {
            let field = |name: &str| tool.get(name).and_then(Value::as_str).unwrap_or_default().to_owned();
            let kind = if group == "ranked" { field("kind") } else { group.to_owned() };
            rows.push([field("name"), kind, field("version"), table::first_line(&field("description"), 80)]);
        }
    }
    let mut text = table::columns(&rows);
    if rows.is_empty() {
        text.push_str("There are no such tools.\n");
    }
    for broken in listed.get("broken").and_then(Value::as_array).into_iter().flatten() {
        let said = broken.as_str().map_or_else(|| describe_broken(broken), str::to_owned);
        text.push_str(&format!("broken: {said}\n"));
    }
    text
}

fn describe_broken(broken: &Value) -> String {
    let field = |name: &str| broken.get(name).and_then(Value::as_str).unwrap_or_default();
    let line = broken.get("line").and_then(Value::as_u64).map(|line| format!(":{line}")).unwrap_or_default();
    format!("{}: {}{line}: {}", field("name"), field("file"), field("reason"))
}

#[cfg(test)]
mod tests {
    use skillz_json::json;

    use super::*;

    #[test]
    fn pages_add_up() {
        let mut listed = json!({"total": 3, "wasm": [{"name": "a"}], "next_cursor": "x"});
        assert_eq!(next_cursor(&mut listed).as_deref(), Some("x"));
        append(&mut listed, json!({"total": 3, "wasm": [{"name": "b"}], "script": [{"name": "c"}]}));
        assert_eq!(listed, json!({"total": 3, "wasm": [{"name": "a"}, {"name": "b"}], "script": [{"name": "c"}]}));
        assert_eq!(count(&listed), 3);
    }

    #[test]
    fn people_see_columns_and_what_is_broken() {
        let listed = json!({
            "total": 1,
            "wasm": [{"name": "fib", "version": "1.0.0", "description": "Counts\nrabbits"}],
            "broken": [{"name": "bad", "file": "/t/bad/manifest.json", "line": 3, "reason": "expected `,`"}],
        });
        assert_eq!(text(&listed), "fib  wasm  1.0.0  Counts\nbroken: bad: /t/bad/manifest.json:3: expected `,`\n");
    }
}
