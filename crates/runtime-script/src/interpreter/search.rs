//! Where programs are looked for: PATH, then the places that version managers and installers use.
//!
//! A server that a desktop program started often has a bare PATH, so PATH alone is not enough. Nothing here
//! runs anything: shims are seen through by `shim`, from the files that their managers read.

use std::{
    collections::BTreeMap,
    ffi::OsStr,
    fmt,
    os::unix::fs::PermissionsExt,
    path::{Path, PathBuf},
};

use super::shim;

/// What of the server's environment decides where programs are found. Given by whoever reads the environment.
/// Values of variables never show in `Debug` output.
#[derive(Clone, Default, PartialEq, Eq)]
pub struct SearchPath {
    /// The folders of `PATH`, in order.
    pub path: Vec<PathBuf>,
    /// The user's home.
    pub home: Option<PathBuf>,
    /// Variables that version managers go by, where set: `PYENV_ROOT`, `PYENV_VERSION`, `NVM_DIR`, `ASDF_DATA_DIR`,
    /// `VOLTA_HOME`, `FNM_DIR`, `HOMEBREW_PREFIX` and their like. Others are not looked at.
    pub variables: BTreeMap<String, String>,
}

/// Places that are searched on every machine after those below the home.
const SYSTEM_PLACES: [&str; 9] = [
    "/opt/homebrew/bin",
    "/home/linuxbrew/.linuxbrew/bin",
    "/usr/local/bin",
    "/usr/bin",
    "/bin",
    "/usr/local/sbin",
    "/usr/sbin",
    "/snap/bin",
    "/opt/local/bin",
];

impl fmt::Debug for SearchPath {
    fn fmt(&self, formatter: &mut fmt::Formatter<'_>) -> fmt::Result {
        let names: Vec<&String> = self.variables.keys().collect();
        formatter
            .debug_struct("SearchPath")
            .field("path", &self.path)
            .field("home", &self.home)
            .field("variables", &names)
            .finish()
    }
}

impl SearchPath {
    /// Every folder that is searched, in order and once each. Folders that do not exist are among them.
    pub fn places(&self) -> Vec<PathBuf> {
        let mut places: Vec<PathBuf> = self.path.iter().filter(|folder| folder.is_absolute()).cloned().collect();
        if let Some(home) = &self.home {
            places.extend([".cargo/bin", ".local/bin", "bin"].map(|folder| home.join(folder)));
        }
        if let Some(nvm) = self.manager_root("NVM_DIR", ".nvm") {
            places.extend(nvm_versions(&nvm));
        }
        if let Some(fnm) = self.manager_root("FNM_DIR", ".local/share/fnm") {
            places.push(fnm.join("aliases/default/bin"));
            places.extend(newest_first(&fnm.join("node-versions")).into_iter().map(|version| version.join("installation/bin")));
        }
        for (variable, folder) in [("VOLTA_HOME", ".volta"), ("BUN_INSTALL", ".bun"), ("DENO_INSTALL", ".deno")] {
            places.extend(self.manager_root(variable, folder).map(|root| root.join("bin")));
        }
        for (variable, folder) in [
            ("PYENV_ROOT", ".pyenv"),
            ("RBENV_ROOT", ".rbenv"),
            ("NODENV_ROOT", ".nodenv"),
            ("PLENV_ROOT", ".plenv"),
            ("PHPENV_ROOT", ".phpenv"),
            ("ASDF_DATA_DIR", ".asdf"),
            ("MISE_DATA_DIR", ".local/share/mise"),
        ] {
            places.extend(self.manager_root(variable, folder).map(|root| root.join("shims")));
        }
        places.extend(self.variables.get("HOMEBREW_PREFIX").map(|prefix| Path::new(prefix).join("bin")));
        if let Some(home) = &self.home {
            places.push(home.join(".linuxbrew/bin"));
        }
        places.extend(SYSTEM_PLACES.map(PathBuf::from));
        let mut seen = std::collections::HashSet::new();
        places.retain(|place| seen.insert(place.clone()));
        places
    }

