//! What a run produced, made into what the caller gets: a value for another tool, content for a client.
//!
//! Length is the business of [`crate::long`]; here a result is read, checked against the tool's output
//! schema, and laid out.

use skillz_json::{Value, json};
use skillz_tool::{CompiledSchema, ErrorKind, McpContent, Output, Tool, ToolError, ToolOutcome};

use crate::{CallReply, arguments::list_faults, long, results::ResultStore};

/// A result that was read and checked.
#[derive(Debug, PartialEq)]
pub(crate) struct Finished {
    pub(crate) product: Product,
    /// Sentences for the reader of the result.
    pub(crate) notes: Vec<String>,
}

/// What a tool gave back.
#[derive(Debug, PartialEq)]
pub(crate) enum Product {
    /// A value; text is a string.
    Value(Value),
    /// MCP content, passed on as it is.
    Content(McpContent),
}

/// Whose result is laid out.
#[derive(Debug, Clone, Copy)]
pub(crate) struct Subject<'a> {
    pub(crate) name: &'a str,
    /// Whether clients demand a structured value that fits a schema.
    pub(crate) has_output_schema: bool,
}

impl<'a> From<&'a Tool> for Subject<'a> {
    fn from(tool: &'a Tool) -> Self {
        Self { name: tool.name.as_str(), has_output_schema: tool.output_schema.is_some() }
    }
}

/// Reads what a run produced and checks it against the tool's output schema.
pub(crate) fn finish(tool: &Tool, outcome: ToolOutcome) -> Result<Finished, ToolError> {
    let ToolOutcome { output, mut notes } = outcome;
    let value = match output {
        Output::Content(content) => return finish_content(tool, content, notes),
        Output::Value(value) => value,
        Output::Printed(text) => read_printed(tool.name.as_str(), text, tool.output_schema.as_ref())?,
    };
    let faults = output_faults(tool, &value)?;
    // A schema may describe a value of that very form; what fits it and has nothing else of MCP's is such a value.
    let described = tool.output_schema.is_some() && faults.is_none();
    match McpContent::recognise(&value) {
        Some(Ok(content)) if !described || content.is_error || content.structured_content.is_some() => {
            return finish_content(tool, content, notes);
        }
        Some(Err(error)) => notes.push(format!("The value looks like MCP content but is none, so it stands as it is: {error}")),
        Some(Ok(_)) | None => {}
    }
    match faults {
        Some(faults) => Err(breaks_schema(tool, &faults)),
        None => Ok(Finished { product: Product::Value(value), notes }),
    }
}

/// The whole value, for another tool: the structured value, or the text.
pub(crate) fn whole(tool: &Tool, finished: Finished) -> Result<Value, ToolError> {
    match finished.product {
        Product::Content(content) if content.is_error => Err(content_failure(tool.name.as_str(), &content)),
        Product::Value(value) | Product::Content(McpContent { structured_content: Some(value), .. }) => Ok(value),
        Product::Content(content) => {
            let has_text = content.content.iter().any(|block| block.get("text").is_some());
            if has_text { Ok(Value::String(content.text())) } else { Ok(json!({"content": content.content})) }
        }
    }
}

/// A reply for a client, at most `max_bytes` of text in it, and the size of the whole result.
pub(crate) async fn reply(tool: &Tool, finished: Finished, max_bytes: usize, results: &ResultStore) -> (CallReply, u64) {
    let subject = Subject::from(tool);
    let (mut reply, bytes) = match finished.product {
        Product::Value(value) => value_reply(subject, value, max_bytes, results).await,
        Product::Content(content) => {
            let parts = content.content.iter().chain(&content.structured_content);
            let bytes = parts.map(Value::written_length).sum::<usize>() as u64;
            (content_reply(subject, content, max_bytes, results).await, bytes)
        }
    };
    reply.content.extend(finished.notes.into_iter().map(text_block));
    (reply, bytes)
}

