//! Stages for JavaScript and TypeScript: a copy of a tool's sources beside a `node_modules` of its own.
//!
//! ES modules find packages by the place of the importing file only, so that a tool that imports `skillz` or its
//! dependencies must lie beside them; and TypeScript must lie somewhere as JavaScript. Stages are part of the cache.

use std::{
    fs, io,
    os::unix::fs::symlink,
    path::{Path, PathBuf},
};

use sha2::{Digest, Sha256};
use skillz_json::{Map, Value, json};

use crate::{kit::Kit, source::javascript};

/// Folders are followed this deep, and this many files are taken over; a tool is no monorepo.
const DEPTH: usize = 16;
const MOST_FILES: usize = 5_000;
/// Files of a tool's folder that are not the script's.
const NOT_STAGED: [&str; 6] = ["manifest.json", "SKILL.md", "lock", "versions", "node_modules", ".versions"];

/// What a stage is made of.
pub(crate) struct StagePlan<'a> {
    /// The tool's folder.
    pub(crate) tool: &'a Path,
    /// Changes whenever the folder's content does.
    pub(crate) hash: &'a str,
    /// The source file, relative to the folder.
    pub(crate) entry_file: &'a str,
    /// Whether `.js` files are ES modules where no `package.json` says.
    pub(crate) is_module: bool,
    /// Whether types are stripped; otherwise the interpreter does it.
    pub(crate) strips_types: bool,
    /// The `node_modules` of the tool's environment, where it has one.
    pub(crate) packages: Option<&'a Path>,
}

/// A stage on disk.
#[derive(Debug, Clone)]
pub(crate) struct Stage {
    /// The folder.
    pub(crate) folder: PathBuf,
    /// The script in it.
    pub(crate) entry: PathBuf,
}

/// Why a stage could not be made.
#[derive(Debug, thiserror::Error)]
pub(crate) enum StageError {
    #[error("The folder `{folder}` could not be prepared: {source}")]
    Files { folder: PathBuf, source: io::Error },
    #[error("`{file}` is not valid TypeScript: {message}")]
    Syntax { file: String, message: String },
}

/// Gives the stage, after making it if it is not there.
pub(crate) fn ensure(cache: &Path, kit: &Kit, plan: &StagePlan<'_>) -> Result<Stage, StageError> {
    let folder = cache.join("stages").join(name(kit, plan));
    let entry = folder.join(staged_name(Path::new(plan.entry_file), plan.strips_types));
    if entry.exists() {
        return Ok(Stage { folder, entry });
    }
    let staging = folder.with_extension(format!("new-{}-{:?}", std::process::id(), std::thread::current().id()));
    let _ = fs::remove_dir_all(&staging);
    let made = make(&staging, kit, plan).and_then(|()| match fs::rename(&staging, &folder) {
        Err(error) if !entry.exists() => Err(files(&folder)(error)),
        _ => Ok(()),
    });
    let _ = fs::remove_dir_all(&staging);
    made.map(|()| Stage { folder, entry })
}

/// Takes a stage away that is needed no more.
pub(crate) fn remove(stage: &Stage) {
    let _ = fs::remove_dir_all(&stage.folder);
}

fn make(staging: &Path, kit: &Kit, plan: &StagePlan<'_>) -> Result<(), StageError> {
    let modules = staging.join("node_modules");
    fs::create_dir_all(&modules).map_err(files(staging))?;
    let mut left = MOST_FILES;
    take_over(plan.tool, staging, plan.strips_types, 0, &mut left)?;
    for source in plan.packages.into_iter().chain([plan.tool.join("node_modules").as_path()]) {
        for entry in fs::read_dir(source).into_iter().flatten().flatten() {
            // The first one wins: what was locked before what lies in the folder.
            let _ = symlink(entry.path(), modules.join(entry.file_name()));
        }
    }
    let _ = fs::remove_file(modules.join("skillz"));
    symlink(kit.package(), modules.join("skillz")).map_err(files(staging))?;
    let package = staging.join("package.json");
    if package.exists() {
        return Ok(());
    }
    // Deno takes packages only if they are listed.
    let kind = if plan.is_module { "module" } else { "commonjs" };
    let text = json!({"type": kind, "dependencies": package_names(&modules)});
    fs::write(&package, text.to_string()).map_err(files(staging))
}

/// The packages in a `node_modules`, each with any version.
fn package_names(modules: &Path) -> Map<String, Value> {
    let mut names = Map::new();
    for entry in fs::read_dir(modules).into_iter().flatten().flatten() {
        let name = entry.file_name().to_string_lossy().into_owned();
        if name.starts_with('@') {
            let scoped = fs::read_dir(entry.path()).into_iter().flatten().flatten();
            names.extend(scoped.map(|package| (format!("{name}/{}", package.file_name().to_string_lossy()), json!("*"))));
        } else if !name.starts_with('.') {
            names.insert(name, json!("*"));
        }
    }
    names
}

