//! What a client sees first: the built-in tools, in every era.

use serde_json::json;
use skillz_test_support::{Era, Home, Run};

use crate::{bash_tool, skillz};

const BUILT_IN: [&str; 13] = [
    "build_tool",
    "call_tool",
    "delete_tool",
    "execute_code",
    "import_mcp",
    "import_tool",
    "list_tools",
    "memory",
    "pipeline",
    "register_script",
    "services",
    "test_tool",
    "version",
];

#[test]
fn all_built_in_tools_are_listed_in_every_era() {
    let home = Home::new();
    for era in ["2024-11-05", "2025-03-26", "2025-06-18", "2025-11-25"].map(Era::Handshake).into_iter().chain([Era::Stateless]) {
        let mut server = Run::new(skillz(), &home).start();
        let greeting = server.greet(era);
        if let Era::Handshake(version) = era {
            assert_eq!(greeting["protocolVersion"], json!(version));
            assert_eq!(greeting["capabilities"]["tools"]["listChanged"], json!(true), "{greeting}");
        }
        assert_eq!(server.tool_names(), BUILT_IN, "{era:?}");
        let result = server.result("tools/list", json!({}));
        for tool in result["tools"].as_array().expect("a list") {
            assert!(tool["description"].as_str().is_some_and(|text| !text.is_empty()), "{tool}");
            assert_eq!(tool["inputSchema"]["type"], json!("object"), "{tool}");
        }
    }
}

#[test]
fn both_eras_live_in_one_stream() {
    let home = Home::new();
    let mut server = Run::new(skillz(), &home).start();
    server.greet(Era::Stateless);
    assert_eq!(server.tool_names(), BUILT_IN);
    drop(server);
    let mut server = Run::new(skillz(), &home).connect(Era::NEWEST_HANDSHAKE);
    assert_eq!(server.tool_names(), BUILT_IN);
}

#[test]
fn beyond_forty_only_the_pinned_ones_are_listed() {
    let home = Home::new();
    for number in 0..40 {
        let manifest = json!({
            "name": format!("tool_{number:02}"), "description": format!("Number {number}"), "tool_type": "script", "interpreter": "bash",
            "entry_file": "main.sh", "pinned": number == 7,
        });
        home.write_tool(&manifest, "echo hello");
    }
    let mut server = Run::new(skillz(), &home).connect(Era::NEWEST_HANDSHAKE);
    let mut expected: Vec<String> = BUILT_IN.iter().map(|name| (*name).to_owned()).chain(["tool_07".to_owned()]).collect();
    expected.sort();
    assert_eq!(server.tool_names(), expected);
    assert_eq!(server.value("tool_31", json!({})), "hello", "the rest stays callable by name");
    assert_eq!(server.value("list_tools", json!({}))["total"], json!(40));

    let all = Run::new(skillz(), &home).variable("SKILLZ_EXPOSE", "all").connect(Era::NEWEST_HANDSHAKE).tool_names();
    assert_eq!(all.len(), 53);
    let pinned = Run::new(skillz(), &home).variable("SKILLZ_EXPOSE", "pinned").connect(Era::NEWEST_HANDSHAKE).tool_names();
    assert_eq!(pinned.len(), 14);
}

#[test]
fn what_is_not_there_yet_fails_and_says_so_in_one_sentence() {
    let home = Home::new();
    let mut server = Run::new(skillz(), &home).connect(Era::NEWEST_HANDSHAKE);
    let failure = server.failure("services", json!({"action": "list"}));
    assert!(failure.contains("yet") && failure.lines().count() == 1, "{failure}");
}

#[test]
fn a_new_tool_carries_its_schemas_and_hints() {
    let home = Home::new();
    let mut server = Run::new(skillz(), &home).connect(Era::NEWEST_HANDSHAKE);
    let mut arguments = bash_tool("described", "echo '{\"n\": 1}'");
    arguments["input_schema"] = json!({"type": "object", "properties": {"a": {"type": "string"}}});
    arguments["output_schema"] = json!({"type": "object", "properties": {"n": {"type": "integer"}}, "required": ["n"]});
    arguments["annotations"] = json!({"title": "Described", "readOnlyHint": true});
    server.value("register_script", arguments);
    let result = server.result("tools/list", json!({}));
    let tool =
        result["tools"].as_array().expect("a list").iter().find(|tool| tool["name"] == json!("described")).expect("it is listed");
    assert_eq!(tool["inputSchema"]["properties"], json!({"a": {"type": "string"}}));
    assert_eq!(tool["outputSchema"]["required"], json!(["n"]));
    assert_eq!(tool["annotations"]["readOnlyHint"], json!(true));
    assert_eq!(server.value("described", json!({})), json!({"n": 1}));
}
