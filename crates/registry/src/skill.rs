//! Knowledge skills: folders with a `SKILL.md` that tells a model how to do something. They are no tools.
//!
//! Reads what such a file says of itself, however it is written; where skills lie is `shelf`'s business.

use std::{
    fs::File,
    io::{self, Read},
    path::{Path, PathBuf},
};

use skillz_json::{Map, Value};

use crate::front_matter;

/// How much of a file is read to learn its name and description; the text behind may be megabytes.
const HEAD: u64 = 65_536;
/// Longest description that a list shows, in characters.
const DESCRIPTION: usize = 1_024;
/// Longest name.
const NAME: usize = 64;

/// A knowledge skill as it describes itself.
#[derive(Debug, Clone, PartialEq)]
pub struct Skill {
    /// Its name, which is its folder's.
    pub name: String,
    /// What it is for, on one line.
    pub description: String,
    /// The folder with its `SKILL.md`.
    pub directory: PathBuf,
    /// All fields of the front matter, known or not.
    pub fields: Map<String, Value>,
}

impl Skill {
    /// Reads a skill's folder. `fallback` names a skill that does not name itself.
    pub(crate) fn read(folder: &Path, fallback: &str) -> io::Result<Result<Self, String>> {
        let head = read_head(&folder.join(crate::layout::SKILL))?;
        let fields = front_matter::read(&head).ok().flatten().unwrap_or_else(|| front_matter::plain_fields(&head));
        let told = |field: &str| fields.get(field).and_then(Value::as_str).map(str::trim).filter(|text| !text.is_empty());
        let name = match name_of(told("name").unwrap_or(fallback)) {
            Ok(name) => name,
            Err(reason) => return Ok(Err(reason)),
        };
        let description = match told("description") {
            Some(description) => on_one_line(description),
            None => first_paragraph(&front_matter::body(&head)).unwrap_or_else(|| format!("The skill {name}")),
        };
        Ok(Ok(Self { name, description, directory: folder.to_owned(), fields }))
    }
}

impl Skill {
    /// What the skill tells a model: its `SKILL.md` without the front matter. Blocks.
    pub fn instructions(&self) -> io::Result<String> {
        let bytes = std::fs::read(self.directory.join(crate::layout::SKILL))?;
        Ok(front_matter::body(String::from_utf8_lossy(&bytes).trim_start_matches('\u{FEFF}')))
    }
}

/// The folder's name for a skill. People write names as titles, which are bent into shape; what could be a path is
/// refused, since whoever writes it means harm or another thing.
fn name_of(written: &str) -> Result<String, String> {
    let is_path = written.contains(['/', '\\', '\0']) || written.trim_matches('.').is_empty();
    if is_path {
        let shown: String = written.chars().take(80).collect();
        return Err(format!("The name `{shown}` looks like a path; a skill's name has 1 to {NAME} letters, digits, `-` or `_`"));
    }
    let mut name = String::new();
    for character in written.chars() {
        if character.is_ascii_alphanumeric() || character == '_' {
            name.push(character);
        } else if !name.is_empty() && !name.ends_with('-') {
            name.push('-');
        }
    }
    let name: String = name.chars().take(NAME).collect();
    let name = name.trim_end_matches('-');
    if name.is_empty() {
        return Err(format!("The name `{written}` has no letter or digit of ASCII that a folder could be called by"));
    }
    Ok(if written == name { name.to_owned() } else { name.to_ascii_lowercase() })
}

/// Whether a folder may be a skill's.
pub(crate) fn is_skill_name(name: &str) -> bool {
    (1..=NAME).contains(&name.len()) && name.bytes().all(|byte| byte.is_ascii_alphanumeric() || matches!(byte, b'_' | b'-'))
}

/// The start of a file, as text; links are not followed.
fn read_head(file: &Path) -> io::Result<String> {
    // Links are not followed, and opening a pipe would wait for somebody who writes.
    if !file.symlink_metadata()?.is_file() {
        return Err(io::Error::other("it is no plain file"));
    }
    let mut bytes = Vec::new();
    File::open(file)?.take(HEAD).read_to_end(&mut bytes)?;
    Ok(String::from_utf8_lossy(&bytes).into_owned())
}

