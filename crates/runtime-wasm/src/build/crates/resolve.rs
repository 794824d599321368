//! Settling versions and fetching crates: the only step of a build that uses the network, and runs no code of theirs.

use std::{fs, io, path::Path};

use skillz_tool::ToolError;

use super::{CrateStore, Making, cannot_write, no_cargo};
use crate::build::{
    compiler::{Ran, Run, run},
    diagnostics::resolve_error,
    toolchain::{TARGET, Toolchain},
};

impl CrateStore {
    /// Fetches the crates and settles their versions. The only step with a network.
    pub(super) async fn resolve(&self, making: &Making<'_>, project: &Path, locked: bool) -> Result<String, ToolError> {
        let progress = |line: &str| {
            let line = line.trim();
            if line.starts_with("Updating") || line.starts_with("Download") || line.starts_with("Locking") {
                making.progress.report(line);
            }
        };
        let attempts: &[&[&str]] = if locked {
            // A lock that no longer fits is brought up to date. Without a network, what is there must do.
            &[&["--locked", "--offline"], &["--locked"], &[], &["--offline"]]
        } else {
            &[&[], &["--offline"]]
        };
        let mut online = None;
        for options in attempts {
            let fetched = self.fetch(making.toolchain, project, options, &progress).await?;
            if fetched.success() {
                let path = project.join("Cargo.lock");
                return fs::read_to_string(&path).map_err(|error| cannot_write(&path, &error));
            }
            if options.is_empty() {
                online = Some(fetched);
            }
        }
        let stderr = online.map(|ran| ran.stderr_text()).unwrap_or_default();
        let hidden = [project.to_string_lossy().into_owned()];
        let text = resolve_error(&stderr, &hidden.each_ref().map(String::as_str));
        let hint = if stderr.contains("Could not resolve host")
            || stderr.contains("Couldn't connect")
            || stderr.contains("failed to download")
        {
            "The crate registry could not be reached, and the crates are not all there yet: try again with a network"
        } else {
            "Check names, versions and features of the dependencies on crates.io"
        };
        Err(ToolError::invalid("The dependencies could not be resolved").with_output(text).with_hint(hint))
    }

    async fn fetch(
        &self,
        toolchain: &Toolchain,
        project: &Path,
        options: &[&str],
        on_line: &(dyn Fn(&str) + Send + Sync),
    ) -> Result<Ran, ToolError> {
        let cargo = toolchain.cargo.as_ref().ok_or_else(no_cargo)?;
        let mut arguments = vec!["fetch", "--target", TARGET, "--target", &toolchain.host];
        arguments.extend(options);
        let mut environment = self.toolchains.download_environment(Some(toolchain));
        // Without a network there is another way; whoever waits for the tool should not wait for the network too.
        environment
            .extend([("CARGO_NET_RETRY", "2"), ("CARGO_HTTP_TIMEOUT", "20")].map(|(name, value)| (name.into(), value.into())));
        let mut command = Run::plain(cargo, &arguments, environment, project);
        command.timeout = self.timeout;
        command.on_line = Some(on_line);
        run(&self.launcher, command).await
    }

    /// A private `CARGO_HOME` for the sandbox: the user's crates, and of their settings only where crates come from.
    pub(super) fn prepare_cargo_home(&self, staging: &Path) -> io::Result<()> {
        let home = staging.join("cargo-home");
        fs::create_dir_all(&home)?;
        fs::create_dir_all(staging.join("temporary"))?;
        if let Some(registry) = self.registry() {
            link_folder(&registry, &home.join("registry"))?;
        }
        let user = self.toolchains.cargo_home();
        let settings = ["config.toml", "config"].into_iter().find_map(|name| fs::read_to_string(user.join(name)).ok());
        let sources = settings.and_then(|text| text.parse::<toml::Table>().ok()).and_then(|mut table| table.remove("source"));
        match sources {
            Some(sources) => {
                let table = toml::Table::from_iter([("source".to_owned(), sources)]);
                fs::write(home.join("config.toml"), table.to_string())
            }
            None => Ok(()),
        }
    }
}

#[cfg(unix)]
fn link_folder(target: &Path, link: &Path) -> io::Result<()> {
    std::os::unix::fs::symlink(target, link)
}

#[cfg(windows)]
fn link_folder(target: &Path, link: &Path) -> io::Result<()> {
    std::os::windows::fs::symlink_dir(target, link)
}
