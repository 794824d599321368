//! Reads the `skillz://` resources.

use std::path::{Component, Path};

use base64::{Engine as _, engine::general_purpose::STANDARD};
use rmcp::model::ResourceContents;
use skillz_engine::{Detail, Engine, ListRequest, NoClient, VersionAction};
use skillz_json::{Map, Value, json};
use skillz_tool::{ErrorKind, Tool, ToolError};

use crate::{
    resources::{Address, JSON, MARKDOWN, file_uri},
    skills,
};

/// Calls that the history shows.
const HISTORY: usize = 100;
/// Largest file that is read, in bytes.
const FILE_SIZE: u64 = 16 << 20;
/// Longest source that a tool's description holds, in bytes; beyond it the file is named.
const SOURCE_SIZE: usize = 200_000;
/// Folders within folders whose files are listed.
const DEPTH: usize = 4;
/// Tools that the guide names of each kind.
const GUIDE_TOOLS: usize = 40;

/// Reads a resource.
pub(crate) async fn read(engine: &Engine, uri: &str) -> Result<ResourceContents, ToolError> {
    let address = Address::parse(uri).ok_or_else(|| not_found(format!("There is no resource `{}`", shown(uri))))?;
    match address {
        Address::Guide => Ok(text(uri, MARKDOWN, guide(engine).await?)),
        Address::Protocol => Ok(text(uri, MARKDOWN, include_str!("../docs/protocol.md").to_owned())),
        Address::Examples => Ok(text(uri, MARKDOWN, include_str!("../docs/examples.md").to_owned())),
        Address::History => {
            let calls = engine.history().recent(None, false, HISTORY).await.map_err(ToolError::internal)?;
            Ok(text(uri, JSON, json!({"calls": calls}).to_string()))
        }
        Address::Tool(name) => Ok(text(uri, JSON, describe(engine, &*find(engine, &name)?).await?.to_string())),
        Address::File { tool_name, path } => {
            let tool = find(engine, &tool_name)?;
            read_file(uri, &format!("The tool `{tool_name}`"), &tool.directory, &path).await
        }
        Address::Skill { name, path } => {
            let skill = skills::find(engine, &name).await;
            let skill = skill.ok_or_else(|| not_found(format!("There is no skill `{}`", shown(&name))))?;
            read_file(uri, &format!("The skill `{name}`"), &skill.directory, &path).await
        }
        Address::Result(id) => {
            let result = engine.results().read(&id).await;
            let result =
                result.ok_or_else(|| not_found("The result is not kept any more: results are kept for an hour".to_owned()))?;
            Ok(text(uri, result.mime_type, result.text))
        }
    }
}

fn find(engine: &Engine, name: &str) -> Result<std::sync::Arc<Tool>, ToolError> {
    engine.catalog().get(name).cloned().ok_or_else(|| not_found(format!("There is no tool `{}`", shown(name))))
}

fn text(uri: &str, mime_type: &str, text: String) -> ResourceContents {
    ResourceContents::TextResourceContents { uri: uri.to_owned(), mime_type: Some(mime_type.to_owned()), text, meta: None }
}

fn not_found(message: String) -> ToolError {
    ToolError::new(ErrorKind::NotFound, message)
}

fn shown(text: &str) -> String {
    text.chars().take(200).collect()
}

/// The guide, with what is there now.
async fn guide(engine: &Engine) -> Result<String, ToolError> {
    let request = ListRequest { detail: Detail::Signature, limit: Some(1_000), ..ListRequest::default() };
    let listed = engine.list(request).await?;
    let total = listed.get("total").and_then(Value::as_u64).unwrap_or_default();
    let mut lines = vec![format!("There are {total} tools now.")];
    for kind in ["wasm", "script", "pipeline", "mcp"] {
        let Some(signatures) = listed.get(kind).and_then(Value::as_array).filter(|signatures| !signatures.is_empty()) else {
            continue;
        };
        lines.push(format!("\n{kind}:\n"));
        lines.extend(signatures.iter().take(GUIDE_TOOLS).filter_map(Value::as_str).map(|signature| format!("- `{signature}`")));
        if signatures.len() > GUIDE_TOOLS {
            lines.push(format!("- and {} more, see `list_tools`", signatures.len() - GUIDE_TOOLS));
        }
    }
    Ok(include_str!("../docs/guide.md").replace("{{now}}", &lines.join("\n")))
}

