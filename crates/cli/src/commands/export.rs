//! `skillz export NAME`: one archive (or a folder) that holds a tool, for `skillz import` and for any tools folder.

use std::{
    fs::{self, File},
    io::Write,
    path::{Path, PathBuf},
};

use anyhow::Context as _;
use clap::Args;
use flate2::{Compression, write::GzEncoder};
use skillz_json::json;
use skillz_registry::version_files;
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
    /// The archive to write, or the folder to put the tool's folder into; `NAME-VERSION.tar.gz` in the current folder by
    /// default. What ends in `.tar.gz` or `.tgz` is an archive.
    #[arg(long)]
    to: Option<PathBuf>,
    /// Replace what is there already.
    #[arg(long)]
    overwrite: bool,
}

pub(crate) fn run(arguments: &ExportArguments, context: &Context) -> anyhow::Result<()> {
    context.with_engine(|engine| async move {
        let Some(tool) = engine.catalog().get(&arguments.name).cloned() else {
            return Err(show::unknown(&engine, &arguments.name).into());
        };
        let to = arguments.to.clone().unwrap_or_else(|| PathBuf::from(format!("{}-{}.tar.gz", tool.name, tool.version)));
        let is_archive = to.to_str().is_some_and(|name| name.ends_with(".tar.gz") || name.ends_with(".tgz"));
        let place = if is_archive { to } else { to.join(tool.name.as_str()) };
        if place.exists() && !arguments.overwrite {
            let failure = Failure::new(Status::Refused, format!("`{}` is there already", place.display()));
            return Err(failure.with_hint("--overwrite replaces it").into());
        }
        let size = if is_archive { write_archive(&tool, &place)? } else { write_folder(&tool, &place)? };
        let kind = if is_archive { "archive" } else { "folder" };
        let report = json!({"name": tool.name, "version": tool.version, kind: place, "hash": tool.hash, "size_bytes": size});
        Ok(context.printer.print(&report, |_| format!("Wrote {} ({size} bytes).", place.display()))?)
    })
}

/// Packs the tool's folder without its older versions. Equal tools give equal archives: times and owners are left out.
fn write_archive(tool: &Tool, path: &Path) -> anyhow::Result<u64> {
    let mut archive = tar::Builder::new(GzEncoder::new(Vec::new(), Compression::default()));
    for relative in files(tool)? {
        let file = tool.directory.join(&relative);
        let bytes = fs::read(&file).with_context(|| format!("`{}` cannot be read", file.display()))?;
        let mut header = tar::Header::new_gnu();
        header.set_size(bytes.len() as u64);
        header.set_mode(if is_executable(&file) { 0o755 } else { 0o644 });
        header.set_mtime(0);
        archive.append_data(&mut header, Path::new(tool.name.as_str()).join(relative), bytes.as_slice())?;
    }
    let bytes = archive.into_inner()?.finish()?;
    write_whole(path, &bytes)?;
    Ok(bytes.len() as u64)
}

/// Copies the tool's folder; one that is there is replaced only once the new one is whole.
fn write_folder(tool: &Tool, place: &Path) -> anyhow::Result<u64> {
    let above = place.parent().filter(|above| !above.as_os_str().is_empty()).unwrap_or(Path::new("."));
    fs::create_dir_all(above).with_context(|| format!("`{}` cannot be made", above.display()))?;
    let unfinished = tempfile::Builder::new().prefix(".skillz-export-").tempdir_in(above)?;
    let folder = unfinished.path().join("tool");
    let mut size = 0;
    for relative in files(tool)? {
        let to = folder.join(&relative);
        fs::create_dir_all(to.parent().unwrap_or(&folder))?;
        size += fs::copy(tool.directory.join(&relative), &to).with_context(|| format!("`{}` cannot be written", to.display()))?;
    }
    if place.exists() {
        fs::rename(place, unfinished.path().join("replaced"))
            .with_context(|| format!("`{}` cannot be replaced", place.display()))?;
    }
    fs::rename(&folder, place).with_context(|| format!("`{}` cannot be written", place.display()))?;
    Ok(size)
}

/// The tool's files, sorted, relative to its folder.
fn files(tool: &Tool) -> anyhow::Result<Vec<PathBuf>> {
    version_files(&tool.directory).with_context(|| format!("`{}` cannot be read", tool.directory.display()))
}

#[cfg(unix)]
fn is_executable(file: &Path) -> bool {
    use std::os::unix::fs::PermissionsExt;
    fs::metadata(file).is_ok_and(|metadata| metadata.permissions().mode() & 0o111 != 0)
}

#[cfg(not(unix))]
fn is_executable(_file: &Path) -> bool {
    false
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