/// Copies sources, strips types, and links to everything else.
fn take_over(from: &Path, to: &Path, strips_types: bool, depth: usize, left: &mut usize) -> Result<(), StageError> {
    let entries = fs::read_dir(from).map_err(files(from))?;
    for entry in entries.flatten() {
        let name = entry.file_name();
        let not_staged = depth == 0 && NOT_STAGED.iter().any(|known| name == *known);
        let Ok(kind) = entry.file_type() else { continue };
        if not_staged || name.as_encoded_bytes().starts_with(b".") || *left == 0 || kind.is_symlink() {
            continue;
        }
        *left -= 1;
        let path = entry.path();
        if kind.is_dir() {
            if depth < DEPTH {
                let folder = to.join(&name);
                fs::create_dir(&folder).map_err(files(&folder))?;
                take_over(&path, &folder, strips_types, depth + 1, left)?;
            }
            continue;
        }
        let target = to.join(staged_name(Path::new(&name), strips_types));
        match path.extension().and_then(|extension| extension.to_str()) {
            Some("ts" | "mts" | "cts") if strips_types => {
                let source = fs::read_to_string(&path).map_err(files(&path))?;
                let shown = name.to_string_lossy().into_owned();
                let code = javascript::strip_types(source.strip_prefix('\u{feff}').unwrap_or(&source), &shown);
                let code = code.map_err(|message| StageError::Syntax { file: shown, message })?;
                fs::write(&target, code).map_err(files(&target))?;
            }
            Some("js" | "mjs" | "cjs" | "ts" | "mts" | "cts" | "jsx" | "tsx" | "json") | None => {
                fs::copy(&path, &target).map_err(files(&target))?;
            }
            _ => symlink(&path, &target).map_err(files(&target))?,
        }
    }
    Ok(())
}

/// `main.ts` becomes `main.js`, as the imports in it do.
fn staged_name(file: &Path, strips_types: bool) -> PathBuf {
    let extension = match file.extension().and_then(|extension| extension.to_str()) {
        Some("ts") => "js",
        Some("mts") => "mjs",
        Some("cts") => "cjs",
        _ => return file.to_path_buf(),
    };
    if strips_types { file.with_extension(extension) } else { file.to_path_buf() }
}

fn name(kit: &Kit, plan: &StagePlan<'_>) -> String {
    let mut hash = Sha256::new();
    for part in [plan.tool, kit.root(), plan.packages.unwrap_or(Path::new(""))] {
        hash.update(part.as_os_str().as_encoded_bytes());
        hash.update([0]);
    }
    hash.update(plan.hash);
    hash.update(plan.entry_file);
    hash.update([u8::from(plan.strips_types), u8::from(plan.is_module)]);
    let hash = hash.finalize();
    format!("{:032x}", u128::from_be_bytes(hash.first_chunk().copied().unwrap_or_default()))
}

fn files(folder: &Path) -> impl FnOnce(io::Error) -> StageError + '_ {
    move |source| StageError::Files { folder: folder.to_path_buf(), source }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn sources_are_copied_types_stripped_and_packages_linked() {
        let base = tempfile::tempdir().unwrap();
        let kit = Kit::below(base.path());
        kit.ensure().unwrap();
        let tool = base.path().join("tool");
        let packages = base.path().join("env/node_modules");
        fs::create_dir_all(packages.join("left-pad")).unwrap();
        fs::create_dir_all(tool.join(".versions/1.0.0")).unwrap();
        fs::create_dir_all(tool.join("lib")).unwrap();
        fs::write(tool.join("manifest.json"), "{}").unwrap();
        fs::write(tool.join("main.ts"), "import { x } from './lib/x.ts';\nexport function run(a: string) { return x + a }")
            .unwrap();
        fs::write(tool.join("lib/x.ts"), "export const x: string = '1'").unwrap();
        fs::write(tool.join("data.csv"), "1").unwrap();
        let plan = StagePlan {
            tool: &tool,
            hash: "h",
            entry_file: "main.ts",
            is_module: true,
            strips_types: true,
            packages: Some(&packages),
        };
        let stage = ensure(base.path(), &kit, &plan).unwrap();
        assert!(stage.entry.ends_with("main.js"));
        let code = fs::read_to_string(&stage.entry).unwrap();
        assert!(code.contains("./lib/x.js") && !code.contains(": string"), "{code}");
        assert!(stage.folder.join("lib/x.js").exists() && stage.folder.join("data.csv").exists());
        assert!(!stage.folder.join(".versions").exists() && !stage.folder.join("manifest.json").exists());
        assert!(
            stage.folder.join("node_modules/left-pad").exists() && stage.folder.join("node_modules/skillz/skillz.mjs").exists()
        );
        let package: Value = serde_json::from_str(&fs::read_to_string(stage.folder.join("package.json")).unwrap()).unwrap();
        assert_eq!(package, json!({"type": "module", "dependencies": {"left-pad": "*", "skillz": "*"}}));
        assert_eq!(ensure(base.path(), &kit, &plan).unwrap().folder, stage.folder);
        let other = ensure(base.path(), &kit, &StagePlan { hash: "other", ..plan }).unwrap();
        assert_ne!(other.folder, stage.folder);
        fs::write(tool.join("main.ts"), "export function run( {").unwrap();
        let plan =
            StagePlan { tool: &tool, hash: "broken", entry_file: "main.ts", is_module: true, strips_types: true, packages: None };
        assert!(matches!(ensure(base.path(), &kit, &plan), Err(StageError::Syntax { .. })));
        assert_eq!(fs::read_dir(base.path().join("stages")).unwrap().count(), 2, "nothing half-made is left");
    }
}
