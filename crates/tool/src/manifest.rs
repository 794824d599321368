//! `manifest.json`, a tool's description on disk.

use serde::{Deserialize, Deserializer, Serialize, Serializer};
use serde_json::value::RawValue;
use skillz_json::{Map, Value};

use crate::{Example, Limits, Permissions};

/// The kinds of tools.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash, Serialize, Deserialize)]
#[serde(rename_all = "lowercase")]
pub enum ToolKind {
    /// Rust, or any other source, compiled to a WASI module.
    Wasm,
    /// A program of an interpreter.
    Script,
    /// A chain of other tools.
    Pipeline,
    /// A tool of an imported MCP server.
    Mcp,
}

/// How a script is called.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "lowercase")]
pub enum Protocol {
    /// `run(...)` is called in a warm worker.
    Function,
    /// A program gets the arguments as one line of JSON, then the end of its stdin; what it prints is the result.
    Json,
    /// A program that talks JSON-RPC over stdin and stdout while it runs.
    #[serde(alias = "process")]
    JsonRpc,
}

/// What calls of a function script share.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "lowercase")]
pub enum Isolation {
    /// Each call runs in a process of its own, forked from the warm one; the default of Python.
    Call,
    /// Calls run one after another in the warm process and share its state; the default of JavaScript.
    Worker,
}

/// Hints for clients about what a tool does (MCP `ToolAnnotations`).
#[derive(Debug, Clone, PartialEq, Eq, Default, Serialize, Deserialize)]
#[serde(rename_all = "camelCase", deny_unknown_fields)]
pub struct Annotations {
    /// A title for people.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub title: Option<String>,
    /// The tool changes nothing.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub read_only_hint: Option<bool>,
    /// The tool may destroy something.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub destructive_hint: Option<bool>,
    /// Calling it again changes nothing more.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub idempotent_hint: Option<bool>,
    /// The tool reaches beyond this machine.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub open_world_hint: Option<bool>,
}

/// Schemas that a tool's code told of itself at its last publish, kept apart from those that somebody gave.
#[derive(Debug, Clone, PartialEq, Default, Serialize, Deserialize)]
pub struct Inferred {
    /// JSON Schema of the arguments.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub input_schema: Option<Value>,
    /// JSON Schema of the result.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub output_schema: Option<Value>,
}

/// A tool's description. Fields of Skillz 0.8 keep their names and meaning; unknown fields survive in `extra`.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
#[serde(remote = "Self")]
pub struct Manifest {
    /// The tool's name; the folder's name wins where they differ.
    pub name: String,
    /// What the tool does, for the model that chooses it.
    pub description: String,
    /// `major.minor.patch`; absent means 1.0.0.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub version: Option<String>,
    /// The kind; absent means WASM, as in Skillz 0.8.
    #[serde(default = "wasm")]
    pub tool_type: ToolKind,
    /// The source file, relative to the tool's folder.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub entry_file: Option<String>,
    /// The command that runs a script.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub interpreter: Option<String>,
    /// How a script is called; absent means that its code decides.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub protocol: Option<Protocol>,
    /// The command line of a program: texts with references, and pairs that are left out whole.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub argv: Option<Value>,
    /// What calls of a function share; absent means the default of the language.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub isolation: Option<Isolation>,
    /// `$ROOT` for programs that start in the first root; absent means a private, empty folder.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub working_directory: Option<String>,
    /// JSON Schema of the arguments, given or inferred; a file holds the given one.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub input_schema: Option<Value>,
    /// JSON Schema of the result, given or inferred; a file holds the given one.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub output_schema: Option<Value>,
    /// Which of the two are not given but inferred: set by [`Manifest::infer`].
    #[serde(default, skip_serializing_if = "is_default")]
    pub inferred: Inferred,
    /// Hints for clients.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub annotations: Option<Annotations>,
    /// What a script depends on: pip requirements or npm specifiers.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub dependencies: Vec<String>,
    /// Crates that a WASM tool depends on.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub wasm_dependencies: Vec<String>,
    /// The steps of a pipeline.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub pipeline_steps: Option<Value>,
    /// The imported server that an `mcp` tool belongs to.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub mcp_server: Option<Value>,
    /// Calls that show and test the tool.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub examples: Vec<Example>,
    /// What the tool asks for beyond nothing.
    #[serde(default, skip_serializing_if = "is_default")]
    pub permissions: Permissions,
    /// Limits of a call.
    #[serde(default, skip_serializing_if = "is_default")]
    pub limits: Limits,
    /// Services that must run.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub requires_services: Vec<String>,
    /// Words to find the tool by.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub tags: Vec<String>,
    /// Keep the tool in `tools/list` however many there are.
    #[serde(default, skip_serializing_if = "std::ops::Not::not")]
    pub pinned: bool,
    /// The tool is kept but not offered.
    #[serde(default, skip_serializing_if = "std::ops::Not::not")]
    pub disabled: bool,
    /// SHA-256 of manifest and source at the last publish, in hexadecimal.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub hash: Option<String>,
    /// Where an imported tool came from, and how this version came to be.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub source: Option<Value>,
    /// When the tool was first published (RFC 3339).
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub created_at: Option<String>,
    /// When this version was published (RFC 3339).
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub updated_at: Option<String>,
    /// Fields this version of Skillz does not know; kept when the manifest is written.
    #[serde(flatten, skip_deserializing)]
    pub extra: Map<String, Value>,
}

