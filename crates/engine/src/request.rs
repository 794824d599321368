//! What goes into the engine and what comes out.

use std::sync::Arc;

use serde::Serialize;
use skillz_json::Value;
use skillz_tool::{ExampleFailure, Manifest, Origin, Protocol, SourceCode, ToolError, ToolKind, Version};

use crate::{ClientPort, shape::text_block};

/// One call as it arrives.
#[derive(Clone)]
pub struct CallRequest {
    /// The tool's name, as given.
    pub tool_name: String,
    /// An older version to call; the current one where absent.
    pub version: Option<String>,
    /// Arguments as given: an object; `null` counts as `{}`; anything else is a fault that the reply tells.
    pub arguments: Value,
    /// Whoever made the call.
    pub client: Arc<dyn ClientPort>,
}

/// A shaped result, ready for a client. A tool's failure is a reply too, with `is_error`.
#[derive(Debug, Clone, PartialEq)]
pub struct CallReply {
    /// MCP content blocks.
    pub content: Vec<Value>,
    /// The structured value, where there is one.
    pub structured_content: Option<Value>,
    /// The value itself where it is no object and the tool has an output schema: since 2026-07-28 it is the
    /// structured value too.
    pub other_value: Option<Value>,
    /// Whether the call failed.
    pub is_error: bool,
    /// The failure behind `is_error`, where the engine knows it: for exit codes and for callers that are no MCP clients.
    pub failure: Option<ToolError>,
    /// What else the tool's result carries for the client (MCP's `_meta`).
    pub meta: Option<Value>,
}

impl CallReply {
    /// A reply of content blocks only.
    pub fn of_content(content: Vec<Value>) -> Self {
        Self { content, structured_content: None, other_value: None, is_error: false, failure: None, meta: None }
    }

    /// The reply that tells of a failure.
    pub fn failed(error: ToolError) -> Self {
        Self { is_error: true, content: vec![text_block(error.text())], failure: Some(error), ..Self::of_content(Vec::new()) }
    }

    /// All text blocks, joined by line breaks.
    pub fn text(&self) -> String {
        let texts: Vec<&str> = self.content.iter().filter_map(|block| block.get("text").and_then(Value::as_str)).collect();
        texts.join("\n")
    }
}

/// A call that could not even begin.
#[derive(Debug, Clone, PartialEq, thiserror::Error)]
pub enum CallFailure {
    /// No such tool. Clients get JSON-RPC error -32602 with this text, which names the closest tools.
    #[error("{message}")]
    UnknownTool {
        /// What was asked for and what is close to it.
        message: String,
    },
}

/// A new version of a tool, from whichever built-in it comes.
#[derive(Clone)]
pub struct PublishRequest {
    /// The manifest as asked for: name, description, schemas, examples, permissions and so on.
    pub manifest: Manifest,
    /// What to make the tool from.
    pub source: SourceCode,
    /// How the version comes to be.
    pub origin: Origin,
    /// Replace a tool of that name; without it an existing one is an error.
    pub overwrite: bool,
    /// Check, compile and run the examples, and publish nothing.
    pub dry_run: bool,
    /// Whoever asked.
    pub client: Arc<dyn ClientPort>,
}

/// What a publish did. Serialises to the built-ins' result.
#[derive(Debug, Clone, PartialEq, Serialize)]
pub struct PublishReport {
    /// The tool.
    pub name: String,
    /// The version that is current now (or would be, in a dry run).
    pub version: Version,
    /// Its kind.
    pub kind: ToolKind,
    /// How a script is called.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub protocol: Option<Protocol>,
    /// How it is called from code, where its schema was made of the code.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub signature: Option<String>,
    /// Size of the source, or of the module, in bytes.
    pub size_bytes: u64,
    /// How long it took to build, in milliseconds.
    pub build_ms: u64,
    /// Its examples.
    pub examples: ExampleCounts,
    /// Whether nothing was published because a dry run was asked for.
    #[serde(skip_serializing_if = "std::ops::Not::not")]
    pub dry_run: bool,
    /// Sentences worth reading, such as compiler warnings.
    #[serde(skip_serializing_if = "Vec::is_empty")]
    pub notes: Vec<String>,
}

/// How examples went.
#[derive(Debug, Clone, PartialEq, Default, Serialize)]
pub struct ExampleCounts {
    /// Examples that held.
    pub passed: usize,
    /// Examples that did not.
    pub failed: usize,
    /// What was expected and what came, for those that did not.
    #[serde(skip_serializing_if = "Vec::is_empty")]
    pub failures: Vec<ExampleFailure>,
}

/// What a deletion did.
#[derive(Debug, Clone, PartialEq, Serialize)]
pub struct DeleteReport {
    /// The tool that is gone.
    pub deleted: String,
    /// How many versions went to the trash with it.
    pub versions_kept: usize,
    /// The call that brings it back.
    pub restore: String,
}
