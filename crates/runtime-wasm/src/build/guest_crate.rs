//! The crate `skillz` that tools are built with: its source travels in this binary and is written to the cache.

use std::{
    fs, io,
    path::{Path, PathBuf},
};

macro_rules! guest_files {
    ($($path:literal)*) => {
        &[$(($path, include_str!(concat!("../../../../guest/", $path)))),*]
    };
}

/// All files of the two crates.
const FILES: &[(&str, &str)] = guest_files![
    "skillz/Cargo.toml"
    "skillz/src/lib.rs"
    "skillz/src/convert.rs"
    "skillz/src/error.rs"
    "skillz/src/host.rs"
    "skillz/src/http.rs"
    "skillz/src/json.rs"
    "skillz/src/memory.rs"
    "skillz/src/number.rs"
    "skillz/src/reader.rs"
    "skillz/src/resources.rs"
    "skillz/src/services.rs"
    "skillz/src/tool.rs"
    "macros/Cargo.toml"
    "macros/src/lib.rs"
    "macros/src/signature.rs"
];

/// Tells this version of the guest crate from others.
pub(crate) fn hash() -> String {
    let mut hasher = blake3::Hasher::new();
    for (path, text) in FILES {
        hasher.update(path.as_bytes()).update(&[0]).update(text.as_bytes()).update(&[0]);
    }
    hasher.finalize().to_hex().chars().take(16).collect()
}

/// Writes the crates below `directory`, unless they are there, and gives the folder of the crate `skillz`.
pub(crate) fn write(directory: &Path) -> io::Result<PathBuf> {
    let root = directory.join(format!("guest-{}", hash()));
    let package = root.join("skillz");
    if FILES.iter().all(|(path, text)| fs::read_to_string(root.join(path)).is_ok_and(|there| there == *text)) {
        return Ok(package);
    }
    // Something is missing or was changed: made anew beside it, so that nobody sees half of it.
    fs::create_dir_all(directory)?;
    let fresh = tempfile::Builder::new().prefix("guest-new-").tempdir_in(directory)?;
    for (path, text) in FILES {
        let path = fresh.path().join(path);
        if let Some(parent) = path.parent() {
            fs::create_dir_all(parent)?;
        }
        fs::write(path, text)?;
    }
    let _ = fs::remove_dir_all(&root);
    match fs::rename(fresh.path(), &root) {
        Ok(()) => {
            let _ = fresh.keep();
        }
        // Another server was faster; what it wrote is the same.
        Err(error) if !package.is_dir() => return Err(error),
        Err(_) => {}
    }
    Ok(package)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn every_source_file_travels_along() {
        let guest = Path::new(env!("CARGO_MANIFEST_DIR")).join("../../guest");
        for package in ["skillz", "macros"] {
            for entry in fs::read_dir(guest.join(package).join("src")).unwrap() {
                let name = format!("{package}/src/{}", entry.unwrap().file_name().to_string_lossy());
                assert!(FILES.iter().any(|(path, _)| *path == name), "{name} is not listed");
            }
        }
    }

    #[test]
    fn damage_is_repaired() {
        let directory = tempfile::tempdir().unwrap();
        let package = write(directory.path()).unwrap();
        fs::write(package.join("src/lib.rs"), "evil").unwrap();
        assert_eq!(write(directory.path()).unwrap(), package);
        assert!(fs::read_to_string(package.join("src/lib.rs")).unwrap().contains("pub mod memory"));
    }
}
