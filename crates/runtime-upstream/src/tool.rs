//! What a server says of a tool, as a tool of this server.

use std::path::PathBuf;

use skillz_json::{Map, Value, json};
use skillz_tool::{Annotations, CompiledSchema, Limits, Manifest, Tool, ToolKind, ToolName, Version};

use crate::known::KnownTool;

/// What clients are told beside description, schemas and annotations; it goes through as it is.
const PASSED_ON: [&str; 3] = ["title", "icons", "_meta"];

/// The folder of a tool that has none: nothing is in it, wherever the server was started.
const NO_FOLDER: &str = "/dev/null";

/// Makes a tool of what a server says. `name` is the name that it gets here. A part of a wrong form is left out, since
/// the rest of the tool may work all the same.
pub(crate) fn tool(server: &str, name: ToolName, known: &KnownTool, limits: &Limits) -> Tool {
    let said = &known.definition;
    let text = |field: &str| said.get(field).and_then(Value::as_str).map(str::trim).filter(|text| !text.is_empty());
    // Some clients refuse a whole list over one tool without a description.
    let description = text("description").or_else(|| text("title")).unwrap_or(&known.name);
    let mut manifest = Manifest::new(name.as_str(), description, ToolKind::Mcp);
    manifest.version = Some(Version::FIRST.to_string());
    manifest.mcp_server = Some(json!({"server": server, "tool": known.name}));
    manifest.limits = limits.clone();
    manifest.input_schema = usable_schema(said.get("inputSchema"));
    manifest.output_schema = usable_schema(said.get("outputSchema"));
    manifest.annotations = said.get("annotations").and_then(Value::as_object).map(annotations);
    let passed_on = PASSED_ON.iter().filter_map(|field| Some(((*field).to_owned(), said.get(*field)?.clone())));
    manifest.extra = passed_on.filter(|(_, value)| !value.is_null()).collect();
    Tool::new(name, Version::FIRST, PathBuf::from(NO_FOLDER), manifest, known.hash.clone())
}

/// The server and the name there of a tool that was made here.
pub(crate) fn place(tool: &Tool) -> Option<(&str, &str)> {
    let place = tool.manifest.mcp_server.as_ref()?;
    Some((place.get("server")?.as_str()?, place.get("tool")?.as_str()?))
}

/// A schema that values can be checked against. With another one every call would fail here, where the server itself
/// may well take it.
fn usable_schema(schema: Option<&Value>) -> Option<Value> {
    let schema = schema.filter(|schema| schema.is_object())?;
    CompiledSchema::new(schema.clone()).unchecked_parts().is_ok().then(|| schema.clone())
}

/// Reads hints one by one, so that one of a wrong type costs only itself.
fn annotations(said: &Map<String, Value>) -> Annotations {
    let hint = |name: &str| said.get(name).and_then(Value::as_bool);
    Annotations {
        title: said.get("title").and_then(Value::as_str).map(str::to_owned),
        read_only_hint: hint("readOnlyHint"),
        destructive_hint: hint("destructiveHint"),
        idempotent_hint: hint("idempotentHint"),
        open_world_hint: hint("openWorldHint"),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn made(definition: Value) -> Tool {
        let known = KnownTool::read(definition).expect("has a name");
        tool("s", ToolName::for_new("s_a").expect("valid"), &known, &Limits::default())
    }

    #[test]
    fn what_is_said_goes_through() {
        let schema = json!({"type": "object", "properties": {"x": {"type": "integer"}}});
        let tool = made(json!({
            "name": "A", "title": "The A", "description": "Does it", "inputSchema": schema, "outputSchema": {"type": "object"},
            "annotations": {"title": "T", "readOnlyHint": true, "openWorldHint": "perhaps"}, "_meta": {"k": 1},
        }));
        assert_eq!(place(&tool), Some(("s", "A")));
        assert_eq!(tool.input_schema.as_value(), &schema);
        assert!(tool.output_schema.is_some());
        let annotations = tool.manifest.annotations.as_ref().expect("has some");
        assert_eq!((annotations.read_only_hint, annotations.open_world_hint), (Some(true), None));
        assert_eq!(tool.manifest.extra.get("title"), Some(&json!("The A")));
        assert_eq!(tool.manifest.extra.get("_meta"), Some(&json!({"k": 1})));
    }

    #[test]
    fn a_part_of_a_wrong_form_costs_only_itself() {
        for definition in [
            json!({"name": "A"}),
            json!({"name": "A", "description": 5, "inputSchema": "x", "annotations": [], "outputSchema": null}),
            json!({"name": "A", "inputSchema": {"type": "nothing"}, "outputSchema": {"pattern": "("}}),
        ] {
            let tool = made(definition);
            assert_eq!(tool.manifest.description, "A");
            assert_eq!(tool.input_schema.as_value(), &json!({"type": "object"}));
            assert!(tool.input_schema.unchecked_parts().is_ok());
        }
        let root = json!({"anyOf": [{"type": "object", "required": ["a"]}, {"type": "object", "required": ["b"]}]});
        assert_eq!(made(json!({"name": "A", "inputSchema": root})).input_schema.as_value(), &root, "the original is kept");
    }
}
