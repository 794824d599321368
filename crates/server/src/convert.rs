//! Between the domain's types and the protocol's: the only place that knows both.

#![expect(deprecated, reason = "clients still want log messages")]

use std::sync::Arc;

use rmcp::model::{CallToolResult, ContentBlock, LoggingLevel, ResultType, Tool as McpTool, ToolAnnotations};
use serde::Deserialize;
use skillz_engine::CallReply;
use skillz_json::{Map, Value, wire};
use skillz_tool::{Annotations, LogLevel, Tool, ToolError, ToolKind};

use crate::{
    builtin::{Builtin, Hints},
    schema_form::{Describes, Form, client_form},
};

/// A tool as clients of an era see it.
pub(crate) fn tool(tool: &Tool, form: Form) -> McpTool {
    let manifest = &tool.manifest;
    let description = manifest.description.trim();
    // Some clients refuse a whole list over one tool without a description.
    let description = if description.is_empty() { tool.name.to_string() } else { description.to_owned() };
    let input = wire::enter_members(client_form(tool.input_schema.as_value(), form, Describes::Input));
    let mut converted = McpTool::new(tool.name.to_string(), description, Arc::new(input));
    if let Some(schema) = &tool.output_schema {
        converted.output_schema = output_schema(schema.as_value(), form).map(|schema| Arc::new(wire::enter_members(schema)));
    }
    if let Some(annotations) = &manifest.annotations {
        converted.title.clone_from(&annotations.title);
        converted.annotations = Some(tool_annotations(annotations));
    }
    if tool.kind() == ToolKind::Mcp {
        pass_on(&mut converted, &manifest.extra);
    }
    converted
}

/// What the server of an imported tool says of it beside what every tool has; a part of a wrong form is left out.
fn pass_on(converted: &mut McpTool, said: &Map<String, Value>) {
    fn read<T: for<'a> Deserialize<'a>>(value: Option<&Value>) -> Option<T> {
        skillz_json::read(value?).ok()
    }
    converted.title = read(said.get("title"));
    converted.icons = read(said.get("icons"));
    converted.meta = read(said.get("_meta"));
}

/// Results other than objects have a schema only since 2026-07-28.
fn output_schema(schema: &Value, form: Form) -> Option<Map<String, Value>> {
    let object = client_form(schema, Form::Modern, Describes::Output);
    match form {
        Form::Modern => Some(object),
        Form::Legacy if object.get("type").is_some_and(|name| name == "object") => {
            Some(client_form(schema, form, Describes::Output))
        }
        Form::Legacy => None,
    }
}

fn tool_annotations(annotations: &Annotations) -> ToolAnnotations {
    ToolAnnotations::from_raw(
        annotations.title.clone(),
        annotations.read_only_hint,
        annotations.destructive_hint,
        annotations.idempotent_hint,
        annotations.open_world_hint,
    )
}

/// A built-in as all clients see it.
pub(crate) fn builtin(builtin: &Builtin) -> McpTool {
    let schema = wire::enter_members(builtin.schema().as_value().as_object().cloned().unwrap_or_default());
    McpTool::new(builtin.name, builtin.description, Arc::new(schema)).with_annotations(match builtin.hints {
        Hints::ReadOnly => ToolAnnotations::new().read_only(true).open_world(false),
        Hints::Changes => ToolAnnotations::new().destructive(false).open_world(false),
        Hints::Destroys => ToolAnnotations::new().destructive(true).open_world(false),
        Hints::OpenWorld => ToolAnnotations::new().open_world(true),
    })
}

/// A shaped result as clients of an era get it.
pub(crate) fn call_result(reply: CallReply, form: Form) -> CallToolResult {
    let content = reply.content.into_iter().map(content_block).collect();
    let mut result = if reply.is_error { CallToolResult::error(content) } else { CallToolResult::success(content) };
    let structured_content = match form {
        Form::Modern => reply.structured_content.or(reply.other_value),
        Form::Legacy => reply.structured_content,
    };
    result.structured_content = structured_content.map(wire::enter);
    result.meta = reply.meta.and_then(|meta| serde_json::from_value(wire::enter(meta)).ok());
    // Proxied results lack it, and newer clients insist; the SDK takes it off again for older ones.
    result.result_type = Some(ResultType::COMPLETE);
    result
}

/// A failure as a result that the model reads.
pub(crate) fn error_result(error: &ToolError) -> CallToolResult {
    CallToolResult::error(vec![ContentBlock::text(error.text())])
}

/// The engine has checked blocks already; one that still does not fit is shown as what it is.
fn content_block(block: Value) -> ContentBlock {
    let block = wire::enter(block);
    ContentBlock::deserialize(&block).unwrap_or_else(|_| ContentBlock::text(block.to_string()))
}

/// The protocol's level for the domain's.
pub(crate) fn logging_level(level: LogLevel) -> LoggingLevel {
    match level {
        LogLevel::Debug => LoggingLevel::Debug,
        LogLevel::Info => LoggingLevel::Info,
        LogLevel::Notice => LoggingLevel::Notice,
        LogLevel::Warning => LoggingLevel::Warning,
        LogLevel::Error => LoggingLevel::Error,
        LogLevel::Critical => LoggingLevel::Critical,
        LogLevel::Alert => LoggingLevel::Alert,
        LogLevel::Emergency => LoggingLevel::Emergency,
    }
}

/// The domain's level for the protocol's.
pub(crate) fn log_level(level: LoggingLevel) -> LogLevel {
    match level {
        LoggingLevel::Debug => LogLevel::Debug,
        LoggingLevel::Info => LogLevel::Info,
        LoggingLevel::Notice => LogLevel::Notice,
        LoggingLevel::Warning => LogLevel::Warning,
        LoggingLevel::Error => LogLevel::Error,
        LoggingLevel::Critical => LogLevel::Critical,
        LoggingLevel::Alert => LogLevel::Alert,
        LoggingLevel::Emergency => LogLevel::Emergency,
    }
}

/// What a log message carries: its text, or an object where there is data beside it.
pub(crate) fn log_data(message: String, data: Option<Value>) -> Value {
    match data {
        None => Value::String(message),
        Some(data) if message.is_empty() => data,
        Some(data) => Value::Object(Map::from_iter([("message".to_owned(), Value::String(message)), ("data".to_owned(), data)])),
    }
}
