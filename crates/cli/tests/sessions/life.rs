//! The life of tools: built, registered, called, changed, deleted, and there again after a restart.

use serde_json::json;
use skillz_test_support::{Era, Home, Run, redacted};

use crate::{bash_tool, echo_module, server, skillz};

#[test]
fn a_tool_of_each_kind_lives_through_a_restart_in_both_eras() {
    let home = Home::new();
    for (index, era) in [Era::NEWEST_HANDSHAKE, Era::Stateless].into_iter().enumerate() {
        let mut server = Run::new(skillz(), &home).connect(era);
        let [module, bash, python] = ["module", "bash", "python"].map(|name| format!("{name}_{index}"));
        server.value("build_tool", echo_module(&module));
        server.value("register_script", bash_tool(&bash, r#"printf '{"said": %s}' "$SKILLZ_ARGUMENTS""#));
        server.value(
            "register_script",
            json!({"name": python, "description": "Doubles.", "code": "def run(n: int) -> dict:\n    return {'twice': 2 * n}\n"}),
        );
        let check = |server: &mut skillz_test_support::TestServer| {
            let names = server.tool_names();
            assert!([&module, &bash, &python].iter().all(|name| names.contains(name)), "{names:?}");
            assert_eq!(server.value(&module, json!({"a": [1]})), json!({"a": [1]}));
            assert_eq!(server.value(&bash, json!({"b": "x"})), json!({"said": {"b": "x"}}));
            assert_eq!(server.value(&python, json!({"n": 21})), json!({"twice": 42}));
        };
        check(&mut server);
        drop(server);
        check(&mut Run::new(skillz(), &home).connect(era));
    }
}

#[test]
fn a_rust_tool_is_built_tested_and_called() {
    let home = Home::new();
    let mut server = server(&home);
    let code = "#[skillz::tool]\nfn run(text: String, limit: Option<usize>) -> Result<Vec<String>, String> {\n    \
                if text.is_empty() { return Err(\"nothing to split\".into()); }\n    \
                Ok(text.split_whitespace().take(limit.unwrap_or(9)).map(str::to_owned).collect())\n}\n";
    let built = server.value(
        "build_tool",
        json!({
            "name": "split", "description": "Splits a text into words.", "code": code,
            "examples": [{"arguments": {"text": "a b"}, "result": ["a", "b"]}, {"arguments": {"text": ""}, "is_error": true}],
        }),
    );
    assert_eq!(
        redacted(built, &["size_bytes", "build_ms"]),
        json!({
            "name": "split", "version": "1.0.0", "kind": "wasm", "size_bytes": "[size_bytes]", "build_ms": "[build_ms]",
            "examples": {"passed": 2, "failed": 0},
        })
    );
    assert_eq!(server.value("split", json!({"text": "one two three", "limit": 2})), r#"["one","two"]"#);
    let failure = server.failure("split", json!({"text": ""}));
    assert!(failure.contains("nothing to split"), "{failure}");

    let broken = json!({"name": "split", "description": "d", "code": "fn main() { let x: u32 = \"no\"; }", "overwrite": true});
    let failure = server.failure("build_tool", broken);
    assert!(failure.contains("mismatched types") && failure.contains("src.rs:1"), "{failure}");
    assert_eq!(server.value("split", json!({"text": "still here"})), r#"["still","here"]"#);
}

#[test]
fn a_failing_example_keeps_the_old_version() {
    let home = Home::new();
    let mut server = server(&home);
    server.value("register_script", bash_tool("greet", "echo hello"));
    let mut changed = bash_tool("greet", "echo bye");
    changed["examples"] = json!([{"arguments": {}, "result": "hello"}]);
    let failure = server.failure("register_script", changed.clone());
    assert!(failure.contains("exists") || failure.contains("overwrite"), "an existing name needs `overwrite`: {failure}");
    changed["overwrite"] = json!(true);
    let failure = server.failure("register_script", changed);
    assert!(failure.contains("hello") && failure.contains("bye"), "expected and actual are shown: {failure}");
    assert_eq!(server.value("greet", json!({})), "hello");
}

#[test]
fn a_dry_run_publishes_nothing() {
    let home = Home::new();
    let mut server = server(&home);
    let mut arguments = bash_tool("ghost", "echo boo");
    arguments["dry_run"] = json!(true);
    server.value("register_script", arguments);
    assert_eq!(server.tool_names().len(), 13);
    assert!(!home.tools().join("ghost").exists());
}

#[test]
fn what_is_deleted_is_gone_until_it_is_brought_back() {
    let home = Home::new();
    let mut server = server(&home);
    server.value("register_script", bash_tool("greet", "echo hello"));
    server.value("delete_tool", json!({"tool_name": "greet"}));
    assert!(!server.tool_names().contains(&"greet".to_owned()));
    let answer = server.request("tools/call", json!({"name": "greet", "arguments": {}}));
    assert_eq!(answer["error"]["code"], json!(-32602), "{answer}");
    let failure = server.failure("delete_tool", json!({"tool_name": "greet"}));
    assert!(failure.contains("greet"), "{failure}");
    server.value("version", json!({"action": "rollback", "tool_name": "greet"}));
    assert_eq!(server.value("greet", json!({})), "hello");
    assert!(server.tool_names().contains(&"greet".to_owned()));
}

#[test]
fn an_unknown_tool_is_an_error_that_names_the_closest_ones() {
    let home = Home::new();
    let mut server = server(&home);
    server.value("register_script", bash_tool("word_count", "echo 1"));
    let answer = server.request("tools/call", json!({"name": "word_cuont", "arguments": {}}));
    assert_eq!(answer["error"]["code"], json!(-32602));
    assert!(answer["error"]["message"].as_str().expect("a text").contains("word_count"), "{answer}");
    let failure = server.failure("call_tool", json!({"tool_name": "word_cuont"}));
    assert!(failure.contains("word_count"), "{failure}");
}

#[test]
fn a_failing_script_tells_what_it_said_last() {
    let home = Home::new();
    let mut server = server(&home);
    server.value("register_script", bash_tool("fails", "echo some output; echo 'disk on fire' >&2; exit 3"));
    let failure = server.failure("fails", json!({}));
    assert!(failure.contains('3') && failure.contains("disk on fire"), "{failure}");
}