/// The first lines of running text: no headings, no comments, no pictures.
fn first_paragraph(body: &str) -> Option<String> {
    let mut paragraph = String::new();
    for line in body.lines().map(str::trim) {
        let is_text = !line.is_empty() && !line.starts_with(['#', '<', '!', '|', '`', '=']) && !line.starts_with("---");
        if is_text {
            paragraph.push_str(line);
            paragraph.push(' ');
        } else if !paragraph.is_empty() {
            break;
        }
    }
    let paragraph = on_one_line(&paragraph);
    (!paragraph.is_empty()).then_some(paragraph)
}

fn on_one_line(text: &str) -> String {
    let words: Vec<&str> = text.split_whitespace().collect();
    let line = words.join(" ");
    match line.char_indices().nth(DESCRIPTION) {
        Some((end, _)) => format!("{} ...", line.get(..end).unwrap_or_default()),
        None => line,
    }
}

#[cfg(test)]
mod tests {
    use std::fs;

    use super::*;

    fn read(text: &str) -> Result<(String, String), String> {
        let folder = tempfile::tempdir().unwrap();
        fs::write(folder.path().join("SKILL.md"), text).unwrap();
        Skill::read(folder.path(), "from-folder").unwrap().map(|skill| (skill.name, skill.description))
    }

    #[test]
    fn front_matter_as_people_write_it() {
        for (text, name, description) in [
            ("---\nname: pdf\ndescription: Reads: PDFs, and more\n---\n# x\n", "pdf", "Reads: PDFs, and more"),
            ("\u{FEFF}---\r\nname: bom\r\ndescription: \"Quoted: yes\"\r\n---\r\nText\r\n", "bom", "Quoted: yes"),
            ("---\nname:\ttabbed\ndescription:\tafter a tab\n---\n", "tabbed", "after a tab"),
            ("---\nname: many\ndescription: >\n  one\n  two\nmetadata:\n  a: [1, 2]\n---\n", "many", "one two"),
            ("---\nname: block\ndescription: |\n  one\n  two\n---\n", "block", "one two"),
            ("# Heading\n\nFirst paragraph\nof two lines.\n\nSecond.\n", "from-folder", "First paragraph of two lines."),
            ("", "from-folder", "The skill from-folder"),
            ("---\nname: PDF Processing\n---\n", "pdf-processing", "The skill pdf-processing"),
            ("---\nname: broken\ndescription: [never closed\nother: {\n---\nBody.\n", "broken", "[never closed"),
            (
                "---\nname: open\ndescription: no end of front matter\n",
                "from-folder",
                "name: open description: no end of front matter",
            ),
            ("---\nname: 'single: quoted'\ndescription: 'it''s fine'\n---\n", "single-quoted", "it's fine"),
        ] {
            assert_eq!(read(text), Ok((name.to_owned(), description.to_owned())), "{text:?}");
        }
    }

    #[test]
    fn names_that_are_paths_are_refused() {
        for name in ["../../x", "/etc/x", "a/b", "..", "a\\b", "..."] {
            assert!(read(&format!("---\nname: '{name}'\n---\n")).is_err(), "{name}");
        }
        assert!(read("---\nname: ÄÖ\n---\n").is_err());
    }

    #[test]
    fn unknown_fields_are_kept_and_two_megabytes_are_no_trouble() {
        let folder = tempfile::tempdir().unwrap();
        let text = format!("---\nname: big\nallowed-tools: Read, Bash\n---\n{}", "A line of text.\n".repeat(130_000));
        fs::write(folder.path().join("SKILL.md"), text).unwrap();
        let skill = Skill::read(folder.path(), "x").unwrap().unwrap();
        assert_eq!(skill.fields.get("allowed-tools"), Some(&Value::from("Read, Bash")));
        assert!(skill.description.chars().count() < DESCRIPTION + 10);
    }
}
