//! `skillz build PATH`: publishes a tool from a folder that was made by hand.

use std::path::{Path, PathBuf};

use anyhow::Context as _;
use clap::Args;
use skillz_engine::{PublishReport, PublishRequest};
use skillz_json::Value;
use skillz_registry::{DiscoveredTool, Discovery};
use skillz_tool::{Origin, SourceCode, ToolKind};

use crate::{context::Context, report::Failure};

#[derive(Debug, Args)]
pub(crate) struct BuildArguments {
    /// A folder with a `manifest.json`, the source that it names, and whatever else belongs to the tool.
    path: PathBuf,
    /// Keep a tool of that name that is there already: fail instead of making a new version of it.
    #[arg(long)]
    no_overwrite: bool,
    /// Check, compile and run the examples, and publish nothing.
    #[arg(long)]
    dry_run: bool,
}

pub(crate) fn run(arguments: &BuildArguments, context: &Context) -> anyhow::Result<()> {
    let tool = find(&arguments.path)?;
    context.with_engine(|engine| async move {
        let origin = if tool.manifest.tool_type == ToolKind::Wasm { Origin::Build } else { Origin::Register };
        let request = PublishRequest {
            manifest: tool.manifest,
            source: SourceCode::Folder,
            origin,
            overwrite: !arguments.no_overwrite,
            dry_run: arguments.dry_run,
            client: context.client(),
        };
        let report = engine.publish_folder(request, &tool.folder).await.map_err(Failure::from)?;
        Ok(context.printer.print(&report, text)?)
    })
}

/// The tool that a folder is, with all of its files.
fn find(path: &Path) -> anyhow::Result<DiscoveredTool> {
    let folder = path.canonicalize().map_err(|_| Failure::not_found(format!("There is no folder `{}`", path.display())))?;
    let found = Discovery::of_folder(&folder).with_context(|| format!("`{}` cannot be read", path.display()))?;
    match (found.tools.into_iter().next(), found.faults.into_iter().next()) {
        (Some(tool), _) => Ok(tool),
        (None, Some(fault)) => Err(Failure::wrong_use(format!("`{}` is no tool: {}", path.display(), fault.reason)).into()),
        (None, None) => {
            let message = format!("`{}` is no tool's folder: it has no manifest.json", path.display());
            Err(Failure::not_found(message).with_hint("`skillz new NAME --lang python` starts one").into())
        }
    }
}

fn text(report: &PublishReport) -> String {
    let done = if report.dry_run { "would be published as" } else { "is published as" };
    let kind = skillz_json::to_value(report.kind).ok();
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
