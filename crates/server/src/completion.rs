//! Completes arguments that are names of tools and skills, or files of them.

use rmcp::{
    ErrorData,
    model::{CompleteRequestParams, CompleteResult, CompletionInfo, Reference},
};
use skillz_engine::Engine;

use crate::{prompts, read, skills};

/// Completes the argument that a client is typing.
pub(crate) async fn complete(engine: &Engine, request: &CompleteRequestParams) -> Result<CompleteResult, ErrorData> {
    let argument = request.argument.name.as_str();
    let typed = request.argument.value.as_str();
    let candidates = match &request.r#ref {
        Reference::Prompt(prompt) if prompts::takes_tool_name(&prompt.name, argument) => tool_names(engine),
        Reference::Resource(template) if template.uri.starts_with("skillz://tools/") && argument == "name" => tool_names(engine),
        Reference::Resource(template) if template.uri.starts_with("skillz://tools/") && argument == "path" => {
            let name = request.context.as_ref().and_then(|context| context.get_argument("name"));
            match name.and_then(|name| engine.catalog().get(name).cloned()) {
                Some(tool) => read::files(&tool.directory).await,
                None => Vec::new(),
            }
        }
        Reference::Resource(template) if template.uri.starts_with("skillz://skills/") && argument == "name" => {
            skills::all(engine).await.into_iter().map(|skill| skill.name).collect()
        }
        Reference::Resource(template) if template.uri.starts_with("skillz://skills/") && argument == "path" => {
            let name = request.context.as_ref().and_then(|context| context.get_argument("name"));
            match name {
                Some(name) => match skills::find(engine, name).await {
                    Some(skill) => read::files(&skill.directory).await,
                    None => Vec::new(),
                },
                None => Vec::new(),
            }
        }
        _ => Vec::new(),
    };
    let fitting: Vec<String> = candidates.into_iter().filter(|candidate| candidate.starts_with(typed)).collect();
    let total = u32::try_from(fitting.len()).unwrap_or(u32::MAX);
    let more = fitting.len() > CompletionInfo::MAX_VALUES;
    let values = fitting.into_iter().take(CompletionInfo::MAX_VALUES).collect();
    let completion =
        CompletionInfo::with_pagination(values, Some(total), more).map_err(|error| ErrorData::internal_error(error, None))?;
    Ok(CompleteResult::new(completion))
}

fn tool_names(engine: &Engine) -> Vec<String> {
    engine.catalog().tools().map(|tool| tool.name.to_string()).collect()
}
