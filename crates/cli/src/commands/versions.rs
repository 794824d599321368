//! `skillz versions NAME`

use clap::Args;
use skillz_engine::VersionAction;
use skillz_json::Value;

use crate::{context::Context, report::Failure, table};

#[derive(Debug, Args)]
pub(crate) struct VersionsArguments {
    /// The tool; a deleted one too.
    name: String,
}

pub(crate) fn run(arguments: &VersionsArguments, context: &Context) -> anyhow::Result<()> {
    context.with_engine(|engine| async move {
        let listed = engine.versions(VersionAction::List, &arguments.name, context.client()).await.map_err(Failure::from)?;
        Ok(context.printer.print(&listed, text)?)
    })
}

fn text(listed: &Value) -> String {
    let current = listed.get("current").and_then(Value::as_str);
    let entries = listed.get("versions").and_then(Value::as_array).into_iter().flatten();
    let rows: Vec<[String; 5]> = entries
        .map(|entry| {
            let field = |name: &str| entry.get(name).and_then(Value::as_str).unwrap_or_default().to_owned();
            let mark = if entry.get("version").and_then(Value::as_str) == current { "current" } else { "" };
            let hash = field("hash").chars().take(12).collect();
            [field("version"), field("time"), hash, field("origin"), mark.to_owned()]
        })
        .collect();
    table::columns(&rows)
}
