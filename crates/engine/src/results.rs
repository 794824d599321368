//! Results that are too long for one answer, kept on disk for an hour.
//!
//! Their names are random and unguessable, and whoever has one may read: a result belongs to the client
//! that got the link. Several servers share the folder.

use std::{
    fs, io,
    path::{Path, PathBuf},
    sync::{Mutex, PoisonError},
    time::{Duration, Instant, SystemTime},
};

/// How long a result is kept.
const KEPT_FOR: Duration = Duration::from_hours(1);
/// Old results are looked for at most this often.
const SWEEP_INTERVAL: Duration = Duration::from_mins(1);
/// Length of an id: a random UUID without dashes.
const ID_LENGTH: usize = 32;

/// A long result, as kept.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct StoredResult {
    /// All of its text.
    pub text: String,
    /// `application/json` or `text/plain`.
    pub mime_type: &'static str,
}

/// Keeps long results under unguessable names.
#[derive(Debug)]
pub struct ResultStore {
    directory: PathBuf,
    swept: Mutex<Option<Instant>>,
}

impl ResultStore {
    /// A store in `directory`, which is made when it is needed.
    pub(crate) fn new(directory: PathBuf) -> Self {
        Self { directory, swept: Mutex::new(None) }
    }

    /// The result behind `skillz://results/<id>`, if it is still kept. An id of any other form is simply unknown.
    pub async fn read(&self, id: &str) -> Option<StoredResult> {
        if id.len() != ID_LENGTH || !id.bytes().all(|byte| matches!(byte, b'0'..=b'9' | b'a'..=b'f')) {
            return None;
        }
        let json = self.directory.join(format!("{id}.json"));
        let text = self.directory.join(format!("{id}.txt"));
        let read = move || {
            let read = |path: &Path, mime_type| {
                let age = SystemTime::now().duration_since(fs::metadata(path).ok()?.modified().ok()?).unwrap_or_default();
                let text = if age < KEPT_FOR { fs::read_to_string(path).ok()? } else { return None };
                Some(StoredResult { text, mime_type })
            };
            read(&json, "application/json").or_else(|| read(&text, "text/plain"))
        };
        tokio::task::spawn_blocking(read).await.ok().flatten()
    }

    /// Keeps a result and gives its id.
    pub(crate) async fn keep(&self, result: StoredResult) -> io::Result<String> {
        let id = uuid::Uuid::new_v4().simple().to_string();
        let extension = if result.mime_type == "application/json" { "json" } else { "txt" };
        let path = self.directory.join(format!("{id}.{extension}"));
        let sweep = self.sweep_is_due();
        let directory = self.directory.clone();
        let write = move || {
            make_private_directory(&directory)?;
            if sweep {
                remove_old(&directory);
            }
            write_private(&path, result.text.as_bytes())
        };
        tokio::task::spawn_blocking(write).await.map_err(io::Error::other)??;
        Ok(id)
    }

    /// Removes what is no longer kept.
    pub(crate) async fn sweep(&self) {
        if self.sweep_is_due() {
            let directory = self.directory.clone();
            drop(tokio::task::spawn_blocking(move || remove_old(&directory)).await);
        }
    }

    fn sweep_is_due(&self) -> bool {
        let mut swept = self.swept.lock().unwrap_or_else(PoisonError::into_inner);
        let due = swept.is_none_or(|last| last.elapsed() >= SWEEP_INTERVAL);
        if due {
            *swept = Some(Instant::now());
        }
        due
    }
}

/// Removes results past their time. A file that cannot be removed now is tried again at the next sweep.
fn remove_old(directory: &Path) {
    let Ok(entries) = fs::read_dir(directory) else { return };
    for entry in entries.flatten() {
        let modified = entry.metadata().ok().filter(fs::Metadata::is_file).and_then(|metadata| metadata.modified().ok());
        let age = modified.and_then(|modified| SystemTime::now().duration_since(modified).ok());
        if age.is_some_and(|age| age >= KEPT_FOR) {
            drop(fs::remove_file(entry.path()));
        }
    }
}

fn make_private_directory(directory: &Path) -> io::Result<()> {
    let mut builder = fs::DirBuilder::new();
    builder.recursive(true);
    #[cfg(unix)]
    std::os::unix::fs::DirBuilderExt::mode(&mut builder, 0o700);
    builder.create(directory)
}

fn write_private(path: &Path, bytes: &[u8]) -> io::Result<()> {
    let mut options = fs::OpenOptions::new();
    options.write(true).create_new(true);
    #[cfg(unix)]
    std::os::unix::fs::OpenOptionsExt::mode(&mut options, 0o600);
    let written = options.open(path).and_then(|mut file| io::Write::write_all(&mut file, bytes));
    if written.is_err() {
        drop(fs::remove_file(path));
    }
    written
}

#[cfg(test)]
mod tests {
    use super::*;

    fn result(text: &str, mime_type: &'static str) -> StoredResult {
        StoredResult { text: text.to_owned(), mime_type }
    }

    #[tokio::test]
    async fn results_are_read_by_their_id_only() {
        let folder = tempfile::tempdir().expect("a folder");
        let store = ResultStore::new(folder.path().join("cache/results"));
        for kept in [result("{}", "application/json"), result("text ü", "text/plain")] {
            let id = store.keep(kept.clone()).await.expect("kept");
            assert_eq!(store.read(&id).await, Some(kept));
        }
        fs::write(folder.path().join("cache/secret.txt"), "x").expect("written");
        for id in ["", "../secret", "..", &"a".repeat(32), &"A".repeat(32), "../../../../etc/passwd"] {
            assert_eq!(store.read(id).await, None, "{id}");
        }
    }

    #[tokio::test]
    async fn results_go_after_an_hour() {
        let folder = tempfile::tempdir().expect("a folder");
        let store = ResultStore::new(folder.path().to_owned());
        let id = store.keep(result("old", "text/plain")).await.expect("kept");
        let path = folder.path().join(format!("{id}.txt"));
        let file = fs::File::options().write(true).open(&path).expect("there");
        file.set_modified(SystemTime::now() - KEPT_FOR - Duration::from_secs(1)).expect("dated back");
        assert_eq!(store.read(&id).await, None);
        assert!(path.exists());
        *store.swept.lock().expect("whole") = None;
        store.sweep().await;
        assert!(!path.exists());
    }
}
