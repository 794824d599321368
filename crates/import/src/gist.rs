//! Gists, over GitHub's API: a flat list of files.

use std::{collections::BTreeMap, fs, path::Path};

use base64::{Engine as _, engine::general_purpose::STANDARD};
use reqwest::Url;
use serde::Deserialize;
use skillz_json::{Map, Value, json};
use skillz_tool::ToolError;

use crate::{
    download::Downloader,
    error::{refused, too_large},
    limits,
};

/// Where the files of public gists are served beside the API.
const RAW_HOSTS: &str = ".githubusercontent.com";

#[derive(Debug, Deserialize)]
struct Answer {
    #[serde(default)]
    files: BTreeMap<String, GistFile>,
    #[serde(default)]
    truncated: bool,
    #[serde(default)]
    history: Vec<Revision>,
}

#[derive(Debug, Deserialize)]
struct GistFile {
    #[serde(default)]
    filename: Option<String>,
    #[serde(default)]
    content: Option<String>,
    #[serde(default)]
    encoding: Option<String>,
    #[serde(default)]
    raw_url: Option<String>,
    #[serde(default)]
    truncated: bool,
}

#[derive(Debug, Deserialize)]
struct Revision {
    version: String,
}

/// Fetches a gist into an empty folder; gives where it came from.
pub(crate) async fn fetch(
    downloader: &Downloader,
    api: &str,
    id: &str,
    revision: Option<&str>,
    into: &Path,
) -> Result<Map<String, Value>, ToolError> {
    let mut address = format!("{}/gists/{id}", api.trim_end_matches('/'));
    if let Some(revision) = revision {
        address = format!("{address}/{revision}");
    }
    let api = Url::parse(&address)
        .map_err(|error| ToolError::invalid(format!("The setting `import.github_api` is no URL: {error}")))?;
    let bytes = downloader.bytes(&api, Some("application/vnd.github+json")).await?;
    let answer: Answer = serde_json::from_slice(&bytes)
        .map_err(|error| ToolError::failed(format!("The gist `{id}` came in a form that is not known: {error}")))?;
    if answer.truncated || answer.files.len() > limits::ENTRIES {
        return Err(too_large(&format!("The gist `{id}`")));
    }
    let mut total = 0;
    for (key, file) in &answer.files {
        let name = file.filename.as_deref().unwrap_or(key);
        check_name(name)?;
        let content = content_of(downloader, &api, name, file).await?;
        total += content.len() as u64;
        if total > limits::BYTES {
            return Err(too_large(&format!("The gist `{id}`")));
        }
        fs::write(into.join(name), content)
            .map_err(|error| ToolError::internal(format!("`{name}` cannot be written: {error}")))?;
    }
    let commit = revision.filter(|revision| revision.len() == 40).or_else(|| Some(answer.history.first()?.version.as_str()));
    let mut provenance = Map::from_iter([("from".to_owned(), json!(format!("gist:{id}")))]);
    if let Some(commit) = commit {
        provenance.insert("commit".to_owned(), json!(commit));
    }
    Ok(provenance)
}

/// A gist's files are in no folders, and whoever names one with a path means harm.
fn check_name(name: &str) -> Result<(), ToolError> {
    let is_plain = !name.is_empty()
        && name.len() <= 255
        && !name.contains(['/', '\\', '\0'])
        && !name.chars().any(char::is_control)
        && name != "."
        && name != "..";
    if is_plain {
        return Ok(());
    }
    let shown: String = name.chars().take(80).collect();
    Err(refused(format!("The gist holds a file `{shown}`, whose name would lead out of its folder")))
}

async fn content_of(downloader: &Downloader, api: &Url, name: &str, file: &GistFile) -> Result<Vec<u8>, ToolError> {
    if let (false, Some(content)) = (file.truncated, &file.content) {
        if file.encoding.as_deref() != Some("base64") {
            return Ok(content.clone().into_bytes());
        }
        let packed: String = content.split_whitespace().collect();
        return STANDARD
            .decode(packed)
            .map_err(|error| ToolError::failed(format!("The gist's file `{name}` is no base64: {error}")));
    }
    let raw = file.raw_url.as_deref().and_then(|raw| Url::parse(raw).ok());
    let raw = raw
        .ok_or_else(|| ToolError::failed(format!("The gist's file `{name}` came without its content and without an address")))?;
    let host = raw.host_str().unwrap_or_default();
    let is_known = raw.host_str() == api.host_str() || host.ends_with(RAW_HOSTS);
    if !is_known || !matches!(raw.scheme(), "https" | "http") || (api.scheme() == "https" && raw.scheme() != "https") {
        return Err(refused(format!("The gist's file `{name}` lies on `{host}`, which is not where gists lie")));
    }
    downloader.bytes(&raw, None).await
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn names_of_files_are_plain() {
        for name in ["main.py", "SKILL.md", ".env", "a b.txt", "..."] {
            assert!(check_name(name).is_ok(), "{name}");
        }
        for name in ["../y", "a/b", "/etc/x", "..", ".", "", "a\\b", "a\0", "a\nb"] {
            assert!(check_name(name).is_err(), "{name}");
        }
    }
}
