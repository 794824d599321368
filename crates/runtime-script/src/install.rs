//! Dependencies of a script, from its manifest to an environment that is whole.

use std::{
    fs,
    path::Path,
    sync::PoisonError,
};

use skillz_environments::{Environment, InstallRequest, Language as Packages, Program};
use skillz_tool::{ErrorKind, Manifest, ToolError};

use crate::{interpreter::Interpreter, language::Language, plan::Plan, runtime::ScriptRuntime};

/// The lock beside the manifest.
pub(crate) const LOCK_FILE: &str = "lock";

/// Gives the environment of a tool; `None` where it depends on nothing.
pub(crate) async fn ensure(
    runtime: &ScriptRuntime,
    plan: &Plan,
    manifest: &Manifest,
    folder: &Path,
    progress: &(dyn Fn(&str) + Send + Sync),
) -> Result<Option<Environment>, ToolError> {
    if manifest.dependencies.is_empty() {
        return Ok(None);
    }
    let known = plan.environment.lock().unwrap_or_else(PoisonError::into_inner).clone();
    if let Some(environment) = known.filter(|environment| runtime.settings.environments.is_whole(environment)) {
        return Ok(Some(environment));
    }
    let packages = match plan.decision.language {
        Language::Python => Packages::Python,
        Language::JavaScript | Language::TypeScript => Packages::Node,
        Language::Other => return Err(no_packages(manifest)),
    };
    let Some(interpreter) = &plan.interpreter else { return Err(no_packages(manifest)) };
    let interpreter = program(interpreter);
    let installer_name = if packages == Packages::Python { "uv" } else { "npm" };
    let installer = runtime.interpreters.resolve(installer_name).ok().map(|found| program(&found));
    let lock = fs::read_to_string(folder.join(LOCK_FILE)).ok();
    let request = InstallRequest {
        language: packages,
        interpreter: &interpreter,
        installer: installer.as_ref(),
        dependencies: &manifest.dependencies,
        lock: lock.as_deref(),
        install_scripts: manifest.permissions.install_scripts,
        progress,
    };
    let environment = runtime.settings.environments.ensure(request).await.map_err(|error| {
        let failure = ToolError::new(ErrorKind::Failed, format!("The dependencies of `{}` could not be installed. {error}", manifest.name));
        failure
    })?;
    *plan.environment.lock().unwrap_or_else(PoisonError::into_inner) = Some(environment.clone());
    Ok(Some(environment))
}

fn program(interpreter: &Interpreter) -> Program {
    Program { path: interpreter.program.clone(), visible: interpreter.visible.clone() }
}

fn no_packages(manifest: &Manifest) -> ToolError {
    ToolError::invalid(format!("`{}` names `dependencies`, which are installed for Python (pip) and JavaScript (npm) only", manifest.name))
        .with_hint("Leave `dependencies` out, and use what the interpreter brings along")
}
