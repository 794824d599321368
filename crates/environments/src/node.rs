//! npm environments: a `node_modules`, filled by npm without running the packages' scripts.

use std::{ffi::OsString, fs, path::Path};

use serde_json::json;

use crate::{
    EnvironmentError, Language,
    folder::Made,
    installer::{Installer, Step},
    lock,
};

/// Fills a staging folder. With a lock npm installs exactly that, and otherwise writes one.
pub(crate) async fn build(installer: &Installer<'_>, lock: Option<&str>, staging: &Path) -> Result<Made, EnvironmentError> {
    let Some(npm) = installer.request.installer else {
        return Err(EnvironmentError::NoInstaller {
            language: Language::Node,
            missing: "there is no `npm`".to_owned(),
            fix: "Install it, for example with `apt install npm` or `brew install node`".to_owned(),
        });
    };
    (installer.request.progress)("Installing dependencies with npm");
    let failed = || EnvironmentError::files("The environment");
    let package = json!({
        "name": "skillz-environment", "version": "1.0.0", "private": true,
        "dependencies": lock::node_dependencies(installer.request.dependencies),
    });
    fs::write(staging.join("package.json"), package.to_string()).map_err(failed())?;
    if let Some(lock) = lock {
        fs::write(staging.join("package-lock.json"), lock).map_err(failed())?;
    }
    let mut arguments: Vec<OsString> = Vec::new();
    let mut program = npm.path.as_path();
    if is_node_script(program) {
        arguments.push(npm.path.clone().into_os_string());
        program = &installer.request.interpreter.path;
        if !is_node(program) {
            // npm itself is a program of node, whatever runs the tool.
            arguments.clear();
            program = &npm.path;
        }
    }
    arguments.push(if lock.is_some() { "ci".into() } else { "install".into() });
    arguments.extend(
        [
            "--no-audit",
            "--no-fund",
            "--no-update-notifier",
            "--loglevel=error",
            "--omit=dev",
            "--omit-lockfile-registry-resolved",
        ]
        .map(OsString::from),
    );
    if !installer.request.install_scripts {
        arguments.push("--ignore-scripts".into());
    }
    installer.run(Step { program, arguments, folder: staging, writes: Vec::new(), network: true }).await?;
    fs::create_dir_all(staging.join("node_modules")).map_err(failed())?;
    let lock = match lock {
        Some(lock) => lock.to_owned(),
        None => fs::read_to_string(staging.join("package-lock.json")).map_err(failed())?,
    };
    let _ = fs::remove_dir_all(staging.join(".npm"));
    Ok(Made { packages: "node_modules".into(), program: None, lock })
}

/// Whether a program is a script for node: its `#!` line would look for node on a PATH.
fn is_node_script(program: &Path) -> bool {
    use std::io::Read;
    let mut start = [0; 64];
    let Ok(count) = fs::File::open(program).and_then(|mut file| file.read(&mut start)) else { return false };
    let start = start.get(..count).unwrap_or_default();
    start.starts_with(b"#!")
        && start.split(|byte| *byte == b'\n').next().is_some_and(|line| line.windows(4).any(|word| word == b"node"))
}

fn is_node(program: &Path) -> bool {
    program.file_name().is_some_and(|name| name.to_string_lossy().starts_with("node"))
}
