//! What is known of a tool version before a call of it begins; found out once and kept.

use std::{
    collections::HashMap,
    fs,
    path::{Path, PathBuf},
    sync::{Arc, Mutex, PoisonError},
};

use skillz_environments::Environment;
use skillz_tool::{Manifest, Tool, ToolError};

use crate::{
    install,
    interpreter::{Interpreter, Interpreters},
    source::{self, Decision},
};

/// Plans are small; more than this many are forgotten at once, and found out again when they are needed.
const MOST_PLANS: usize = 4_096;
/// Sources larger than this are not searched for words of the protocol.
const SEARCHED_BYTES: u64 = 1 << 20;

/// How one tool version is run.
#[derive(Debug)]
pub(crate) struct Plan {
    /// What the script is.
    pub(crate) decision: Decision,
    /// The script in the tool's folder.
    pub(crate) entry: PathBuf,
    /// What runs it; `None` for a program that runs itself.
    pub(crate) interpreter: Option<Arc<Interpreter>>,
    /// Whether it may make host requests, as far as its source tells: one that never speaks of a `method`, nor of
    /// the helper, cannot.
    pub(crate) may_ask: bool,
    /// What it depends on: what the manifest names, and a Python source by its inline metadata.
    pub(crate) dependencies: Vec<String>,
    /// The versions of Python that its inline metadata asks for.
    pub(crate) requires_python: Option<String>,
    /// The environment as it was last seen; whether it is still whole is looked at for each call.
    pub(crate) environment: Mutex<Option<Environment>>,
}

/// The plans of all tool versions that were called.
#[derive(Debug, Default)]
pub(crate) struct Plans {
    known: Mutex<HashMap<(PathBuf, String), Arc<Plan>>>,
}

impl Plans {
    /// The plan of a tool version.
    pub(crate) fn get(&self, tool: &Tool, interpreters: &Interpreters) -> Result<Arc<Plan>, ToolError> {
        let key = (tool.directory.clone(), tool.hash.clone());
        if let Some(plan) = self.known().get(&key) {
            return Ok(Arc::clone(plan));
        }
        let entry = tool.source_path()?;
        let plan = Arc::new(make(&tool.manifest, &tool.directory, entry, interpreters)?);
        let mut known = self.known();
        if known.len() >= MOST_PLANS {
            known.clear();
        }
        known.insert(key, Arc::clone(&plan));
        Ok(plan)
    }

    /// Forgets a tool version.
    pub(crate) fn forget(&self, tool: &Tool) {
        self.known().remove(&(tool.directory.clone(), tool.hash.clone()));
    }

    fn known(&self) -> std::sync::MutexGuard<'_, HashMap<(PathBuf, String), Arc<Plan>>> {
        self.known.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

/// Makes a plan from what lies in a folder.
pub(crate) fn make(manifest: &Manifest, folder: &Path, entry: PathBuf, interpreters: &Interpreters) -> Result<Plan, ToolError> {
    let source = fs::read(&entry).map_err(|error| {
        ToolError::failed(format!("The source `{}` of `{}` cannot be read: {error}", entry.display(), manifest.name))
    })?;
    let decision = source::decide(manifest, &source)?;
    let interpreter = match decision.command.as_slice() {
        [] => None,
        words => Some(interpreters.resolve_words(words)?),
    };
    let (dependencies, requires_python) = install::dependencies(manifest, &decision, &source)?;
    let may_ask = speaks_protocol(&source) || folder_speaks_protocol(folder, &entry);
    Ok(Plan { decision, entry, interpreter, may_ask, dependencies, requires_python, environment: Mutex::default() })
}

/// Whether a source holds one of the words without which no host request can be made.
fn speaks_protocol(source: &[u8]) -> bool {
    const WORDS: [&[u8]; 2] = [b"method", b"skillz"];
    WORDS.iter().any(|word| source.windows(word.len()).any(|window| window == *word))
}

/// Whether any other file of the tool does; a file that is too large to look at counts as if it did.
fn folder_speaks_protocol(folder: &Path, entry: &Path) -> bool {
    let Ok(entries) = fs::read_dir(folder) else { return true };
    entries.flatten().any(|file| {
        let path = file.path();
        let name = file.file_name();
        if path == entry || name.as_encoded_bytes().starts_with(b".") || name == "manifest.json" || name == "SKILL.md" {
            return false;
        }
        match file.metadata() {
            // A folder of modules is not searched; that it is there is enough.
            Ok(metadata) if metadata.is_dir() => name != "versions",
            Ok(metadata) if metadata.len() <= SEARCHED_BYTES => fs::read(&path).is_ok_and(|bytes| speaks_protocol(&bytes)),
            _ => true,
        }
    })
}

#[cfg(test)]
mod tests {
    use skillz_tool::ToolKind;

    use super::*;
    use crate::interpreter::SearchPath;

    #[test]
    fn only_scripts_that_speak_of_requests_may_make_them() {
        let interpreters = Interpreters::new(SearchPath::default());
        let folder = tempfile::tempdir().unwrap();
        let may_ask = |source: &str| {
            let entry = folder.path().join("main.sh");
            fs::write(&entry, source).unwrap();
            let manifest = Manifest {
                entry_file: Some("main.sh".into()),
                interpreter: Some("sh".into()),
                ..Manifest::new("t", "", ToolKind::Script)
            };
            make(&manifest, folder.path(), entry, &interpreters).unwrap().may_ask
        };
        assert!(!may_ask("cat; echo '{\"jsonrpc\":\"2.0\",\"id\":1,\"result\":2}'"));
        assert!(may_ask("echo '{\"jsonrpc\":\"2.0\",\"id\":5,\"method\":\"memory/get\"}'"));
        fs::write(folder.path().join("helper.py"), "import skillz").unwrap();
        assert!(may_ask("cat"));
    }
}
