//! `skillz install CLIENT`: writes the server into a client's config, shows what changes, keeps a backup.

mod clients;
mod entry;
mod json;
mod toml;

use std::{
    fs,
    io::{ErrorKind, Write},
    path::{Path, PathBuf},
    time::{SystemTime, UNIX_EPOCH},
};

use anyhow::Context as _;
use clap::Args;
use serde_json::json;
use similar::TextDiff;

use self::{clients::Client, entry::Entry};
use crate::{context::Context, report::Failure};

#[derive(Debug, Args)]
pub(crate) struct InstallArguments {
    /// The client.
    #[arg(value_enum)]
    client: Client,
    /// Only show what would change.
    #[arg(long)]
    print: bool,
    /// The name of the server in the client.
    #[arg(long, default_value = "skillz")]
    name: String,
}

pub(crate) fn run(arguments: &InstallArguments, context: &Context) -> anyhow::Result<()> {
    let path = arguments.client.config_file(&context.resolved.environment).ok_or_else(|| {
        Failure::wrong_use(format!(
            "It is not known where {} keeps its config here, since HOME is not set",
            arguments.client.title()
        ))
    })?;
    // Config files are often links into a folder of dotfiles: the file is changed, and the link stays.
    let path = fs::canonicalize(&path).unwrap_or(path);
    let before = match fs::read_to_string(&path) {
        Ok(text) => text,
        Err(error) if error.kind() == ErrorKind::NotFound => String::new(),
        Err(error) => return Err(error).with_context(|| format!("`{}` cannot be read", path.display())),
    };
    let entry = Entry::of_this_server(&context.resolved)?;
    let after = arguments.client.with_server(&before, &arguments.name, &entry).map_err(|reason| {
        Failure::wrong_use(format!("`{}` was left as it is: {reason}", path.display()))
            .with_hint("Mend the file, or add the server by hand")
    })?;

    let diff = TextDiff::from_lines(&before, &after).unified_diff().context_radius(3).to_string();
    let backup = if before == after || arguments.print { None } else { replace(&path, &before, &after)? };
    let changed = before != after && !arguments.print;
    let report = json!({"client": arguments.client.title(), "config": path, "changed": changed, "backup": backup, "diff": diff});
    Ok(context.printer.print(&report, |_| text(arguments, &path, &diff, backup.as_deref()))?)
}

fn text(arguments: &InstallArguments, path: &Path, diff: &str, backup: Option<&Path>) -> String {
    let (client, path) = (arguments.client.title(), path.display());
    if diff.is_empty() {
        return format!("{client} knows this server already ({path}).");
    }
    if arguments.print {
        return format!("{path} would change:\n{diff}");
    }
    let kept = backup.map(|backup| format!("\nThe old file is kept as {}.", backup.display())).unwrap_or_default();
    format!("{path} changed:\n{diff}{kept}\nRestart {client} to use it.")
}

/// Puts the new text in place as a whole; gives the backup of the old one, if there was one.
fn replace(path: &Path, before: &str, after: &str) -> anyhow::Result<Option<PathBuf>> {
    let folder = path.parent().context("The config file has no folder")?;
    fs::create_dir_all(folder).with_context(|| format!("`{}` cannot be made", folder.display()))?;
    let backup = if path.exists() {
        let seconds = SystemTime::now().duration_since(UNIX_EPOCH).map_or(0, |since| since.as_secs());
        let backup = path.with_added_extension(format!("{seconds}.bak"));
        fs::write(&backup, before).with_context(|| format!("The backup `{}` cannot be written", backup.display()))?;
        Some(backup)
    } else {
        None
    };
    let mut file =
        tempfile::NamedTempFile::new_in(folder).with_context(|| format!("Nothing can be written in `{}`", folder.display()))?;
    file.write_all(after.as_bytes())?;
    file.as_file().sync_all()?;
    if let Ok(metadata) = fs::metadata(path) {
        fs::set_permissions(file.path(), metadata.permissions())?;
    }
    file.persist(path).with_context(|| format!("`{}` cannot be replaced", path.display()))?;
    Ok(backup)
}
