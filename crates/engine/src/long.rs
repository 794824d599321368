//! Results that are longer than a reply may be: the first part, a sentence, and a link to all of it.

use std::fmt::Write;

use skillz_json::{Value, json};
use skillz_tool::{ErrorKind, McpContent, ToolError};

use crate::{
    CallReply, StoredResult,
    results::ResultStore,
    shape::{Subject, text_block},
};

/// A text that does not fit. With an output schema clients demand the structured value, so the call fails then.
pub(crate) async fn text_reply(
    subject: Subject<'_>,
    text: String,
    mime_type: &'static str,
    max_bytes: usize,
    results: &ResultStore,
) -> CallReply {
    if subject.has_output_schema {
        return too_long_for_schema(subject, text, mime_type, max_bytes, results).await;
    }
    let mut first = text.clone();
    let (sentence, link) = keep(subject, text, mime_type, results).await;
    cut(&mut first, max_bytes.saturating_sub(sentence.len()));
    let mut content = vec![text_block(first), text_block(sentence)];
    content.extend(link);
    CallReply::of_content(content)
}

/// MCP content, with its text and its structured value cut where they do not fit. Images and sound stay.
pub(crate) async fn content_reply(
    subject: Subject<'_>,
    content: McpContent,
    max_bytes: usize,
    results: &ResultStore,
) -> CallReply {
    let McpContent { content: mut blocks, mut structured_content, is_error, meta } = content;
    let text_length: usize = blocks.iter().filter_map(block_text).map(str::len).sum();
    let structure_fits = structured_content.as_ref().is_none_or(|value| value.written_length() <= max_bytes);
    if text_length <= max_bytes && structure_fits {
        return CallReply { structured_content, meta, ..CallReply::of_content(blocks) };
    }
    let structured_text = structured_content.take_if(|_| !structure_fits).map(|value| value.to_string());
    if let Some(text) = structured_text.clone().filter(|_| subject.has_output_schema && !is_error) {
        return too_long_for_schema(subject, text, "application/json", max_bytes, results).await;
    }
    let mut tail = Vec::new();
    if text_length > max_bytes {
        let text = blocks.iter().filter_map(block_text).collect::<Vec<_>>().join("\n");
        // Servers usually send the structured value once more as text; one link is enough then.
        let twice = structured_text.as_ref() == Some(&text);
        let mime_type = if twice { "application/json" } else { "text/plain" };
        let (sentence, link) = keep(subject, text, mime_type, results).await;
        blocks = cut_blocks(blocks, max_bytes.saturating_sub(sentence.len()));
        tail.push(text_block(sentence));
        tail.extend(link);
        if !twice {
            tail.extend(keep_structure(subject, structured_text, results).await);
        }
    } else {
        tail.extend(keep_structure(subject, structured_text, results).await);
    }
    blocks.extend(tail);
    CallReply { structured_content, meta, ..CallReply::of_content(blocks) }
}

async fn keep_structure(subject: Subject<'_>, text: Option<String>, results: &ResultStore) -> Vec<Value> {
    let Some(text) = text else { return Vec::new() };
    let (sentence, link) = keep(subject, text, "application/json", results).await;
    std::iter::once(text_block(format!("The structured value is left out. {sentence}"))).chain(link).collect()
}

/// Keeps the whole text, and says so in a sentence and a link.
async fn keep(subject: Subject<'_>, text: String, mime_type: &'static str, results: &ResultStore) -> (String, Option<Value>) {
    let size = text.len();
    match results.keep(StoredResult { text, mime_type }).await {
        Ok(id) => {
            let uri = format!("skillz://results/{id}");
            let sentence = format!(
                "The whole result has {size} bytes and is kept for an hour as the resource {uri}; above is its first part."
            );
            let name = format!("Whole result of {}", subject.name);
            let link = json!({"type": "resource_link", "uri": uri, "name": name, "mimeType": mime_type, "size": size});
            (sentence, Some(link))
        }
        Err(error) => {
            let sentence = format!(
                "The whole result has {size} bytes; above is its first part, and the rest is lost, since it could not be kept: {error}"
            );
            (sentence, None)
        }
    }
}

