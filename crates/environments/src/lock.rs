//! Locks: the exact versions beside a manifest, and the lock files that keep two builders apart.

use std::{
    collections::BTreeSet,
    fs::{File, TryLockError},
    path::Path,
    time::Duration,
};

use serde_json::{Value, json};
use sha2::{Digest, Sha256};

use crate::{EnvironmentError, Language, specifier};

/// First line of a Python lock; the dependencies that it is of follow.
const PYTHON_HEADER: &str = "# Versions that `dependencies` resolved to, kept by Skillz: ";

/// Puts a Python lock together from requirement lines.
pub(crate) fn python(dependencies: &[String], requirements: &str) -> String {
    format!("{PYTHON_HEADER}{}\n{}\n", json!(dependencies), requirements.trim())
}

/// Whether a lock is of these dependencies.
pub(crate) fn is_of(language: Language, lock: &str, dependencies: &[String]) -> bool {
    match language {
        Language::Python => {
            let header = lock.lines().next().and_then(|line| line.strip_prefix(PYTHON_HEADER));
            let locked: Option<Vec<String>> = header.and_then(|list| serde_json::from_str(list).ok());
            let set = |list: &[String]| list.iter().cloned().collect::<BTreeSet<_>>();
            locked.is_some_and(|locked| set(&locked) == set(dependencies))
        }
        Language::Node => {
            let locked: Option<Value> = serde_json::from_str(lock).ok();
            locked.as_ref().and_then(|lock| lock.pointer("/packages//dependencies")) == Some(&node_dependencies(dependencies))
        }
    }
}

/// The `dependencies` of a `package.json`.
pub(crate) fn node_dependencies(dependencies: &[String]) -> Value {
    let entries = dependencies.iter().map(|dependency| {
        let (name, range) = specifier::split_npm(dependency);
        (name.to_owned(), json!(range.unwrap_or("*")))
    });
    Value::Object(entries.collect())
}

/// The name of an environment.
pub(crate) fn environment_hash(language: Language, tag: &str, lock: &str) -> String {
    digest(&[&language.to_string(), tag, lock])
}

/// 32 hexadecimal digits of several texts.
pub(crate) fn digest(parts: &[&str]) -> String {
    let mut hash = Sha256::new();
    for part in parts {
        hash.update(part.len().to_le_bytes());
        hash.update(part);
    }
    let hash = hash.finalize();
    let bytes = hash.first_chunk::<16>().copied().unwrap_or_default();
    format!("{:032x}", u128::from_be_bytes(bytes))
}

/// Held while an environment is made; gone with the process that holds it, however it ends.
pub(crate) struct BuildLock {
    _file: File,
}

impl BuildLock {
    /// Waits for the lock. The kernel tells different openings apart, so that it works within one server too.
    pub(crate) async fn acquire(path: &Path) -> Result<Self, EnvironmentError> {
        let failed = |source| EnvironmentError::Files { what: format!("The lock file `{}`", path.display()), source };
        let file = File::options().create(true).truncate(false).write(true).open(path).map_err(failed)?;
        let mut pause = Duration::from_millis(5);
        loop {
            match file.try_lock() {
                Ok(()) => return Ok(Self { _file: file }),
                Err(TryLockError::WouldBlock) => {}
                Err(TryLockError::Error(error)) => return Err(failed(error)),
            }
            tokio::time::sleep(pause).await;
            pause = (pause * 2).min(Duration::from_millis(100));
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn list(names: &[&str]) -> Vec<String> {
        names.iter().map(|name| (*name).to_owned()).collect()
    }

    #[test]
    fn locks_know_their_dependencies() {
        let lock = python(&list(&["six>=1", "requests"]), "six==1.17.0\n");
        assert!(is_of(Language::Python, &lock, &list(&["six>=1", "requests"])));
        assert!(is_of(Language::Python, &lock, &list(&["requests", "six>=1", "requests"])), "their order says nothing");
        assert!(!is_of(Language::Python, &lock, &list(&["six>=1"])));
        assert!(!is_of(Language::Python, "six==1\n", &list(&["six>=1"])));
        let lock = json!({"packages": {"": {"dependencies": {"left-pad": "^1", "@a/b": "*"}}}}).to_string();
        assert!(is_of(Language::Node, &lock, &list(&["left-pad@^1", "@a/b"])));
        assert!(!is_of(Language::Node, &lock, &list(&["left-pad@^2", "@a/b"])));
        assert!(!is_of(Language::Node, "{", &list(&["left-pad"])));
    }

    #[test]
    fn hashes_differ_by_every_part() {
        let base = environment_hash(Language::Python, "3.11", "a");
        assert_eq!(base.len(), 32);
        assert_eq!(base, environment_hash(Language::Python, "3.11", "a"));
        for other in [
            environment_hash(Language::Node, "3.11", "a"),
            environment_hash(Language::Python, "3.12", "a"),
            environment_hash(Language::Python, "3.11", "b"),
            environment_hash(Language::Python, "3.1", "1a"),
        ] {
            assert_ne!(base, other);
        }
    }

    #[tokio::test]
    async fn one_holder_at_a_time() {
        let folder = tempfile::tempdir().unwrap();
        let path = folder.path().join("x.lock");
        let held = BuildLock::acquire(&path).await.unwrap();
        assert!(tokio::time::timeout(Duration::from_millis(50), BuildLock::acquire(&path)).await.is_err());
        drop(held);
        assert!(BuildLock::acquire(&path).await.is_ok());
    }
}
