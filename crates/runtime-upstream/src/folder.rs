//! The definitions on disk: `servers/<name>.json`, readable for their owner only, since they hold secrets.
//!
//! Several Skillz processes share the folder. Each change reads, changes and writes under a lock of the system, which
//! nobody can leave behind, and puts the new file in place in one step.

use std::{
    collections::BTreeMap,
    fs::{self, File, OpenOptions},
    io::{self, Write},
    os::unix::fs::{MetadataExt, OpenOptionsExt},
    path::{Path, PathBuf},
    time::SystemTime,
};

use serde::{Deserialize, Serialize};
use skillz_json::{Map, Value};
use skillz_tool::{ErrorKind, Limits, ServerDefinition, ToolError};

use crate::{known::KnownTools, names::check_server_name};

/// One file.
#[derive(Debug, Clone, PartialEq, Serialize)]
pub(crate) struct ServerFile {
    #[serde(flatten)]
    pub(crate) definition: ServerDefinition,
    #[serde(flatten)]
    pub(crate) known: KnownTools,
    /// Limits of calls of its tools; written by hand.
    #[serde(skip_serializing_if = "is_default")]
    pub(crate) limits: Limits,
    /// Fields of people and of later versions; kept when the file is written.
    #[serde(flatten)]
    pub(crate) extra: Map<String, Value>,
}

/// Tells one state of a file from the next.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) struct Stamp {
    modified: Option<SystemTime>,
    length: u64,
    inode: u64,
}

/// What was found in a file: a definition, or why it is none.
pub(crate) type Found = Result<ServerFile, String>;

/// The folder of the definitions.
#[derive(Debug, Clone)]
pub(crate) struct Folder(PathBuf);

/// The fields above.
const FIELDS: [&str; 12] =
    ["command", "args", "env", "url", "headers", "description", "pin", "sandbox", "hidden", "changed", "tools", "limits"];

impl ServerFile {
    /// Reads each part by itself: collecting unknown fields on the way would lose digits of numbers.
    pub(crate) fn read(text: &str) -> Result<Self, serde_json::Error> {
        #[derive(Deserialize)]
        struct ByHand {
            #[serde(default)]
            limits: Limits,
        }
        let (definition, known) = (serde_json::from_str(text)?, serde_json::from_str(text)?);
        let ByHand { limits } = serde_json::from_str(text)?;
        let mut extra: Map<String, Value> = serde_json::from_str(text)?;
        extra.retain(|field, _| !FIELDS.contains(&field.as_str()));
        Ok(Self { definition, known, limits, extra })
    }

    /// A server of which nothing is known yet.
    pub(crate) fn new(definition: ServerDefinition) -> Self {
        Self { definition, known: KnownTools::default(), limits: Limits::default(), extra: Map::new() }
    }

    /// The same server imported anew: the limits that were written by hand stay, and so do its tools' names.
    pub(crate) fn replaced_by(self, definition: ServerDefinition) -> Self {
        Self { definition, known: self.known.names_only(), limits: self.limits, extra: Map::new() }
    }
}

impl Folder {
    pub(crate) fn new(path: PathBuf) -> Self {
        Self(path)
    }

    /// The file of a server.
    pub(crate) fn file(&self, name: &str) -> PathBuf {
        self.0.join(format!("{name}.json"))
    }

    /// The servers that have a file, and the state of each. A folder that is not there holds none.
    pub(crate) fn stamps(&self) -> BTreeMap<String, Stamp> {
        let entries = fs::read_dir(&self.0).into_iter().flatten().flatten();
        let stamps = entries.filter_map(|entry| {
            let file_name = entry.file_name().into_string().ok()?;
            let name = file_name.strip_suffix(".json").filter(|name| !name.starts_with('.'))?.to_owned();
            let metadata = fs::metadata(entry.path()).ok().filter(fs::Metadata::is_file)?;
            let stamp = Stamp { modified: metadata.modified().ok(), length: metadata.len(), inode: metadata.ino() };
            Some((name, stamp))
        });
        stamps.collect()
    }

    /// Reads one file; `None` where there is none.
    pub(crate) fn read(&self, name: &str) -> Option<Found> {
        let path = self.file(name);
        if let Err(error) = check_server_name(name) {
            return Some(Err(format!("`{}`: {}", path.display(), error.message)));
        }
        match fs::read(&path) {
            Ok(bytes) => Some(parse(&path, &bytes)),
            Err(error) if error.kind() == io::ErrorKind::NotFound => None,
            Err(error) => Some(Err(format!("`{}` cannot be read: {error}", path.display()))),
        }
    }

