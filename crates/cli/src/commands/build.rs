//! `skillz build PATH`: publishes a tool from a folder that was made by hand.

use std::{
    fs,
    path::{Path, PathBuf},
};

use anyhow::Context as _;
use clap::Args;
use serde_json::Value;
use skillz_engine::{PublishReport, PublishRequest};
use skillz_tool::{Manifest, Origin, SourceCode, ToolKind};

use crate::{context::Context, report::Failure};

#[derive(Debug, Args)]
pub(crate) struct BuildArguments {
    /// A folder with a `manifest.json` and the source that it names.
    path: PathBuf,
    /// Keep a tool of that name that is there already: fail instead of making a new version of it.
    #[arg(long)]
    no_overwrite: bool,
    /// Check, compile and run the examples, and publish nothing.
    #[arg(long)]
    dry_run: bool,
}

pub(crate) fn run(arguments: &BuildArguments, context: &Context) -> anyhow::Result<()> {
    let manifest = read_manifest(&arguments.path)?;
    let source = read_source(&arguments.path, &manifest)?;
    context.with_engine(|engine| async move {
        let origin = if manifest.tool_type == ToolKind::Wasm { Origin::Build } else { Origin::Register };
        let request = PublishRequest {
            manifest,
            source,
            origin,
            overwrite: !arguments.no_overwrite,
            dry_run: arguments.dry_run,
            client: context.client(),
        };
        let report = engine.publish(request).await.map_err(Failure::from)?;
        Ok(context.printer.print(&report, text)?)
    })
}

fn read_manifest(folder: &Path) -> anyhow::Result<Manifest> {
    let path = folder.join("manifest.json");
    if !path.exists() {
        let message = format!("`{}` is no tool's folder: it has no manifest.json", folder.display());
        return Err(Failure::not_found(message).with_hint("`skillz new NAME --lang python` starts one").into());
    }
    let text = fs::read_to_string(&path).with_context(|| format!("`{}` cannot be read", path.display()))?;
    let manifest = serde_json::from_str(&text).map_err(|error| Failure::wrong_use(format!("`{}`: {error}", path.display())))?;
    Ok(manifest)
}

fn read_source(folder: &Path, manifest: &Manifest) -> anyhow::Result<SourceCode> {
    let entry = match (&manifest.entry_file, manifest.tool_type) {
        (Some(entry), _) => entry.clone(),
        (None, ToolKind::Wasm) if !folder.join("src.rs").exists() => format!("{}.wasm", manifest.name),
        (None, ToolKind::Wasm) => "src.rs".to_owned(),
        (None, ToolKind::Script) => return Err(Failure::wrong_use("The manifest names no `entry_file`").into()),
        (None, ToolKind::Pipeline | ToolKind::Mcp) => return Ok(SourceCode::Folder),
    };
    let path = folder.join(&entry);
    let bytes = fs::read(&path).with_context(|| format!("The source `{}` cannot be read", path.display()))?;
    if Path::new(&entry).extension().is_some_and(|extension| extension == "wasm") {
        return Ok(SourceCode::Module(bytes));
    }
    let text =
        String::from_utf8(bytes).map_err(|_| Failure::wrong_use(format!("The source `{}` is not UTF-8", path.display())))?;
    let is_wat = Path::new(&entry).extension().is_some_and(|extension| extension == "wat");
    Ok(if is_wat { SourceCode::Wat(text) } else { SourceCode::Text(text) })
}

fn text(report: &PublishReport) -> String {
    let done = if report.dry_run { "would be published as" } else { "is published as" };
    let kind = serde_json::to_value(report.kind).ok();
    let kind = kind.as_ref().and_then(Value::as_str).unwrap_or_default();
    let mut text = format!(
        "{} ({kind}) {done} version {}: {} bytes, built in {} ms, {} examples passed\n",
        report.name, report.version, report.size_bytes, report.build_ms, report.examples.passed
    );
    for note in &report.notes {
        text.push_str(&format!("note: {note}\n"));
    }
    text
}
