//! The helper kits: the modules that scripts import and the programs that run in workers, written to the cache once.

use std::{
    fs, io,
    path::{Path, PathBuf},
};

use sha2::{Digest, Sha256};

/// Every file of the kits, by its path below the kit's folder.
const FILES: [(&str, &str); 15] = [
    ("python/skillz.py", include_str!("../kits/skillz.py")),
    ("python/_skillz_values.py", include_str!("../kits/_skillz_values.py")),
    ("worker/_skillz_worker.py", include_str!("../kits/_skillz_worker.py")),
    ("worker/_skillz_failure.py", include_str!("../kits/_skillz_failure.py")),
    ("worker/_skillz_fork.py", include_str!("../kits/_skillz_fork.py")),
    ("worker/_skillz_leftovers.py", include_str!("../kits/_skillz_leftovers.py")),
    ("worker/_skillz_program.py", include_str!("../kits/_skillz_program.py")),
    ("worker/_skillz_random.py", include_str!("../kits/_skillz_random.py")),
    ("worker/_skillz_signature.py", include_str!("../kits/_skillz_signature.py")),
    ("node_modules/skillz/skillz.cjs", include_str!("../kits/skillz.cjs")),
    ("node_modules/skillz/skillz.mjs", include_str!("../kits/skillz.mjs")),
    ("node_modules/skillz/global.cjs", include_str!("../kits/global.cjs")),
    ("node_modules/skillz/worker.mjs", include_str!("../kits/worker.mjs")),
    ("node_modules/skillz/execute.mjs", include_str!("../kits/execute.mjs")),
    ("node_modules/skillz/package.json", include_str!("../kits/package.json")),
];

/// The kits on disk.
#[derive(Debug, Clone)]
pub(crate) struct Kit {
    root: PathBuf,
}

impl Kit {
    /// Names the place by the kits' content; writes nothing yet.
    pub(crate) fn below(cache: &Path) -> Self {
        let mut hash = Sha256::new();
        for (name, content) in FILES {
            hash.update(name);
            hash.update([0]);
            hash.update(content);
            hash.update([0]);
        }
        let hash = hash.finalize();
        let name = format!("{:016x}", u64::from_be_bytes(hash.first_chunk().copied().unwrap_or_default()));
        Self { root: cache.join("kits").join(name) }
    }

    /// Makes sure that the kits are there: the cache may be deleted at any time.
    pub(crate) fn ensure(&self) -> io::Result<&Self> {
        if self.root.join("python/skillz.py").exists() {
            return Ok(self);
        }
        let staging = self.root.with_extension(format!("new-{}", std::process::id()));
        let _ = fs::remove_dir_all(&staging);
        for (name, content) in FILES {
            let path = staging.join(name);
            fs::create_dir_all(path.parent().unwrap_or(&staging))?;
            fs::write(path, content)?;
        }
        match fs::rename(&staging, &self.root) {
            Ok(()) => Ok(self),
            // Another server, or another call, was quicker.
            Err(_) if self.root.join("python/skillz.py").exists() => {
                let _ = fs::remove_dir_all(&staging);
                Ok(self)
            }
            Err(_) => {
                let _ = fs::remove_dir_all(&self.root);
                fs::rename(&staging, &self.root).map(|()| self)
            }
        }
    }

    pub(crate) fn root(&self) -> &Path {
        &self.root
    }

    /// The folder for `PYTHONPATH`.
    pub(crate) fn python(&self) -> PathBuf {
        self.root.join("python")
    }

    /// The program of Python workers.
    pub(crate) fn python_worker(&self) -> PathBuf {
        self.root.join("worker/_skillz_worker.py")
    }

    /// The folder for `NODE_PATH`.
    pub(crate) fn node_modules(&self) -> PathBuf {
        self.root.join("node_modules")
    }

    /// The package `skillz`.
    pub(crate) fn package(&self) -> PathBuf {
        self.root.join("node_modules/skillz")
    }

    /// What makes the global `skillz` in JavaScript process scripts.
    pub(crate) fn global(&self) -> PathBuf {
        self.package().join("global.cjs")
    }

    /// The program of JavaScript workers.
    pub(crate) fn node_worker(&self) -> PathBuf {
        self.package().join("worker.mjs")
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn kits_are_written_once_and_again_after_a_clean_up() {
        let cache = tempfile::tempdir().unwrap();
        let kit = Kit::below(cache.path());
        kit.ensure().unwrap();
        assert!(kit.node_worker().exists() && kit.python_worker().exists() && kit.global().exists());
        fs::remove_dir_all(kit.python()).unwrap();
        kit.ensure().unwrap();
        assert!(kit.python().join("skillz.py").exists());
        assert_eq!(fs::read_dir(cache.path().join("kits")).unwrap().count(), 1, "no staging folder is left");
    }
}
