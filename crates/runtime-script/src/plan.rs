//! What is known of a tool version before a call of it begins; found out once and kept.

use std::{
    collections::HashMap,
    fs,
    path::PathBuf,
    sync::{Arc, Mutex, PoisonError},
};

use skillz_environments::Environment;
use skillz_tool::{Manifest, Tool, ToolError};

use crate::{
    install,
    interpreter::{Interpreter, Interpreters},
    language,
    source::{self, Decision, Origin},
};

/// Plans are small; more than this many are forgotten at once, and found out again when they are needed.
const MOST_PLANS: usize = 4_096;

/// How one tool version is run.
#[derive(Debug)]
pub(crate) struct Plan {
    /// What the script is.
    pub(crate) decision: Decision,
    /// The script in the tool's folder.
    pub(crate) entry: PathBuf,
    /// What runs it; `None` for a program that runs itself.
    pub(crate) interpreter: Option<Arc<Interpreter>>,
    /// What it depends on: what the manifest names, and a Python source by its inline metadata.
    pub(crate) dependencies: Vec<String>,
    /// The versions of Python that its inline metadata asks for.
    pub(crate) requires_python: Option<String>,
    /// A shell script with the line ends of another system, which no shell takes.
    pub(crate) has_carriage_returns: bool,
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
        let plan = Arc::new(make(&tool.manifest, entry, interpreters)?);
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
pub(crate) fn make(manifest: &Manifest, entry: PathBuf, interpreters: &Interpreters) -> Result<Plan, ToolError> {
    let source = fs::read(&entry).map_err(|error| {
        ToolError::failed(format!("The source `{}` of `{}` cannot be read: {error}", entry.display(), manifest.name))
    })?;
    let decision = source::decide(manifest, &source, Origin::Folder)?;
    let interpreter = match decision.command.as_slice() {
        [] => None,
        words => Some(interpreters.resolve_words(words)?),
    };
    let (dependencies, requires_python) = install::dependencies(manifest, &decision, &source)?;
    let is_shell = decision.command.first().is_some_and(|command| language::is_shell(command));
    let has_carriage_returns = is_shell && source.windows(2).any(|two| two == b"\r\n");
    let environment = Mutex::default();
    Ok(Plan { decision, entry, interpreter, dependencies, requires_python, has_carriage_returns, environment })
}
