//! The `skillz://` resources: what there is, where it is, and what state it is in.

use rmcp::model::{Resource, ResourceTemplate};
use skillz_engine::Engine;
use skillz_tool::Tool;

use crate::uri;

const GUIDE: &str = "skillz://guide";
const PROTOCOL: &str = "skillz://protocol";
const EXAMPLES: &str = "skillz://examples";
const HISTORY: &str = "skillz://history";
const TOOLS: &str = "skillz://tools/";
const RESULTS: &str = "skillz://results/";
const SKILLS: &str = "skillz://skills/";
/// The file that makes a folder a skill.
pub(crate) const SKILL_FILE: &str = "SKILL.md";

pub(crate) const MARKDOWN: &str = "text/markdown";
pub(crate) const JSON: &str = "application/json";

/// A resource of this server.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(crate) enum Address {
    Guide,
    Protocol,
    Examples,
    History,
    /// A tool in full.
    Tool(String),
    /// A file of a tool; the path is relative to its folder.
    File {
        tool_name: String,
        path: String,
    },
    /// A file of a knowledge skill; without a path its `SKILL.md`.
    Skill {
        name: String,
        path: String,
    },
    /// A result that was too long for an answer.
    Result(String),
}

impl Address {
    /// Reads a URI; `None` for one that is not this server's.
    pub(crate) fn parse(text: &str) -> Option<Self> {
        match text {
            GUIDE => return Some(Self::Guide),
            PROTOCOL => return Some(Self::Protocol),
            EXAMPLES => return Some(Self::Examples),
            HISTORY => return Some(Self::History),
            _ => {}
        }
        if let Some(id) = text.strip_prefix(RESULTS) {
            return Some(Self::Result(id.to_owned()));
        }
        if let Some(rest) = text.strip_prefix(SKILLS) {
            let (name, path) = rest.split_once('/').unwrap_or((rest, SKILL_FILE));
            return Some(Self::Skill { name: uri::decoded(name)?, path: uri::decoded(path)? });
        }
        let rest = text.strip_prefix(TOOLS)?;
        match rest.split_once('/') {
            None => Some(Self::Tool(uri::decoded(rest)?)),
            Some((tool_name, file)) => {
                Some(Self::File { tool_name: uri::decoded(tool_name)?, path: uri::decoded(file.strip_prefix("files/")?)? })
            }
        }
    }
}

/// The URI of a tool.
pub(crate) fn tool_uri(name: &str) -> String {
    format!("{TOOLS}{}", uri::encoded(name))
}

/// The URI of a file of a tool.
pub(crate) fn file_uri(tool_name: &str, path: &str) -> String {
    format!("{TOOLS}{}/files/{}", uri::encoded(tool_name), uri::encoded(path))
}

/// The URI of a file of a skill.
pub(crate) fn skill_uri(name: &str, path: &str) -> String {
    format!("{SKILLS}{}/{}", uri::encoded(name), uri::encoded(path))
}

/// Resources that are always there, sorted by URI.
pub(crate) fn fixed() -> Vec<Resource> {
    vec![
        resource(EXAMPLES, "examples", "Complete tools to start from", MARKDOWN),
        resource(GUIDE, "guide", "How to make tools, and which there are now", MARKDOWN),
        resource(HISTORY, "history", "The latest calls: tool, time, duration, outcome", JSON),
        resource(PROTOCOL, "protocol", "How scripts in any language receive arguments and answer", MARKDOWN),
    ]
}

/// A tool as a resource.
pub(crate) fn of_tool(tool: &Tool) -> Resource {
    let first_line = tool.manifest.description.lines().next().unwrap_or_default();
    resource(&tool_uri(tool.name.as_str()), tool.name.as_str(), first_line, JSON)
}

fn resource(uri: &str, name: &str, description: &str, mime_type: &str) -> Resource {
    Resource::new(uri, name).with_description(description).with_mime_type(mime_type)
}

/// Resources with a part to fill in.
pub(crate) fn templates() -> Vec<ResourceTemplate> {
    vec![
        ResourceTemplate::new("skillz://results/{id}", "result")
            .with_description("The whole of a result that was too long for an answer; kept for an hour"),
        ResourceTemplate::new("skillz://skills/{name}/{path}", "skill file")
            .with_description("A file of an imported skill; `SKILL.md` is the skill itself"),
        ResourceTemplate::new("skillz://tools/{name}", "tool")
            .with_description("A tool: description, schema, examples, versions, source")
            .with_mime_type(JSON),
        ResourceTemplate::new("skillz://tools/{name}/files/{path}", "tool file").with_description("A file of a tool"),
    ]
}

/// What a subscriber's copy is compared by: changes with each change that subscribers are told of.
/// `None` for what is not there, or never changes.
pub(crate) fn state(engine: &Engine, uri: &str) -> Option<String> {
    let catalog = engine.catalog();
    match Address::parse(uri)? {
        Address::Guide => Some(catalog.generation().0.to_string()),
        Address::Tool(name) | Address::File { tool_name: name, .. } => {
            let tool = catalog.get(&name)?;
            Some(format!("{} {}", tool.version, tool.hash))
        }
        Address::Skill { name, path } => {
            let skill = engine.skills().get(&name)?;
            let changed = std::fs::metadata(skill.directory.join(path)).and_then(|metadata| metadata.modified()).ok()?;
            Some(format!("{changed:?}"))
        }
        Address::Protocol | Address::Examples | Address::History | Address::Result(_) => None,
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn addresses_are_read_as_they_are_written() {
        assert_eq!(Address::parse(&tool_uri("a-b")), Some(Address::Tool("a-b".to_owned())));
        let file = Address::File { tool_name: "a".to_owned(), path: "sub/ä b.py".to_owned() };
        assert_eq!(Address::parse(&file_uri("a", "sub/ä b.py")), Some(file));
        let skill = Address::Skill { name: "pdf".to_owned(), path: "forms/a.md".to_owned() };
        assert_eq!(Address::parse(&skill_uri("pdf", "forms/a.md")), Some(skill));
        let short = Address::Skill { name: "pdf".to_owned(), path: SKILL_FILE.to_owned() };
        assert_eq!(Address::parse("skillz://skills/pdf"), Some(short));
        assert_eq!(Address::parse("skillz://results/abc"), Some(Address::Result("abc".to_owned())));
        for resource in fixed() {
            assert!(Address::parse(&resource.uri).is_some(), "{}", resource.uri);
        }
        for foreign in
            ["", "skillz://", "skillz://x", "file:///etc/passwd", "skillz://tools/a/b", "skillz://tools/%ff", "SKILLZ://guide"]
        {
            assert_eq!(Address::parse(foreign), None, "{foreign}");
        }
    }
}
