//! `skillz import SOURCE`: tools and skills from elsewhere, as the built-in `import_tool` brings them.

use clap::Args;
use skillz_engine::ImportRequest;
use skillz_json::Value;

use crate::{context::Context, report::Failure};

#[derive(Debug, Args)]
pub(crate) struct ImportArguments {
    /// A git URL (`#ref` at its end chooses a branch, tag or commit), `gist:ID`, a `.tar.gz` or `.zip` file or URL, a
    /// `SKILL.md` file or URL, or a folder.
    source: String,
    /// A branch, tag or commit.
    #[arg(long = "ref", value_name = "REF", allow_hyphen_values = true)]
    reference: Option<String>,
    /// A folder within the source.
    #[arg(long)]
    path: Option<String>,
    /// Replace tools and skills of the same names; their old versions are kept.
    #[arg(long)]
    overwrite: bool,
    /// Show what would come and what it asks for; run and publish nothing.
    #[arg(long)]
    dry_run: bool,
}

pub(crate) fn run(arguments: ImportArguments, context: &Context) -> anyhow::Result<()> {
    let ImportArguments { source, reference, path, overwrite, dry_run } = arguments;
    let request = ImportRequest { source, reference, path, overwrite, dry_run };
    context.with_engine(|engine| async move {
        let report = engine.import(request, context.client()).await.map_err(Failure::from)?;
        Ok(context.printer.print(&report, text)?)
    })
}

fn text(report: &Value) -> String {
    let done = if report.get("dry_run").is_some() { "would be imported" } else { "is imported" };
    let mut text = String::new();
    for tool in items(report, "tools") {
        let version = word(tool, "version").map_or_else(String::new, |version| format!(" as version {version}"));
        text.push_str(&format!(
            "{} ({}) {done}{version}\n",
            word(tool, "name").unwrap_or("?"),
            word(tool, "kind").unwrap_or("?")
        ));
        for (field, title) in
            [("permissions", "asks for"), ("dependencies", "depends on"), ("requires_services", "needs the services")]
        {
            if let Some(value) = tool.get(field).filter(|value| !is_empty(value)) {
                text.push_str(&format!("  {title}: {value}\n"));
            }
        }
        for note in items(tool, "notes").filter_map(Value::as_str) {
            text.push_str(&format!("  note: {note}\n"));
        }
    }
    for skill in items(report, "skills") {
        text.push_str(&format!("{} (skill) {done}\n", word(skill, "name").unwrap_or("?")));
    }
    for refusal in items(report, "refused") {
        let name = word(refusal, "name").or_else(|| word(refusal, "path")).unwrap_or("?");
        text.push_str(&format!("{name} is not imported: {}\n", word(refusal, "reason").unwrap_or_default()));
    }
    for note in items(report, "notes").filter_map(Value::as_str) {
        text.push_str(&format!("note: {note}\n"));
    }
    if let Some(source) = report.get("source") {
        let from = word(source, "from").unwrap_or_default();
        let exact = word(source, "commit").or_else(|| word(source, "archive_hash"));
        text.push_str(&format!("from {from}{}\n", exact.map_or_else(String::new, |exact| format!(" at {exact}"))));
    }
    text
}

fn items<'a>(value: &'a Value, field: &str) -> impl Iterator<Item = &'a Value> {
    value.get(field).and_then(Value::as_array).into_iter().flatten()
}

fn word<'a>(value: &'a Value, field: &str) -> Option<&'a str> {
    value.get(field).and_then(Value::as_str)
}

fn is_empty(value: &Value) -> bool {
    value.as_object().is_some_and(skillz_json::Map::is_empty) || value.as_array().is_some_and(Vec::is_empty)
}