/// A text block.
pub(crate) fn text_block(text: impl Into<String>) -> Value {
    // By hand, since the macro would write and read the text, which may be long.
    let members = [("type", Value::from("text")), ("text", Value::String(text.into()))];
    Value::Object(members.into_iter().map(|(name, value)| (name.to_owned(), value)).collect())
}

/// A reply that carries one value, and the size of the value as text.
pub(crate) async fn value_reply(subject: Subject<'_>, value: Value, max_bytes: usize, results: &ResultStore) -> (CallReply, u64) {
    let (text, mime_type, value) = match value {
        Value::String(text) if !subject.has_output_schema => (text, "text/plain", None),
        Value::String(text) => (text.clone(), "text/plain", Some(Value::String(text))),
        value => (value.to_string(), "application/json", Some(value)),
    };
    let bytes = text.len() as u64;
    if text.len() > max_bytes {
        return (long::text_reply(subject, text, mime_type, max_bytes, results).await, bytes);
    }
    let mut reply = CallReply::of_content(vec![text_block(text)]);
    match value {
        Some(value @ Value::Object(_)) => reply.structured_content = Some(value),
        other if subject.has_output_schema => reply.other_value = other,
        _ => {}
    }
    (reply, bytes)
}

async fn content_reply(subject: Subject<'_>, content: McpContent, max_bytes: usize, results: &ResultStore) -> CallReply {
    let failure = content.is_error.then(|| content_failure(subject.name, &content));
    let mut reply = long::content_reply(subject, content, max_bytes, results).await;
    if failure.is_some() {
        reply.is_error = true;
        reply.failure = failure;
    }
    reply
}

fn content_failure(name: &str, content: &McpContent) -> ToolError {
    let text = content.text();
    let message = if text.trim().is_empty() { format!("`{name}` failed and did not say why") } else { text };
    ToolError::failed(message)
}

fn finish_content(tool: &Tool, content: McpContent, notes: Vec<String>) -> Result<Finished, ToolError> {
    if tool.output_schema.is_some() && !content.is_error {
        let Some(structured) = &content.structured_content else {
            let message = format!(
                "`{}` has an `output_schema`, but returned MCP content without `structuredContent`, which clients then require",
                tool.name
            );
            return Err(ToolError::failed(message)
                .with_hint("Return `structuredContent` beside `content`, or publish the tool without `output_schema`"));
        };
        if let Some(faults) = output_faults(tool, structured)? {
            return Err(breaks_schema(tool, &faults));
        }
    }
    Ok(Finished { product: Product::Content(content), notes })
}

/// What a program printed: JSON if the whole of it is an object or array (with an output schema, any JSON),
/// else text without its last line break.
///
/// # Errors
///
/// JSON that nests too deep, or holds a whole number of too many digits.
fn read_printed(name: &str, mut text: String, output_schema: Option<&CompiledSchema>) -> Result<Value, ToolError> {
    let looks_like_container = text.trim_start().starts_with(['{', '[']);
    if looks_like_container || output_schema.is_some() {
        let parsed = skillz_json::parse(&text);
        if let Some(error) = parsed.as_ref().err().filter(|error| error.is_out_of_bounds) {
            return Err(ToolError::failed(format!("What `{name}` printed is JSON that cannot be taken: {error}"))
                .with_hint("Return a flatter value, or text"));
        }
        // Broken text simply stays text.
        if let Ok(value) = parsed {
            let fits = output_schema.is_none_or(|schema| schema.violations(&value).is_ok_and(|faults| faults.is_empty()));
            if looks_like_container || fits {
                return Ok(value);
            }
            let as_text = without_last_line_break(text);
            let as_text = Value::String(as_text);
            let text_fits = output_schema.is_some_and(|schema| schema.violations(&as_text).is_ok_and(|faults| faults.is_empty()));
            return Ok(if text_fits { as_text } else { value });
        }
    }
    if text.ends_with('\n') {
        text = without_last_line_break(text);
    }
    Ok(Value::String(text))
}

