//! Tools of Skillz 0.8, copied into the tools folder as they are.

use std::fs;

use serde_json::{Value, json};
use skillz_test_support::{Home, fixture};

use crate::server;

fn home_with_old_tools() -> Home {
    let home = Home::new();
    home.copy_tools(&fixture(env!("CARGO_MANIFEST_DIR"), "tools-0.8"));
    home
}

#[test]
fn they_all_load_and_run_unchanged() {
    let home = home_with_old_tools();
    let mut server = server(&home);
    let names = server.tool_names();
    for name in ["count_twice", "counter", "fibonacci", "hello_sh", "json_processor", "uses_six", "word_counter"] {
        assert!(names.iter().any(|listed| listed == name), "{name} is not among {names:?}");
    }
    assert_eq!(server.value("word_counter", json!({"text": "one two three"})), json!({"count": 3}));
    assert_eq!(server.value("hello_sh", json!({})), "hello again from bash");
    assert_eq!(server.value("counter", json!({})), json!({"n": 1}));
    assert_eq!(server.value("counter", json!({})), json!({"n": 2}));
    let numbers = server.value("fibonacci", json!({"n": 10}));
    assert!(numbers.to_string().contains("21 34"), "{numbers}");
    server.value("json_processor", json!({"a": 1}));
    assert!(fs::exists(home.tools().join("word_counter/SKILL.md")).expect("readable"), "nothing was changed");
}

#[test]
fn their_pipelines_run() {
    let home = home_with_old_tools();
    let mut server = server(&home);
    assert_eq!(server.value("count_twice", json!({"text": "a b"})), json!({"count": 3}));
}

#[test]
fn their_older_versions_are_there() {
    let home = home_with_old_tools();
    let mut server = server(&home);
    let versions = server.value("version", json!({"action": "list", "tool_name": "fibonacci"}));
    let listed: Vec<&str> =
        versions["versions"].as_array().expect("a list").iter().filter_map(|entry| entry["version"].as_str()).collect();
    assert!(listed.contains(&"1.0.0") && listed.contains(&"1.0.1"), "{versions}");
    assert_eq!(versions["current"], json!("1.0.1"));
    let old = server.value("call_tool", json!({"tool_name": "hello_sh", "version": "1.0.0"}));
    assert_eq!(old, Value::from("hello from bash"));
}

#[test]
fn a_change_makes_a_manifest_of_a_skill() {
    let home = home_with_old_tools();
    let mut server = server(&home);
    let code = "import json, sys\nprint(json.dumps({'count': 99}))\n";
    server.value(
        "register_script",
        json!({"name": "word_counter", "description": "Counts words in text", "code": code, "interpreter": "python3", "overwrite": true}),
    );
    assert_eq!(server.value("word_counter", json!({"text": "x"})), json!({"count": 99}));
    let manifest = fs::read_to_string(home.tools().join("word_counter/manifest.json")).expect("a manifest");
    let manifest: Value = serde_json::from_str(&manifest).expect("JSON");
    assert_eq!(manifest["description"], json!("Counts words in text"));
    let versions = server.value("version", json!({"action": "list", "tool_name": "word_counter"}));
    assert_eq!(versions["versions"].as_array().expect("a list").len(), 2, "{versions}");
}

#[test]
fn a_broken_manifest_is_reported_and_hides_nothing() {
    let home = home_with_old_tools();
    let folder = home.tools().join("broken");
    fs::create_dir_all(&folder).expect("a folder");
    let text = "{\n  \"name\": \"broken\",\n  \"description\": oops\n}\n";
    fs::write(folder.join("manifest.json"), text).expect("a manifest");
    let mut server = server(&home);
    assert_eq!(server.value("word_counter", json!({"text": "a"})), json!({"count": 1}));
    let listed = server.value("list_tools", json!({}));
    let broken = listed["broken"].to_string();
    assert!(broken.contains("broken") && broken.contains("manifest.json") && broken.contains('3'), "{listed}");
    drop(server);
    assert_eq!(fs::read_to_string(folder.join("manifest.json")).expect("still there"), text);
}
