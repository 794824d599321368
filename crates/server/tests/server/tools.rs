//! Tools through both kinds of protocol: listing, calling, failing, publishing.

use crate::support::{Client, Rig, expose_all, lay_down};
use skillz_json::{Value, json};

const LEGACY: [&str; 4] = ["2024-11-05", "2025-03-26", "2025-06-18", "2025-11-25"];

fn every_client(rig: &Rig) -> Vec<Client> {
    let mut clients: Vec<Client> = LEGACY.iter().map(|version| rig.legacy(version, json!({}))).collect();
    clients.push(rig.modern(json!({})));
    clients
}

fn names(list: &Value) -> Vec<&str> {
    list["tools"].as_array().expect("tools").iter().map(|tool| tool["name"].as_str().expect("a name")).collect()
}

#[test]
fn a_published_tool_is_listed_and_called_in_every_protocol() {
    let rig = Rig::new();
    rig.publish("echo_back", "echo", |manifest| {
        manifest.input_schema = Some(json!({"type": "object", "properties": {"x": {"type": "integer"}}, "required": ["x"]}));
        manifest.output_schema = Some(json!({"type": "object"}));
        manifest.annotations = Some(skillz_json::from_value(json!({"title": "Echo", "readOnlyHint": true})).expect("valid"));
    });
    for mut client in every_client(&rig) {
        let list = client.request("tools/list", json!({}));
        let listed = names(&list);
        assert_eq!(listed.len(), 14, "{listed:?}");
        assert!(listed.is_sorted());
        let tool = list["tools"].as_array().expect("tools").iter().find(|tool| tool["name"] == "echo_back").expect("listed");
        assert_eq!(tool["annotations"]["readOnlyHint"], true);
        assert_eq!(tool["title"], "Echo");
        assert_eq!(tool["outputSchema"], json!({"type": "object"}));
        let result = client.call("echo_back", json!({"x": 9_007_199_254_740_993_i64}));
        assert_eq!(result["structuredContent"], json!({"x": 9_007_199_254_740_993_i64}));
        assert_eq!(result["content"], json!([{"type": "text", "text": r#"{"x":9007199254740993}"#}]));
        let failure = client.failure("echo_back", json!({"x": "no"}));
        assert!(failure.contains('x'), "{failure}");
    }
}

#[test]
fn the_stateless_protocol_says_what_it_must() {
    let rig = Rig::new();
    let mut client = rig.modern(json!({}));
    let discovered = client.request("server/discover", json!({}));
    assert_eq!(discovered["supportedVersions"].as_array().map(Vec::len), Some(5));
    assert_eq!(discovered["_meta"]["io.modelcontextprotocol/serverInfo"]["name"], "skillz");
    for (method, params) in [
        ("server/discover", json!({})),
        ("tools/list", json!({})),
        ("prompts/list", json!({})),
        ("resources/list", json!({})),
        ("resources/templates/list", json!({})),
        ("resources/read", json!({"uri": "skillz://protocol"})),
    ] {
        let result = client.request(method, params);
        assert_eq!(result["resultType"], "complete", "{method}");
        assert!(result["ttlMs"].as_u64().is_some() && result["cacheScope"].is_string(), "{method}: {result}");
    }
    let mut old = rig.legacy("2025-11-25", json!({}));
    assert!(old.request("tools/list", json!({})).get("resultType").is_none());
}

#[test]
fn unknown_tools_and_wrong_params_are_protocol_errors() {
    let rig = Rig::new();
    rig.publish("word_count", "echo", |_| ());
    for mut client in every_client(&rig) {
        let error = client.refused("tools/call", json!({"name": "word_cuont"}));
        assert_eq!(error["code"], -32602, "{error}");
        assert!(error["message"].as_str().expect("a message").contains("word_count"), "{error}");
        for params in [
            json!({}),
            json!({"name": 5}),
            json!({"name": "word_count", "arguments": [1]}),
            json!({"name": "word_count", "arguments": "x"}),
        ] {
            assert_eq!(client.refused("tools/call", params.clone())["code"], -32602, "{params}");
        }
        assert_eq!(client.refused("tools/list", json!({"cursor": "nonsense"}))["code"], -32602);
        assert_eq!(client.call("word_count", Value::Null)["structuredContent"], json!({}));
        let failure = client.failure("call_tool", json!({"tool_name": "word_cuont"}));
        assert!(failure.contains("word_count"), "{failure}");
    }
}

#[test]
fn tools_are_made_listed_called_and_deleted_by_built_ins() {
    let rig = Rig::new();
    let mut client = rig.legacy("2025-11-25", json!({}));
    let made = client.call(
        "register_script",
        json!({"name": "say", "description": "Says", "code": "echo",
        "examples": [{"arguments": {"a": 1}, "result": {"a": 1}}]}),
    );
    assert_eq!(made["structuredContent"]["version"], "1.0.0", "{made}");
    assert_eq!(made["structuredContent"]["examples"]["passed"], 1);
    let text: Value = serde_json::from_str(made["content"][0]["text"].as_str().expect("text")).expect("compact JSON");
    assert_eq!(text, made["structuredContent"]);
    assert!(names(&client.request("tools/list", json!({}))).contains(&"say"));
    let called = client.call("call_tool", json!({"tool_name": "say", "arguments": "{\"b\":2}"}));
    assert_eq!(called["structuredContent"], json!({"b": 2}));
    let listed = client.call("list_tools", json!({"detail": "names"}));
    assert_eq!(listed["structuredContent"]["script"], json!(["say"]), "{listed}");
    let failure = client.failure("register_script", json!({"name": "say", "description": "Says", "code": "echo"}));
    assert!(failure.contains("overwrite"), "{failure}");
    let tested = client.call("test_tool", json!({"tool_name": "say"}));
    assert_eq!(tested["isError"], false, "{tested}");
    client.call("delete_tool", json!({"tool_name": "say"}));
    assert!(!names(&client.request("tools/list", json!({}))).contains(&"say"));
    client.call("version", json!({"action": "rollback", "tool_name": "say"}));
    assert!(names(&client.request("tools/list", json!({}))).contains(&"say"));
}

#[test]
fn failures_of_built_ins_say_cause_and_fix() {
    let rig = Rig::new();
    let mut client = rig.legacy("2025-06-18", json!({}));
    for (name, arguments, parts) in [
        ("build_tool", json!({"name": "x", "description": "y"}), vec!["exactly one of"]),
        ("build_tool", json!({"name": "x", "description": "y", "wasm_base64": "%"}), vec!["base64"]),
        ("build_tool", json!({"description": "y", "colour": 1}), vec!["`colour`", "\"name\"", "`wasm_base64`", "`dry_run`"]),
        ("register_script", json!({"name": "../x", "description": "y", "code": "echo"}), vec!["../x"]),
        (
            "register_script",
            json!({"name": "x", "description": "y", "code": "echo", "permissions": {"netwrok": true}}),
            vec!["netwrok", "`network`"],
        ),
        ("register_script", json!({"name": "x", "description": "y", "code": "echo", "extension": "../py"}), vec!["extension"]),
        ("call_tool", json!({"tool_name": "memory"}), vec!["directly"]),
        ("memory", json!({"action": "store", "key": "k"}), vec!["`value`"]),
        ("memory", json!({"action": "sing"}), vec!["action"]),
        ("pipeline", json!({"action": "create", "name": "p"}), vec!["`description`"]),
        ("version", json!({"action": "list"}), vec!["tool_name"]),
        ("services", json!({"action": "list"}), vec!["not there yet"]),
        ("import_tool", json!({"source": "x"}), vec!["nothing to fetch sources with"]),
        ("import_mcp", json!({"name": "x"}), vec!["cannot import other servers"]),
    ] {
        let failure = client.failure(name, arguments.clone());
        for part in parts {
            assert!(failure.contains(part), "{name} {arguments}: {failure}");
        }
    }
}

#[test]
fn memory_keeps_what_it_is_given() {
    let rig = Rig::new();
    let mut client = rig.legacy("2025-06-18", json!({}));
    let mut memory = |arguments: Value| client.call("memory", arguments)["structuredContent"].clone();
    assert_eq!(memory(json!({"action": "store", "key": "k", "value": {"a": 1}})), json!({"stored": true}));
    assert_eq!(memory(json!({"action": "update", "key": "k", "value": {"b": 2}}))["value"], json!({"a": 1, "b": 2}));
    assert_eq!(memory(json!({"action": "get", "key": "k"})), json!({"found": true, "value": {"a": 1, "b": 2}}));
    assert_eq!(memory(json!({"action": "get", "key": "k", "tool_name": "other"})), json!({"found": false, "value": null}));
    assert_eq!(memory(json!({"action": "store", "key": "null", "value": null})), json!({"stored": true}));
    assert_eq!(memory(json!({"action": "get", "key": "null"})), json!({"found": true, "value": null}));
    assert_eq!(memory(json!({"action": "list", "prefix": "k"})), json!({"keys": ["k"]}));
    assert_eq!(memory(json!({"action": "list", "key": "k"})), json!({"keys": ["null"]}));
    assert_eq!(memory(json!({"action": "stats"}))["tools"][0]["entries"], 2);
    assert_eq!(memory(json!({"action": "delete", "key": "k"})), json!({"deleted": true}));
    assert_eq!(memory(json!({"action": "clear"})), json!({"cleared": 1}));
}

#[test]
fn results_keep_their_form_and_long_ones_are_linked() {
    let rig = Rig::new();
    rig.publish("picture", "image", |_| ());
    rig.publish("list", "list", |manifest| manifest.output_schema = Some(json!({"type": "array"})));
    rig.publish("long", &"x".repeat(300_000), |_| ());
    rig.publish("fails", "fail", |_| ());
    let mut old = rig.legacy("2025-11-25", json!({}));
    let mut new = rig.modern(json!({}));
    for client in [&mut old, &mut new] {
        assert_eq!(
            client.call("picture", json!({}))["content"][0],
            json!({"type": "image", "data": "aGk=", "mimeType": "image/png"})
        );
        assert_eq!(client.failure("fails", json!({})), "The word `fail` fails\n\nSay another word");
        let long = client.call("long", json!({}));
        let link =
            long["content"].as_array().expect("blocks").iter().find(|block| block["type"] == "resource_link").expect("a link");
        let read = client.request("resources/read", json!({"uri": link["uri"]}));
        assert_eq!(read["contents"][0]["text"].as_str().map(str::len), Some(300_000));
    }
    let listed = |client: &mut Client| {
        let list = client.request("tools/list", json!({}));
        list["tools"].as_array().expect("tools").iter().find(|tool| tool["name"] == "list").expect("listed")["outputSchema"]
            .clone()
    };
    assert_eq!((listed(&mut old), listed(&mut new)), (Value::Null, json!({"type": "array", "items": {}})));
    let (old, new) = (old.call("list", json!({})), new.call("list", json!({})));
    assert_eq!((&old["structuredContent"], &old["content"][0]["text"]), (&Value::Null, &json!("[1,2]")));
    assert_eq!(new["structuredContent"], json!([1, 2]));
}

#[test]
fn one_odd_schema_spoils_no_list() {
    let rig = Rig::new();
    let odd = json!({"anyOf": [
        {"type": "object", "properties": {"a": {"type": "string"}}, "required": ["a"]},
        {"type": "object", "properties": {"b": {"$ref": "#/$defs/n"}}, "required": ["b"]}],
        "$defs": {"n": {"type": "object", "properties": {"list": {"type": "array"}, "n": {"$ref": "#/$defs/n"}}}}});
    rig.publish("odd", "echo", |manifest| manifest.input_schema = Some(odd.clone()));
    for mut client in every_client(&rig) {
        let modern = client.meta.is_some();
        let list = client.request("tools/list", json!({}));
        let schema =
            list["tools"].as_array().expect("tools").iter().find(|tool| tool["name"] == "odd").expect("listed")["inputSchema"]
                .clone();
        assert_eq!(schema["type"], "object");
        assert_eq!(schema.get("anyOf").is_some(), modern, "{schema}");
        let b = if modern { &schema["anyOf"][1]["properties"]["b"] } else { &schema["properties"]["b"] };
        assert_eq!(b["properties"]["list"], json!({"type": "array", "items": {}}), "{schema}");
        assert_eq!(b["properties"]["n"], json!({"$ref": "#/$defs/n"}));
        client.failure("odd", json!({"c": 1}));
        assert_eq!(client.call("odd", json!({"a": "x"}))["structuredContent"], json!({"a": "x"}));
    }
}

#[test]
fn long_lists_come_in_pages() {
    let rig = Rig::with(|settings| {
        expose_all(settings);
        for number in 0..260 {
            lay_down(settings, &format!("tool_{number:03}"), "echo");
        }
    });
    let mut client = rig.legacy("2025-11-25", json!({}));
    let first = client.request("tools/list", json!({}));
    let second = client.request("tools/list", json!({"cursor": first["nextCursor"]}));
    assert!(second.get("nextCursor").is_none());
    let all: Vec<&str> = names(&first).into_iter().chain(names(&second)).collect();
    assert_eq!(all.len(), 273);
    assert!(all.is_sorted());
}
