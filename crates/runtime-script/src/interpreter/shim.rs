//! Sees through the shims of version managers without running them.
//!
//! A shim costs up to 100 ms a start and reads files in the user's home, which confined programs cannot see.
//! What it would run is decided by a few small files, which are read here the way the managers read them.

use std::{
    ffi::OsStr,
    fs,
    path::{Path, PathBuf},
};

use super::search::{SearchPath, is_program, newest_first};

/// What stands behind a candidate.
#[derive(Debug, PartialEq, Eq)]
pub(super) enum Resolution {
    /// It is a program of its own.
    NoShim,
    /// It stands for this program.
    Program(PathBuf),
    /// It is a shim, and no installed version has the program.
    Nothing,
}

/// Finds out what `candidate` stands for.
pub(super) fn resolve(candidate: &Path, search: &SearchPath) -> Resolution {
    let (Some(folder), Some(name)) = (candidate.parent(), candidate.file_name()) else { return Resolution::NoShim };
    let Some(root) = folder.parent() else { return Resolution::NoShim };
    let program = if folder.ends_with("shims") && root.join("versions").is_dir() {
        behind_environment_manager(root, name, search)
    } else if folder.ends_with("shims") && root.join("installs").is_dir() {
        behind_plugin_manager(candidate, root, name, search)
    } else if folder.ends_with("bin") && root.join("tools/image").is_dir() {
        behind_volta(root, name)
    } else {
        return Resolution::NoShim;
    };
    program.map_or(Resolution::Nothing, Resolution::Program)
}

/// pyenv, rbenv, nodenv and their kin: `<root>/versions/<version>/bin/<name>`, chosen by a variable or `<root>/version`.
/// `None` where the system's own program is wanted: the search then goes on behind the shims.
fn behind_environment_manager(root: &Path, name: &OsStr, search: &SearchPath) -> Option<PathBuf> {
    let versions = root.join("versions");
    let variable = match root.file_name().and_then(OsStr::to_str) {
        Some(folder) => format!("{}_VERSION", folder.trim_start_matches('.').to_ascii_uppercase()),
        None => String::new(),
    };
    let chosen = search.variables.get(&variable).cloned().or_else(|| fs::read_to_string(root.join("version")).ok());
    let chosen = chosen.unwrap_or_else(|| "system".to_owned());
    let mut wants_system = false;
    for version in chosen.split([':', '\n', ' ', '\r']).filter(|version| !version.is_empty()) {
        wants_system |= version == "system";
        let exact = versions.join(version).join("bin").join(name);
        if Path::new(version).components().count() == 1 && is_program(&exact) {
            return Some(exact);
        }
        let prefix = format!("{version}.");
        let newest = newest_first(&versions).into_iter().filter(|folder| starts_with(folder, &prefix));
        if let Some(program) = newest.map(|folder| folder.join("bin").join(name)).find(|program| is_program(program)) {
            return Some(program);
        }
    }
    if wants_system && search.path.iter().any(|folder| !folder.ends_with("shims") && is_program(&folder.join(name))) {
        return None;
    }
    newest_first(&versions).into_iter().map(|folder| folder.join("bin").join(name)).find(|program| is_program(program))
}

/// asdf and mise: `<root>/installs/<plugin>/<version>/bin/<name>`, chosen by `~/.tool-versions`.
fn behind_plugin_manager(shim: &Path, root: &Path, name: &OsStr, search: &SearchPath) -> Option<PathBuf> {
    let installs = root.join("installs");
    let chosen = search.home.as_ref().and_then(|home| fs::read_to_string(home.join(".tool-versions")).ok()).unwrap_or_default();
    // asdf notes in its shim which plugins have the program.
    let noted = fs::read(shim).ok().filter(|bytes| bytes.starts_with(b"#!")).and_then(|bytes| String::from_utf8(bytes).ok());
    let noted = noted.unwrap_or_default();
    let noted = noted.lines().filter_map(|line| line.strip_prefix("# asdf-plugin: "));
    for line in chosen.lines().chain(noted) {
        let mut words = line.split_whitespace();
        let Some(plugin) = words.next() else { continue };
        let mut programs = words.map(|version| installs.join(plugin).join(version).join("bin").join(name));
        if let Some(program) = programs.find(|program| is_program(program)) {
            return Some(program);
        }
    }
    let plugins = newest_first(&installs).into_iter();
    plugins
        .flat_map(|plugin| newest_first(&plugin))
        .map(|version| version.join("bin").join(name))
        .find(|program| is_program(program))
}

