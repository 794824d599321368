//! Resources and prompts that the protocol's conformance suite asks for by name, and that no tool can stand for.
//!
//! They are there only in a server that was started for the suite. Its tools are ordinary tools, registered at
//! run time; three of them have to look or behave here as no tool of this product does.

use rmcp::{
    ErrorData,
    model::{
        ClientCapabilities, ContentBlock, GetPromptRequestParams, GetPromptResponse, GetPromptResult, InputRequests,
        InputRequiredResult, Prompt, PromptArgument, PromptMessage, Resource, ResourceContents, ResourceTemplate, Role,
    },
};
use serde_json::{Value, json};

use crate::{question::Question, running::Ending};

const TEXT: &str = "test://static-text";
const BINARY: &str = "test://static-binary";
const WATCHED: &str = "test://watched-resource";
const TEMPLATE: &str = "test://template/{id}/data";
/// A picture of one red pixel.
const PIXEL: &str = "iVBORw0KGgoAAAANSUhEUgAAAAEAAAABCAYAAAAfFcSJAAAADUlEQVR42mP8z8DwHwAFBQIAX8jx0gAAAABJRU5ErkJggg==";
/// The name under which the asking prompt asks.
const QUESTION: &str = "user_context";

/// A tool that only clients with tasks may call; tools of this product serve all clients.
const FOR_TASKS_ONLY: &str = "failing_job";
/// A tool whose calls end in an error of the protocol; a tool's failures are results.
const BREAKS: &str = "protocol_error_job";

/// A tool whose schema is looked at for every keyword that JSON Schema has.
const WITH_ALTERNATIVES: &str = "json_schema_2020_12_tool";

/// Why a client may not call a tool.
pub(crate) fn refusal(tool_name: &str, knows_tasks: bool) -> Option<ErrorData> {
    let required = ClientCapabilities::builder().enable_tasks().build();
    (tool_name == FOR_TASKS_ONLY && !knows_tasks).then(|| ErrorData::missing_required_client_capability(required))
}

/// How a call ends that came to `ending`.
pub(crate) fn ending(tool_name: &str, ending: Ending) -> Ending {
    if tool_name == BREAKS { Err(ErrorData::internal_error("The job broke", None)) } else { ending }
}

/// Whether the suite looks for alternatives at the root of a tool's schema in the older protocols too, where other
/// clients are never sent any.
pub(crate) fn keeps_alternatives(tool_name: &str) -> bool {
    tool_name == WITH_ALTERNATIVES
}

/// Resources, sorted by URI.
pub(crate) fn resources() -> Vec<Resource> {
    vec![
        Resource::new(BINARY, "static-binary").with_description("A picture").with_mime_type("image/png"),
        Resource::new(TEXT, "static-text").with_description("A text").with_mime_type("text/plain"),
        Resource::new(WATCHED, "watched-resource").with_description("A text to subscribe to").with_mime_type("text/plain"),
    ]
}

pub(crate) fn templates() -> Vec<ResourceTemplate> {
    vec![ResourceTemplate::new(TEMPLATE, "template").with_description("Data by id").with_mime_type("application/json")]
}

/// Whether a URI is one of these.
pub(crate) fn knows(uri: &str) -> bool {
    read(uri).is_some()
}

pub(crate) fn read(uri: &str) -> Option<ResourceContents> {
    let text = |mime_type: &str, text: String| ResourceContents::TextResourceContents {
        uri: uri.to_owned(),
        mime_type: Some(mime_type.to_owned()),
        text,
        meta: None,
    };
    match uri {
        TEXT => Some(text("text/plain", "This is the content of the static text resource.".to_owned())),
        WATCHED => Some(text("text/plain", "Watched resource content.".to_owned())),
        BINARY => Some(ResourceContents::BlobResourceContents {
            uri: uri.to_owned(),
            mime_type: Some("image/png".to_owned()),
            blob: PIXEL.to_owned(),
            meta: None,
        }),
        _ => {
            let id =
                uri.strip_prefix("test://template/")?.strip_suffix("/data").filter(|id| !id.is_empty() && !id.contains('/'))?;
            let data = json!({"id": id, "templateTest": true, "data": format!("Data for ID: {id}")});
            Some(text("application/json", data.to_string()))
        }
    }
}

/// Prompts, sorted by name.
pub(crate) fn prompts() -> Vec<Prompt> {
    let argument = |name: &str| PromptArgument::new(name).with_description("A test argument").with_required(true);
    vec![
        Prompt::new("test_input_required_result_prompt", Some("Asks before it answers"), None),
        Prompt::new("test_prompt_with_arguments", Some("Has two gaps"), Some(vec![argument("arg1"), argument("arg2")])),
        Prompt::new("test_prompt_with_embedded_resource", Some("Holds a resource"), Some(vec![argument("resourceUri")])),
        Prompt::new("test_prompt_with_image", Some("Holds a picture"), None),
        Prompt::new("test_simple_prompt", Some("Holds a text"), None),
    ]
}

/// The prompt that is asked for, if it is one of these.
pub(crate) fn get_prompt(request: &GetPromptRequestParams) -> Option<Result<GetPromptResponse, ErrorData>> {
    let given =
        |name: &str| request.arguments.as_ref().and_then(|given| given.get(name)).and_then(Value::as_str).unwrap_or_default();
    let text = |text: &str| PromptMessage::new_text(Role::User, text);
    let messages = match request.name.as_str() {
        "test_simple_prompt" => vec![text("This is a simple prompt for testing.")],
        "test_prompt_with_arguments" => {
            vec![text(&format!("Prompt with arguments: arg1='{}', arg2='{}'", given("arg1"), given("arg2")))]
        }
        "test_prompt_with_embedded_resource" => vec![
            PromptMessage::new(
                Role::User,
                ContentBlock::embedded_text(given("resourceUri"), "Embedded resource content for testing."),
            ),
            text("Please process the embedded resource above."),
        ],
        "test_prompt_with_image" => {
            vec![PromptMessage::new(Role::User, ContentBlock::image(PIXEL, "image/png")), text("Please analyze the image above.")]
        }
        "test_input_required_result_prompt" => return Some(asking_prompt(request)),
        _ => return None,
    };
    Some(Ok(GetPromptResult::new(messages).into()))
}

fn asking_prompt(request: &GetPromptRequestParams) -> Result<GetPromptResponse, ErrorData> {
    let question = Question::Form {
        message: "What context should the prompt use?".to_owned(),
        schema: skillz_json::json!({"type": "object", "properties": {"context": {"type": "string"}}, "required": ["context"]}),
    };
    let answer = request
        .input_responses
        .as_ref()
        .and_then(|answers| answers.get(QUESTION))
        .filter(|answer| question.accepts(&skillz_json::Value::from((*answer).clone())));
    let Some(answer) = answer else {
        let asked = question.input_request().map_err(|error| ErrorData::internal_error(error.text(), None))?;
        return Ok(InputRequiredResult::from_input_requests(InputRequests::from([(QUESTION.to_owned(), asked)])).into());
    };
    let text = format!("Use this context: {}", answer.get("content").unwrap_or(&Value::Null));
    Ok(GetPromptResult::new(vec![PromptMessage::new_text(Role::User, text)]).into())
}
