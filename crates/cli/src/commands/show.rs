//! `skillz show NAME`

#![allow(clippy::indexing_slicing, reason = "JSON values are indexed by name, which gives null where there is nothing")]

use std::fmt::Write;

use clap::Args;
use skillz_engine::{Engine, VersionAction};
use skillz_json::{Value, json};
use skillz_tool::Tool;

use crate::{context::Context, report::Failure};

#[derive(Debug, Args)]
pub(crate) struct ShowArguments {
    /// The tool.
    name: String,
}

pub(crate) fn run(arguments: &ShowArguments, context: &Context) -> anyhow::Result<()> {
    context.with_engine(|engine| async move {
        let Some(tool) = engine.catalog().get(&arguments.name).cloned() else {
            return Err(unknown(&engine, &arguments.name).into());
        };
        let versions = engine.versions(VersionAction::List, &arguments.name, context.client()).await.map_err(Failure::from)?;
        let shown = json!({
            "name": tool.name,
            "version": tool.version,
            "path": tool.directory,
            "hash": tool.hash,
            "manifest": tool.manifest,
            "input_schema": tool.manifest.input_schema,
            "output_schema": tool.manifest.output_schema,
            "versions": versions.get("versions"),
        });
        Ok(context.printer.print(&shown, |shown| text(&tool, shown))?)
    })
}

/// There is no tool of that name; it may be there and broken.
pub(crate) fn unknown(engine: &Engine, name: &str) -> Failure {
    let catalog = engine.catalog();
    if let Some(broken) = catalog.broken().iter().find(|broken| broken.name == name) {
        return Failure::not_found(format!("`{name}` cannot be used: {broken}"));
    }
    Failure::not_found(format!("There is no tool `{name}`"))
        .with_hint("`skillz list` shows all tools, `skillz list QUESTION` finds one")
}

fn text(tool: &Tool, shown: &Value) -> String {
    let manifest = &tool.manifest;
    let mut text = String::new();
    let kind = shown["manifest"]["tool_type"].as_str().unwrap_or_default();
    let _ = writeln!(text, "{} {} ({kind})\n{}\n", tool.name, tool.version, manifest.description.trim());
    let mut part = |name: &str, value: Option<Value>| {
        if let Some(value) = value {
            let shown = value.as_str().map_or_else(|| serde_json::to_string_pretty(&value).unwrap_or_default(), str::to_owned);
            let _ = writeln!(text, "{name}: {}", shown.replace('\n', "\n  "));
        }
    };
    let list = |words: &[String]| (!words.is_empty()).then(|| Value::from(words.join(", ")));
    part("folder", tool.directory.to_str().filter(|_| manifest.mcp_server.is_none()).map(Value::from));
    part("server", manifest.mcp_server.clone());
    part("interpreter", manifest.interpreter.clone().map(Value::from));
    part("dependencies", list(&manifest.dependencies).or_else(|| list(&manifest.wasm_dependencies)));
    part("tags", list(&manifest.tags));
    part("permissions", shown["manifest"].get("permissions").cloned());
    part("limits", shown["manifest"].get("limits").cloned());
    part("input", manifest.input_schema.clone());
    part("output", manifest.output_schema.clone());
    part("steps", manifest.pipeline_steps.clone());
    part("examples", shown["manifest"].get("examples").cloned());
    let versions: Vec<&str> =
        shown["versions"].as_array().into_iter().flatten().filter_map(|entry| entry["version"].as_str()).collect();
    part("versions", (!versions.is_empty()).then(|| Value::from(versions.join(", "))));
    text
}
