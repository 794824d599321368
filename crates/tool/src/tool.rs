//! A tool as the registry holds it.

use std::path::{Component, Path, PathBuf};

use crate::{CompiledSchema, Manifest, ToolError, ToolKind, ToolName, Version};

/// How a version came to be.
#[derive(Debug, Clone, Copy, PartialEq, Eq, serde::Serialize, serde::Deserialize)]
#[serde(rename_all = "lowercase")]
pub enum Origin {
    /// `build_tool`.
    Build,
    /// `register_script`.
    Register,
    /// The `pipeline` built-in.
    Pipeline,
    /// `import_tool`.
    Import,
    /// `version` with action rollback.
    Rollback,
    /// A file was changed by hand.
    Edit,
}

/// A loaded tool: one version of it, in one folder. Cheap to share behind an `Arc`; never changes.
#[derive(Debug)]
pub struct Tool {
    /// The tool's name, which is its folder's.
    pub name: ToolName,
    /// This version.
    pub version: Version,
    /// The folder that holds manifest and source of this version.
    pub directory: PathBuf,
    /// The manifest as it stands on disk.
    pub manifest: Manifest,
    /// SHA-256 of manifest and source, in hexadecimal.
    pub hash: String,
    /// Arguments are checked against this.
    pub input_schema: CompiledSchema,
    /// Results are checked against this, where there is one.
    pub output_schema: Option<CompiledSchema>,
}

impl Tool {
    /// Puts a tool together from its manifest; the schemas are compiled at their first use.
    pub fn new(name: ToolName, version: Version, directory: PathBuf, manifest: Manifest, hash: String) -> Self {
        let input = manifest.input_schema.clone().unwrap_or_else(|| skillz_json::json!({"type": "object"}));
        let output_schema = manifest.output_schema.clone().map(CompiledSchema::new);
        Self { name, version, directory, manifest, hash, input_schema: CompiledSchema::new(input), output_schema }
    }

    /// The kind of the tool.
    pub fn kind(&self) -> ToolKind {
        self.manifest.tool_type
    }

    /// The source file, where the kind has one. Refuses an `entry_file` that leads out of the folder.
    pub fn source_path(&self) -> Result<PathBuf, ToolError> {
        let entry = match (&self.manifest.entry_file, self.manifest.tool_type) {
            (Some(entry), _) => entry.as_str(),
            (None, ToolKind::Wasm) => "src.rs",
            (None, _) => {
                return Err(ToolError::new(
                    crate::ErrorKind::Config,
                    format!("The manifest of `{}` names no `entry_file`", self.name),
                ));
            }
        };
        let plain = Path::new(entry).components().all(|part| matches!(part, Component::Normal(_)));
        if !plain || entry.is_empty() {
            let message = format!("The `entry_file` `{entry}` of `{}` does not stay in the tool's folder", self.name);
            return Err(ToolError::new(crate::ErrorKind::Denied, message));
        }
        Ok(self.directory.join(entry))
    }

    /// The compiled module of a WASM tool.
    pub fn module_path(&self) -> PathBuf {
        self.directory.join(format!("{}.wasm", self.name))
    }
}
