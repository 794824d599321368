//! `skillz call NAME [key=value ...] [--json -]`

#![allow(clippy::indexing_slicing, reason = "JSON values are indexed by name, which gives null where there is nothing")]

use std::io::Read;

use anyhow::Context as _;
use clap::Args;
use skillz_engine::{CallFailure, CallReply, CallRequest};
use skillz_json::{Map, Value, json};
use skillz_tool::ErrorKind;

use crate::{
    context::Context,
    report::{Failure, Status},
};

#[derive(Debug, Args)]
pub(crate) struct CallArguments {
    /// The tool.
    name: String,
    /// Arguments. A value is read as JSON where it is JSON and the tool's schema does not want a text.
    #[arg(value_name = "KEY=VALUE")]
    pairs: Vec<String>,
    /// All arguments as one JSON object; `-` reads it from stdin. Pairs given besides go on top.
    #[arg(long, value_name = "JSON")]
    json: Option<String>,
    /// Call an older version.
    #[arg(long, value_name = "VERSION")]
    version_to_call: Option<String>,
}

pub(crate) fn run(arguments: CallArguments, context: &Context) -> anyhow::Result<()> {
    let given = given_object(arguments.json.as_deref())?;
    context.with_engine(|engine| async move {
        let schema = engine.catalog().get(&arguments.name).and_then(|tool| tool.manifest.input_schema.clone());
        let values = with_pairs(given, &arguments.pairs, schema.as_ref())?;
        let request = CallRequest {
            tool_name: arguments.name,
            version: arguments.version_to_call,
            arguments: values,
            client: context.client(),
        };
        match engine.call(request).await {
            Ok(reply) => answer(reply, context),
            Err(CallFailure::UnknownTool { message }) => Err(Failure::not_found(message).into()),
        }
    })
}

fn given_object(json: Option<&str>) -> anyhow::Result<Value> {
    let text = match json {
        None => return Ok(Value::Object(Map::new())),
        Some("-") => {
            let mut text = String::new();
            std::io::stdin().lock().read_to_string(&mut text).context("The arguments could not be read from stdin")?;
            text
        }
        Some(text) => text.to_owned(),
    };
    let (arguments, faults) = skillz_json::parse_strictly(&text)
        .map_err(|error| Failure::wrong_use(format!("The arguments of --json are not valid JSON: {error}")))?;
    match faults.first() {
        Some(fault) => Err(Failure::wrong_use(format!("`{}` in --json: {}", fault.path, fault.message)).into()),
        None => Ok(arguments),
    }
}

fn with_pairs(mut given: Value, pairs: &[String], schema: Option<&Value>) -> Result<Value, Failure> {
    if pairs.is_empty() {
        return Ok(given);
    }
    let Some(object) = given.as_object_mut() else {
        return Err(Failure::wrong_use("--json must be an object where pairs are given besides"));
    };
    for pair in pairs {
        let Some((key, text)) = pair.split_once('=') else {
            return Err(Failure::wrong_use(format!("`{pair}` is no argument; write it as key=value")));
        };
        let wants_text = schema.is_some_and(|schema| wants_text(&schema["properties"][key]));
        let value = if wants_text { Value::from(text) } else { serde_json::from_str(text).unwrap_or_else(|_| Value::from(text)) };
        object.insert(key.to_owned(), value);
    }
    Ok(given)
}

/// Whether a property takes texts, so that `7` is a text for it and no number.
fn wants_text(property: &Value) -> bool {
    match &property["type"] {
        Value::String(kind) => kind == "string",
        Value::Array(kinds) => kinds.iter().any(|kind| kind == "string"),
        _ => property["enum"].as_array().is_some_and(|values| values.iter().all(Value::is_string)),
    }
}

fn answer(reply: CallReply, context: &Context) -> anyhow::Result<()> {
    if context.printer.is_json() {
        let mut result = json!({"content": reply.content, "isError": reply.is_error});
        if let Some(structured) = &reply.structured_content {
            result["structuredContent"] = structured.clone();
        }
        context.printer.print(&result, |_| String::new())?;
    }
    let text = text(&reply.content);
    if !reply.is_error {
        return if context.printer.is_json() { Ok(()) } else { Ok(context.printer.text(&text)?) };
    }
    match reply.failure {
        // Whoever calls a tool that is not there, or must not be called, did not see the tool fail.
        Some(failure) if !matches!(failure.kind, ErrorKind::Config) => Err(Failure::from(failure).into()),
        _ => Err(Failure::new(Status::ToolFailed, text).into()),
    }
}

/// Text blocks as they are, others by what they are.
fn text(content: &[Value]) -> String {
    let blocks: Vec<String> = content.iter().map(block).collect();
    blocks.join("\n")
}

fn block(block: &Value) -> String {
    let field = |name: &str| block[name].as_str().unwrap_or_default();
    match field("type") {
        "text" => field("text").to_owned(),
        "image" | "audio" => format!("[{} {}, {} bytes of base64]", field("type"), field("mimeType"), field("data").len()),
        "resource_link" => format!("[{}]", field("uri")),
        "resource" => {
            let resource = &block["resource"];
            let uri = resource["uri"].as_str().unwrap_or_default();
            resource["text"].as_str().map_or_else(|| format!("[{uri}]"), str::to_owned)
        }
        _ => block.to_string(),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn pairs_become_what_the_schema_wants() {
        let schema =
            json!({"properties": {"id": {"type": "string"}, "size": {"type": ["string", "null"]}, "n": {"type": "integer"}}});
        let pairs = ["id=7", "size=8", "n=9", "free=true", "words=a=b", "list=[1,2]"].map(str::to_owned);
        let values = with_pairs(json!({"kept": 1}), &pairs, Some(&schema)).expect("pairs");
        assert_eq!(values, json!({"kept": 1, "id": "7", "size": "8", "n": 9, "free": true, "words": "a=b", "list": [1, 2]}));
        assert!(with_pairs(json!({}), &["nothing".to_owned()], None).is_err());
        assert_eq!(with_pairs(Value::Null, &[], None).expect("passed on as it is"), Value::Null);
    }

    #[test]
    fn blocks_that_are_no_text_are_named() {
        let content = [
            json!({"type": "text", "text": "hello"}),
            json!({"type": "image", "mimeType": "image/png", "data": "aGk="}),
            json!({"type": "resource_link", "uri": "skillz://results/1", "name": "all"}),
        ];
        assert_eq!(text(&content), "hello\n[image image/png, 4 bytes of base64]\n[skillz://results/1]");
    }
}
