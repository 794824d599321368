//! The subcommands, as a shell sees them: what they print, and their exit codes.

use std::fs;

use serde_json::{Value, json};
use skillz_test_support::{Home, Run, filters, run};

use crate::skillz;

/// A home with two tools in it that need no build.
fn home_with_tools() -> Home {
    let home = Home::new();
    home.write_tool(
        &json!({
            "name": "greet", "description": "Greets somebody.", "tool_type": "script", "interpreter": "bash", "entry_file": "main.sh",
            "input_schema": {"type": "object", "properties": {"who": {"type": "string"}}, "required": ["who"]},
            "examples": [{"arguments": {"who": "you"}, "contains": "you"}],
        }),
        "read -r request; echo \"hello $request\" | sed 's/.*\"who\":\"\\([^\"]*\\)\".*/hello \\1/'\n",
    );
    home.write_tool(
        &json!({"name": "fails", "description": "Fails.", "tool_type": "script", "interpreter": "bash", "entry_file": "main.sh"}),
        "echo 'no luck' >&2; exit 7\n",
    );
    home
}

/// Exit code, stdout and stderr as one text.
fn session(home: &Home, arguments: &[&str]) -> String {
    let (code, stdout, stderr) = run(skillz(), home, arguments);
    format!("exit code {code}\n--- stdout\n{stdout}--- stderr\n{stderr}")
}

macro_rules! assert_session {
    ($home:expr, $arguments:expr, @$expected:literal) => {
        let filters = filters(&$home);
        let filters: Vec<(&str, &str)> = filters.iter().map(|(pattern, name)| (pattern.as_str(), *name)).collect();
        insta::with_settings!({ filters => filters }, {
            insta::assert_snapshot!(session(&$home, &$arguments), @$expected);
        });
    };
}

