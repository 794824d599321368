//! The server as a client starts it.

use anyhow::Context as _;
use skillz_config::{Resolved, Source};

/// A command with its environment.
pub(super) struct Entry {
    pub(super) command: String,
    pub(super) arguments: Vec<String>,
    pub(super) environment: Vec<(String, String)>,
}

impl Entry {
    /// This binary, at the place where it lies now, since a client's PATH is rarely the user's. What the user set by
    /// variable or flag for this command is kept: the client will not know those variables.
    pub(super) fn of_this_server(resolved: &Resolved) -> anyhow::Result<Self> {
        let binary = std::env::current_exe().context("The path of this program is not known")?;
        let command = binary.to_str().context("The path of this program is not UTF-8")?.to_owned();
        let mut environment = Vec::new();
        for (key, variable) in [("home", "SKILLZ_HOME"), ("tools_dir", "TOOLS_DIR")] {
            let Some(setting) = resolved.entries.iter().find(|entry| entry.key == key) else { continue };
            let by_user = matches!(setting.source, Source::Variable(_) | Source::Flag(_));
            if let (true, Some(value)) = (by_user, setting.value.as_ref().and_then(|value| value.as_str())) {
                environment.push((variable.to_owned(), value.to_owned()));
            }
        }
        Ok(Self { command, arguments: Vec::new(), environment })
    }
}
