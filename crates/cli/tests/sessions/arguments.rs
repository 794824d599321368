//! Arguments in every form that clients send them.

use serde_json::{Value, json};
use skillz_test_support::{Home, TestServer};

use crate::{echo_module, server};

fn echo_with_schema(server: &mut TestServer, name: &str, schema: Value) {
    let mut arguments = echo_module(name);
    arguments["input_schema"] = schema;
    server.value("build_tool", arguments);
}

#[test]
fn null_and_absent_arguments_count_as_none() {
    let home = Home::new();
    let mut server = server(&home);
    server.value("build_tool", echo_module("echo"));
    for params in [json!({"name": "echo"}), json!({"name": "echo", "arguments": null}), json!({"name": "echo", "arguments": {}})]
    {
        let result = server.result("tools/call", params.clone());
        assert_eq!(result["structuredContent"], json!({}), "{params}");
    }
    for params in [json!({"name": "list_tools"}), json!({"name": "list_tools", "arguments": null})] {
        let result = server.result("tools/call", params.clone());
        assert_ne!(result["isError"], json!(true), "{params}");
    }
}

#[test]
fn arguments_that_are_no_object_are_an_error_that_the_client_survives() {
    let home = Home::new();
    let mut server = server(&home);
    server.value("build_tool", echo_module("echo"));
    for arguments in [json!("text"), json!(""), json!([1]), json!(7), json!(true)] {
        let answer = server.request("tools/call", json!({"name": "echo", "arguments": arguments}));
        let refused = answer["error"]["code"] == json!(-32602) || answer["result"]["isError"] == json!(true);
        assert!(refused, "{arguments}: {answer}");
        let failure = server.failure("call_tool", json!({"tool_name": "echo", "arguments": 7}));
        assert!(failure.contains("object"), "{failure}");
    }
    assert_eq!(server.value("echo", json!({"a": 1})), json!({"a": 1}));
}

#[test]
fn text_that_holds_json_is_taken_as_such_only_where_the_schema_wants_it() {
    let home = Home::new();
    let mut server = server(&home);
    let schema = json!({"type": "object", "properties": {
        "xs": {"type": "array"}, "o": {"type": "object"}, "s": {"type": "string"}, "n": {"type": "integer"},
    }});
    echo_with_schema(&mut server, "echo", schema);
    let value = server.value("echo", json!({"xs": "[1,2]", "o": "{\"a\":1}", "s": "[not json", "n": 9_007_199_254_740_993_i64}));
    assert_eq!(value, json!({"xs": [1, 2], "o": {"a": 1}, "s": "[not json", "n": 9_007_199_254_740_993_i64}));
    assert_eq!(server.value("echo", json!({"s": "[1,2]"})), json!({"s": "[1,2]"}));
    server.failure("echo", json!({"xs": "[1,"}));
}

#[test]
fn all_faults_are_told_at_once_with_their_paths() {
    let home = Home::new();
    let mut server = server(&home);
    let schema = json!({
        "type": "object",
        "properties": {"city": {"type": "string"}, "days": {"type": "integer", "minimum": 1}, "who": {"type": "object", "properties": {"age": {"type": "number"}}}},
        "required": ["city"],
        "additionalProperties": false,
    });
    echo_with_schema(&mut server, "forecast", schema);
    let failure = server.failure("forecast", json!({"days": 0, "who": {"age": "old"}, "town": "X"}));
    for part in ["city", "days", "who/age", "town"] {
        assert!(failure.contains(part), "{part} is missing: {failure}");
    }
}

#[test]
fn text_survives_unharmed() {
    let home = Home::new();
    let mut server = server(&home);
    server.value("build_tool", echo_module("echo"));
    let value = json!({"text": "重要 ★ 🎉 é \u{0} \" \\ \u{7f} \u{2028}", "empty": "", "deep": {"a": [[], {}, null, -0.5]}});
    assert_eq!(server.value("echo", value.clone()), value);
}
