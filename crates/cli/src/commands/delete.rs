//! `skillz delete NAME`

use clap::Args;

use crate::{context::Context, report::Failure};

#[derive(Debug, Args)]
pub(crate) struct DeleteArguments {
    /// The tool.
    name: String,
}

pub(crate) fn run(arguments: &DeleteArguments, context: &Context) -> anyhow::Result<()> {
    context.with_engine(|engine| async move {
        let report = engine.delete(&arguments.name).await.map_err(Failure::from)?;
        Ok(context.printer.print(&report, |report| {
            format!(
                "Deleted {}; its {} versions are kept. `skillz rollback {}` brings it back.",
                report.deleted, report.versions_kept, report.deleted
            )
        })?)
    })
}
