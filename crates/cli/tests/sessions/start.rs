//! How the server starts: settings that are wrong, streams that are closed, logs that go where they belong.

use std::fs;

use serde_json::json;
use skillz_test_support::{Era, Home, Run, run};

use crate::{server, skillz};

#[test]
fn a_broken_configuration_names_file_and_line() {
    let home = Home::new().with_config("port = 1\n\n[policy]\nnetwrok = \"deny\"\n");
    let (code, stdout, stderr) = run(skillz(), &home, &[]);
    assert_eq!((code, stdout.as_str()), (2, ""));
    assert!(stderr.contains("config.toml:4") && stderr.contains("policy.netwrok"), "{stderr}");
    let home = Home::new().with_config("port = = 1\n");
    let (code, _, stderr) = run(skillz(), &home, &["list"]);
    assert_eq!(code, 2);
    assert!(stderr.contains("config.toml:1"), "{stderr}");
}

#[test]
fn a_workspace_cannot_widen_anything() {
    let home = Home::new();
    fs::write(home.workspace().join(".skillz.toml"), "sandbox = \"none\"\n").expect("a file");
    let (code, _, stderr) = run(skillz(), &home, &["list"]);
    assert_eq!(code, 2);
    assert!(stderr.contains(".skillz.toml:1") && stderr.contains("narrow"), "{stderr}");
}

#[test]
fn settings_tell_where_they_came_from() {
    let home = Home::new().with_config("expose = \"all\"\n[http]\ntoken = \"hunter2\"\n");
    let (code, stdout, _) =
        Run::new(skillz(), &home).arguments(&["config", "--output", "json"]).variable("SKILLZ_PORT", "99").output();
    assert_eq!(code, 0);
    let shown: serde_json::Value = serde_json::from_str(&stdout).expect("JSON");
    let setting =
        |key: &str| shown.as_array().and_then(|all| all.iter().find(|one| one["key"] == json!(key))).expect(key).clone();
    assert_eq!(setting("port")["source"], json!("variable SKILLZ_PORT"));
    assert!(setting("expose")["source"].as_str().is_some_and(|source| source.ends_with("config.toml:1")));
    assert!(!stdout.contains("hunter2"));
}

#[test]
fn logs_go_to_stderr_in_the_form_asked_for() {
    let home = Home::new();
    let run = Run::new(skillz(), &home).arguments(&["--log-format", "json"]).variable("SKILLZ_LOG", "debug");
    let mut server = run.connect(Era::NEWEST_HANDSHAKE);
    server.tool_names();
    let (_, stderr) = server.close();
    for line in stderr.lines() {
        serde_json::from_str::<serde_json::Value>(line).unwrap_or_else(|error| panic!("{error}: {line}"));
    }
    assert!(!stderr.is_empty());
}

#[test]
fn a_closed_stderr_is_no_reason_to_stop() {
    let home = Home::new();
    let shell = format!("exec '{}' 2>&-", skillz().display());
    let mut command = std::process::Command::new("bash");
    command.args(["-c", &shell]).env("SKILLZ_HOME", home.path()).env("SKILLZ_LOG", "trace");
    command.stdin(std::process::Stdio::piped()).stdout(std::process::Stdio::piped());
    let mut child = command.spawn().expect("bash starts");
    let requests = concat!(
        r#"{"jsonrpc":"2.0","id":1,"method":"initialize","params":{"protocolVersion":"2025-11-25","capabilities":{},"clientInfo":{"name":"t","version":"1"}}}"#,
        "\n",
        r#"{"jsonrpc":"2.0","method":"notifications/initialized"}"#,
        "\n",
        r#"{"jsonrpc":"2.0","id":2,"method":"tools/list"}"#,
        "\n",
    );
    std::io::Write::write_all(&mut child.stdin.take().expect("a pipe"), requests.as_bytes()).expect("it reads");
    let output = child.wait_with_output().expect("it ends");
    assert!(output.status.success(), "{}", output.status);
    let lines = String::from_utf8(output.stdout).expect("text");
    assert_eq!(lines.lines().count(), 2, "{lines}");
}

#[test]
fn a_thousand_tools_are_served() {
    let home = Home::new();
    for number in 0..1_000 {
        let manifest = json!({
            "name": format!("tool_{number:04}"), "description": format!("Number {number}"), "tool_type": "script", "interpreter": "bash",
            "entry_file": "main.sh",
        });
        home.write_tool(&manifest, "echo hello");
    }
    let mut server = server(&home);
    assert_eq!(server.value("list_tools", json!({"detail": "names", "limit": 1}))["total"], json!(1_000));
    assert_eq!(server.value("tool_0999", json!({})), "hello");
}
