//! What a running call may ask of its client, in the protocol's words.

// Sampling and roots are deprecated in the newest protocol and still what clients speak.
#![expect(deprecated, reason = "clients still speak sampling and roots")]

use std::path::PathBuf;

use rmcp::model::{
    ClientCapabilities, CreateMessageRequest, CreateMessageRequestParams, CustomRequest, ElicitRequest, ElicitRequestParams,
    ElicitationCapability, InputRequest, ListRootsRequest, SamplingCapability, ServerRequest,
};
use skillz_json::{Value, json, wire};
use skillz_tool::{Answer, AnswerAction, ClientCapabilities as Needed, CompiledSchema, ErrorKind, ToolError};

/// Longest name of a question, in bytes.
const NAME_LENGTH: usize = 64;

/// A question to the client.
#[derive(Debug, Clone, PartialEq)]
pub(crate) enum Question {
    /// The user fills in a form (elicitation).
    Form {
        /// What the user is asked.
        message: String,
        /// JSON Schema of the form.
        schema: Value,
    },
    /// The client's model answers (sampling); MCP's parameters.
    Sample(Value),
    /// The workspace roots.
    Roots,
}

/// What a client says it answers.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default)]
pub(crate) struct Abilities {
    pub(crate) forms: bool,
    pub(crate) sampling: bool,
    pub(crate) roots: bool,
}

impl Abilities {
    /// Reads a client's capabilities. One that declares elicitation without saying which kind means forms.
    pub(crate) fn of(capabilities: Option<&ClientCapabilities>) -> Self {
        let Some(capabilities) = capabilities else { return Self::default() };
        let forms = capabilities.elicitation.as_ref().is_some_and(|kinds| kinds.form.is_some() || kinds.url.is_none());
        Self { forms, sampling: capabilities.sampling.is_some(), roots: capabilities.roots.is_some() }
    }

    /// Whether the client answers this question.
    pub(crate) fn answers(self, question: &Question) -> bool {
        match question {
            Question::Form { .. } => self.forms,
            Question::Sample(_) => self.sampling,
            Question::Roots => self.roots,
        }
    }
}

impl Question {
    /// The key under which the question is asked and answered in the stateless protocol. A tool may name its
    /// question, by the form's `title` or by `_meta.name` of a sampling request.
    pub(crate) fn name(&self) -> Option<&str> {
        let name = match self {
            Self::Form { schema, .. } => schema.get("title")?.as_str()?,
            Self::Sample(parameters) => parameters.get("_meta")?.get("name")?.as_str()?,
            Self::Roots => "client_roots",
        };
        (!name.is_empty() && name.len() <= NAME_LENGTH).then_some(name)
    }

    /// The failure where the client does not answer such questions.
    pub(crate) fn unanswerable(&self) -> ToolError {
        let (what, capability, way_out) = match self {
            Self::Form { .. } => ("ask its user", "elicitation", "Pass what the tool asks for as an argument"),
            Self::Sample(_) => ("ask its model", "sampling", "Do that step yourself and pass its result as an argument"),
            Self::Roots => ("name workspace roots", "roots", "Set SKILLZ_ROOTS for the server"),
        };
        let message = format!("The client cannot {what}: it does not declare the capability `{capability}`");
        ToolError::new(ErrorKind::Unavailable, message).with_hint(format!("{way_out}, or use a client that has `{capability}`"))
    }

    /// The capability that the question needs.
    pub(crate) fn needs(&self) -> Needed {
        Needed { elicitation: matches!(self, Self::Form { .. }), sampling: matches!(self, Self::Sample(_)) }
    }

    /// Checks the question against the protocol, so that a tool's mistake is the tool's failure.
    pub(crate) fn check(&self) -> Result<(), ToolError> {
        self.input_request().map(|_| ())
    }

    /// The question in the stateless protocol.
    pub(crate) fn input_request(&self) -> Result<InputRequest, ToolError> {
        match self {
            Self::Form { message, schema } => {
                let parameters = json!({"mode": "form", "message": message, "requestedSchema": schema});
                let parameters: ElicitRequestParams = serde_json::from_value(wire::enter(parameters)).map_err(|_| {
                    ToolError::invalid("The form's schema is not one that clients can show").with_hint(
                        "A form is an object whose properties are strings, numbers, booleans, or choices of strings (`enum`)",
                    )
                })?;
                Ok(InputRequest::Elicitation(ElicitRequest::new(parameters)))
            }
            Self::Sample(parameters) => {
                let parameters: CreateMessageRequestParams = serde_json::from_value(wire::enter(parameters.clone()))
                    .map_err(|error| ToolError::invalid(format!("The parameters of the sampling request are wrong: {error}")))?;
                parameters.validate().map_err(ToolError::invalid)?;
                Ok(InputRequest::CreateMessage(CreateMessageRequest::new(parameters)))
            }
            Self::Roots => Ok(InputRequest::ListRoots(ListRootsRequest::default())),
        }
    }

