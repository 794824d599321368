//! Finds the program that runs a script, once, and says what a sandbox must show of it.
//!
//! `search` knows the places, `shim` sees through version managers, `shebang` reads `#!` lines, `visible` decides
//! what is mounted, `missing` words the error. Nothing here starts a process.

mod missing;
mod search;
pub(crate) mod shebang;
mod shim;
mod visible;

use std::{
    collections::HashMap,
    path::{Path, PathBuf},
    sync::{Arc, Mutex, PoisonError},
};

use skillz_tool::ToolError;

pub use search::SearchPath;

/// A found interpreter.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Interpreter {
    /// The command's name as it was asked for, without folders (`python3`).
    pub name: String,
    /// The program itself, behind shims and alternatives.
    pub program: PathBuf,
    /// Arguments that come before the script.
    pub arguments: Vec<String>,
    /// Folders and files that a sandbox must show read-only for it to start; system folders are left out.
    pub visible: Vec<PathBuf>,
    /// Folders to put first on the script's PATH, so that it finds the same interpreter and its siblings.
    pub folders: Vec<PathBuf>,
}

/// Looks interpreters up and remembers them. Cheap to clone; clones share what was found.
#[derive(Debug, Clone)]
pub struct Interpreters {
    search: Arc<SearchPath>,
    found: Arc<Mutex<HashMap<Vec<String>, Arc<Interpreter>>>>,
}

impl Interpreters {
    /// Looks nothing up yet.
    pub fn new(search: SearchPath) -> Self {
        Self { search: Arc::new(search), found: Arc::default() }
    }

    /// Finds the interpreter of a command such as `python3`, `deno run -A` or `/opt/x/bin/ruby`.
    pub fn resolve(&self, command: &str) -> Result<Arc<Interpreter>, ToolError> {
        self.resolve_words(&shebang::split_words(command))
    }

    /// Finds the interpreter of a command that is split into words already.
    pub fn resolve_words(&self, words: &[String]) -> Result<Arc<Interpreter>, ToolError> {
        if let Some(found) = self.found().get(words) {
            return Ok(Arc::clone(found));
        }
        let [command, arguments @ ..] = words else {
            return Err(ToolError::invalid("The `interpreter` is empty; name a command such as `python3`, or leave it out"));
        };
        let path = self.locate(command).ok_or_else(|| missing::error(command, &self.search))?;
        let interpreter = Arc::new(Interpreter {
            name: Path::new(command).file_name().map_or_else(|| command.clone(), |name| name.to_string_lossy().into_owned()),
            program: visible::program(&path),
            arguments: arguments.to_vec(),
            visible: visible::folders(&path, self.search.home.as_deref()),
            folders: path.parent().map(Path::to_path_buf).into_iter().collect(),
        });
        self.found().insert(words.to_vec(), Arc::clone(&interpreter));
        Ok(interpreter)
    }

    /// Finds a program by name, under its other usual names too; `None` where it is nowhere.
    pub fn locate(&self, command: &str) -> Option<PathBuf> {
        self.search.find(command).or_else(|| {
            // `#!/usr/local/bin/ruby` on a machine that keeps ruby elsewhere.
            let name = Path::new(command).file_name()?.to_str()?;
            std::iter::once(name).chain(other_names(name).iter().copied()).find_map(|name| self.search.find(name))
        })
    }

    /// Forgets what was found, for when a program has gone or a new one was installed.
    pub fn forget(&self) {
        self.found().clear();
    }

    fn found(&self) -> std::sync::MutexGuard<'_, HashMap<Vec<String>, Arc<Interpreter>>> {
        self.found.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

/// Names under which systems ship the same interpreter.
fn other_names(name: &str) -> &'static [&'static str] {
    match name {
        "python" => &["python3"],
        "node" => &["nodejs"],
        "nodejs" => &["node"],
        "lua" => &["lua5.4", "lua5.3", "luajit", "lua5.1"],
        "R" => &["Rscript"],
        "pwsh" => &["powershell"],
        _ => &[],
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn system() -> Interpreters {
        Interpreters::new(SearchPath { path: vec!["/usr/bin".into(), "/bin".into()], ..SearchPath::default() })
    }

    #[test]
    fn commands_resolve_with_their_arguments() {
        let found = system().resolve("sh -e").expect("every system has sh");
        assert_eq!((found.name.as_str(), found.arguments.as_slice()), ("sh", ["-e".to_owned()].as_slice()));
        assert!(found.program.is_absolute());
        assert!(found.visible.is_empty(), "system folders are visible anyway: {:?}", found.visible);
        let elsewhere = system().resolve("/nowhere/bin/sh").expect("is found under its name");
        assert_eq!(elsewhere.program, found.program);
    }

    #[test]
    fn missing_interpreters_name_the_places_and_the_cure() {
        let interpreters = Interpreters::new(SearchPath {
            path: vec!["/usr/bin".into()],
            home: Some("/home/u".into()),
            ..SearchPath::default()
        });
        let error = interpreters.resolve("no-such-thing").expect_err("does not exist");
        let text = error.text();
        for part in ["`no-such-thing`", "/usr/bin", "~/.cargo/bin", "~/.pyenv/shims", "/usr/local/bin"] {
            assert!(text.contains(part), "{part} is not in: {text}");
        }
        assert!(interpreters.resolve("").is_err());
        assert!(interpreters.resolve("../../bin/sh x").is_ok(), "only the name of a relative path counts");
    }
}
