//! The Cargo project by which a set of dependencies is resolved and built. It holds no line of any tool's code, so
//! that what comes of it may serve every tool with the same dependencies.

use std::{collections::BTreeMap, fmt::Write, fs, io, path::Path};

use serde::Deserialize;

use super::dependency::Dependency;

/// Name of the project's package. It is in every lock file, so it is the same for all tools.
pub(crate) const PACKAGE: &str = "tool";

/// A set of dependencies.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(crate) struct DependencySet {
    /// What the tool lists.
    pub(crate) listed: Vec<Dependency>,
    /// Whether the crate `skillz` is among them, with the two that it brings along.
    pub(crate) guest: bool,
}

impl DependencySet {
    pub(crate) fn is_empty(&self) -> bool {
        self.listed.is_empty() && !self.guest
    }

    /// The packages that a tool's code may name.
    pub(crate) fn packages(&self) -> Vec<String> {
        self.all().into_iter().map(|dependency| dependency.name).collect()
    }

    /// The listed crates, and those that come with the guest crate unless they are listed.
    fn all(&self) -> Vec<Dependency> {
        let mut all = self.listed.clone();
        if self.guest {
            for (name, features) in [("serde", vec!["derive".to_owned()]), ("serde_json", Vec::new())] {
                if !all.iter().any(|dependency| dependency.name == name) {
                    all.push(Dependency { name: name.to_owned(), version: Some("1".to_owned()), features, has_defaults: true });
                }
            }
        }
        all
    }

    /// The project's `Cargo.toml`. `guest` is the folder of the crate `skillz`.
    pub(crate) fn manifest(&self, guest: &Path) -> String {
        let mut text = format!(
            "[workspace]\n\n[package]\nname = \"{PACKAGE}\"\nversion = \"0.0.0\"\nedition = \"2021\"\npublish = false\n\n\
             [[bin]]\nname = \"{PACKAGE}\"\npath = \"main.rs\"\n\n\
             [profile.release]\nopt-level = 3\ndebug = false\nincremental = false\n\n[dependencies]\n"
        );
        for Dependency { name, version, features, has_defaults } in self.all() {
            let version = version.unwrap_or_else(|| "*".to_owned());
            let features: Vec<String> = features.iter().map(|feature| format!("\"{feature}\"")).collect();
            let features = features.join(", ");
            let defaults = if has_defaults { "" } else { "default-features = false, " };
            let _ = writeln!(text, "{name} = {{ version = \"{version}\", {defaults}features = [{features}] }}");
        }
        if self.guest {
            // A TOML literal string takes every character of a path but the quote.
            let path = guest.to_string_lossy().replace('\'', "");
            let _ = writeln!(text, "skillz = {{ package = \"skillz-guest\", path = '{path}' }}");
        }
        text
    }

    /// Writes the project, with its lock file where there is one.
    pub(crate) fn write(&self, directory: &Path, guest: &Path, lock: Option<&str>) -> io::Result<()> {
        fs::create_dir_all(directory)?;
        fs::write(directory.join("Cargo.toml"), self.manifest(guest))?;
        fs::write(directory.join("main.rs"), "fn main() {}\n")?;
        match lock {
            Some(lock) => fs::write(directory.join("Cargo.lock"), lock),
            None => Ok(()),
        }
    }
}

#[derive(Deserialize)]
struct Lock {
    #[serde(default)]
    package: Vec<LockedPackage>,
}

#[derive(Deserialize)]
struct LockedPackage {
    name: String,
    version: String,
    #[serde(default)]
    source: Option<String>,
    #[serde(default)]
    dependencies: Vec<String>,
}

/// The versions of the project's own dependencies, by package, from a lock file.
pub(crate) fn locked_versions(lock: &str) -> Option<BTreeMap<String, String>> {
    let lock: Lock = toml::from_str(lock).ok()?;
    let root = lock.package.iter().find(|package| package.name == PACKAGE && package.source.is_none())?;
    let mut versions = BTreeMap::new();
    for dependency in &root.dependencies {
        // `name`, or `name version` where there are several.
        let mut words = dependency.split(' ');
        let name = words.next()?;
        let version = match words.next() {
            Some(version) => version.to_owned(),
            None => lock.package.iter().find(|package| package.name == name)?.version.clone(),
        };
        versions.insert(name.to_owned(), version);
    }
    Some(versions)
}

/// Whether a lock file that came from outside is one: crates from crates.io, and the guest crate.
pub(crate) fn is_trustworthy_lock(lock: &str) -> bool {
    const REGISTRY: &str = "registry+https://github.com/rust-lang/crates.io-index";
    let Ok(lock) = toml::from_str::<Lock>(lock) else { return false };
    lock.package.iter().all(|package| match &package.source {
        Some(source) => source == REGISTRY,
        None => package.name == PACKAGE || package.name.starts_with("skillz-guest"),
    })
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::build::dependency::parse;

    const LOCK: &str = r#"
version = 4
[[package]]
name = "tool"
version = "0.0.0"
dependencies = ["rand 0.8.5", "serde"]
[[package]]
name = "rand"
version = "0.7.0"
source = "registry+https://github.com/rust-lang/crates.io-index"
[[package]]
name = "rand"
version = "0.8.5"
source = "registry+https://github.com/rust-lang/crates.io-index"
[[package]]
name = "serde"
version = "1.0.2"
source = "registry+https://github.com/rust-lang/crates.io-index"
"#;

    #[test]
    fn direct_dependencies_have_one_version() {
        let versions = locked_versions(LOCK).unwrap();
        assert_eq!(versions.get("rand").map(String::as_str), Some("0.8.5"));
        assert_eq!(versions.get("serde").map(String::as_str), Some("1.0.2"));
    }

    #[test]
    fn locks_of_other_registries_are_not_taken() {
        assert!(is_trustworthy_lock(LOCK));
        assert!(!is_trustworthy_lock(
            &LOCK.replace("registry+https://github.com/rust-lang/crates.io-index", "git+https://example.com/x")
        ));
        assert!(!is_trustworthy_lock("not toml ["));
    }

    #[test]
    fn the_manifest_is_toml_and_the_guest_brings_its_friends() {
        let listed = parse(&["serde@1[rc]".into(), "regex".into()]).unwrap();
        let set = DependencySet { listed, guest: true };
        let manifest: toml::Table = set.manifest(Path::new("/cache/guest")).parse().unwrap();
        let dependencies = manifest["dependencies"].as_table().unwrap();
        assert_eq!(dependencies.keys().collect::<Vec<_>>(), ["regex", "serde", "serde_json", "skillz"]);
        assert_eq!(dependencies["serde"]["features"].as_array().unwrap().len(), 1, "what is listed wins");
        assert_eq!(set.packages(), ["regex", "serde", "serde_json"]);
    }
}
