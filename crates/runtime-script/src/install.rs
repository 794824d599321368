//! Dependencies of a script, from its manifest to an environment that is whole.

use std::{
    fs,
    path::Path,
    sync::{
        PoisonError,
        atomic::{AtomicU32, Ordering},
    },
};

use skillz_environments::{Environment, EnvironmentError, InstallRequest, Language as Packages, Program, inline_metadata};
use skillz_tool::{ErrorKind, Host, Manifest, Progress, ToolError};

use crate::{
    discard::EnvironmentUse, interpreter::Interpreter, language::Language, plan::Plan, runtime::ScriptRuntime, source::Decision,
};

/// The lock beside the manifest.
pub(crate) const LOCK_FILE: &str = "lock";

/// What a script depends on, and the versions of Python that it asks for.
pub(crate) fn dependencies(
    manifest: &Manifest,
    decision: &Decision,
    source: &[u8],
) -> Result<(Vec<String>, Option<String>), ToolError> {
    let mut dependencies = manifest.dependencies.clone();
    if decision.language != Language::Python {
        return Ok((dependencies, None));
    }
    let inline = inline_metadata(&String::from_utf8_lossy(source)).map_err(|error| install_failure(&manifest.name, &error))?;
    for dependency in inline.dependencies {
        if !dependencies.contains(&dependency) {
            dependencies.push(dependency);
        }
    }
    Ok((dependencies, inline.requires_python))
}

/// Refuses an interpreter of a version that the script does not ask for.
pub(crate) async fn check_version(runtime: &ScriptRuntime, plan: &Plan, manifest: &Manifest) -> Result<(), ToolError> {
    let (Some(required), Some(interpreter)) = (&plan.requires_python, &plan.interpreter) else { return Ok(()) };
    let request = InstallRequest {
        language: Packages::Python,
        interpreter: &program(interpreter),
        installer: None,
        dependencies: &[],
        lock: None,
        install_scripts: false,
        base: Path::new("/"),
        progress: &|_| {},
    };
    let checked = runtime.settings.environments.check_python(request, required).await;
    checked.map_err(|error| install_failure(&manifest.name, &error))
}

/// Gives the environment of a tool, and notes its use; `None` where the tool depends on nothing. A use is noted before the
/// environment is looked at: nobody removes it in between.
pub(crate) async fn ensure(
    runtime: &ScriptRuntime,
    plan: &Plan,
    manifest: &Manifest,
    folder: &Path,
    host: &dyn Host,
) -> Result<Option<(Environment, EnvironmentUse)>, ToolError> {
    if plan.dependencies.is_empty() {
        return Ok(None);
    }
    let known = plan.environment.lock().unwrap_or_else(PoisonError::into_inner).clone();
    if let Some(environment) = known {
        let used = runtime.uses.of(&environment.hash);
        if runtime.settings.environments.is_whole(&environment) {
            return Ok(Some((environment, used)));
        }
    }
    let mut environment = install(runtime, plan, manifest, folder, host).await?;
    let used = runtime.uses.of(&environment.hash);
    // It may have been there, and have gone with the last tool that shared it just before its use was noted.
    if !runtime.settings.environments.is_whole(&environment) {
        environment = install(runtime, plan, manifest, folder, host).await?;
    }
    *plan.environment.lock().unwrap_or_else(PoisonError::into_inner) = Some(environment.clone());
    Ok(Some((environment, used)))
}

async fn install(
    runtime: &ScriptRuntime,
    plan: &Plan,
    manifest: &Manifest,
    folder: &Path,
    host: &dyn Host,
) -> Result<Environment, ToolError> {
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
    let steps = AtomicU32::new(0);
    let progress = |message: &str| {
        let current = f64::from(steps.fetch_add(1, Ordering::Relaxed) + 1);
        host.progress(Progress { current, total: None, message: Some(message.to_owned()) });
    };
    let request = InstallRequest {
        language: packages,
        interpreter: &interpreter,
        installer: installer.as_ref(),
        dependencies: &plan.dependencies,
        lock: lock.as_deref(),
        install_scripts: manifest.permissions.install_scripts,
        base: folder,
        progress: &progress,
    };
    runtime.settings.environments.ensure(request).await.map_err(|error| install_failure(&manifest.name, &error))
}

/// Whether a failure is such as a missing file of a package makes.
pub(crate) fn may_be_damage(error: &ToolError) -> bool {
    const WORDS: [&str; 5] =
        ["ModuleNotFoundError", "ImportError", "Cannot find module", "Cannot find package", "ERR_MODULE_NOT_FOUND"];
    let output = error.output.as_deref().unwrap_or_default();
    WORDS.iter().any(|word| error.message.contains(word) || output.contains(word))
}

/// Looks at every file of the plan's environment; forgets one that is damaged, so that it is made again.
pub(crate) fn forget_if_damaged(runtime: &ScriptRuntime, plan: &Plan) -> bool {
    let mut known = plan.environment.lock().unwrap_or_else(PoisonError::into_inner);
    let is_damaged = known.as_ref().is_some_and(|environment| !runtime.settings.environments.is_intact(environment));
    if is_damaged {
        *known = None;
    }
    is_damaged
}

fn install_failure(name: &str, error: &EnvironmentError) -> ToolError {
    let kind = match error {
        EnvironmentError::Specifier { .. } | EnvironmentError::InlineMetadata { .. } | EnvironmentError::PythonVersion { .. } => {
            ErrorKind::InvalidInput
        }
        EnvironmentError::NoInstaller { .. } | EnvironmentError::Start(_) => ErrorKind::Unavailable,
        EnvironmentError::Install { .. } | EnvironmentError::Files { .. } => ErrorKind::Failed,
    };
    let message = if kind == ErrorKind::InvalidInput {
        format!("The dependencies of `{name}` were refused. {error}")
    } else {
        format!("The dependencies of `{name}` could not be installed. {error}")
    };
    let failure = ToolError::new(kind, message).with_output(error.output());
    match error.fix() {
        Some(fix) => failure.with_hint(fix),
        None => failure,
    }
}

fn program(interpreter: &Interpreter) -> Program {
    Program { path: interpreter.program.clone(), visible: interpreter.visible.clone() }
}

fn no_packages(manifest: &Manifest) -> ToolError {
    ToolError::invalid(format!(
        "`{}` names `dependencies`, which are installed for Python (pip) and JavaScript (npm) only",
        manifest.name
    ))
    .with_hint("Leave `dependencies` out, and use what the interpreter brings along")
}
