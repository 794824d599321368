//! `skillz doctor` on a healthy machine and on a sick one.

use std::fs;

use serde_json::{Value, json};
use skillz_test_support::{Home, Run, run};

use crate::skillz;

fn examine(home: &Home) -> (i32, Value) {
    let (code, stdout, stderr) = run(skillz(), home, &["doctor", "--output", "json"]);
    (code, serde_json::from_str(&stdout).unwrap_or_else(|error| panic!("{error}: {stdout}{stderr}")))
}

fn check<'a>(checks: &'a Value, name: &str) -> &'a Value {
    checks
        .as_array()
        .and_then(|checks| checks.iter().find(|check| check["name"] == json!(name)))
        .unwrap_or_else(|| panic!("{name}: {checks}"))
}

#[test]
fn a_machine_that_can_test_skillz_is_healthy() {
    let home = Home::new();
    let (code, checks) = examine(&home);
    assert_eq!(code, 0, "{checks}");
    for name in ["rustc", "cargo", "wasm32-wasip1", "python3", "node", "bash", "ruby", "perl", "php", "lua", "sandbox"] {
        assert_eq!(check(&checks, name)["health"], json!("ok"), "{checks}");
    }
}

#[test]
fn a_broken_tool_is_named_with_file_line_and_fix() {
    let home = Home::new();
    let folder = home.tools().join("sick");
    fs::create_dir_all(&folder).expect("a folder");
    fs::write(folder.join("manifest.json"), "{\n  \"name\": 7\n}\n").expect("a manifest");
    let (code, checks) = examine(&home);
    assert_eq!(code, 1);
    let sick = check(&checks, "tool sick");
    assert_eq!(sick["health"], json!("broken"));
    assert!(sick["found"].as_str().is_some_and(|text| text.contains("manifest.json")), "{sick}");
    assert!(sick["fix"].is_string());
}

#[test]
fn what_can_be_fixed_is_fixed() {
    let home = Home::new();
    assert!(!home.tools().exists());
    assert_eq!(run(skillz(), &home, &["doctor", "--fix"]).0, 0);
    assert!(home.tools().is_dir());
}

#[test]
fn dependencies_that_no_tool_needs_are_removed() {
    let home = Home::new();
    let left_over = home.path().join("envs").join("0123456789abcdef0123456789abcdef");
    fs::create_dir_all(&left_over).expect("a folder");
    fs::write(left_over.join("big"), vec![0; 3_000_000]).expect("a file");
    let (_, checks) = examine(&home);
    let dependencies = check(&checks, "dependencies");
    assert_eq!(dependencies["health"], json!("absent"), "{checks}");
    assert!(
        dependencies["found"].as_str().is_some_and(|text| text.contains("1 installed environments (3 MB)")),
        "{dependencies}"
    );
    run(skillz(), &home, &["doctor", "--fix"]);
    assert!(!left_over.exists());
    assert_eq!(check(&examine(&home).1, "dependencies")["health"], json!("ok"));
}

#[test]
fn a_bare_path_does_not_hide_what_is_in_the_usual_places() {
    let home = Home::new();
    let user = home.root().display().to_string();
    let bin = home.root().join(".local/bin");
    fs::create_dir_all(&bin).expect("a folder");
    std::os::unix::fs::symlink("/usr/bin/env", bin.join("deno")).expect("a program");
    let run = Run::new(skillz(), &home)
        .arguments(&["doctor", "--output", "json"])
        .variable("PATH", "/usr/bin:/bin")
        .variable("HOME", &user);
    let (_, stdout, _) = run.output();
    let checks: Value = serde_json::from_str(&stdout).expect("JSON");
    assert_eq!(check(&checks, "deno")["health"], json!("ok"), "{checks}");
}
