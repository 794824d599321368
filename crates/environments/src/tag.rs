//! What of an interpreter decides whether packages made for it fit another: asked once for each program.

use std::{
    collections::HashMap,
    path::{Path, PathBuf},
    sync::{Mutex, PoisonError},
    time::SystemTime,
};

use serde::Deserialize;

use crate::{
    EnvironmentError, Language,
    installer::{Installer, Step},
};

/// An interpreter, as far as packages are concerned.
#[derive(Debug, Clone, PartialEq, Eq, Deserialize)]
pub(crate) struct Interpreter {
    /// Implementation, version and platform, as one text.
    pub(crate) tag: String,
    /// Python: the program behind a virtual environment, if it is one.
    #[serde(default)]
    pub(crate) base: PathBuf,
    /// Python: where packages lie, relative to an environment.
    #[serde(default)]
    pub(crate) packages: PathBuf,
    /// Python: the version as `major.minor.patch`.
    #[serde(default)]
    pub(crate) version: String,
    /// Python: whether it has pip.
    #[serde(default)]
    pub(crate) has_pip: bool,
}

const PYTHON_QUESTION: &str = r#"
import importlib.util, json, sys, sysconfig
version = "%d.%d.%d" % sys.version_info[:3]
packages = sysconfig.get_path("purelib", "posix_prefix", vars={"base": "", "platbase": ""}).lstrip("/")
print(json.dumps({
    "tag": "%s-%d.%d-%s" % (sys.implementation.name, sys.version_info[0], sys.version_info[1], sysconfig.get_platform()),
    "base": getattr(sys, "_base_executable", None) or sys.executable,
    "packages": packages, "version": version,
    "has_pip": importlib.util.find_spec("pip") is not None,
}))
"#;

/// What was asked already; a program that changed is asked again.
#[derive(Debug, Default)]
pub(crate) struct Interpreters {
    known: Mutex<HashMap<(PathBuf, Option<SystemTime>), Interpreter>>,
}

impl Interpreters {
    pub(crate) async fn get(&self, installer: &Installer<'_>, folder: &Path) -> Result<Interpreter, EnvironmentError> {
        let program = &installer.request.interpreter.path;
        let modified = program.metadata().and_then(|metadata| metadata.modified()).ok();
        let key = (program.clone(), modified);
        if let Some(known) = self.known.lock().unwrap_or_else(PoisonError::into_inner).get(&key) {
            return Ok(known.clone());
        }
        let interpreter = ask(installer, program, folder).await?;
        self.known.lock().unwrap_or_else(PoisonError::into_inner).insert(key, interpreter.clone());
        Ok(interpreter)
    }
}

async fn ask(installer: &Installer<'_>, program: &Path, folder: &Path) -> Result<Interpreter, EnvironmentError> {
    let arguments = match installer.request.language {
        Language::Python => vec!["-c".into(), PYTHON_QUESTION.into()],
        Language::Node => vec!["--version".into()],
    };
    let step = Step { program, arguments, folder, writes: Vec::new(), network: false };
    let answer = installer.run(step).await?;
    match installer.request.language {
        Language::Python => serde_json::from_str(answer.trim()).map_err(|error| EnvironmentError::Install {
            cause: format!("`{}` does not answer like Python: {error}", program.display()),
            fix: "Name another interpreter".to_owned(),
            output: answer,
        }),
        Language::Node => {
            let version = answer.trim().lines().next().unwrap_or_default().to_owned();
            let name = program.file_name().map(|name| name.to_string_lossy().into_owned()).unwrap_or_default();
            let tag = format!("{name}-{version}-{}-{}", std::env::consts::OS, std::env::consts::ARCH);
            Ok(Interpreter { tag, base: PathBuf::new(), packages: "node_modules".into(), version, has_pip: false })
        }
    }
}
