//! Reads and writes a tool's manifest: `manifest.json`, or the front matter of a `SKILL.md` of Skillz 0.8.

use std::{
    fs::File,
    io::{self, Read, Write},
    path::{Path, PathBuf},
};

use skillz_json::Value;
use skillz_tool::Manifest;

use crate::{
    front_matter,
    layout::{MANIFEST, SKILL},
};

/// Largest manifest read, in bytes. A manifest is written by hand or by a model; more is a mistake.
const MANIFEST_BYTES: u64 = 4_000_000;

/// What a folder's manifest file holds.
#[derive(Debug)]
pub(crate) enum ManifestFile {
    /// A tool, described in the file of that name.
    Tool(Box<Manifest>, &'static str),
    /// A knowledge skill.
    Skill,
    /// Neither file is there.
    Missing,
}

/// A manifest that cannot be used.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(crate) struct ManifestFault {
    pub(crate) file: PathBuf,
    pub(crate) line: Option<usize>,
    pub(crate) reason: String,
}

/// Whether a folder has a manifest file of either kind, sound or not.
pub(crate) fn is_there(folder: &Path) -> bool {
    [MANIFEST, SKILL].iter().any(|file| folder.join(file).symlink_metadata().is_ok())
}

/// Reads the manifest of a folder. `manifest.json` wins over `SKILL.md`; links are not followed.
pub(crate) fn read(folder: &Path) -> Result<ManifestFile, ManifestFault> {
    let file = folder.join(MANIFEST);
    if let Some(text) = read_text(&file)? {
        return Ok(ManifestFile::Tool(Box::new(parse_json(&file, &text)?), MANIFEST));
    }
    let file = folder.join(SKILL);
    let Some(text) = read_text(&file)? else { return Ok(ManifestFile::Missing) };
    let fields = match front_matter::read(&text) {
        Ok(fields) => fields.unwrap_or_default(),
        Err(_) if !front_matter::names_field(&text, "tool_type") => return Ok(ManifestFile::Skill),
        Err(error) => return Err(ManifestFault { file, line: error.line, reason: error.reason }),
    };
    if !fields.contains_key("tool_type") {
        return Ok(ManifestFile::Skill);
    }
    match Manifest::read(&Value::Object(fields).to_string()) {
        Ok(manifest) => Ok(ManifestFile::Tool(Box::new(manifest), SKILL)),
        Err(error) => Err(ManifestFault { file, line: None, reason: reason(&error) }),
    }
}

/// Reads `manifest.json`'s text.
pub(crate) fn parse_json(file: &Path, text: &str) -> Result<Manifest, ManifestFault> {
    Manifest::read(text.trim_start_matches('\u{FEFF}')).map_err(|error| ManifestFault {
        file: file.to_owned(),
        line: (error.line() > 0).then_some(error.line()),
        reason: reason(&error),
    })
}

/// What is wrong, without the place, which is told apart.
fn reason(error: &serde_json::Error) -> String {
    sentence(error.to_string().split(" at line ").next().unwrap_or_default())
}

/// The text of `manifest.json` for a manifest.
pub(crate) fn to_text(manifest: &Manifest) -> io::Result<String> {
    let mut text = serde_json::to_string_pretty(manifest)?;
    text.push('\n');
    Ok(text)
}

/// Writes `manifest.json` into a folder that nobody else sees yet.
pub(crate) fn write(folder: &Path, manifest: &Manifest) -> io::Result<()> {
    let mut file = File::create(folder.join(MANIFEST))?;
    file.write_all(to_text(manifest)?.as_bytes())
}

fn read_text(file: &Path) -> Result<Option<String>, ManifestFault> {
    let fault = |reason: String| ManifestFault { file: file.to_owned(), line: None, reason };
    let open = match open_no_follow(file) {
        Ok(open) => open,
        Err(error) if error.kind() == io::ErrorKind::NotFound => return Ok(None),
        Err(_) if file.is_symlink() => return Err(fault("It is a symbolic link, and links are not followed".to_owned())),
        Err(error) => return Err(fault(format!("It cannot be read: {error}"))),
    };
    // Most manifests fit, and are then read in one go.
    let mut bytes = Vec::with_capacity(8_192);
    open.take(MANIFEST_BYTES + 1).read_to_end(&mut bytes).map_err(|error| fault(format!("It cannot be read: {error}")))?;
    if bytes.len() as u64 > MANIFEST_BYTES {
        return Err(fault(format!("It is larger than {MANIFEST_BYTES} bytes")));
    }
    match String::from_utf8(bytes) {
        Ok(text) => Ok(Some(text)),
        Err(error) => {
            let before = error.as_bytes().iter().take(error.utf8_error().valid_up_to());
            let line = 1 + before.filter(|byte| **byte == b'\n').count();
            Err(ManifestFault { file: file.to_owned(), line: Some(line), reason: "It is not UTF-8".to_owned() })
        }
    }
}

