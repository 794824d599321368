//! `skillz diff NAME [A [B]]`

use clap::Args;
use skillz_engine::VersionAction;
use skillz_json::Value;

use crate::{context::Context, report::Failure};

#[derive(Debug, Args)]
pub(crate) struct DiffArguments {
    /// The tool.
    name: String,
    /// The older version; the one before `TO` by default.
    from: Option<String>,
    /// The newer version; the current one by default.
    to: Option<String>,
}

pub(crate) fn run(arguments: DiffArguments, context: &Context) -> anyhow::Result<()> {
    context.with_engine(|engine| async move {
        let action = VersionAction::Diff { version: arguments.from, to: arguments.to };
        let report = engine.versions(action, &arguments.name, context.client()).await.map_err(Failure::from)?;
        Ok(context.printer.print(&report, |report| match report.get("diff").and_then(Value::as_str) {
            Some("") => "The two versions are equal.".to_owned(),
            Some(diff) => diff.to_owned(),
            None => serde_json::to_string_pretty(report).unwrap_or_default(),
        })?)
    })
}