    /// Changes one file: `change` gets what is there and gives what shall be there, or nothing for no file. Gives that.
    pub(crate) fn change(
        &self,
        name: &str,
        change: impl FnOnce(Option<Found>) -> Result<Option<ServerFile>, ToolError>,
    ) -> Result<Option<ServerFile>, ToolError> {
        let path = self.file(name);
        let failed = |what: &str, error: &io::Error| {
            ToolError::new(ErrorKind::Unavailable, format!("{what} `{}` failed: {error}", path.display()))
                .with_hint("Make the server's data folder writable, or free some disk space")
        };
        fs::create_dir_all(&self.0).map_err(|error| failed("Making the folder of", &error))?;
        let lock = OpenOptions::new().create(true).truncate(false).write(true).mode(0o600).open(self.0.join(".lock"));
        let lock = lock.and_then(|lock| lock.lock().map(|()| lock)).map_err(|error| failed("Locking the folder of", &error))?;
        let before = self.read(name);
        let after = change(before.clone())?;
        match (&before, &after) {
            (None, None) => {}
            (Some(Ok(before)), Some(after)) if before == after => {}
            (_, Some(after)) => self.write(&path, after).map_err(|error| failed("Writing", &error))?,
            (_, None) => {
                let removed = fs::remove_file(&path).and_then(|()| File::open(&self.0)?.sync_all());
                removed.map_err(|error| failed("Removing", &error))?;
            }
        }
        drop(lock);
        Ok(after)
    }

    fn write(&self, path: &Path, file: &ServerFile) -> io::Result<()> {
        let temporary = self.0.join(format!(".{}", uuid::Uuid::new_v4().simple()));
        let mut text = serde_json::to_vec_pretty(file)?;
        text.push(b'\n');
        let written = (|| {
            let mut new = OpenOptions::new().write(true).create_new(true).mode(0o600).open(&temporary)?;
            new.write_all(&text)?;
            new.sync_all()?;
            fs::rename(&temporary, path)?;
            File::open(&self.0)?.sync_all()
        })();
        if written.is_err() {
            let _ = fs::remove_file(&temporary);
        }
        written
    }
}

fn is_default(limits: &Limits) -> bool {
    *limits == Limits::default()
}

fn parse(path: &Path, bytes: &[u8]) -> Found {
    ServerFile::read(&String::from_utf8_lossy(bytes)).map_err(|error| {
        let place = if error.line() > 0 { format!(" line {}", error.line()) } else { String::new() };
        format!("`{}`{place} is no definition of a server: {error}", path.display())
    })
}

#[cfg(test)]
mod tests {
    use std::os::unix::fs::PermissionsExt;

    use super::*;

    fn definition(command: &str) -> ServerDefinition {
        ServerDefinition { command: Some(command.to_owned()), ..ServerDefinition::default() }
    }

    #[test]
    fn files_are_private_whole_and_keep_what_they_do_not_know() {
        let home = tempfile::tempdir().expect("a folder");
        let folder = Folder::new(home.path().join("servers"));
        assert!(folder.stamps().is_empty() && folder.read("a").is_none());
        folder.change("a", |before| Ok(before.is_none().then(|| ServerFile::new(definition("x"))))).expect("is written");
        let mode = fs::metadata(folder.file("a")).expect("is there").permissions().mode();
        assert_eq!(mode & 0o777, 0o600);

        let by_hand = r#"{"command": "y", "type": "stdio", "disabled_since": 3}"#;
        fs::write(folder.file("a"), by_hand).expect("is written");
        let stamp = folder.stamps();
        let changed = folder.change("a", |before| {
            let mut file = before.expect("is there").expect("is readable");
            file.known.hidden.insert("t".to_owned());
            Ok(Some(file))
        });
        assert_eq!(changed.expect("is written").expect("is there").definition, definition("y"));
        assert_ne!(folder.stamps(), stamp);
        let text = fs::read_to_string(folder.file("a")).expect("is there");
        assert!(text.contains("\"disabled_since\": 3") && text.contains("\"hidden\""), "{text}");
        assert_eq!(folder.change("a", |_| Ok(None)), Ok(None));
        assert!(folder.stamps().is_empty());
    }

    #[test]
    fn limits_of_people_outlive_a_new_import() {
        let by_hand = r#"{"command": "y", "limits": {"timeout_ms": 300000}, "hidden": ["t"]}"#;
        let file = ServerFile::read(by_hand).expect("a definition");
        let anew = file.replaced_by(definition("z"));
        assert_eq!((anew.limits.timeout_ms, anew.definition.command.as_deref()), (Some(300_000), Some("z")));
        assert!(anew.known.hidden.is_empty());
    }

    #[test]
    fn what_is_no_definition_says_why() {
        let home = tempfile::tempdir().expect("a folder");
        let folder = Folder::new(home.path().to_owned());
        fs::write(folder.file("broken"), "{\n\"command\": 5}").expect("is written");
        fs::write(folder.file("Bad-Name"), "{}").expect("is written");
        let reason = folder.read("broken").expect("is there").expect_err("is broken");
        assert!(reason.contains("broken.json") && reason.contains("no definition"), "{reason}");
        assert!(folder.read("Bad-Name").expect("is there").is_err());
        assert!(folder.change("broken", |before| before.expect("is there").map(Some).map_err(ToolError::invalid)).is_err());
        assert!(folder.file("broken").exists(), "nothing is lost");
    }
}