fn without_last_line_break(mut text: String) -> String {
    if text.ends_with('\n') {
        text.pop();
        if text.ends_with('\r') {
            text.pop();
        }
    }
    text
}

/// The faults of a value by the tool's output schema, as lines; `None` where it fits or there is no schema.
fn output_faults(tool: &Tool, value: &Value) -> Result<Option<String>, ToolError> {
    let Some(schema) = &tool.output_schema else { return Ok(None) };
    let mut faults = schema.violations(value).map_err(|error| {
        let message = format!("The `output_schema` in the manifest of `{}` cannot be used: {error}", tool.name);
        ToolError::new(ErrorKind::Config, message)
    })?;
    faults.truncate(20);
    Ok((!faults.is_empty()).then(|| list_faults(&faults)))
}

fn breaks_schema(tool: &Tool, faults: &str) -> ToolError {
    ToolError::failed(format!("The result of `{}` breaks its `output_schema`:{faults}", tool.name))
        .with_hint("Make the tool return what its `output_schema` says, or publish it with a schema that fits")
}

#[cfg(test)]
mod tests {
    use skillz_tool::{Manifest, ToolKind, ToolName, Version};

    use super::*;

    pub(crate) fn tool(output_schema: Option<Value>) -> Tool {
        let mut manifest = Manifest::new("probe", "Probes", ToolKind::Script);
        manifest.output_schema = output_schema;
        let name = ToolName::for_new("probe").expect("valid");
        Tool::new(name, Version::FIRST, "/nowhere".into(), manifest, "hash".into())
    }

    fn printed(text: &str, output_schema: Option<Value>) -> Result<Product, ToolError> {
        finish(&tool(output_schema), ToolOutcome::printed(text)).map(|finished| finished.product)
    }

    #[test]
    fn printed_text_is_json_only_as_a_whole_object_or_array() {
        for (text, value) in [
            ("{\"a\": 1}\n", json!({"a": 1})),
            (" [1, 2] ", json!([1, 2])),
            ("42\n", json!("42")),
            ("true", json!("true")),
            ("\"quoted\"\n", json!("\"quoted\"")),
            ("hello\n", json!("hello")),
            ("hello\r\n", json!("hello")),
            ("two\n\n", json!("two\n")),
            ("{\"a\": 1} and more", json!("{\"a\": 1} and more")),
            ("{\"a\":1}\n{\"a\":2}\n", json!("{\"a\":1}\n{\"a\":2}")),
            ("", json!("")),
            ("\n", json!("")),
            ("{\"n\":9007199254740993}", json!({"n": 9_007_199_254_740_993_i64})),
        ] {
            assert_eq!(printed(text, None), Ok(Product::Value(value)), "{text:?}");
        }
        for text in ["[".repeat(5_000), format!("[{}]", "9".repeat(5_000))] {
            assert!(printed(&text, None).is_err(), "{text}");
        }
    }

    #[test]
    fn with_an_output_schema_any_json_counts() {
        for (text, schema, value) in [
            ("42\n", json!({"type": "integer"}), json!(42)),
            ("null", json!({}), Value::Null),
            ("hello\n", json!({"type": "string"}), json!("hello")),
            ("42\n", json!({"type": "string"}), json!("42")),
            ("\"x\"", json!({"type": "string"}), json!("x")),
        ] {
            assert_eq!(printed(text, Some(schema)), Ok(Product::Value(value)), "{text:?}");
        }
        let error = printed("{\"n\": \"x\"}", Some(json!({"properties": {"n": {"type": "integer"}}}))).expect_err("breaks it");
        assert!(error.message.starts_with("The result of `probe` breaks its `output_schema`:\n- `/n`: "), "{error}");
        assert!(printed("no json", Some(json!({"type": "object"}))).is_err());
    }