/// Volta: `<root>/tools/image/<tool>/<version>/bin/<name>`.
fn behind_volta(root: &Path, name: &OsStr) -> Option<PathBuf> {
    let default = fs::read_to_string(root.join("tools/user/platform.json")).ok();
    let default = default.and_then(|text| serde_json::from_str::<skillz_json::Value>(&text).ok());
    let default = default.as_ref().and_then(|platform| platform.pointer("/node/runtime")?.as_str());
    let images = root.join("tools/image");
    if let Some(version) = default {
        let program = images.join("node").join(version).join("bin").join(name);
        if is_program(&program) {
            return Some(program);
        }
    }
    let tools = newest_first(&images).into_iter();
    tools.flat_map(|tool| newest_first(&tool)).map(|version| version.join("bin").join(name)).find(|program| is_program(program))
}

fn starts_with(folder: &Path, prefix: &str) -> bool {
    folder.file_name().and_then(OsStr::to_str).is_some_and(|name| name.starts_with(prefix))
}

#[cfg(test)]
mod tests {
    use std::os::unix::fs::PermissionsExt;

    use super::*;

    fn program(path: &Path, text: &str) {
        fs::create_dir_all(path.parent().unwrap()).unwrap();
        fs::write(path, text).unwrap();
        fs::set_permissions(path, fs::Permissions::from_mode(0o755)).unwrap();
    }

    fn search(home: &Path, path: &[PathBuf]) -> SearchPath {
        SearchPath { path: path.to_vec(), home: Some(home.to_path_buf()), ..SearchPath::default() }
    }

    #[test]
    fn the_version_file_chooses_and_the_newest_stands_in() {
        let home = tempfile::tempdir().unwrap();
        let root = home.path().join(".pyenv");
        for version in ["3.9.1", "3.11.7", "3.11.10"] {
            program(&root.join("versions").join(version).join("bin/python3"), "");
        }
        program(&root.join("shims/python3"), "#!/bin/sh\n");
        let shim = root.join("shims/python3");
        let found = |search: &SearchPath| match resolve(&shim, search) {
            Resolution::Program(path) => path.strip_prefix(root.join("versions")).unwrap().to_str().unwrap().to_owned(),
            other => format!("{other:?}"),
        };
        let plain = search(home.path(), &[]);
        assert_eq!(found(&plain), "3.11.10/bin/python3");
        fs::write(root.join("version"), "3.9.1\n").unwrap();
        assert_eq!(found(&plain), "3.9.1/bin/python3");
        fs::write(root.join("version"), "../../etc\n").unwrap();
        assert_eq!(found(&plain), "3.11.10/bin/python3");
        let mut by_variable = plain.clone();
        by_variable.variables.insert("PYENV_VERSION".into(), "3.11".into());
        assert_eq!(found(&by_variable), "3.11.10/bin/python3");
        fs::write(root.join("version"), "system\n").unwrap();
        program(&home.path().join("usr/python3"), "");
        assert_eq!(found(&search(home.path(), &[home.path().join("usr")])), "Nothing");
        assert_eq!(
            search(home.path(), &[root.join("shims"), home.path().join("usr")]).find("python3"),
            Some(home.path().join("usr/python3"))
        );
    }

    #[test]
    fn asdf_and_volta_are_seen_through() {
        let home = tempfile::tempdir().unwrap();
        let root = home.path().join(".asdf");
        for version in ["18.0.0", "20.1.0"] {
            program(&root.join("installs/nodejs").join(version).join("bin/node"), "");
        }
        program(&root.join("shims/node"), "#!/usr/bin/env bash\n# asdf-plugin: nodejs 18.0.0\nexec asdf exec node\n");
        let search = search(home.path(), &[]);
        let shim = root.join("shims/node");
        assert_eq!(resolve(&shim, &search), Resolution::Program(root.join("installs/nodejs/18.0.0/bin/node")));
        fs::write(home.path().join(".tool-versions"), "ruby 3\nnodejs 20.1.0\n").unwrap();
        assert_eq!(resolve(&shim, &search), Resolution::Program(root.join("installs/nodejs/20.1.0/bin/node")));

        let volta = home.path().join(".volta");
        program(&volta.join("tools/image/node/22.0.0/bin/node"), "");
        program(&volta.join("bin/node"), "shim");
        assert_eq!(
            resolve(&volta.join("bin/node"), &search),
            Resolution::Program(volta.join("tools/image/node/22.0.0/bin/node"))
        );
        assert_eq!(resolve(Path::new("/usr/bin/env"), &search), Resolution::NoShim);
    }
}
