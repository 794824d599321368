//! The hash of a version: SHA-256 over its manifest and its files.
//!
//! Of the manifest everything counts but `version`, `hash`, `created_at`, `updated_at` and `source`, so that a
//! rollback has the hash of the version it brings back. Files count with their names, except the manifest's
//! own file, and the compiled module of a tool whose source is there.

use std::{
    fmt::Write as _,
    fs::File,
    io::{self, Read},
    path::Path,
};

use sha2::{Digest, Sha256};
use skillz_json::Value;
use skillz_tool::{Manifest, ToolKind};

use crate::walk::{FileStamp, Walk};

/// Fields of the manifest that say when and whence rather than what.
const CIRCUMSTANCES: [&str; 5] = ["version", "hash", "created_at", "updated_at", "source"];
/// The usual source of WASM tools.
const RUST_SOURCE: &str = "src.rs";

/// Hashes a version. `manifest` is as it stands in `manifest_file`; `name` is the tool's, as its folder says.
pub(crate) fn content_hash(
    folder: &Path,
    walk: &Walk,
    manifest: &Manifest,
    manifest_file: &str,
    name: &str,
) -> io::Result<String> {
    let mut hasher = Sha256::new();
    let mut text = Vec::new();
    write_canonical(&circumstances_removed(manifest)?, &mut text)?;
    update_with_length(&mut hasher, &text);
    for stamp in content_files(walk, manifest, manifest_file, name) {
        update_with_length(&mut hasher, stamp.path.as_os_str().as_encoded_bytes());
        let mut content = Vec::with_capacity(usize::try_from(stamp.size).unwrap_or(0));
        File::open(folder.join(&stamp.path))?.read_to_end(&mut content)?;
        update_with_length(&mut hasher, &content);
    }
    let mut hexadecimal = String::with_capacity(64);
    for byte in hasher.finalize() {
        // Writing to a string does not fail.
        let _ = write!(hexadecimal, "{byte:02x}");
    }
    Ok(hexadecimal)
}

/// The files that count.
pub(crate) fn content_files<'a>(
    walk: &'a Walk,
    manifest: &Manifest,
    manifest_file: &'a str,
    name: &str,
) -> impl Iterator<Item = &'a FileStamp> {
    let source = manifest.entry_file.as_deref().unwrap_or(RUST_SOURCE);
    let has_source = manifest.tool_type == ToolKind::Wasm && walk.file(source).is_some();
    let module = format!("{name}.wasm");
    walk.files.iter().filter(move |stamp| {
        stamp.path != Path::new(manifest_file)
            && !(has_source && stamp.path == Path::new(&module) && stamp.path != Path::new(source))
    })
}

fn circumstances_removed(manifest: &Manifest) -> io::Result<Value> {
    let mut value = skillz_json::to_value(manifest)?;
    if let Some(fields) = value.as_object_mut() {
        fields.retain(|name, _| !CIRCUMSTANCES.contains(&name.as_str()));
    }
    Ok(value)
}

/// Writes JSON with the members of objects in order of their names.
fn write_canonical(value: &Value, into: &mut Vec<u8>) -> io::Result<()> {
    match value {
        Value::Object(members) => {
            let mut members: Vec<_> = members.iter().collect();
            members.sort_unstable_by_key(|(name, _)| *name);
            into.push(b'{');
            for (name, value) in members {
                serde_json::to_writer(&mut *into, name)?;
                into.push(b':');
                write_canonical(value, into)?;
                into.push(b',');
            }
            into.push(b'}');
        }
        Value::Array(items) => {
            into.push(b'[');
            for item in items {
                write_canonical(item, into)?;
                into.push(b',');
            }
            into.push(b']');
        }
        other => serde_json::to_writer(into, other)?,
    }
    Ok(())
}

/// The length goes first, so that no two lists of parts run together into the same bytes.
fn update_with_length(hasher: &mut Sha256, bytes: &[u8]) {
    hasher.update((bytes.len() as u64).to_be_bytes());
    hasher.update(bytes);
}

#[cfg(test)]
mod tests {
    use std::fs;

    use skillz_json::json;

    use super::*;

    fn hash(fields: &Value, files: &[(&str, &str)]) -> String {
        let folder = tempfile::tempdir().unwrap();
        for (path, content) in files {
            fs::write(folder.path().join(path), content).unwrap();
        }
        let manifest: Manifest = skillz_json::from_value(fields.clone()).unwrap();
        content_hash(folder.path(), &Walk::of(folder.path()).unwrap(), &manifest, "manifest.json", "t").unwrap()
    }

    #[test]
    fn what_the_tool_is_counts_and_its_circumstances_do_not() {
        let script = json!({"name": "t", "description": "d", "tool_type": "script", "entry_file": "main.py"});
        let with = |name: &str, value: Value| {
            let mut fields = script.clone();
            fields[name] = value;
            fields
        };
        let files = [("main.py", "1")];
        let plain = hash(&script, &files);
        assert_eq!(plain.len(), 64);
        for same in [
            with("version", json!("2.0.0")),
            with("updated_at", json!("2026-01-01T00:00:00Z")),
            with("source", json!({"origin": "edit"})),
            with("hash", json!("x")),
            with("tags", json!([])),
        ] {
            assert_eq!(hash(&same, &files), plain, "{same}");
        }
        for other in [with("description", json!("e")), with("tags", json!(["a"])), with("anything", json!(1))] {
            assert_ne!(hash(&other, &files), plain, "{other}");
        }
        let ordered = with("x", json!({"a": 1, "b": 2}));
        assert_eq!(hash(&ordered, &files), hash(&with("x", json!({"b": 2, "a": 1})), &files));
        for files in [vec![("main.py", "2")], vec![("main.py", "1"), ("b", "")], vec![("main.p", "y1")], vec![]] {
            assert_ne!(hash(&script, &files), plain, "{files:?}");
        }
        assert_eq!(hash(&script, &[("main.py", "1"), ("manifest.json", "{}"), ("main.py~", "0")]), plain);
    }

    #[test]
    fn a_module_counts_only_where_it_is_the_source() {
        let tool = json!({"name": "t", "description": "d"});
        assert_eq!(hash(&tool, &[("src.rs", "a"), ("t.wasm", "1")]), hash(&tool, &[("src.rs", "a"), ("t.wasm", "2")]));
        assert_ne!(hash(&tool, &[("t.wasm", "1")]), hash(&tool, &[("t.wasm", "2")]));
    }
}
