//! The data folder and what lies in it.

use std::{fs, path::Path, sync::Arc};

use skillz_engine::Engine;
use skillz_tool::Tool;

use super::{Check, Examination, Remedy};
use crate::wire;

impl Examination<'_> {
    pub(super) async fn home(&self, engine: &Engine) -> Vec<Check> {
        let settings = &self.context.resolved.settings;
        let mut checks = vec![folder("data folder", &settings.home), folder("tools folder", &settings.tools_dir)];
        let catalog = engine.catalog();
        let own = catalog.tools().filter(|tool| tool.kind() != skillz_tool::ToolKind::Mcp).count();
        checks.push(Check::ok("tools", format!("{own} tools in {}", settings.tools_dir.display())));
        for broken in catalog.broken() {
            let service = if broken.in_service { "; the last good version is in service" } else { "" };
            let fix = format!("mend {}, or move its folder away", broken.file.display());
            checks.push(Check::broken(format!("tool {}", broken.name), format!("{broken}{service}"), fix));
        }
        checks.push(match engine.memory().stats(None).await {
            Ok(stats) => Check::ok("memory", format!("{} tools remember something", stats.len())),
            Err(error) => Check::broken("memory", error.to_string(), "move the database away, or restore it from a backup"),
        });
        checks.push(self.environments(catalog.tools()));
        checks
    }

    /// Whether there are dependencies that no tool needs any more.
    fn environments<'t>(&self, tools: impl Iterator<Item = &'t Arc<Tool>>) -> Check {
        let locks: Vec<String> = tools.filter_map(|tool| fs::read_to_string(tool.directory.join("lock")).ok()).collect();
        let environments = wire::environments(&self.context.resolved, self.launcher.clone());
        let unused = match environments.unused(&locks) {
            Ok(unused) => unused,
            Err(error) => {
                let folder = environments.directory().display();
                return Check::broken("dependencies", format!("{folder} cannot be read ({error})"), format!("ls -l {folder}"));
            }
        };
        if unused.is_empty() {
            return Check::ok("dependencies", "every installed environment is used");
        }
        let megabytes = unused.iter().map(|environment| environment.size_bytes).sum::<u64>() / 1_000_000;
        let found = format!("{} installed environments ({megabytes} MB) are used by no tool", unused.len());
        let hashes = unused.into_iter().map(|environment| environment.hash).collect();
        let check = Check::absent("dependencies", found, "`skillz doctor --fix` removes them");
        check.with_remedy(Remedy::RemoveEnvironments(hashes))
    }

    pub(super) async fn remove_environments(&self, hashes: Vec<String>) -> bool {
        let environments = wire::environments(&self.context.resolved, self.launcher.clone());
        let removed = tokio::task::spawn_blocking(move || hashes.iter().all(|hash| environments.remove(hash).is_ok()));
        removed.await.unwrap_or(false)
    }
}

/// A folder is of use if a file can be made in it.
fn folder(name: &str, path: &Path) -> Check {
    let shown = path.display();
    if !path.exists() {
        let check = Check::absent(name, format!("{shown} is not there yet"), "it is made when the first tool is");
        return check.with_remedy(Remedy::MakeFolder(path.to_owned()));
    }
    match tempfile::Builder::new().prefix(".doctor-").tempfile_in(path) {
        Ok(_) => Check::ok(name, format!("{shown} is writable")),
        Err(error) => Check::broken(name, format!("{shown} is not writable ({error})"), format!("chown -R \"$USER\" {shown}")),
    }
}
