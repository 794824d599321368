//! What `build_tool` and `register_script` have in common: everything but the source.

use serde::Deserialize;
use skillz_engine::PublishRequest;
use skillz_json::Value;
use skillz_tool::{Annotations, Example, Limits, Manifest, Origin, Permissions, SourceCode, ToolKind};

use super::{BuiltinCall, BuiltinOutcome, BuiltinReply};

/// Arguments that describe a tool, whatever it is made from.
#[derive(Debug, Deserialize)]
pub(super) struct Described {
    name: String,
    description: String,
    #[serde(default)]
    input_schema: Option<Value>,
    #[serde(default)]
    output_schema: Option<Value>,
    #[serde(default)]
    annotations: Option<Annotations>,
    #[serde(default)]
    examples: Vec<Example>,
    #[serde(default)]
    permissions: Permissions,
    #[serde(default)]
    limits: Limits,
    #[serde(default)]
    tags: Vec<String>,
    #[serde(default)]
    pinned: bool,
    #[serde(default)]
    overwrite: bool,
    #[serde(default)]
    dry_run: bool,
}

impl Described {
    /// Publishes the tool; `complete` fills in what its kind has beyond this.
    pub(super) async fn publish(
        self,
        call: BuiltinCall,
        (kind, origin): (ToolKind, Origin),
        source: SourceCode,
        complete: impl FnOnce(&mut Manifest),
    ) -> BuiltinOutcome {
        let mut manifest = Manifest {
            input_schema: self.input_schema,
            output_schema: self.output_schema,
            annotations: self.annotations,
            examples: self.examples,
            permissions: self.permissions,
            limits: self.limits,
            tags: self.tags,
            pinned: self.pinned,
            ..Manifest::new(self.name, self.description, kind)
        };
        complete(&mut manifest);
        let request =
            PublishRequest { manifest, source, origin, overwrite: self.overwrite, dry_run: self.dry_run, client: call.client };
        BuiltinReply::of(&call.engine.publish(request).await?)
    }
}