/// All that is known of a tool.
async fn describe(engine: &Engine, tool: &Tool) -> Result<Value, ToolError> {
    let mut described = Map::new();
    described.insert("name".to_owned(), json!(tool.name));
    described.insert("kind".to_owned(), json!(tool.kind()));
    described.insert("version".to_owned(), json!(tool.version));
    let manifest = skillz_json::to_value(&tool.manifest).map_err(ToolError::internal)?;
    if let Value::Object(manifest) = manifest {
        for (field, value) in manifest {
            if !matches!(field.as_str(), "name" | "tool_type" | "version" | "hash") {
                described.insert(field, value);
            }
        }
    }
    let versions = engine.versions(VersionAction::List, tool.name.as_str(), std::sync::Arc::new(NoClient)).await?;
    if let Some(versions) = versions.get("versions") {
        described.insert("versions".to_owned(), versions.clone());
    }
    let files = files(&tool.directory).await;
    let uris: Vec<String> = files.iter().map(|file| file_uri(tool.name.as_str(), file)).collect();
    described.insert("files".to_owned(), json!(uris));
    if let Some(source) = source(tool).await {
        described.insert("source_code".to_owned(), Value::String(source));
    }
    Ok(Value::Object(described))
}

/// The source text, unless it is too long to show.
async fn source(tool: &Tool) -> Option<String> {
    let path = tool.source_path().ok()?;
    tokio::fs::read_to_string(path).await.ok().filter(|source| source.len() <= SOURCE_SIZE)
}

/// Names of the files in a folder, relative to it, sorted; hidden ones and what lies deeper than [`DEPTH`] are left out.
pub(crate) async fn files(directory: &Path) -> Vec<String> {
    let mut names = Vec::new();
    let mut folders = vec![(directory.to_owned(), String::new(), 0)];
    while let Some((folder, prefix, depth)) = folders.pop() {
        let Ok(mut entries) = tokio::fs::read_dir(&folder).await else { continue };
        while let Ok(Some(entry)) = entries.next_entry().await {
            let Some(name) = entry.file_name().to_str().filter(|name| !name.starts_with('.')).map(str::to_owned) else {
                continue;
            };
            match entry.file_type().await {
                Ok(kind) if kind.is_file() => names.push(format!("{prefix}{name}")),
                Ok(kind) if kind.is_dir() && depth < DEPTH => folders.push((entry.path(), format!("{prefix}{name}/"), depth + 1)),
                _ => {}
            }
        }
    }
    names.sort();
    names
}

/// Reads a file of a tool's or skill's folder. Neither `..` nor a link leads out of it, and hidden files are the server's own.
async fn read_file(uri: &str, owner: &str, directory: &Path, path: &str) -> Result<ResourceContents, ToolError> {
    let missing = || not_found(format!("{owner} has no file `{}`", shown(path)));
    let plain = Path::new(path).components().all(|part| match part {
        Component::Normal(name) => name.to_str().is_some_and(|name| !name.starts_with('.')),
        _ => false,
    });
    if path.is_empty() || path.contains('\0') || !plain {
        return Err(missing());
    }
    let folder = tokio::fs::canonicalize(directory).await.map_err(|_| missing())?;
    let file = tokio::fs::canonicalize(folder.join(path)).await.map_err(|_| missing())?;
    let metadata = tokio::fs::metadata(&file).await.map_err(|_| missing())?;
    if !file.starts_with(&folder) || !metadata.is_file() {
        return Err(missing());
    }
    if metadata.len() > FILE_SIZE {
        return Err(ToolError::new(
            ErrorKind::LimitExceeded,
            format!("`{}` has {} bytes; at most {FILE_SIZE} are read", shown(path), metadata.len()),
        ));
    }
    let bytes = tokio::fs::read(&file)
        .await
        .map_err(|error| ToolError::internal(format!("Could not read `{}`: {error}", shown(path))))?;
    let mime_type = mime_type(path);
    Ok(match String::from_utf8(bytes) {
        Ok(content) => text(uri, mime_type, content),
        Err(error) => ResourceContents::BlobResourceContents {
            uri: uri.to_owned(),
            mime_type: Some(mime_type.to_owned()),
            blob: STANDARD.encode(error.into_bytes()),
            meta: None,
        },
    })
}

fn mime_type(path: &str) -> &'static str {
    match Path::new(path).extension().and_then(|extension| extension.to_str()) {
        Some("json") => JSON,
        Some("md") => MARKDOWN,
        Some("wasm") => "application/wasm",
        Some("rs") => "text/x-rust",
        Some("py") => "text/x-python",
        Some("js" | "mjs" | "cjs") => "text/javascript",
        _ => "text/plain",
    }
}
