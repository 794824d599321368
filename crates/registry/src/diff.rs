//! The difference between two versions, for reading.

use std::{collections::BTreeSet, fs, path::Path, time::Duration};

use similar::{Algorithm, TextDiff};

use crate::{layout::MANIFEST, load::Found};

/// Files beyond this are only said to differ.
const FILE_BYTES: u64 = 1_000_000;
/// Longest time for one file; beyond it the difference is coarser.
const FILE_TIME: Duration = Duration::from_secs(1);
/// Fields of the manifest that differ between any two versions.
const ALWAYS_DIFFERENT: [&str; 5] = ["version", "hash", "created_at", "updated_at", "source"];

/// Unified diff of manifest and files. Blocks.
pub(crate) fn unified(from: &Found, to: &Found) -> String {
    let mut text = file(MANIFEST, Some(&manifest_text(from)), Some(&manifest_text(to)));
    let paths: BTreeSet<&Path> = from.walk.files.iter().chain(&to.walk.files).map(|stamp| stamp.path.as_path()).collect();
    for path in paths {
        let is_manifest = |found: &Found| found.walk.file(path).is_none() || path == Path::new(found.manifest_file);
        if is_manifest(from) && is_manifest(to) {
            continue;
        }
        text.push_str(&compare(path, from, to));
    }
    text
}

/// What a file is for a reader.
enum Content {
    Absent,
    Text(String),
    /// Bytes, or too much.
    Opaque,
}

fn compare(path: &Path, from: &Found, to: &Found) -> String {
    let name = path.to_string_lossy();
    match (content(from, path), content(to, path)) {
        (Content::Absent, Content::Absent) => String::new(),
        (Content::Text(old), Content::Text(new)) => file(&name, Some(&old), Some(&new)),
        (Content::Absent, Content::Text(new)) => file(&name, None, Some(&new)),
        (Content::Text(old), Content::Absent) => file(&name, Some(&old), None),
        _ if crate::tree::same_bytes(&from.folder.join(path), &to.folder.join(path)).unwrap_or(false) => String::new(),
        _ => format!("Binary file {name} differs\n"),
    }
}

fn content(found: &Found, path: &Path) -> Content {
    match found.walk.file(path) {
        None => Content::Absent,
        Some(stamp) if stamp.size > FILE_BYTES => Content::Opaque,
        Some(_) => match fs::read(found.folder.join(path)).map(String::from_utf8) {
            Ok(Ok(text)) if !text.contains('\0') => Content::Text(text),
            _ => Content::Opaque,
        },
    }
}

fn file(name: &str, old: Option<&str>, new: Option<&str>) -> String {
    if old == new {
        return String::new();
    }
    let header = |side: &str, text: Option<&str>| if text.is_some() { format!("{side}/{name}") } else { "/dev/null".to_owned() };
    TextDiff::configure()
        .algorithm(Algorithm::Myers)
        .timeout(FILE_TIME)
        .diff_lines(old.unwrap_or_default(), new.unwrap_or_default())
        .unified_diff()
        .header(&header("a", old), &header("b", new))
        .to_string()
}

/// The manifest in one form, whichever file it came from.
fn manifest_text(found: &Found) -> String {
    let mut value = skillz_json::to_value(&found.manifest).unwrap_or_default();
    if let Some(fields) = value.as_object_mut() {
        fields.retain(|name, _| !ALWAYS_DIFFERENT.contains(&name.as_str()));
    }
    let mut text = serde_json::to_string_pretty(&value).unwrap_or_default();
    text.push('\n');
    text
}
