//! What of an interpreter a sandbox must show, and no more: never the user's home, never a folder of secrets.

use std::path::{Path, PathBuf};

/// Folders that every sandbox shows.
const SYSTEM: [&str; 6] = ["/usr", "/bin", "/sbin", "/lib", "/lib64", "/lib32"];
/// Folders below the home that hold programs beside other things; only single files of them are shown.
const MIXED: [&str; 6] = [".local", ".cargo", ".bun", ".deno", ".volta", ".config"];
/// Programs that look at the name they were called by.
const MULTI_CALL: [&str; 3] = ["busybox", "toybox", "coreutils"];

/// The program to start for what was found at `path`.
///
/// Links are followed where the link itself may be out of sight, but a virtual environment's `python` is kept:
/// it finds its packages by the place of the link.
pub(super) fn program(path: &Path) -> PathBuf {
    let Ok(real) = path.canonicalize() else { return path.to_path_buf() };
    let multi_call = real.file_name().is_some_and(|name| MULTI_CALL.iter().any(|program| name == *program));
    if is_virtual_environment(path) || multi_call {
        return path.to_path_buf();
    }
    let through_alternatives = links(path).iter().any(|link| link.starts_with("/etc"));
    if is_system(path) && is_system(&real) && !through_alternatives { path.to_path_buf() } else { real }
}

/// What must be shown for `path` to run, system folders left out.
pub(super) fn folders(path: &Path, home: Option<&Path>) -> Vec<PathBuf> {
    let mut shown: Vec<PathBuf> = Vec::new();
    for place in links(path).into_iter().chain(path.canonicalize()) {
        if is_system(&place) || place.starts_with("/etc") || shown.iter().any(|folder| place.starts_with(folder)) {
            continue;
        }
        shown.push(installation(&place, home).unwrap_or(place));
    }
    // A single file that is a link would be shown as the link's target, at the wrong place.
    shown.retain(|place| !place.is_symlink());
    shown
}

/// The folder of the installation that a program belongs to; `None` where that would show too much.
fn installation(program: &Path, home: Option<&Path>) -> Option<PathBuf> {
    for prefix in ["/opt/homebrew", "/home/linuxbrew/.linuxbrew"] {
        if program.starts_with(prefix) {
            return Some(PathBuf::from(prefix));
        }
    }
    let folder = program.parent()?;
    let root = if folder.ends_with("bin") || folder.ends_with("sbin") { folder.parent()? } else { folder };
    let too_much = root.components().count() < 3
        || home.is_some_and(|home| home.starts_with(root) || MIXED.iter().any(|mixed| root == home.join(mixed)));
    (!too_much).then(|| root.to_path_buf())
}

fn is_virtual_environment(program: &Path) -> bool {
    program.parent().and_then(Path::parent).is_some_and(|root| root.join("pyvenv.cfg").is_file())
}

fn is_system(path: &Path) -> bool {
    SYSTEM.iter().any(|folder| path.starts_with(folder))
}

/// `path` and every link that it leads over.
fn links(path: &Path) -> Vec<PathBuf> {
    let mut places = vec![path.to_path_buf()];
    let mut current = path.to_path_buf();
    // As many as the kernel follows.
    for _ in 0..40 {
        let Ok(target) = std::fs::read_link(&current) else { break };
        current = current.parent().unwrap_or(Path::new("/")).join(target);
        places.push(current.clone());
    }
    places
}

#[cfg(test)]
mod tests {
    use std::{fs, os::unix::fs::symlink};

    use super::*;

    #[test]
    fn an_installation_is_shown_and_a_mixed_folder_never() {
        let home = tempfile::tempdir().unwrap();
        let home = home.path().canonicalize().unwrap();
        let version = home.join(".pyenv/versions/3.11.7");
        for folder in [version.join("bin"), home.join(".local/bin"), home.join(".cargo/bin")] {
            fs::create_dir_all(folder).unwrap();
        }
        fs::write(version.join("bin/python3.11"), "").unwrap();
        symlink("python3.11", version.join("bin/python3")).unwrap();
        symlink(version.join("bin/python3"), home.join(".local/bin/python3")).unwrap();
        fs::write(home.join(".cargo/bin/nu"), "").unwrap();

        let link = home.join(".local/bin/python3");
        assert_eq!(program(&link), version.join("bin/python3.11"));
        assert_eq!(folders(&link, Some(&home)), std::slice::from_ref(&version));
        assert_eq!(folders(&home.join(".cargo/bin/nu"), Some(&home)), [home.join(".cargo/bin/nu")]);

        let environment = home.join("project/venv");
        fs::create_dir_all(environment.join("bin")).unwrap();
        fs::write(environment.join("pyvenv.cfg"), "").unwrap();
        symlink(version.join("bin/python3"), environment.join("bin/python3")).unwrap();
        let python = environment.join("bin/python3");
        assert_eq!(program(&python), python);
        assert_eq!(folders(&python, Some(&home)), [environment, version]);
    }
}
