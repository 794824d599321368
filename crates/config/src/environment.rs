//! A snapshot of the process environment, taken once.

use std::{collections::BTreeMap, ffi::OsString, fmt, path::PathBuf};

use crate::env_vars::{DOWNLOAD_VARIABLES, OWN_TOKENS};

/// The variables of the process as they were at the start. Values never show in `Debug` output.
#[derive(Clone, Default, PartialEq, Eq)]
pub struct Environment {
    variables: BTreeMap<String, OsString>,
    current_directory: PathBuf,
}

impl Environment {
    /// Reads the environment of this process. Variables whose name is not UTF-8 are left out.
    #[expect(clippy::disallowed_methods, reason = "this is the one place that reads the environment")]
    pub fn of_process() -> Self {
        let variables = std::env::vars_os().filter_map(|(name, value)| Some((name.into_string().ok()?, value))).collect();
        // A working folder that was deleted is no reason not to start.
        let current_directory = std::env::current_dir().unwrap_or_else(|_| PathBuf::from("/"));
        Self { variables, current_directory }
    }

    /// An environment made of the given variables and working folder.
    pub fn of<N: Into<String>, V: Into<OsString>>(
        variables: impl IntoIterator<Item = (N, V)>,
        current_directory: impl Into<PathBuf>,
    ) -> Self {
        let variables = variables.into_iter().map(|(name, value)| (name.into(), value.into())).collect();
        Self { variables, current_directory: current_directory.into() }
    }

    /// A variable as text; `None` where it is unset, empty, or not UTF-8.
    pub fn get(&self, name: &str) -> Option<&str> {
        self.variables.get(name)?.to_str().filter(|value| !value.is_empty())
    }

    /// A variable that holds a path; `None` where it is unset or empty.
    pub fn path(&self, name: &str) -> Option<PathBuf> {
        self.variables.get(name).filter(|value| !value.is_empty()).map(PathBuf::from)
    }

    /// The folders of `PATH`, in order.
    pub fn search_path(&self) -> Vec<PathBuf> {
        self.variables.get("PATH").map(|path| std::env::split_paths(path).collect()).unwrap_or_default()
    }

    /// The user's home, from `HOME` or the user database.
    pub fn home(&self) -> Option<PathBuf> {
        self.path("HOME").or_else(std::env::home_dir).filter(|home| home.is_absolute())
    }

    /// The working folder at the start.
    pub fn current_directory(&self) -> &std::path::Path {
        &self.current_directory
    }

    /// The variables that tools may ask for by name: all but the server's own tokens.
    pub fn for_tools(&self) -> BTreeMap<String, String> {
        let grantable = self.variables.iter().filter(|(name, _)| !OWN_TOKENS.contains(&name.as_str()));
        grantable.filter_map(|(name, value)| Some((name.clone(), value.to_str()?.to_owned()))).collect()
    }

    /// The variables that programs need to download through a proxy or with certificates of their own.
    pub fn for_downloads(&self) -> Vec<(OsString, OsString)> {
        let given = DOWNLOAD_VARIABLES.iter().filter_map(|name| self.variables.get_key_value(*name));
        given.map(|(name, value)| (name.into(), value.clone())).collect()
    }
}

impl fmt::Debug for Environment {
    fn fmt(&self, formatter: &mut fmt::Formatter<'_>) -> fmt::Result {
        formatter.debug_set().entries(self.variables.keys()).finish()
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn own_tokens_are_for_no_tool_and_values_never_show() {
        let environment = Environment::of([("SKILLZ_AUTH_TOKEN", "t0p"), ("SKILLZ_API_KEY", "k3y"), ("PATH", "/a:/b")], "/w");
        let names: Vec<String> = environment.for_tools().into_keys().collect();
        assert_eq!(names, ["PATH", "SKILLZ_API_KEY"]);
        let shown = format!("{environment:?}");
        assert!(!shown.contains("t0p") && !shown.contains("k3y"), "{shown}");
        assert_eq!(environment.search_path(), [PathBuf::from("/a"), PathBuf::from("/b")]);
    }

    #[test]
    fn empty_counts_as_unset() {
        let environment = Environment::of([("SKILLZ_HOME", "")], "/w");
        assert_eq!(environment.get("SKILLZ_HOME"), None);
        assert_eq!(environment.path("SKILLZ_HOME"), None);
    }
}