    #[test]
    fn content_is_passed_on_and_lookalikes_stay_values() {
        let content = json!({"content": [{"type": "text", "text": "a"}], "isError": true});
        let finished = finish(&tool(None), ToolOutcome::value(content)).expect("content");
        assert!(matches!(&finished.product, Product::Content(content) if content.is_error));
        let error = whole(&tool(None), finished).expect_err("a failure of the tool");
        assert_eq!(error.message, "a");

        let lookalike = json!({"content": [{"type": "paragraph"}]});
        let finished = finish(&tool(None), ToolOutcome::value(lookalike.clone())).expect("a value");
        assert_eq!(finished.product, Product::Value(lookalike));
        assert_eq!(finished.notes.len(), 1);
    }

    #[test]
    fn content_answers_to_the_output_schema_too() {
        let schema = Some(json!({"type": "object", "required": ["n"]}));
        let finish = |value| finish(&tool(schema.clone()), ToolOutcome::value(value)).map(|finished| finished.product);
        let text = json!([{"type": "text", "text": "a"}]);
        assert!(finish(json!({"content": text})).is_err(), "clients demand the structured value");
        assert!(finish(json!({"content": text, "structuredContent": {"m": 1}})).is_err());
        assert!(finish(json!({"content": text, "structuredContent": {"n": 1}})).is_ok());
        assert!(finish(json!({"content": text, "isError": true})).is_ok(), "a failure needs no structured value");
        let of_content = Some(json!({"type": "object", "required": ["content"]}));
        let value = json!({"content": [{"type": "text", "text": "a"}]});
        let finished = super::finish(&tool(of_content), ToolOutcome::value(value.clone())).expect("fits");
        assert_eq!(finished.product, Product::Value(value), "what fits the schema is the value it describes");
    }

    #[test]
    fn other_tools_get_the_structured_value_or_the_text() {
        for (value, expected) in [
            (json!({"a": 1}), json!({"a": 1})),
            (json!("text"), json!("text")),
            (json!([1]), json!([1])),
            (json!({"content": [{"type": "text", "text": "a"}, {"type": "text", "text": "b"}]}), json!("a\nb")),
            (json!({"content": [{"type": "text", "text": "a"}], "structuredContent": {"x": 1}}), json!({"x": 1})),
            (
                json!({"content": [{"type": "image", "data": "aGk=", "mimeType": "image/png"}]}),
                json!({"content": [{"type": "image", "data": "aGk=", "mimeType": "image/png"}]}),
            ),
        ] {
            let finished = finish(&tool(None), ToolOutcome::value(value)).expect("fine");
            assert_eq!(whole(&tool(None), finished), Ok(expected));
        }
    }

    #[tokio::test]
    async fn values_become_text_and_structure() {
        let results = ResultStore::new("/nowhere".into());
        for (value, schema, text, structured, other) in [
            (json!({"a": [1, 2]}), None, "{\"a\":[1,2]}", Some(json!({"a": [1, 2]})), None),
            (json!("as it is\n"), None, "as it is\n", None, None),
            (json!([1]), None, "[1]", None, None),
            (json!(null), None, "null", None, None),
            (json!([1]), Some(json!({"type": "array"})), "[1]", None, Some(json!([1]))),
            (json!("s"), Some(json!({"type": "string"})), "s", None, Some(json!("s"))),
        ] {
            let tool = tool(schema);
            let finished = finish(&tool, ToolOutcome::value(value)).expect("fine");
            let (reply, bytes) = reply(&tool, finished, 100, &results).await;
            assert_eq!(reply.content, [text_block(text)]);
            assert_eq!((reply.structured_content, reply.other_value), (structured, other));
            assert_eq!(bytes, text.len() as u64);
            assert!(!reply.is_error);
        }
    }

    #[tokio::test]
    async fn notes_follow_the_content() {
        let outcome = ToolOutcome { notes: vec!["Bytes were replaced".to_owned()], ..ToolOutcome::printed("x") };
        let finished = finish(&tool(None), outcome).expect("fine");
        let (reply, _) = reply(&tool(None), finished, 100, &ResultStore::new("/nowhere".into())).await;
        assert_eq!(reply.content, [text_block("x"), text_block("Bytes were replaced")]);
    }
}
