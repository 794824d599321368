//! `skillz history [--tool NAME] [--failed]`

use clap::Args;
use skillz_tool::CallRecord;
use time::{OffsetDateTime, macros::format_description};

use crate::{context::Context, table};

#[derive(Debug, Args)]
pub(crate) struct HistoryArguments {
    /// Only calls of this tool.
    #[arg(long)]
    tool: Option<String>,
    /// Only calls that failed.
    #[arg(long)]
    failed: bool,
    /// Most calls shown, the newest first.
    #[arg(long, default_value_t = 50)]
    limit: usize,
}

pub(crate) fn run(arguments: &HistoryArguments, context: &Context) -> anyhow::Result<()> {
    context.with_engine_as_it_is(|engine| async move {
        let records = engine.history().recent(arguments.tool.as_deref(), arguments.failed, arguments.limit).await?;
        Ok(context.printer.print(&records, |records| text(records))?)
    })
}

fn text(records: &[CallRecord]) -> String {
    let rows: Vec<[String; 6]> = records
        .iter()
        .map(|record| {
            [
                time_of(record.started_at),
                record.tool_name.clone(),
                record.version.clone(),
                record.status.clone(),
                format!("{:.1} ms", record.duration_ms),
                table::first_line(record.error.as_deref().unwrap_or_default(), 80),
            ]
        })
        .collect();
    if rows.is_empty() { "There are no such calls.".to_owned() } else { table::columns(&rows) }
}

/// Unix seconds as a time of day people read, in UTC.
fn time_of(seconds: f64) -> String {
    let form = format_description!("[year]-[month]-[day] [hour]:[minute]:[second]Z");
    OffsetDateTime::from_unix_timestamp(seconds as i64).ok().and_then(|time| time.format(form).ok()).unwrap_or_default()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn times_are_utc() {
        assert_eq!(time_of(1_796_000_000.9), "2026-11-30 00:53:20Z");
    }
}