    /// Finds a program by name, behind whatever shim stands for it. An absolute path is taken as it is.
    pub fn find(&self, name: &str) -> Option<PathBuf> {
        let given = Path::new(name);
        if given.is_absolute() {
            return self.behind_shim(given.to_path_buf());
        }
        if name.is_empty() || name.contains('/') {
            return None;
        }
        self.places().into_iter().find_map(|place| self.behind_shim(place.join(name)))
    }

    /// The folder of a version manager: named by its variable, or at its usual place below the home.
    fn manager_root(&self, variable: &str, below_home: &str) -> Option<PathBuf> {
        match self.variables.get(variable) {
            Some(root) if Path::new(root).is_absolute() => Some(PathBuf::from(root)),
            _ => Some(self.home.as_ref()?.join(below_home)),
        }
    }

    fn behind_shim(&self, candidate: PathBuf) -> Option<PathBuf> {
        if !is_program(&candidate) {
            return None;
        }
        match shim::resolve(&candidate, self) {
            shim::Resolution::NoShim => Some(candidate),
            shim::Resolution::Program(program) => Some(program),
            shim::Resolution::Nothing => None,
        }
    }
}

/// Whether `path` is a file that may be executed.
pub(super) fn is_program(path: &Path) -> bool {
    path.metadata().is_ok_and(|metadata| metadata.is_file() && metadata.permissions().mode() & 0o111 != 0)
}

/// The `bin` folders of nvm's versions: the default one first, then the newest.
fn nvm_versions(root: &Path) -> Vec<PathBuf> {
    let versions = newest_first(&root.join("versions/node"));
    let wanted = std::fs::read_to_string(root.join("alias/default")).unwrap_or_default();
    let wanted = wanted.trim().trim_start_matches('v');
    let is_default = |folder: &PathBuf| {
        let name = folder.file_name().and_then(OsStr::to_str).unwrap_or_default().trim_start_matches('v');
        !wanted.is_empty() && (name == wanted || name.starts_with(&format!("{wanted}.")))
    };
    let (default, others): (Vec<_>, Vec<_>) = versions.into_iter().partition(is_default);
    default.into_iter().chain(others).map(|version| version.join("bin")).collect()
}

/// The subfolders of `folder`, those with the highest numbers in their names first.
pub(super) fn newest_first(folder: &Path) -> Vec<PathBuf> {
    let Ok(entries) = std::fs::read_dir(folder) else { return Vec::new() };
    let mut folders: Vec<PathBuf> = entries.flatten().map(|entry| entry.path()).filter(|path| path.is_dir()).collect();
    folders
        .sort_by_cached_key(|path| std::cmp::Reverse(version_key(path.file_name().and_then(OsStr::to_str).unwrap_or_default())));
    folders
}

/// Orders `3.9` below `3.11`, and names without a number below all others.
fn version_key(name: &str) -> (bool, Vec<u64>) {
    let starts_with_digit = name.trim_start_matches('v').starts_with(|first: char| first.is_ascii_digit());
    let numbers = name.split(|character: char| !character.is_ascii_digit()).filter_map(|part| part.parse().ok()).collect();
    (starts_with_digit, numbers)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn versions_order_as_numbers() {
        let mut names = vec!["3.9.18", "3.13.0", "pypy3.10", "3.10.2", "v18.0.0"];
        names.sort_by_key(|name| std::cmp::Reverse(version_key(name)));
        assert_eq!(names, ["v18.0.0", "3.13.0", "3.10.2", "3.9.18", "pypy3.10"]);
    }

    #[test]
    fn places_come_once_and_relative_ones_never() {
        let search = SearchPath {
            path: vec!["/usr/bin".into(), "bin".into(), "/a".into(), "/usr/bin".into()],
            home: Some("/home/u".into()),
            ..SearchPath::default()
        };
        let places = search.places();
        assert_eq!(places[..2], [PathBuf::from("/usr/bin"), PathBuf::from("/a")]);
        assert_eq!(places.iter().filter(|place| place.as_path() == Path::new("/usr/bin")).count(), 1);
        for place in ["/home/u/.cargo/bin", "/home/u/.local/bin", "/home/u/.pyenv/shims", "/home/u/.bun/bin", "/usr/local/bin"] {
            assert!(places.contains(&PathBuf::from(place)), "{place}");
        }
    }
}
