//! `skillz export NAME`: one archive that holds a tool, as it can be unpacked into any tools folder.

use std::{
    fs::{self, File},
    io::Write,
    path::{Path, PathBuf},
};

use anyhow::Context as _;
use clap::Args;
use flate2::{Compression, write::GzEncoder};
use serde_json::json;
use skillz_tool::Tool;

use super::show;
use crate::{
    context::Context,
    report::{Failure, Status},
};

#[derive(Debug, Args)]
pub(crate) struct ExportArguments {
    /// The tool.
    name: String,
    /// The archive to write; `NAME-VERSION.tar.gz` in the current folder by default.
    #[arg(long)]
    to: Option<PathBuf>,
    /// Replace the archive if it is there already.
    #[arg(long)]
    overwrite: bool,
}

pub(crate) fn run(arguments: &ExportArguments, context: &Context) -> anyhow::Result<()> {
    context.with_engine(|engine| async move {
        let Some(tool) = engine.catalog().get(&arguments.name).cloned() else {
            return Err(show::unknown(&engine, &arguments.name).into());
        };
        let path = arguments.to.clone().unwrap_or_else(|| PathBuf::from(format!("{}-{}.tar.gz", tool.name, tool.version)));
        if path.exists() && !arguments.overwrite {
            let failure = Failure::new(Status::Refused, format!("`{}` is there already", path.display()));
            return Err(failure.with_hint("--overwrite replaces it").into());
        }
        let archive = pack(&tool)?;
        write_whole(&path, &archive)?;
        let report = json!({"name": tool.name, "version": tool.version, "archive": path, "size_bytes": archive.len()});
        Ok(context.printer.print(&report, |_| format!("Wrote {} ({} bytes).", path.display(), archive.len()))?)
    })
}

/// The tool's folder without its older versions. Equal tools give equal archives: times and owners are left out.
fn pack(tool: &Tool) -> anyhow::Result<Vec<u8>> {
    let mut files = Vec::new();
    collect(&tool.directory, &mut files)?;
    files.sort();
    let mut archive = tar::Builder::new(GzEncoder::new(Vec::new(), Compression::default()));
    for file in files {
        let relative = file.strip_prefix(&tool.directory)?;
        let bytes = fs::read(&file).with_context(|| format!("`{}` cannot be read", file.display()))?;
        let mut header = tar::Header::new_gnu();
        header.set_size(bytes.len() as u64);
        header.set_mode(0o644);
        archive.append_data(&mut header, Path::new(tool.name.as_str()).join(relative), bytes.as_slice())?;
    }
    Ok(archive.into_inner()?.finish()?)
}

/// Plain files only: hidden folders hold older versions, and links may lead anywhere.
fn collect(folder: &Path, files: &mut Vec<PathBuf>) -> anyhow::Result<()> {
    for entry in fs::read_dir(folder).with_context(|| format!("`{}` cannot be read", folder.display()))? {
        let entry = entry?;
        let kind = entry.file_type()?;
        if kind.is_dir() && !entry.file_name().as_encoded_bytes().starts_with(b".") && entry.file_name() != "versions" {
            collect(&entry.path(), files)?;
        } else if kind.is_file() {
            files.push(entry.path());
        }
    }
    Ok(())
}

/// Writes the whole file or nothing.
fn write_whole(path: &Path, bytes: &[u8]) -> anyhow::Result<()> {
    let unfinished = path.with_added_extension("part");
    let written =
        File::create(&unfinished).and_then(|mut file| file.write_all(bytes)).and_then(|()| fs::rename(&unfinished, path));
    if written.is_err() {
        let _ = fs::remove_file(&unfinished);
    }
    written.with_context(|| format!("`{}` cannot be written", path.display()))
}
