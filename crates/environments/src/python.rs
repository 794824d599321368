//! Python environments: a virtual environment made by hand, filled by uv, or by pip where there is no uv.

use std::{
    ffi::OsString,
    fs, io,
    os::unix::fs::{PermissionsExt, symlink},
    path::{Path, PathBuf},
};

use crate::{
    EnvironmentError, Language, Program,
    folder::Made,
    installer::{Installer, Step},
    lock, specifier,
    tag::Interpreter,
};

/// Name of the file in which requirements are handed over.
const REQUIREMENTS: &str = "requirements.txt";

/// Resolves with uv: exact versions for every platform, with hashes. `None` without uv: pip resolves as it installs.
pub(crate) async fn resolve(installer: &Installer<'_>, folder: &Path) -> Result<Option<String>, EnvironmentError> {
    let Some(uv) = installer.request.installer else { return Ok(None) };
    if has_locations(installer) {
        return Ok(None);
    }
    (installer.request.progress)("Resolving dependencies with uv");
    write_requirements(folder, &installer.request.dependencies.join("\n"))?;
    let resolved = match installer.run(compile_step(installer, uv, folder, true)).await {
        Ok(resolved) => resolved,
        // What has wheels for some platforms only cannot be resolved for all.
        Err(EnvironmentError::Install { .. }) => installer.run(compile_step(installer, uv, folder, false)).await?,
        Err(error) => return Err(error),
    };
    Ok(Some(lock::python(installer.request.dependencies, &resolved)))
}

fn compile_step<'a>(installer: &Installer<'_>, uv: &'a Program, folder: &'a Path, for_all_platforms: bool) -> Step<'a> {
    let mut arguments: Vec<OsString> =
        ["pip", "compile", "--quiet", "--no-header", "--no-annotate", "--generate-hashes", "--no-config", "--python"]
            .map(OsString::from)
            .to_vec();
    arguments.push(installer.request.interpreter.path.clone().into_os_string());
    if for_all_platforms {
        arguments.push("--universal".into());
    }
    if !installer.request.install_scripts {
        arguments.push("--no-build".into());
    }
    arguments.push(REQUIREMENTS.into());
    Step { program: &uv.path, arguments, folder, writes: Vec::new(), network: true }
}

/// Fills a staging folder. Without a lock one is made of what was installed.
pub(crate) async fn build(
    installer: &Installer<'_>,
    interpreter: &Interpreter,
    lock: Option<&str>,
    staging: &Path,
) -> Result<Made, EnvironmentError> {
    let packages = staging.join(&interpreter.packages);
    make_virtual_environment(staging, &packages, interpreter).map_err(EnvironmentError::files("The environment"))?;
    let is_exact = lock.is_some();
    let requirements = match lock {
        Some(lock) => lock.to_owned(),
        None => resolved_paths(installer).join("\n"),
    };
    write_requirements(staging, &requirements)?;
    match installer.request.installer {
        Some(uv) => {
            (installer.request.progress)("Installing dependencies with uv");
            installer.run(uv_step(installer, uv, staging, is_exact)).await?;
        }
        None => install_with_pip(installer, interpreter, staging, &packages, is_exact).await?,
    }
    let failed = || EnvironmentError::files("The environment");
    fs::remove_file(staging.join(REQUIREMENTS)).map_err(failed())?;
    // Installers leave caches and settings in their home, which the staging folder was.
    for name in [".cache", ".config", ".local", ".lock"] {
        let path = staging.join(name);
        let _ = if path.is_dir() { fs::remove_dir_all(&path) } else { fs::remove_file(&path) };
    }
    let lock = match lock {
        Some(lock) => lock.to_owned(),
        None if has_locations(installer) => lock::python(installer.request.dependencies, ""),
        None => lock::python(installer.request.dependencies, &installed(&packages).map_err(failed())?.join("\n")),
    };
    Ok(Made { packages: interpreter.packages.clone(), program: Some("bin/python3".into()), lock })
}

/// Makes scripts of packages start the environment's Python at the place where it will lie.
pub(crate) fn move_scripts(staging: &Path, target: &Path, interpreter: &Interpreter) -> io::Result<()> {
    let from_pip = staging.join(&interpreter.packages).join("bin");
    let folder = staging.join("bin");
    let python = format!("#!{}", target.join("bin/python3").display());
    for source in [&from_pip, &folder] {
        for entry in fs::read_dir(source).into_iter().flatten().flatten() {
            let path = entry.path();
            if entry.file_type()?.is_symlink() || !entry.file_type()?.is_file() {
                continue;
            }
            let bytes = fs::read(&path)?;
            let mut changed = bytes.clone();
            let line_end = bytes.iter().position(|byte| *byte == b'\n').unwrap_or(bytes.len());
            let line = bytes.get(..line_end).unwrap_or_default();
            if line.starts_with(b"#!") && line.windows(6).any(|part| part == b"python") {
                changed = [python.as_bytes(), bytes.get(line_end..).unwrap_or_default()].concat();
            }
            let destination = folder.join(entry.file_name());
            if destination != path || changed != bytes {
                fs::write(&destination, changed)?;
                fs::set_permissions(&destination, fs::Permissions::from_mode(0o755))?;
            }
        }
    }
    let _ = fs::remove_dir_all(from_pip);
    Ok(())
}

