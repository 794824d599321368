//! What a pipeline must know of the tools that its steps name.

use std::sync::Arc;

use skillz_json::Value;
use skillz_tool::Tool;

/// The tools that steps may call, seen when a pipeline is made.
pub trait Catalogue: Send + Sync {
    /// A tool by its name.
    fn find(&self, name: &str) -> Option<Arc<Tool>>;

    /// Names that resemble one that does not exist, the closest first.
    fn closest(&self, name: &str) -> Vec<String>;
}

/// What the checks read of a tool.
#[derive(Debug, Clone, Copy)]
pub struct CatalogueTool<'a> {
    /// JSON Schema of the arguments.
    pub input_schema: &'a Value,
    /// JSON Schema of the result, where it is known.
    pub output_schema: Option<&'a Value>,
    /// The steps, where the tool is a pipeline.
    pub steps: Option<&'a Value>,
}

impl<'a> From<&'a Tool> for CatalogueTool<'a> {
    fn from(tool: &'a Tool) -> Self {
        Self {
            input_schema: tool.input_schema.as_value(),
            output_schema: tool.manifest.output_schema.as_ref(),
            steps: tool.manifest.pipeline_steps.as_ref(),
        }
    }
}