#[cfg(unix)]
fn open_no_follow(file: &Path) -> io::Result<File> {
    use rustix::fs::{Mode, OFlags};
    // Not blocking, since a pipe of that name would wait for its other end.
    let flags = OFlags::RDONLY | OFlags::NOFOLLOW | OFlags::CLOEXEC | OFlags::NONBLOCK;
    Ok(rustix::fs::open(file, flags, Mode::empty())?.into())
}

#[cfg(not(unix))]
fn open_no_follow(file: &Path) -> io::Result<File> {
    if file.is_symlink() {
        return Err(io::ErrorKind::InvalidInput.into());
    }
    File::open(file)
}

/// Upper case first letter.
fn sentence(text: &str) -> String {
    let text = text.replace("struct Manifest", "an object");
    let mut characters = text.chars();
    characters.next().map_or_else(String::new, |first| first.to_uppercase().chain(characters).collect())
}

#[cfg(test)]
mod tests {
    use std::fs;

    use super::*;

    /// What reading a folder with one file gives, as text.
    fn outcome(name: &str, content: impl AsRef<[u8]>) -> String {
        let folder = tempfile::tempdir().unwrap();
        fs::write(folder.path().join(name), content).unwrap();
        match read(folder.path()) {
            Ok(ManifestFile::Tool(manifest, file)) => format!("{file}: {} {:?}", manifest.name, manifest.tool_type),
            Ok(ManifestFile::Skill) => "skill".to_owned(),
            Ok(ManifestFile::Missing) => "missing".to_owned(),
            Err(fault) => format!("{:?}: {}", fault.line, fault.reason),
        }
    }

    #[test]
    fn manifests_read_or_say_what_is_wrong_where() {
        let check = |content: &str, expected: &str| assert_eq!(outcome(MANIFEST, content), expected, "{content}");
        check(r#"{"name": "a", "description": "d"}"#, "manifest.json: a Wasm");
        check("\u{FEFF}{\"name\": \"a\", \"description\": \"d\", \"tool_type\": \"script\"}", "manifest.json: a Script");
        check("", "Some(1): EOF while parsing a value");
        check("{\n\"name\": \"a\",\n", "Some(3): EOF while parsing a value");
        check("{\n\"name\": 3}", "Some(2): Invalid type: integer `3`, expected a string");
        check("{\"name\": \"a\"}", "Some(1): Missing field `description`");
        check("[]", "Some(1): Invalid type: sequence, expected a map");
        check(
            "{\"name\": \"a\", \"description\": \"d\",\n\n\"tool_type\": \"python\"}",
            "Some(3): Unknown variant `python`, expected one of `wasm`, `script`, `pipeline`, `mcp`",
        );
        assert_eq!(outcome(MANIFEST, b"{\n\"\xff\xff"), "Some(2): It is not UTF-8");
        assert_eq!(outcome(MANIFEST, " ".repeat(4_000_001)), "None: It is larger than 4000000 bytes");
        let deep = format!("{{\"x\": {}{}}}", "[".repeat(5_000), "]".repeat(5_000));
        assert!(outcome(MANIFEST, deep).contains("nested deeper than 128 levels"));
        assert_eq!(outcome("other", ""), "missing");
    }

    #[test]
    fn a_skill_file_is_a_tool_only_with_a_tool_type() {
        let check = |content: &str, expected: &str| assert_eq!(outcome(SKILL, content), expected, "{content}");
        check("---\nname: a\ndescription: d\ntool_type: script\nversion: 1.0\n---\n", "SKILL.md: a Script");
        check("---\nname: a\ndescription: d\n---\n# text\n", "skill");
        check("---\nname: [broken\n---\n", "skill");
        check("no front matter", "skill");
        check("---\nname: a\ntool_type: script\n---\n", "None: Missing field `description`");
        assert!(outcome(SKILL, "---\ntool_type: script\ntags: [x\n---\n").starts_with("Some("));
    }

    #[test]
    fn links_and_pipes_are_not_read() {
        let folder = tempfile::tempdir().unwrap();
        let real = folder.path().join("real.json");
        fs::write(&real, r#"{"name": "a", "description": "d"}"#).unwrap();
        std::os::unix::fs::symlink(&real, folder.path().join(MANIFEST)).unwrap();
        assert!(read(folder.path()).unwrap_err().reason.contains("symbolic link"));
    }

    #[test]
    fn what_is_written_reads_the_same() {
        let folder = tempfile::tempdir().unwrap();
        let manifest = Manifest::new("a", "d", skillz_tool::ToolKind::Script);
        write(folder.path(), &manifest).unwrap();
        assert!(matches!(read(folder.path()), Ok(ManifestFile::Tool(read, _)) if *read == manifest));
    }
}