async fn too_long_for_schema(
    subject: Subject<'_>,
    text: String,
    mime_type: &'static str,
    max_bytes: usize,
    results: &ResultStore,
) -> CallReply {
    let size = text.len();
    let kept = results.keep(StoredResult { text, mime_type }).await;
    let mut message = format!(
        "The result of `{}` has {size} bytes, more than the {max_bytes} bytes that fit into a reply, and cannot be cut because \
         the tool has an `output_schema`",
        subject.name
    );
    let mut link = None;
    match kept {
        Ok(id) => {
            let uri = format!("skillz://results/{id}");
            let _ = write!(message, ". All of it is kept for an hour as the resource {uri}");
            let name = format!("Whole result of {}", subject.name);
            link = Some(json!({"type": "resource_link", "uri": uri, "name": name, "mimeType": mime_type, "size": size}));
        }
        Err(error) => {
            let _ = write!(message, ". It could not be kept: {error}");
        }
    }
    let error = ToolError::new(ErrorKind::LimitExceeded, message)
        .with_hint("Read that resource, ask the tool for less, use the value in `execute_code` (where it passes whole), or raise `limits.max_result_bytes`");
    let mut reply = CallReply::failed(error);
    reply.content.extend(link);
    reply
}

/// The text of a block that counts: a text block's, or that of an embedded resource.
fn block_text(block: &Value) -> Option<&str> {
    match block.get("type").and_then(Value::as_str) {
        Some("text") => block.get("text").and_then(Value::as_str),
        Some("resource") => block.pointer("/resource/text").and_then(Value::as_str),
        _ => None,
    }
}

/// Keeps the blocks whose text fits into `room`; the first text block that does not is cut, later text is left out.
fn cut_blocks(blocks: Vec<Value>, mut room: usize) -> Vec<Value> {
    let mut full = false;
    let mut kept = Vec::with_capacity(blocks.len());
    for mut block in blocks {
        let Some(length) = block_text(&block).map(str::len) else {
            kept.push(block);
            continue;
        };
        if full {
            continue;
        }
        if length > room {
            full = true;
            match block.get_mut("text") {
                Some(Value::String(text)) => cut(text, room),
                _ => continue,
            }
        } else {
            room -= length;
        }
        kept.push(block);
    }
    kept
}

/// Cuts between characters.
fn cut(text: &mut String, bytes: usize) {
    if text.len() > bytes {
        text.truncate(text.floor_char_boundary(bytes));
    }
}

#[cfg(test)]
mod tests {
    use skillz_tool::{Manifest, Tool, ToolKind, ToolName, ToolOutcome, Version};

    use super::*;
    use crate::shape::{finish, reply};

    const MOST: usize = 1_000;

    struct Fixture {
        _folder: tempfile::TempDir,
        results: ResultStore,
    }

    impl Fixture {
        fn new() -> Self {
            let folder = tempfile::tempdir().expect("a folder");
            let results = ResultStore::new(folder.path().to_owned());
            Self { _folder: folder, results }
        }

        async fn reply(&self, output_schema: Option<Value>, value: Value) -> CallReply {
            let mut manifest = Manifest::new("probe", "Probes", ToolKind::Script);
            manifest.output_schema = output_schema;
            let name = ToolName::for_new("probe").expect("valid");
            let tool = Tool::new(name, Version::FIRST, "/nowhere".into(), manifest, "hash".into());
            let finished = finish(&tool, ToolOutcome::value(value)).expect("the value fits");
            reply(&tool, finished, MOST, &self.results).await.0
        }

