//! `skillz rollback NAME [VERSION]`

use clap::Args;
use skillz_engine::VersionAction;

use crate::{context::Context, report::Failure};

#[derive(Debug, Args)]
pub(crate) struct RollbackArguments {
    /// The tool; a deleted one comes back.
    name: String,
    /// The version; the one before the current one by default.
    version: Option<String>,
}

pub(crate) fn run(arguments: RollbackArguments, context: &Context) -> anyhow::Result<()> {
    context.with_engine(|engine| async move {
        let action = VersionAction::Rollback { version: arguments.version };
        let report = engine.versions(action, &arguments.name, context.client()).await.map_err(Failure::from)?;
        Ok(context.printer.print(&report, |report| match report.get("version").and_then(skillz_json::Value::as_str) {
            Some(version) => format!("{} is now version {version}.", arguments.name),
            None => serde_json::to_string_pretty(report).unwrap_or_default(),
        })?)
    })
}
