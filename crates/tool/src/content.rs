//! MCP content that a tool returns itself.

use serde::{Deserialize, Serialize};
use skillz_json::Value;

/// A result in MCP's own form: content blocks, and perhaps a structured value.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
#[serde(rename_all = "camelCase")]
pub struct McpContent {
    /// Blocks of type `text`, `image`, `audio`, `resource` or `resource_link`.
    pub content: Vec<Value>,
    /// The structured value, where there is one.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub structured_content: Option<Value>,
    /// Whether the tool calls this a failure.
    #[serde(default, skip_serializing_if = "std::ops::Not::not")]
    pub is_error: bool,
    /// Whatever else the result carries for the client.
    #[serde(default, rename = "_meta", skip_serializing_if = "Option::is_none")]
    pub meta: Option<Value>,
}

/// Why a value that looks like MCP content is none.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
#[error("Block {index} of `content` {reason}")]
pub struct ContentError {
    index: usize,
    reason: String,
}

impl McpContent {
    /// Reads `value` as MCP content if it has its form: an object of `content` (an array), and at most
    /// `structuredContent`, `isError` and `_meta` beside it; or one block, or a list of blocks, complete and without
    /// other fields. `None` where it is an ordinary value.
    pub fn recognise(value: &Value) -> Option<Result<Self, ContentError>> {
        let blocks = value.as_array().map_or_else(|| std::slice::from_ref(value), Vec::as_slice);
        if !blocks.is_empty() && blocks.iter().all(is_bare_block) {
            return Some(Ok(Self { content: blocks.to_vec(), structured_content: None, is_error: false, meta: None }));
        }
        let object = value.as_object()?;
        let blocks = object.get("content")?.as_array()?;
        if !object.keys().all(|key| matches!(key.as_str(), "content" | "structuredContent" | "isError" | "_meta")) {
            return None;
        }
        if !blocks.iter().all(|block| block.get("type").is_some_and(Value::is_string)) {
            return None;
        }
        for (index, block) in blocks.iter().enumerate() {
            if let Err(reason) = check_block(block) {
                return Some(Err(ContentError { index, reason }));
            }
        }
        Some(Ok(Self {
            content: blocks.clone(),
            structured_content: object.get("structuredContent").filter(|value| !value.is_null()).cloned(),
            is_error: object.get("isError").and_then(Value::as_bool).unwrap_or(false),
            meta: object.get("_meta").filter(|meta| meta.is_object()).cloned(),
        }))
    }

    /// All text blocks, joined by line breaks: what a program that wants text gets.
    pub fn text(&self) -> String {
        let texts: Vec<&str> = self.content.iter().filter_map(|block| block.get("text").and_then(Value::as_str)).collect();
        texts.join("\n")
    }
}

/// Whether a value can be nothing but a block: complete, and without any field that blocks do not have.
fn is_bare_block(value: &Value) -> bool {
    let fields: &[&str] = match value.get("type").and_then(Value::as_str) {
        Some("text") => &["text"],
        Some("image" | "audio") => &["data", "mimeType"],
        Some("resource") => &["resource"],
        Some("resource_link") => &["uri", "name", "title", "description", "mimeType", "size", "icons"],
        _ => return false,
    };
    let is_known = |key: &String| matches!(key.as_str(), "type" | "annotations" | "_meta") || fields.contains(&key.as_str());
    check_block(value).is_ok() && value.as_object().is_some_and(|object| object.keys().all(is_known))
}

/// Checks one block against the MCP schema's required fields.
fn check_block(block: &Value) -> Result<(), String> {
    let kind = block.get("type").and_then(Value::as_str).unwrap_or_default();
    let required: &[&str] = match kind {
        "text" => &["text"],
        "image" | "audio" => &["data", "mimeType"],
        "resource_link" => &["uri", "name"],
        "resource" => {
            let resource = block.get("resource").ok_or("is a `resource` without the field `resource`")?;
            let has = |field| resource.get(field).is_some_and(Value::is_string);
            return if has("uri") && (has("text") || has("blob")) {
                Ok(())
            } else {
                Err("needs `resource.uri`, and `resource.text` or `resource.blob`, as strings".to_owned())
            };
        }
        other => return Err(format!("has the type `{other}`; MCP has text, image, audio, resource and resource_link")),
    };
    match required.iter().find(|field| !block.get(**field).is_some_and(Value::is_string)) {
        Some(field) => Err(format!("is of type `{kind}` and needs the string `{field}`")),
        None => Ok(()),
    }
}

#[cfg(test)]
mod tests {
    use skillz_json::json;

    use super::*;

    #[test]
    fn only_values_of_the_whole_form_are_content() {
        let content =
            json!({"content": [{"type": "text", "text": "a"}, {"type": "image", "data": "aGk=", "mimeType": "image/png"}]});
        assert!(McpContent::recognise(&content).expect("has the form").is_ok());
        let block = json!({"type": "image", "data": "aGk=", "mimeType": "image/png"});
        for (value, count) in [(block.clone(), 1), (json!([block, {"type": "text", "text": "a"}]), 2)] {
            let content = McpContent::recognise(&value).expect("has the form").expect("is complete");
            assert_eq!(content.content.len(), count);
        }
        for ordinary in [
            json!({"type": "image", "data": "aGk="}),
            json!({"type": "text", "text": "a", "author": "b"}),
            json!([block, 1]),
            json!([]),
            json!({"content": "a text"}),
            json!({"content": [1, 2]}),
            json!({"content": [{"text": "no type"}]}),
            json!({"content": [], "title": "an article"}),
            json!([1]),
            json!("content"),
        ] {
            assert!(McpContent::recognise(&ordinary).is_none(), "{ordinary}");
        }
        let broken = json!({"content": [{"type": "image", "data": "x"}]});
        let error = McpContent::recognise(&broken).expect("has the form").expect_err("lacks mimeType");
        assert_eq!(error.to_string(), "Block 0 of `content` is of type `image` and needs the string `mimeType`");
    }
}