        async fn linked(&self, block: &Value) -> StoredResult {
            assert_eq!(block["type"], "resource_link", "{block}");
            let id = block["uri"].as_str().and_then(|uri| uri.strip_prefix("skillz://results/")).expect("a result");
            self.results.read(id).await.expect("it is kept")
        }
    }

    fn text_of(reply: &CallReply) -> usize {
        reply.content.iter().filter_map(block_text).map(str::len).sum()
    }

    #[tokio::test]
    async fn long_text_is_cut_and_linked() {
        let fixture = Fixture::new();
        let text = "é".repeat(2_000);
        let reply = fixture.reply(None, json!(text)).await;
        let [first, sentence, link] = reply.content.as_slice() else { panic!("three blocks: {reply:?}") };
        assert!(text.starts_with(first["text"].as_str().expect("text")));
        assert!(sentence["text"].as_str().expect("text").contains("4000 bytes"));
        assert_eq!(fixture.linked(link).await, StoredResult { text, mime_type: "text/plain" });
        assert_eq!(link["size"], 4_000);
        let length = text_of(&reply);
        assert!(length <= MOST && length > MOST - 4, "{length}");
        assert!(!reply.is_error);
    }

    #[tokio::test]
    async fn a_long_object_loses_its_structure_and_fails_with_a_schema() {
        let fixture = Fixture::new();
        let value = json!({"rows": vec!["row"; 1_000]});
        let reply = fixture.reply(None, value.clone()).await;
        assert_eq!((reply.structured_content.as_ref(), reply.is_error), (None, false));
        assert_eq!(fixture.linked(&reply.content[2]).await.text, value.to_string());

        let reply = fixture.reply(Some(json!({"type": "object"})), value.clone()).await;
        assert!(reply.is_error && reply.structured_content.is_none());
        assert_eq!(fixture.linked(&reply.content[1]).await.text, value.to_string());
        assert_eq!(reply.failure.expect("it says why").kind, ErrorKind::LimitExceeded);
    }

    #[tokio::test]
    async fn content_keeps_images_whole_and_text_within_the_bound() {
        let fixture = Fixture::new();
        let image = json!({"type": "image", "data": "a".repeat(5_000), "mimeType": "image/png"});
        let value = json!({"content": [text_block("x".repeat(300)), text_block("y".repeat(3_000)), text_block("z"), image]});
        let reply = fixture.reply(None, value).await;
        assert!(text_of(&reply) <= MOST);
        assert!(reply.content.contains(&image));
        assert_eq!(reply.content[0], text_block("x".repeat(300)));
        let kept = fixture.linked(reply.content.last().expect("a link")).await;
        assert_eq!(kept.text.len(), 300 + 1 + 3_000 + 1 + 1);
    }

    #[tokio::test]
    async fn long_structure_in_content_is_linked_once() {
        let fixture = Fixture::new();
        let structure = json!({"rows": vec!["row"; 1_000]});
        let value = json!({"content": [text_block(structure.to_string())], "structuredContent": structure});
        let reply = fixture.reply(None, value).await;
        assert_eq!(reply.content.len(), 3, "{reply:?}");
        assert_eq!(fixture.linked(&reply.content[2]).await.mime_type, "application/json");

        let value = json!({"content": [text_block("short")], "structuredContent": structure});
        let reply = fixture.reply(None, value.clone()).await;
        assert_eq!(reply.content[0], text_block("short"));
        assert_eq!(fixture.linked(&reply.content[2]).await.text, structure.to_string());
        assert!(fixture.reply(Some(json!({})), value).await.is_error);
    }

    #[tokio::test]
    async fn content_that_fits_is_untouched() {
        let fixture = Fixture::new();
        let blocks = json!([text_block("a"), {"type": "resource", "resource": {"uri": "x://y", "text": "t"}}]);
        let reply = fixture.reply(None, json!({"content": blocks, "structuredContent": {"a": 1}})).await;
        assert_eq!(Value::Array(reply.content), blocks);
        assert_eq!(reply.structured_content, Some(json!({"a": 1})));
    }
}