/// What `venv` makes, without starting Python: the file that tells it where its base is, and links to it.
fn make_virtual_environment(staging: &Path, packages: &Path, interpreter: &Interpreter) -> io::Result<()> {
    fs::create_dir_all(packages)?;
    fs::create_dir_all(staging.join("bin"))?;
    let home = interpreter.base.parent().unwrap_or(Path::new("/usr/bin"));
    let text = format!(
        "home = {}\ninclude-system-site-packages = false\nversion = {}\nexecutable = {}\n",
        home.display(),
        interpreter.version,
        interpreter.base.display()
    );
    fs::write(staging.join("pyvenv.cfg"), text)?;
    for name in ["python", "python3"] {
        symlink(&interpreter.base, staging.join("bin").join(name))?;
    }
    Ok(())
}

fn uv_step<'a>(installer: &Installer<'_>, uv: &'a Program, staging: &'a Path, is_exact: bool) -> Step<'a> {
    let mut arguments: Vec<OsString> =
        ["pip", "install", "--no-config", "--link-mode=copy", "--compile-bytecode", "--python"].map(OsString::from).to_vec();
    arguments.push(staging.join("bin/python3").into_os_string());
    if is_exact {
        arguments.push("--no-deps".into());
    }
    if !installer.request.install_scripts {
        arguments.push("--no-build".into());
    }
    arguments.extend(["--requirements".into(), REQUIREMENTS.into()]);
    Step { program: &uv.path, arguments, folder: staging, writes: Vec::new(), network: true }
}

async fn install_with_pip(
    installer: &Installer<'_>,
    interpreter: &Interpreter,
    staging: &Path,
    packages: &Path,
    is_exact: bool,
) -> Result<(), EnvironmentError> {
    let with_pip = if interpreter.has_pip {
        installer.request.interpreter.path.clone()
    } else {
        pip_of_venv(installer, interpreter, staging).await?
    };
    (installer.request.progress)("Installing dependencies with pip");
    let mut arguments: Vec<OsString> =
        ["-m", "pip", "install", "--no-warn-script-location", "--ignore-installed", "--target"].map(OsString::from).to_vec();
    arguments.push(packages.as_os_str().to_owned());
    if is_exact {
        arguments.push("--no-deps".into());
    }
    if !installer.request.install_scripts {
        arguments.extend(["--only-binary".into(), ":all:".into()]);
    }
    arguments.extend(["--requirement".into(), REQUIREMENTS.into()]);
    installer.run(Step { program: &with_pip, arguments, folder: staging, writes: Vec::new(), network: true }).await.map(drop)
}

/// A Python without pip may have `venv`, which brings it: made once, and kept in the cache.
async fn pip_of_venv(installer: &Installer<'_>, interpreter: &Interpreter, staging: &Path) -> Result<PathBuf, EnvironmentError> {
    let folder =
        installer.cache.join("pip-venvs").join(lock::digest(&[&interpreter.tag, &interpreter.base.display().to_string()]));
    let python = folder.join("bin/python3");
    if folder.join("whole").exists() && python.exists() {
        return Ok(python);
    }
    (installer.request.progress)("Getting pip with `python -m venv`");
    let _ = fs::remove_dir_all(&folder);
    fs::create_dir_all(&folder).map_err(EnvironmentError::files("The cache"))?;
    let arguments = vec!["-m".into(), "venv".into(), folder.clone().into_os_string()];
    let program = &installer.request.interpreter.path;
    let step = Step { program, arguments, folder: staging, writes: vec![folder.clone()], network: false };
    let (exit, stdout, stderr) = installer.run_raw(step).await?;
    if !exit.success() {
        let _ = fs::remove_dir_all(&folder);
        let output = format!("{stdout}{stderr}");
        tracing::debug!(output, "`python -m venv` failed");
        return Err(EnvironmentError::NoInstaller {
            language: Language::Python,
            missing: format!("there is no `uv`, `{}` has no pip, and its `venv` cannot bring one", program.display()),
            fix: "Install one of them, for example with `apt install python3-venv` or `pip install uv`".to_owned(),
        });
    }
    fs::write(folder.join("whole"), "").map_err(EnvironmentError::files("The cache"))?;
    Ok(python)
}

fn write_requirements(folder: &Path, text: &str) -> Result<(), EnvironmentError> {
    fs::write(folder.join(REQUIREMENTS), format!("{text}\n")).map_err(EnvironmentError::files("The list of requirements"))
}

fn has_locations(installer: &Installer<'_>) -> bool {
    installer.request.dependencies.iter().any(|dependency| specifier::is_location(Language::Python, dependency))
}

/// Dependencies with paths made absolute.
fn resolved_paths(installer: &Installer<'_>) -> Vec<String> {
    let base = installer.request.base;
    let absolute = |dependency: &String| {
        if dependency.starts_with('.') { base.join(dependency).display().to_string() } else { dependency.clone() }
    };
    installer.request.dependencies.iter().map(absolute).collect()
}

/// `name==version` of everything in a folder of packages, sorted.
fn installed(packages: &Path) -> io::Result<Vec<String>> {
    let mut list = Vec::new();
    for entry in fs::read_dir(packages)? {
        let path = entry?.path();
        if path.extension().is_none_or(|extension| extension != "dist-info") {
            continue;
        }
        let metadata = fs::read(path.join("METADATA"))?;
        let metadata = String::from_utf8_lossy(&metadata);
        let field = |name: &str| {
            metadata
                .lines()
                .take_while(|line| !line.is_empty())
                .find_map(|line| line.strip_prefix(name)?.strip_prefix(": ").map(str::trim).map(str::to_owned))
        };
        if let (Some(name), Some(version)) = (field("Name"), field("Version")) {
            list.push(format!("{}=={version}", name.to_ascii_lowercase()));
        }
    }
    list.sort();
    Ok(list)
}
