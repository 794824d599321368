//! What a built set of dependencies holds, as cargo's messages tell it and as rustc wants to hear it.

use std::{
    ffi::OsString,
    path::{Path, PathBuf},
};

use serde::{Deserialize, Serialize};
use skillz_json::Value;

use crate::build::{dependency::crate_name, project::locked_versions, toolchain::TARGET};

/// Stands for a set's own folder in what is written about it.
const PLACE: &str = "{set}";

/// What is written beside a built set. Paths are relative to its folder.
#[derive(Serialize, Deserialize, Default)]
pub(super) struct Contents {
    /// Crate names with their libraries.
    pub(super) externs: Vec<(String, PathBuf)>,
    /// Folders of native libraries that build scripts name.
    native: Vec<String>,
}

impl Contents {
    /// Arguments for rustc, with the set in its folder.
    pub(super) fn arguments(&self, directory: &Path) -> Vec<OsString> {
        let mut arguments = Vec::new();
        let mut add = |name: &str, value: OsString| arguments.extend([OsString::from(name), value]);
        for (name, path) in &self.externs {
            let mut value = OsString::from(format!("{name}="));
            value.push(directory.join(path));
            add("--extern", value);
        }
        for target in ["release/deps", &format!("{TARGET}/release/deps")] {
            let mut value = OsString::from("dependency=");
            value.push(directory.join("target").join(target));
            add("-L", value);
        }
        for folder in &self.native {
            add("-L", folder.replace(PLACE, &directory.to_string_lossy()).into());
        }
        arguments
    }
}

/// Finds the libraries of the direct dependencies in cargo's messages.
pub(super) fn contents_of(messages: &str, staging: &Path, lock: &str) -> Contents {
    let versions = locked_versions(lock).unwrap_or_default();
    let mut contents = Contents::default();
    for line in messages.lines() {
        let Ok(message) = serde_json::from_str::<Value>(line) else { continue };
        let list = |field: &str| message.get(field).and_then(Value::as_array).into_iter().flatten().filter_map(Value::as_str);
        let text = |pointer: &str| message.pointer(pointer).and_then(Value::as_str).unwrap_or_default();
        match text("/reason") {
            "build-script-executed" => {
                let paths = list("linked_paths").map(|path| path.replace(&*staging.to_string_lossy(), PLACE));
                contents.native.extend(paths);
            }
            "compiler-artifact" => {
                let Some((package, version)) = package_of(text("/package_id")) else { continue };
                if versions.get(package).map(String::as_str) != Some(version) {
                    continue;
                }
                let is_macro = text("/target/kind/0") == "proc-macro";
                let library = list("filenames").map(Path::new).find(|path| {
                    let for_target = path.components().any(|part| part.as_os_str() == TARGET);
                    let is_library = path.extension().is_some_and(|extension| extension == "rlib");
                    if is_macro { !is_library } else { is_library && for_target }
                });
                let relative = library.and_then(|path| path.strip_prefix(staging).ok());
                if let Some(relative) = relative {
                    contents.externs.push((crate_name(text("/target/name")), relative.to_owned()));
                }
            }
            _ => {}
        }
    }
    contents
}

/// Name and version in a package id, such as `registry+https://...#serde@1.0.2` or `path+file:///.../skillz#skillz-guest@0.1.0`.
pub(super) fn package_of(id: &str) -> Option<(&str, &str)> {
    let (place, package) = id.rsplit_once('#')?;
    match package.split_once('@') {
        Some(parts) => Some(parts),
        None => Some((place.rsplit_once('/')?.1, package)),
    }
}