    /// The question as a request of the older protocols; parameters go as the tool gave them.
    pub(crate) fn server_request(&self) -> ServerRequest {
        let (method, parameters) = match self {
            Self::Form { message, schema } => ("elicitation/create", json!({"message": message, "requestedSchema": schema})),
            Self::Sample(parameters) => ("sampling/createMessage", parameters.clone()),
            Self::Roots => return ServerRequest::ListRootsRequest(ListRootsRequest::default()),
        };
        ServerRequest::CustomRequest(CustomRequest::new(method, Some(wire::enter(parameters))))
    }

    /// Whether `answer` has the form of an answer to this question; a form that was sent has to fit its schema.
    pub(crate) fn accepts(&self, answer: &Value) -> bool {
        match self {
            Self::Form { schema, .. } => match skillz_json::from_value::<Answer>(answer.clone()) {
                Ok(Answer { action: AnswerAction::Accept, content }) => {
                    let content = content.unwrap_or_else(|| json!({}));
                    CompiledSchema::new(schema.clone()).violations(&content).is_ok_and(|violations| violations.is_empty())
                }
                Ok(_) => true,
                Err(_) => false,
            },
            Self::Sample(_) => answer.get("role").is_some_and(Value::is_string) && answer.get("content").is_some(),
            Self::Roots => answer.get("roots").is_some_and(Value::is_array),
        }
    }
}

/// A missing capability as the protocol's error names it.
pub(crate) fn required_capabilities(needed: Needed) -> ClientCapabilities {
    let mut required = ClientCapabilities::default();
    if needed.elicitation {
        required.elicitation = Some(ElicitationCapability::default());
    }
    if needed.sampling {
        required.sampling = Some(SamplingCapability::default());
    }
    required
}

/// Folders of a roots answer. Other URIs than `file:` mean nothing here.
pub(crate) fn root_folders(answer: &Value) -> Vec<PathBuf> {
    let roots = answer.get("roots").and_then(Value::as_array).into_iter().flatten();
    roots.filter_map(|root| file_path(root.get("uri")?.as_str()?)).collect()
}

/// The path of a `file:` URI on this machine.
fn file_path(uri: &str) -> Option<PathBuf> {
    let rest = uri.strip_prefix("file://")?;
    let path = rest.strip_prefix("localhost").unwrap_or(rest);
    if !path.starts_with('/') {
        return None;
    }
    let path = crate::uri::decoded(path)?;
    // `/C:/work` is how URIs write `C:/work`.
    let path = if cfg!(windows) { path.strip_prefix('/').unwrap_or(&path) } else { &path };
    (!path.contains('\0')).then(|| PathBuf::from(path))
}

#[cfg(test)]
mod tests {
    use super::*;

    fn form(properties: Value) -> Question {
        Question::Form {
            message: "Who?".to_owned(),
            schema: json!({"type": "object", "properties": properties, "required": ["name"]}),
        }
    }

    #[test]
    fn only_answers_that_fit_are_taken() {
        let question = form(json!({"name": {"type": "string"}}));
        for (answer, fits) in [
            (json!({"action": "accept", "content": {"name": "Ada"}}), true),
            (json!({"action": "accept", "content": {"name": 5}}), false),
            (json!({"action": "accept"}), false),
            (json!({"action": "decline"}), true),
            (json!({"action": "cancel"}), true),
            (json!({"action": "maybe"}), false),
            (json!(12345), false),
        ] {
            assert_eq!(question.accepts(&answer), fits, "{answer}");
        }
        assert!(Question::Roots.accepts(&json!({"roots": []})) && !Question::Roots.accepts(&json!({})));
        assert!(!Question::Sample(json!({})).accepts(&json!("text")));
    }

    #[test]
    fn forms_that_no_client_can_show_are_the_tools_mistake() {
        assert!(form(json!({"name": {"type": "string"}})).check().is_ok());
        assert!(form(json!({"name": {"type": "object"}})).check().is_err());
        assert!(Question::Sample(json!({"messages": []})).check().is_err());
    }

    #[test]
    fn a_client_that_names_no_kind_of_elicitation_shows_forms() {
        let of = |capabilities: Value| Abilities::of(Some(&skillz_json::from_value(capabilities).expect("capabilities")));
        assert!(of(json!({"elicitation": {}})).forms);
        assert!(of(json!({"elicitation": {"form": {}, "url": {}}})).forms);
        assert!(!of(json!({"elicitation": {"url": {}}})).forms);
        assert_eq!(of(json!({"sampling": {}, "roots": {}})), Abilities { forms: false, sampling: true, roots: true });
        assert_eq!(Abilities::of(None), Abilities::default());
    }

    #[test]
    fn roots_are_folders_of_this_machine() {
        let answer = json!({"roots": [
            {"uri": "file:///home/me/a%20b"}, {"uri": "file://localhost/x"}, {"uri": "https://example.com/"},
            {"uri": "file://other/x"}, {"uri": "file:///a%00b"}, {"name": "no uri"},
        ]});
        assert_eq!(root_folders(&answer), [PathBuf::from("/home/me/a b"), PathBuf::from("/x")]);
    }
}
