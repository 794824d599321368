//! The seam to imported MCP servers: what there is of them, and what may be done with them.
//!
//! Whoever implements it keeps the servers running and their tools up to date; calls go through
//! [`crate::ToolRuntime`] like those of all other tools.

use std::{collections::BTreeMap, fmt, sync::Arc};

use async_trait::async_trait;
use serde::{Deserialize, Serialize};
use skillz_json::Value;

use crate::{Tool, ToolError};

/// How an imported server is reached, as its user gave it. Values of `env` and `headers` are secrets and never show
/// in `Debug` output; `$NAME` and `${NAME}` in them stand for variables of the server's environment.
#[derive(Clone, Default, PartialEq, Eq, Serialize, Deserialize)]
pub struct ServerDefinition {
    /// The program of a local server.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub command: Option<String>,
    /// Its arguments.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub args: Vec<String>,
    /// Variables that it gets beside the harmless ones.
    #[serde(default, skip_serializing_if = "BTreeMap::is_empty")]
    pub env: BTreeMap<String, String>,
    /// The address of a remote server.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub url: Option<String>,
    /// Headers of each request to it.
    #[serde(default, skip_serializing_if = "BTreeMap::is_empty")]
    pub headers: BTreeMap<String, String>,
    /// What the server is for, for people.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub description: Option<String>,
    /// Hold changed tools back until a refresh.
    #[serde(default, skip_serializing_if = "std::ops::Not::not")]
    pub pin: bool,
    /// Confine a local server like a script; it keeps the network.
    #[serde(default, skip_serializing_if = "std::ops::Not::not")]
    pub sandbox: bool,
}

impl fmt::Debug for ServerDefinition {
    fn fmt(&self, formatter: &mut fmt::Formatter<'_>) -> fmt::Result {
        formatter
            .debug_struct("ServerDefinition")
            .field("command", &self.command)
            .field("env", &self.env.keys())
            .field("headers", &self.headers.keys())
            .finish_non_exhaustive()
    }
}

impl ServerDefinition {
    /// Names of the variables that values of `env` and `headers` refer to, sorted.
    pub fn variables(&self) -> Vec<String> {
        let values = self.env.values().chain(self.headers.values());
        let mut names: Vec<String> = values.flat_map(|value| variables_in(value)).collect();
        names.sort_unstable();
        names.dedup();
        names
    }
}

/// The variables that a text refers to as `$NAME` or `${NAME}`, in its order.
pub fn variables_in(text: &str) -> Vec<String> {
    let mut names = Vec::new();
    expand_variables(text, |name| {
        names.push(name.to_owned());
        None
    });
    names
}

/// Replaces each `$NAME` and `${NAME}` by what `lookup` gives for it; what it does not know stays as it is, and so does
/// a dollar sign that no name follows.
pub fn expand_variables(text: &str, mut lookup: impl FnMut(&str) -> Option<String>) -> String {
    let mut expanded = String::with_capacity(text.len());
    let mut rest = text;
    while let Some((before, after)) = rest.split_once('$') {
        expanded.push_str(before);
        let braced = after.strip_prefix('{').and_then(|inner| inner.split_once('}'));
        let (name, whole_length) = match braced {
            Some((name, _)) => (name, name.len() + 2),
            None => {
                let is_part = |character: char| character.is_ascii_alphanumeric() || character == '_';
                let end = after.find(|character| !is_part(character)).unwrap_or(after.len());
                (after.get(..end).unwrap_or_default(), end)
            }
        };
        let value = is_variable_name(name).then(|| lookup(name)).flatten();
        match value {
            Some(value) => expanded.push_str(&value),
            None => {
                expanded.push('$');
                expanded.push_str(after.get(..whole_length).unwrap_or_default());
            }
        }
        rest = after.get(whole_length..).unwrap_or_default();
    }
    expanded.push_str(rest);
    expanded
}

fn is_variable_name(name: &str) -> bool {
    !name.is_empty()
        && !name.starts_with(|first: char| first.is_ascii_digit())
        && name.bytes().all(|byte| byte.is_ascii_alphanumeric() || byte == b'_')
}

/// The tools of all imported servers at one moment.
#[derive(Debug, Clone, Default)]
pub struct UpstreamTools {
    /// Grows with each change.
    pub generation: u64,
    /// Each with a name of its own, sorted by name. Their manifests name server and original in `mcp_server`.
    pub tools: Arc<Vec<Arc<Tool>>>,
}

/// Imported MCP servers: kept running in the background, their tools offered like all others.
#[async_trait]
pub trait Upstreams: Send + Sync {
    /// Waits until the definitions on disk are read. Waits for no server.
    async fn ready(&self);

    /// The tools as of now. Costs no IO and no waiting.
    fn tools(&self) -> UpstreamTools;

    /// Waits until the tools are of another generation than `seen`, and gives that.
    async fn changed(&self, seen: u64) -> u64;

    /// Imports a server, starts it, and waits a little for its tools.
    async fn add(&self, name: &str, definition: ServerDefinition, overwrite: bool) -> Result<Value, ToolError>;

    /// Takes a server away and stops it.
    async fn remove(&self, name: &str) -> Result<Value, ToolError>;

    /// The servers, each with its state: all, or the one of that name.
    fn list(&self, name: Option<&str>) -> Result<Value, ToolError>;

    /// Takes over what has changed at a server, trying again at once to reach one that is down.
    async fn refresh(&self, name: &str) -> Result<Value, ToolError>;

    /// Hides one tool of a server, for as long as the server stays imported.
    async fn hide(&self, tool: &Tool) -> Result<(), ToolError>;

    /// Why a tool of that name may be missing: a server whose name it begins with has not answered yet.
    fn explain(&self, tool_name: &str) -> Option<String>;

    /// A sentence for each server that is not to be had now.
    fn warnings(&self) -> Vec<String>;
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn variables_are_replaced_where_they_are_known() {
        let lookup = |name: &str| (name == "KEY").then(|| "s3cret".to_owned());
        for (text, expanded) in [
            ("$KEY", "s3cret"),
            ("Bearer ${KEY}!", "Bearer s3cret!"),
            ("$KEYS and $OTHER", "$KEYS and $OTHER"),
            ("${OTHER}/${KEY}", "${OTHER}/s3cret"),
            ("5$ or $5 or $", "5$ or $5 or $"),
            ("${unclosed $KEY", "${unclosed s3cret"),
            ("", ""),
        ] {
            assert_eq!(expand_variables(text, lookup), expanded, "{text}");
        }
    }

    #[test]
    fn a_definition_names_its_variables_and_hides_its_values() {
        let definition = ServerDefinition {
            env: BTreeMap::from([("A".to_owned(), "${X}-$Y".to_owned())]),
            headers: BTreeMap::from([("Authorization".to_owned(), "Bearer s3cret-value $X".to_owned())]),
            ..ServerDefinition::default()
        };
        assert_eq!(definition.variables(), ["X", "Y"]);
        let shown = format!("{definition:?}");
        assert!(shown.contains("Authorization") && !shown.contains("s3cret"), "{shown}");
    }
}
