//! Prompts: ready-made requests that a user picks, with gaps to fill in.

use rmcp::{
    ErrorData,
    model::{GetPromptResult, JsonObject, Prompt, PromptArgument, PromptMessage, Role},
};
use serde_json::Value;
use skillz_engine::Engine;

use crate::skills;

/// A prompt that is built in.
struct Template {
    name: &'static str,
    title: &'static str,
    description: &'static str,
    arguments: &'static [Argument],
    text: &'static str,
}

/// A gap in a prompt.
struct Argument {
    name: &'static str,
    description: &'static str,
    required: bool,
}

/// The argument that completes to names of tools.
pub(crate) const TOOL_NAME: &str = "tool_name";

/// Sorted by name.
static TEMPLATES: [Template; 6] = [
    Template {
        name: "create_api_tool",
        title: "Make a tool that uses an API",
        description: "Make a tool that uses a web API, with the network and the key that it needs",
        arguments: &[
            required("api", "The API: its name, or the address of its documentation"),
            required("purpose", "What the tool should do"),
        ],
        text: include_str!("../docs/prompts/create_api_tool.md"),
    },
    Template {
        name: "create_pipeline",
        title: "Chain tools into a pipeline",
        description: "Chain tools into a new tool",
        arguments: &[required("goal", "What the pipeline should do")],
        text: include_str!("../docs/prompts/create_pipeline.md"),
    },
    Template {
        name: "create_python_tool",
        title: "Make a Python tool",
        description: "Make a tool from a Python function",
        arguments: &[required("purpose", "What the tool should do")],
        text: include_str!("../docs/prompts/create_python_tool.md"),
    },
    Template {
        name: "create_wasm_tool",
        title: "Make a WASM tool",
        description: "Make a tool in Rust, compiled to WebAssembly",
        arguments: &[required("purpose", "What the tool should do")],
        text: include_str!("../docs/prompts/create_wasm_tool.md"),
    },
    Template {
        name: "import_mcp_server",
        title: "Add an MCP server",
        description: "Add the tools of another MCP server",
        arguments: &[required("server", "The server: its name, command or address")],
        text: include_str!("../docs/prompts/import_mcp_server.md"),
    },
    Template {
        name: "improve_tool",
        title: "Improve a tool",
        description: "Find out what is wrong with a tool, and publish a better version",
        arguments: &[
            required(TOOL_NAME, "The tool"),
            Argument { name: "problem", description: "What is wrong with it, or what it should do better", required: false },
        ],
        text: include_str!("../docs/prompts/improve_tool.md"),
    },
];

const fn required(name: &'static str, description: &'static str) -> Argument {
    Argument { name, description, required: true }
}

/// The prompts that are built in, sorted by name.
pub(crate) fn built_in() -> Vec<Prompt> {
    TEMPLATES.iter().map(Template::prompt).collect()
}

/// All prompts, sorted by name: those that are built in, and each imported skill of another name.
pub(crate) async fn list(engine: &Engine) -> Vec<Prompt> {
    let mut all = built_in();
    all.extend(skills::all(engine).await.iter().filter(|skill| !is_built_in(&skill.name)).map(skills::prompt));
    all.sort_by(|left, right| left.name.cmp(&right.name));
    all
}

fn is_built_in(name: &str) -> bool {
    TEMPLATES.iter().any(|template| template.name == name)
}

/// A prompt with its gaps filled in.
pub(crate) async fn get(engine: &Engine, name: &str, arguments: Option<&JsonObject>) -> Result<GetPromptResult, ErrorData> {
    let Some(template) = TEMPLATES.iter().find(|template| template.name == name) else {
        if let Some(skill) = skills::find(engine, name).await {
            return skills::filled_prompt(&skill).await.map_err(|error| ErrorData::internal_error(error.text(), None));
        }
        let names: Vec<String> = list(engine).await.into_iter().map(|prompt| prompt.name).collect();
        let shown: String = name.chars().take(80).collect();
        return Err(ErrorData::invalid_params(format!("There is no prompt `{shown}`; there are {}", names.join(", ")), None));
    };
    let text = template.filled(arguments)?;
    Ok(GetPromptResult::new(vec![PromptMessage::new_text(Role::User, text)]).with_description(template.description))
}

/// Whether an argument of a prompt is the name of a tool.
pub(crate) fn takes_tool_name(prompt: &str, argument: &str) -> bool {
    let template = TEMPLATES.iter().find(|template| template.name == prompt);
    argument == TOOL_NAME && template.is_some_and(|template| template.arguments.iter().any(|known| known.name == argument))
}

impl Template {
    fn prompt(&self) -> Prompt {
        let argument = |argument: &Argument| {
            PromptArgument::new(argument.name).with_description(argument.description).with_required(argument.required)
        };
        let arguments = self.arguments.iter().map(argument).collect();
        Prompt::new(self.name, Some(self.description), Some(arguments)).with_title(self.title)
    }

    fn filled(&self, given: Option<&JsonObject>) -> Result<String, ErrorData> {
        let mut text = self.text.to_owned();
        let mut missing = Vec::new();
        for argument in self.arguments {
            let value = match given.and_then(|given| given.get(argument.name)) {
                Some(Value::String(value)) => value.clone(),
                Some(Value::Null) | None => String::new(),
                Some(other) => other.to_string(),
            };
            if argument.required && value.trim().is_empty() {
                missing.push(format!("`{}` ({})", argument.name, argument.description));
            }
            text = text.replace(&format!("{{{{{}}}}}", argument.name), &value);
        }
        if missing.is_empty() {
            return Ok(text.trim_end().to_owned());
        }
        Err(ErrorData::invalid_params(format!("The prompt `{}` needs {}", self.name, missing.join(" and ")), None))
    }
}

#[cfg(test)]
mod tests {
    use serde_json::json;

    use super::*;

    #[test]
    fn every_gap_is_an_argument_and_every_argument_a_gap() {
        for template in &TEMPLATES {
            let given: JsonObject =
                template.arguments.iter().map(|argument| (argument.name.to_owned(), json!("FILLED"))).collect();
            let text = template.filled(Some(&given)).expect("all is given");
            assert!(!text.contains("{{"), "{}: {text}", template.name);
            assert!(text.matches("FILLED").count() >= template.arguments.len(), "{}", template.name);
            let gaps = template.filled(None).expect_err("nothing is given").message.matches("` (").count();
            assert_eq!(gaps, template.arguments.iter().filter(|argument| argument.required).count());
        }
        assert!(TEMPLATES.is_sorted_by_key(|template| template.name));
    }
}