/// The fields above.
const FIELDS: [&str; 29] = [
    "name",
    "description",
    "version",
    "tool_type",
    "entry_file",
    "interpreter",
    "protocol",
    "argv",
    "isolation",
    "working_directory",
    "input_schema",
    "output_schema",
    "inferred",
    "annotations",
    "dependencies",
    "wasm_dependencies",
    "pipeline_steps",
    "mcp_server",
    "examples",
    "permissions",
    "limits",
    "requires_services",
    "tags",
    "pinned",
    "disabled",
    "hash",
    "source",
    "created_at",
    "updated_at",
];

impl Manifest {
    /// Reads a manifest from its text. The error knows the line.
    ///
    /// # Errors
    ///
    /// What `serde_json` says of the text.
    pub fn read(text: &str) -> Result<Self, serde_json::Error> {
        let text = skillz_json::repaired(text);
        // First, since the fields alone could be read from a list as well.
        let mut extra: Map<String, Value> = serde_json::from_str(&text)?;
        let mut deserializer = serde_json::Deserializer::from_str(&text);
        let mut manifest = Self::deserialize(&mut deserializer)?;
        deserializer.end()?;
        extra.retain(|field, _| !FIELDS.contains(&field.as_str()));
        manifest.extra = extra;
        for (schema, inferred) in manifest.schemas() {
            match schema {
                Some(_) => *inferred = None,
                None => schema.clone_from(inferred),
            }
        }
        Ok(manifest)
    }

    /// Takes over the schemas that the code tells of itself now, instead of those that it told before. One that was given
    /// stays.
    pub fn infer(&mut self, input_schema: Option<Value>, output_schema: Option<Value>) {
        for ((schema, inferred), told) in self.schemas().into_iter().zip([input_schema, output_schema]) {
            if schema.is_none() || inferred.is_some() {
                schema.clone_from(&told);
                *inferred = told;
            }
        }
    }

    fn schemas(&mut self) -> [(&mut Option<Value>, &mut Option<Value>); 2] {
        [(&mut self.input_schema, &mut self.inferred.input_schema), (&mut self.output_schema, &mut self.inferred.output_schema)]
    }

    /// A manifest with the required fields only.
    pub fn new(name: impl Into<String>, description: impl Into<String>, tool_type: ToolKind) -> Self {
        Self {
            name: name.into(),
            description: description.into(),
            version: None,
            tool_type,
            entry_file: None,
            interpreter: None,
            protocol: None,
            argv: None,
            isolation: None,
            working_directory: None,
            input_schema: None,
            output_schema: None,
            inferred: Inferred::default(),
            annotations: None,
            dependencies: Vec::new(),
            wasm_dependencies: Vec::new(),
            pipeline_steps: None,
            mcp_server: None,
            examples: Vec::new(),
            permissions: Permissions::default(),
            limits: Limits::default(),
            requires_services: Vec::new(),
            tags: Vec::new(),
            pinned: false,
            disabled: false,
            hash: None,
            source: None,
            created_at: None,
            updated_at: None,
            extra: Map::new(),
        }
    }
}

impl Serialize for Manifest {
    fn serialize<S: Serializer>(&self, serializer: S) -> Result<S::Ok, S::Error> {
        let mut written = self.clone();
        for (schema, inferred) in written.schemas() {
            if inferred.is_some() {
                *schema = None;
            }
        }
        Self::serialize(&written, serializer)
    }
}

impl<'de> Deserialize<'de> for Manifest {
    /// By its text: collecting unknown fields on the way would lose digits of numbers.
    fn deserialize<D: Deserializer<'de>>(deserializer: D) -> Result<Self, D::Error> {
        Self::read(Box::<RawValue>::deserialize(deserializer)?.get()).map_err(serde::de::Error::custom)
    }
}

fn wasm() -> ToolKind {
    ToolKind::Wasm
}

fn is_default<T: Default + PartialEq>(value: &T) -> bool {
    *value == T::default()
}
