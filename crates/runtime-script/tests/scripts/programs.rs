//! How programs get their arguments, where they start, and whom they talk to.

use std::{fs, sync::Arc};

use skillz_json::{Value, json};
use skillz_sandbox::SandboxKind;
use skillz_tool::{FolderGrant, FolderMode, FolderPermission, Protocol, ToolRuntime};

use crate::support::{Bench, FakeHost, Script, script, value, with_protocol};

fn with_argv(mut script: Script<'_>, argv: Value) -> Script<'_> {
    script.manifest.argv = Some(argv);
    script
}

#[tokio::test]
async fn arguments_come_on_the_command_line() {
    let bench = Bench::new();
    let argparse = "import argparse\np = argparse.ArgumentParser()\np.add_argument('who')\np.add_argument('--shout', action='store_true')\n\
                    a = p.parse_args()\nprint(a.who.upper() if a.shout else a.who)";
    for (interpreter, code) in [
        ("python3", argparse),
        ("python3", "import sys\nwho = sys.argv[1]\nprint(who.upper() if '--shout' in sys.argv else who)"),
        ("bash", "who=$1; [ \"$2\" = --shout ] && who=${who^^}; echo \"$who\""),
        ("node", "const [who, flag] = process.argv.slice(2); console.log(flag ? who.toUpperCase() : who)"),
    ] {
        let argv = json!(["$input.who", ["--shout", "$input.shout"]]);
        let tool = bench.register(with_argv(script("greets", interpreter, code), argv)).await;
        assert_eq!(value(bench.run(&tool, json!({"who": "a b"})).await), json!("a b\n"), "{code}");
        assert_eq!(value(bench.run(&tool, json!({"who": "a b", "shout": true})).await), json!("A B\n"), "{code}");
        assert_eq!(value(bench.run(&tool, json!({"who": "a b", "shout": false})).await), json!("a b\n"), "{code}");
        let error = bench.run(&tool, json!({"who": "--help"})).await.unwrap_err();
        assert!(error.text().contains("begins with `-`"), "{error}");
    }
    let (prepared, _) = bench.prepare(script("lacks", "python3", argparse)).await.unwrap();
    let fitting = "\"argv\": [\"$input.who\",[\"--shout\",\"$input.shout\"]]";
    assert!(prepared.notes.iter().any(|note| note.contains(fitting)), "{:?}", prepared.notes);
    let tool = bench.register(script("lacks", "python3", argparse)).await;
    let error = bench.run(&tool, json!({"who": "x"})).await.unwrap_err();
    assert!(error.text().contains(fitting), "{error}");
    let function = with_argv(script("function", "python3", "def run(): return 1"), json!([]));
    assert!(bench.prepare(function).await.unwrap_err().text().contains("`argv`"));
}

#[tokio::test]
async fn the_kits_talk_under_any_protocol() {
    for sandbox in [SandboxKind::None, SandboxKind::Auto] {
        let bench = Bench::with(skillz_runtime_script::ScriptBounds::default(), sandbox);
        for (interpreter, code) in [
            (
                "python3",
                "import skillz, sys\nsys.stdin.readline()\nskillz.memory.set('k', len(skillz.arguments()['text']))\nprint('fine')",
            ),
            ("node", "skillz.arguments().then((a) => skillz.memory.set('k', a.text.length)).then(() => console.log('fine'))"),
        ] {
            for protocol in [Protocol::Json, Protocol::JsonRpc] {
                let tool = bench.register(with_protocol(script("talks", interpreter, code), protocol)).await;
                for length in [5_usize, 200_000] {
                    let host = Arc::new(FakeHost::default());
                    let arguments = json!({"text": "x".repeat(length)});
                    assert_eq!(value(bench.run_with(&tool, arguments, &host).await), json!("fine\n"), "{code}");
                    assert_eq!(host.memory.lock().unwrap().get("k"), Some(&json!(length)), "{code}");
                }
            }
        }
    }
}

#[tokio::test]
async fn shell_scripts_of_other_systems_run() {
    let bench = Bench::new();
    let code = "#!/usr/bin/env bash\r\nset -euo pipefail\r\nif true; then\r\n  echo yes\r\nfi\r\n";
    let mut written = script("written", "", code);
    written.interpreter = None;
    let tool = bench.register(written).await;
    assert_eq!(value(bench.run(&tool, json!({})).await), json!("yes\n"));
    // Made by hand.
    fs::write(tool.directory.join(tool.manifest.entry_file.as_deref().unwrap()), code).unwrap();
    let by_hand = crate::support::tool(tool.manifest.clone(), &tool.directory);
    assert_eq!(value(bench.run(&by_hand, json!({})).await), json!("yes\n"));
}

#[tokio::test]
async fn scripts_start_in_the_first_root_where_they_ask_for_it() {
    let bench = Bench::with(skillz_runtime_script::ScriptBounds::default(), SandboxKind::Auto);
    let root = tempfile::tempdir().unwrap();
    fs::write(root.path().join("json.py"), "raise SystemExit('taken from the root')").unwrap();
    fs::write(root.path().join("data.txt"), "here").unwrap();
    let other = tempfile::tempdir().unwrap();
    fs::write(other.path().join("data.txt"), "there").unwrap();
    for (name, interpreter, code) in [
        ("starts", "python3", "import json\nprint(open('data.txt').read(), end='')"),
        (
            "python",
            "python3",
            "import json\ndef run():\n    open('made.txt', 'w').write('x')\n    return open('data.txt').read()",
        ),
        (
            "node",
            "node",
            "import fs from 'node:fs'; export function run() { fs.writeFileSync('made.txt', 'x'); return fs.readFileSync('data.txt', 'utf8') }",
        ),
    ] {
        let mut starts = script(name, interpreter, code);
        starts.manifest.working_directory = Some("$ROOT".into());
        starts.manifest.permissions.fs = vec![FolderPermission { path: "$ROOT".into(), mode: FolderMode::Rw }];
        let tool = bench.register(starts).await;
        for (root, expected) in [(&root, "here"), (&root, "here"), (&other, "there")] {
            let mut call = bench.call(&tool, json!({}));
            call.context.roots = vec![root.path().to_path_buf()];
            call.grants.folders = vec![FolderGrant { path: root.path().to_path_buf(), mode: FolderMode::Rw }];
            let host = Arc::new(FakeHost::default());
            assert_eq!(value(bench.runtime.call(call, host).await), json!(expected), "{name}");
            assert!(root.path().join("data.txt").exists(), "{name}: what lies in a root is not the worker's to clean up");
            assert_eq!(root.path().join("made.txt").exists(), name != "starts", "{name}");
            let _ = fs::remove_file(root.path().join("made.txt"));
        }
    }
    let mut without = script("without", "python3", "print(1)");
    without.manifest.working_directory = Some("$ROOT".into());
    assert!(bench.prepare(without).await.unwrap_err().text().contains("$ROOT"));
}

#[tokio::test]
async fn a_node_that_is_too_old_is_refused() {
    use std::os::unix::fs::PermissionsExt;
    let bench = Bench::new();
    let folder = tempfile::tempdir().unwrap();
    let node = folder.path().join("node");
    for (version, fits) in [("v16.20.2", false), ("v4.0.0", false), ("v18.0.0", true), ("v24.1.0", true), ("odd", true)] {
        fs::write(&node, format!("#!/bin/sh\necho {version}\n")).unwrap();
        fs::set_permissions(&node, fs::Permissions::from_mode(0o755)).unwrap();
        let refused = bench.prepare(script("old", node.to_str().unwrap(), "console.log(1)")).await.err();
        assert_eq!(refused.is_none(), fits, "{version}: {refused:?}");
        assert!(refused.is_none_or(|error| error.text().contains("version 18 or newer")), "{version}");
    }
}