#[test]
fn list_and_show() {
    let home = home_with_tools();
    assert_session!(home, ["list"], @r"
    exit code 0
    --- stdout
    fails  script  1.0.0  Fails.
    greet  script  1.0.0  Greets somebody.
    --- stderr
    ");
    assert_session!(home, ["show", "nothing"], @r"
    exit code 3
    --- stdout
    --- stderr
    error: There is no tool `nothing`
    hint: `skillz list` shows all tools, `skillz list QUESTION` finds one
    ");
    let (code, stdout, _) = run(skillz(), &home, &["show", "greet", "--output", "json"]);
    let shown: Value = serde_json::from_str(&stdout).expect("JSON");
    assert_eq!((code, &shown["manifest"]["description"]), (0, &json!("Greets somebody.")));
}

#[test]
fn call_and_its_exit_codes() {
    let home = home_with_tools();
    assert_session!(home, ["call", "greet", "who=world"], @r"
    exit code 0
    --- stdout
    hello world
    --- stderr
    ");
    let exit = |arguments: &[&str]| run(skillz(), &home, arguments).0;
    assert_eq!(exit(&["call", "fails"]), 1, "the tool failed");
    assert_eq!(exit(&["call", "greet"]), 2, "an argument is missing");
    assert_eq!(exit(&["call", "greet", "who"]), 2, "no pair");
    assert_eq!(exit(&["call", "nothing"]), 3, "no such tool");
    assert_eq!(exit(&["no-such-command"]), 2);
    assert_eq!(exit(&["--port", "x"]), 2);
    assert_eq!(exit(&["--version"]), 0);
    let (code, stdout, _) = Run::new(skillz(), &home)
        .arguments(&["call", "greet", "--json", "-", "--output", "json"])
        .output_with_input(r#"{"who": "stdin"}"#);
    let result: Value = serde_json::from_str(&stdout).expect("JSON");
    assert_eq!((code, &result["content"][0]["text"]), (0, &json!("hello stdin")));
}

#[test]
fn examples_are_run() {
    let home = home_with_tools();
    let (code, stdout, stderr) = run(skillz(), &home, &["test", "greet"]);
    assert_eq!((code, stdout.as_str()), (0, "1 passed, 0 failed\n"), "{stderr}");
    assert_eq!(run(skillz(), &home, &["test", "nothing"]).0, 3);
}

#[test]
fn a_tool_is_made_by_hand_built_changed_and_exported() {
    let home = Home::new();
    for language in ["python", "javascript", "bash", "ruby", "perl", "php", "lua", "typescript", "rust"] {
        let name = format!("counts_{language}");
        let (code, _, stderr) = run(skillz(), &home, &["new", &name, "--lang", language]);
        assert_eq!(code, 0, "{language}: {stderr}");
        let (code, stdout, stderr) = run(skillz(), &home, &["build", &name]);
        assert_eq!(code, 0, "{language}: {stdout}{stderr}");
        let (code, stdout, stderr) = run(skillz(), &home, &["call", &name, "text=a b c d"]);
        assert_eq!((code, stdout.replace(' ', "").trim()), (0, "{\"words\":4}"), "{language}: {stderr}");
    }
    for (language, file) in [("py", "main.py"), ("js", "main.mjs"), ("ts", "main.ts"), ("sh", "main.sh"), ("rs", "src.rs")] {
        assert_eq!(run(skillz(), &home, &["new", &format!("short_{language}"), "--lang", language]).0, 0, "{language}");
        assert!(home.workspace().join(format!("short_{language}")).join(file).exists(), "{language}");
    }
    for (name, file, old, new) in [
        ("counts_python", "main.py", "limit: int = 10", "limit: int = 10, more: bool = False"),
        ("counts_rust", "src.rs", "limit: Option<usize>)", "limit: Option<usize>, _more: Option<bool>)"),
        ("counts_typescript", "main.ts", "limit?: number;", "limit?: number; more?: boolean;"),
    ] {
        let source = home.workspace().join(name).join(file);
        let code = fs::read_to_string(&source).expect("made").replace(old, new);
        fs::write(&source, code.replace("({ text, limit = 10 }", "({ text, limit = 10, more = false }")).expect("written");
        assert_eq!(run(skillz(), &home, &["build", name]).0, 0, "{name}");
        let (_, shown, _) = run(skillz(), &home, &["show", name]);
        assert!(shown.contains("more"), "the schema follows the code: {shown}");
    }
    assert_eq!(run(skillz(), &home, &["new", "counts_bash", "--lang", "bash"]).0, 4, "the folder is there already");
    assert_eq!(run(skillz(), &home, &["new", "Bad Name", "--lang", "bash"]).0, 2);
    assert_eq!(run(skillz(), &home, &["build", "nowhere"]).0, 3);

    let (code, _, stderr) = run(skillz(), &home, &["export", "counts_bash"]);
    assert_eq!(code, 0, "{stderr}");
    let archive = home.workspace().join("counts_bash-1.0.0.tar.gz");
    let names = std::process::Command::new("tar").arg("-tzf").arg(&archive).output().expect("tar runs");
    let names = String::from_utf8(names.stdout).expect("text");
    assert!(names.contains("counts_bash/manifest.json") && names.contains("counts_bash/main.sh"), "{names}");
    assert_eq!(run(skillz(), &home, &["export", "counts_bash"]).0, 4, "the archive is there already");
}

#[test]
fn versions_diff_rollback_and_delete() {
    let home = Home::new();
    assert_eq!(run(skillz(), &home, &["new", "greet", "--lang", "bash"]).0, 0);
    let folder = home.workspace().join("greet");
    let mut manifest: Value =
        serde_json::from_str(&fs::read_to_string(folder.join("manifest.json")).expect("made")).expect("JSON");
    manifest["examples"] = json!([]);
    fs::write(folder.join("manifest.json"), manifest.to_string()).expect("an edit");
    for text in ["one", "two"] {
        fs::write(folder.join("main.sh"), format!("echo {text}\n")).expect("an edit");
        let (code, _, stderr) = run(skillz(), &home, &["build", "greet"]);
        assert_eq!(code, 0, "{stderr}");
    }
    let (_, stdout, _) = run(skillz(), &home, &["versions", "greet"]);
    assert!(stdout.contains("1.0.0") && stdout.contains("1.0.1"), "{stdout}");
    let (_, stdout, _) = run(skillz(), &home, &["diff", "greet", "1.0.0", "1.0.1"]);
    assert!(stdout.contains("-echo one") && stdout.contains("+echo two"), "{stdout}");
    let (code, _, stderr) = run(skillz(), &home, &["rollback", "greet", "1.0.0"]);
    assert_eq!(code, 0, "{stderr}");
    assert_eq!(run(skillz(), &home, &["call", "greet", "text=x"]).1, "one\n");
    assert_eq!(run(skillz(), &home, &["rollback", "greet", "9.9.9"]).0, 3);
    assert_eq!(run(skillz(), &home, &["delete", "greet"]).0, 0);
    assert_eq!(run(skillz(), &home, &["delete", "greet"]).0, 3);
    assert_eq!(run(skillz(), &home, &["rollback", "greet"]).0, 0);
    assert_eq!(run(skillz(), &home, &["call", "greet", "text=x"]).1, "one\n");
}

#[test]
fn history_tells_what_happened() {
    let home = home_with_tools();
    run(skillz(), &home, &["call", "greet", "who=world"]);
    run(skillz(), &home, &["call", "fails"]);
    let (code, stdout, _) = run(skillz(), &home, &["history", "--output", "json"]);
    let records: Value = serde_json::from_str(&stdout).expect("JSON");
    let tools: Vec<&str> = records.as_array().expect("a list").iter().filter_map(|record| record["tool_name"].as_str()).collect();
    assert_eq!((code, tools), (0, vec!["fails", "greet"]));
    let (_, stdout, _) = run(skillz(), &home, &["history", "--failed"]);
    assert!(stdout.contains("fails") && !stdout.contains("greet"), "{stdout}");
    assert!(!stdout.contains("world"), "arguments are not kept");
}

#[test]
fn memory_from_the_command_line() {
    let home = Home::new();
    let memory = |arguments: &[&str]| run(skillz(), &home, &[&["memory"], arguments].concat());
    assert_eq!(memory(&["store", "t", "k", "{\"a\": 1}"]).0, 0);
    assert_eq!(memory(&["store", "t", "other", "plain text"]).0, 0);
    assert_eq!(memory(&["update", "t", "k", "{\"b\": 2}"]).0, 0);
    let (_, stdout, _) = memory(&["get", "t", "k", "--output", "json"]);
    assert_eq!(serde_json::from_str::<Value>(&stdout).expect("JSON"), json!({"a": 1, "b": 2}));
    assert_eq!(memory(&["get", "t", "other"]).1, "plain text\n");
    assert_eq!(memory(&["list", "t"]).1, "k\nother\n");
    assert_eq!(memory(&["list", "t", "--prefix", "o"]).1, "other\n");
    assert_eq!(memory(&["delete", "t", "other"]).0, 0);
    assert_eq!(memory(&["delete", "t", "other"]).0, 3);
    assert_eq!(memory(&["get", "t", "other"]).0, 3);
    assert!(memory(&["stats"]).1.contains("1 keys"));
    assert_eq!(memory(&["store", "t", "", "x"]).0, 2, "a key has 1 to 512 bytes");
    assert_eq!(memory(&["clear", "t"]).0, 0);
    assert_eq!(memory(&["list", "t"]).1, "");
}

#[test]
fn nothing_but_the_answer_is_printed() {
    let home = home_with_tools();
    for arguments in [
        ["list", "--output", "json"].as_slice(),
        &["config", "--output", "json"],
        &["history", "--output", "json"],
        &["versions", "greet", "--output", "json"],
        &["memory", "stats", "--output", "json"],
    ] {
        let (code, stdout, stderr) = run(skillz(), &home, arguments);
        assert_eq!((code, stderr.as_str()), (0, ""), "{arguments:?}");
        serde_json::from_str::<Value>(&stdout).unwrap_or_else(|error| panic!("{arguments:?}: {error}"));
    }
    for shell in ["bash", "zsh", "fish"] {
        let (code, stdout, _) = run(skillz(), &home, &["completions", shell]);
        assert!(code == 0 && stdout.contains("skillz"), "{shell}");
    }
}

#[test]
fn a_reader_that_leaves_early_is_no_error() {
    let home = home_with_tools();
    let shell = format!("'{}' completions bash | head -n 1; echo ${{PIPESTATUS[0]}}", skillz().display());
    let output =
        std::process::Command::new("bash").args(["-c", &shell]).env("SKILLZ_HOME", home.path()).output().expect("bash runs");
    assert!(String::from_utf8_lossy(&output.stdout).ends_with("0\n"), "{output:?}");
    assert!(output.stderr.is_empty(), "{output:?}");
}

#[test]
fn the_demo_shows_a_whole_session_heavy() {
    let home = Home::new();
    let (code, stdout, stderr) = run(skillz(), &home, &["demo"]);
    assert_eq!(code, 0, "{stdout}{stderr}");
    for part in ["initialize", "build_tool", "register_script", "pipeline", "time_to_read", "minutes", "The session took"] {
        assert!(stdout.contains(part), "{part} is missing:\n{stdout}");
    }
}
