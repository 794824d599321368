//! Requests that look at tools and their versions, or compose them.

use serde::Deserialize;
use skillz_json::Value;
use skillz_tool::{Example, Permissions, ToolKind};

/// What to list, and how much of it.
#[derive(Debug, Clone, PartialEq, Default, Deserialize)]
#[serde(deny_unknown_fields, default)]
pub struct ListRequest {
    /// A question in plain words; the answer is then ranked instead of grouped.
    pub query: Option<String>,
    /// Only tools of this kind.
    pub kind: Option<ToolKind>,
    /// Only tools with this tag.
    pub tag: Option<String>,
    /// How much to tell of each tool.
    pub detail: Detail,
    /// Most tools in one answer; 100 by default, 10 with a query, never more than 1,000.
    pub limit: Option<usize>,
    /// `next_cursor` of the answer before.
    pub cursor: Option<String>,
}

/// How much to tell of each tool.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default, Deserialize)]
#[serde(rename_all = "lowercase")]
pub enum Detail {
    /// Its name.
    Names,
    /// Name, description, version.
    #[default]
    Summary,
    /// One line of Python that shows how to call it.
    Signature,
    /// All: schemas, examples, permissions, versions, path.
    Full,
}

/// What to do with the versions of a tool.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum VersionAction {
    /// All versions.
    List,
    /// One version in full; the current one where absent.
    Info {
        /// The version.
        version: Option<String>,
    },
    /// What changed between two versions.
    Diff {
        /// The older side; the version before `to` where absent.
        version: Option<String>,
        /// The newer side; the current version where absent.
        to: Option<String>,
    },
    /// Makes an older version the current one, as a new entry.
    Rollback {
        /// The version; the one before the current one where absent (of a deleted tool the newest).
        version: Option<String>,
    },
}

/// What to do with pipelines.
#[derive(Debug, Clone, PartialEq)]
pub enum PipelineRequest {
    /// Checks the steps and publishes them as a tool.
    Create(Box<PipelineDefinition>),
    /// All pipelines.
    List,
    /// Moves a pipeline to the trash.
    Delete {
        /// The pipeline.
        name: String,
    },
    /// Runs a pipeline and reports each step.
    Run {
        /// The pipeline.
        name: String,
        /// Its arguments, as given.
        arguments: Value,
    },
    /// A pipeline with its steps.
    Show {
        /// The pipeline.
        name: String,
    },
}

/// A pipeline as asked for.
#[derive(Debug, Clone, PartialEq, Default)]
pub struct PipelineDefinition {
    /// The tool's name.
    pub name: String,
    /// What it does.
    pub description: String,
    /// The steps, as given.
    pub steps: Value,
    /// JSON Schema of the arguments.
    pub input_schema: Option<Value>,
    /// Calls that show and test it.
    pub examples: Vec<Example>,
    /// Words to find it by.
    pub tags: Vec<String>,
    /// Replace a tool of that name.
    pub overwrite: bool,
}

/// A program that calls tools.
#[derive(Debug, Clone, PartialEq, Default, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct CodeRequest {
    /// The program.
    pub code: String,
    /// Its language.
    #[serde(default)]
    pub language: CodeLanguage,
    /// The only tools it may call; all where absent.
    #[serde(default)]
    pub tools: Option<Vec<String>>,
    /// Longest run, in seconds; 30 by default.
    #[serde(default)]
    pub timeout: Option<f64>,
    /// Where it runs.
    #[serde(default)]
    pub runtime: CodeRuntimeChoice,
    /// Packages it needs; only with a real interpreter.
    #[serde(default)]
    pub dependencies: Vec<String>,
    /// What it may reach beyond its tools, as for a tool; only with a real interpreter.
    #[serde(default)]
    pub permissions: Permissions,
}

/// Languages of programs that call tools.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default, Deserialize)]
#[serde(rename_all = "lowercase")]
pub enum CodeLanguage {
    /// Python.
    #[default]
    Python,
    /// JavaScript.
    JavaScript,
    /// TypeScript; its types are stripped.
    TypeScript,
}

/// Where a program runs.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default, Deserialize)]
#[serde(rename_all = "lowercase")]
pub enum CodeRuntimeChoice {
    /// A real interpreter in the sandbox where the machine has both, else embedded.
    #[default]
    Auto,
    /// In the server itself, with no access to anything but tools.
    Embedded,
    /// A real interpreter in the sandbox.
    Process,
}
