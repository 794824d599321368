//! Names, and everything else that a caller gives and that could lead out of the tools folder.

use std::fs;

use serde_json::json;
use skillz_test_support::Home;

use crate::{bash_tool, echo_module, server};

#[test]
fn good_names_are_taken() {
    let home = Home::new();
    let mut server = server(&home);
    let longest = "z".repeat(48);
    for name in ["a", "word_count", "x9_", longest.as_str()] {
        server.value("register_script", bash_tool(name, "echo hello"));
        assert_eq!(server.value(name, json!({})), "hello", "{name}");
    }
}

#[test]
fn bad_names_are_refused_with_the_rule_and_a_suggestion() {
    let home = Home::new();
    let mut server = server(&home);
    let too_long = "a".repeat(49);
    let names = [
        "",
        " ",
        "A",
        "Abc",
        "9a",
        "_a",
        "a-b",
        "a b",
        "a.b",
        "a/b",
        "a\\b",
        "ä",
        "名前",
        "a\0b",
        "a\n",
        "a\u{202e}b",
        ".",
        "..",
        "../x",
        "../../x",
        "/etc/passwd",
        "a/../../x",
        "~",
        "-rf",
        "con:",
        "%2e%2e",
        too_long.as_str(),
    ];
    for name in names {
        for (built_in, arguments) in [("register_script", bash_tool(name, "echo 1")), ("build_tool", echo_module(name))] {
            let failure = server.failure(built_in, arguments);
            assert!(failure.contains("1 to 48 characters"), "{built_in} {name:?} does not say the rule: {failure}");
            assert!(failure.contains("would do"), "{built_in} {name:?} suggests nothing: {failure}");
        }
    }
    assert_only_tools(&home, &[]);
}

#[test]
fn names_of_built_in_tools_are_refused() {
    let home = Home::new();
    let mut server = server(&home);
    let built_in = server.tool_names();
    assert_eq!(built_in.len(), 13);
    for name in built_in {
        let failure = server.failure("register_script", bash_tool(&name, "echo 1"));
        assert!(failure.contains("built-in"), "{name}: {failure}");
    }
    assert_only_tools(&home, &[]);
}

#[test]
fn no_name_reaches_outside_when_tools_are_called_deleted_or_looked_at() {
    let home = Home::new();
    fs::create_dir_all(home.root().join("precious")).expect("a folder");
    fs::write(home.root().join("precious/manifest.json"), r#"{"name":"precious","description":"d","tool_type":"script"}"#)
        .expect("a file");
    let mut server = server(&home);
    for name in ["../../precious", "..", ".", "/etc", "a/../../../precious", "", ".trash", ".versions"] {
        for (tool, arguments) in [
            ("delete_tool", json!({"tool_name": name})),
            ("version", json!({"action": "list", "tool_name": name})),
            ("version", json!({"action": "rollback", "tool_name": name, "version": "1.0.0"})),
            ("call_tool", json!({"tool_name": name, "arguments": {}})),
            ("test_tool", json!({"tool_name": name})),
        ] {
            server.failure(tool, arguments);
        }
    }
    assert!(home.root().join("precious/manifest.json").exists());
}

#[test]
fn paths_in_manifests_do_not_lead_outside() {
    let home = Home::new();
    fs::write(home.root().join("secret.sh"), "echo stolen").expect("a file");
    for (name, entry) in [("up", "../../../secret.sh"), ("absolute", "/etc/passwd")] {
        let manifest =
            json!({"name": name, "description": "d", "tool_type": "script", "interpreter": "bash", "entry_file": entry});
        let folder = home.tools().join(name);
        fs::create_dir_all(&folder).expect("a folder");
        fs::write(folder.join("manifest.json"), manifest.to_string()).expect("a manifest");
    }
    let mut server = server(&home);
    for name in ["up", "absolute"] {
        let answer = server.request("tools/call", json!({"name": name, "arguments": {}}));
        let failed = answer.get("error").is_some() || answer["result"]["isError"] == json!(true);
        assert!(failed && !answer.to_string().contains("stolen"), "{name}: {answer}");
    }
}

/// The tools folder holds these tools and nothing else that shows.
fn assert_only_tools(home: &Home, expected: &[&str]) {
    let entries = fs::read_dir(home.tools()).map_or_else(|_| Vec::new(), |entries| entries.flatten().collect());
    let mut names: Vec<String> = entries.iter().map(|entry| entry.file_name().to_string_lossy().into_owned()).collect();
    names.retain(|name| !name.starts_with('.'));
    names.sort();
    assert_eq!(names, expected);
}
