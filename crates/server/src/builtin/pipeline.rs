//! `pipeline`: tools chained to a new tool.

use serde::Deserialize;
use skillz_engine::{PipelineDefinition, PipelineRequest};
use skillz_json::Value;
use skillz_tool::{Example, ToolError};

use super::{Builtin, BuiltinCall, BuiltinOutcome, BuiltinReply, Hints};

pub(super) static BUILTIN: Builtin = Builtin::new(
    "pipeline",
    "Chain tools into a tool. A step: {name, tool*, args, condition, for_each, parallel, group, on_error: stop|continue|retry, retries}. \
     `args` refer to $input.x, $prev.x, $<step>.x, $item, $index",
    r#"{"type":"object","properties":{
        "action":{"enum":["create","list","delete","run","show"]},
        "name":{"type":"string"},
        "description":{"type":"string"},
        "steps":{"type":"array","items":{"type":"object"}},
        "input_schema":{"type":"object"},
        "examples":{"type":"array","items":{"type":"object"}},
        "tags":{"type":"array","items":{"type":"string"}},
        "arguments":{"type":"object","description":"For run"},
        "overwrite":{"type":"boolean"}
    },"required":["action"]}"#,
    Hints::OpenWorld,
    |call| Box::pin(run(call)),
);

#[derive(Debug, Deserialize)]
#[expect(clippy::struct_field_names, reason = "the names are the protocol's")]
struct Arguments {
    action: Action,
    #[serde(default)]
    name: Option<String>,
    #[serde(default)]
    description: Option<String>,
    #[serde(default)]
    steps: Option<Value>,
    #[serde(default)]
    input_schema: Option<Value>,
    #[serde(default)]
    examples: Vec<Example>,
    #[serde(default)]
    tags: Vec<String>,
    #[serde(default)]
    arguments: Value,
    #[serde(default)]
    overwrite: bool,
}

#[derive(Debug, Clone, Copy, Deserialize)]
#[serde(rename_all = "lowercase")]
enum Action {
    Create,
    List,
    Delete,
    Run,
    Show,
}

async fn run(call: BuiltinCall) -> BuiltinOutcome {
    let arguments: Arguments = call.read(&BUILTIN)?;
    let request = request(arguments)?;
    call.engine.pipeline(request, call.client).await.map(BuiltinReply::Value)
}

fn request(arguments: Arguments) -> Result<PipelineRequest, ToolError> {
    let action = arguments.action;
    let missing = |what: &str| ToolError::invalid(format!("`pipeline` with this action needs `{what}`"));
    if matches!(action, Action::List) {
        return Ok(PipelineRequest::List);
    }
    let name = arguments.name.ok_or_else(|| missing("name"))?;
    Ok(match action {
        Action::Create => PipelineRequest::Create(Box::new(PipelineDefinition {
            name,
            description: arguments.description.ok_or_else(|| missing("description"))?,
            steps: arguments.steps.ok_or_else(|| missing("steps"))?,
            input_schema: arguments.input_schema,
            examples: arguments.examples,
            tags: arguments.tags,
            overwrite: arguments.overwrite,
        })),
        Action::Delete => PipelineRequest::Delete { name },
        Action::Run => PipelineRequest::Run { name, arguments: arguments.arguments },
        Action::Show | Action::List => PipelineRequest::Show { name },
    })
}
