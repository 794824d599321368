//! `skillz config`

use serde::Serialize;
use skillz_config::Entry;

use crate::{context::Context, table};

#[derive(Serialize)]
struct Shown {
    key: &'static str,
    #[serde(skip_serializing_if = "Option::is_none")]
    value: Option<String>,
    source: String,
}

pub(crate) fn run(context: &Context) -> anyhow::Result<()> {
    let shown: Vec<Shown> = context.resolved.entries.iter().map(show).collect();
    Ok(context.printer.print(&shown, |shown| {
        let rows: Vec<[String; 3]> = shown
            .iter()
            .map(|setting| {
                [setting.key.to_owned(), setting.value.clone().unwrap_or_else(|| "-".to_owned()), setting.source.clone()]
            })
            .collect();
        table::columns(&rows)
    })?)
}

fn show(entry: &Entry) -> Shown {
    Shown { key: entry.key, value: entry.value.as_ref().map(ToString::to_string), source: entry.source.to_string() }
}
