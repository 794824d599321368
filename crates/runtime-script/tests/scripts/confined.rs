//! Scripts in the sandbox: what they may not, what they may once it is granted, and that everything else still works.

use std::{fs, net::TcpListener, path::Path, sync::Arc};

use crate::support::{Bench, FakeHost, script, value};
use skillz_json::{Value, json};
use skillz_runtime_script::ScriptBounds;
use skillz_sandbox::SandboxKind;
use skillz_tool::{EnvironmentVariable, FolderGrant, FolderMode, Host, NetworkPermission, ToolRuntime};

/// Tries everything, and tells what worked.
const PROBE: &str = r#"
def tries(port, folder, data, home):
    import os, socket
    def works(what, *rest):
        try:
            what(*rest)
            return True
        except OSError:
            return False
    def write(path):
        with open(path, "w") as file:
            file.write("x")
    return {
        "network": works(lambda: socket.create_connection(("127.0.0.1", port), 5).close()),
        "home": works(lambda: open(home + "/private").close()),
        "shadow": works(lambda: open("/etc/shadow").close()),
        "folder": works(os.listdir, folder),
        "write_folder": works(write, folder + "/written"),
        "write_tool": works(write, os.path.dirname(os.path.abspath(__file__)) + "/written"),
        "write_data": works(write, data + "/written"),
        "write_here": works(write, "written"),
        "processes": sum(name.isdigit() for name in os.listdir("/proc")) > 8,
        "secret": "SECRET" in os.environ,
    }
"#;

const NOTHING_GRANTED: [(&str, bool); 10] = [
    ("network", false),
    ("home", false),
    ("shadow", false),
    ("folder", false),
    ("write_folder", false),
    ("write_tool", false),
    ("write_data", true),
    ("write_here", true),
    ("processes", false),
    ("secret", false),
];

#[tokio::test]
async fn a_probe_gets_nothing_that_was_not_granted() {
    let bench = Bench::with(ScriptBounds::default(), SandboxKind::Auto);
    fs::write(bench.home.path().join("private"), "x").unwrap();
    let listener = TcpListener::bind("127.0.0.1:0").unwrap();
    let port = listener.local_addr().unwrap().port();
    let granted = tempfile::tempdir().unwrap();
    let function = format!("{PROBE}\ndef run(port, folder, data, home): return tries(port, folder, data, home)");
    let process = format!(
        "{PROBE}\nimport sys, json\nif __name__ == '__main__':\n    r = json.loads(sys.stdin.readline())\n    print(json.dumps(tries(**r)))"
    );
    for (name, code) in [("probe", function), ("probe_process", process)] {
        let tool = bench.register(script(name, "python3", &code)).await;
        let call = |grants: bool| {
            let mut call = bench.call(&tool, json!({}));
            let data = call.context.data_directory.clone();
            call.arguments = json!({"port": port, "folder": granted.path(), "data": data, "home": bench.home.path()})
                .as_object()
                .unwrap()
                .clone();
            if grants {
                call.grants.network = NetworkPermission::All(true);
                call.grants.folders = vec![FolderGrant { path: granted.path().to_path_buf(), mode: FolderMode::Rw }];
                call.grants.environment = vec![EnvironmentVariable { name: "SECRET".into(), value: "x".into() }];
            }
            let runtime = Arc::clone(&bench.runtime);
            async move { parsed(value(runtime.call(call, Arc::new(FakeHost::default()) as Arc<dyn Host>).await)) }
        };
        let seen = call(false).await;
        for (what, expected) in NOTHING_GRANTED {
            assert_eq!(seen[what], json!(expected), "{name}: {what} in {seen}");
        }
        let seen = call(true).await;
        for what in ["network", "folder", "write_folder", "secret"] {
            assert_eq!(seen[what], json!(true), "{name}: {what} in {seen}");
        }
        assert_eq!(seen["home"], json!(false));
        assert!(granted.path().join("written").exists());
        fs::remove_file(granted.path().join("written")).unwrap();
    }
}

fn parsed(value: Value) -> Value {
    match value {
        Value::String(text) => serde_json::from_str(&text).unwrap_or_else(|error| panic!("{text}: {error}")),
        value => value,
    }
}

#[tokio::test]
async fn every_interpreter_runs_inside() {
    let bench = Bench::with(ScriptBounds::default(), SandboxKind::Auto);
    for (interpreter, code, result) in [
        ("python3", "print('in')", json!("in\n")),
        ("python3", "import json, ssl, sqlite3, asyncio, ctypes\ndef run(): return 'in'", json!("in")),
        ("node", "console.log('in')", json!("in\n")),
        ("node", "export async function run() { return 'in' }", json!("in")),
        ("node", "export function run(a: {}): string { return 'in' }", json!("in")),
        ("bash", "echo in | cat", json!("in\n")),
        ("sh", "echo in", json!("in\n")),
        ("ruby", "puts 'in'", json!("in\n")),
        ("perl", "print \"in\\n\"", json!("in\n")),
        ("php", "<?php echo \"in\\n\";", json!("in\n")),
        ("lua", "print('in')", json!("in\n")),
    ] {
        assert_eq!(bench.once(interpreter, code, json!({})).await, result, "{interpreter}: {code}");
    }
}

#[tokio::test]
async fn a_compiled_program_is_a_tool() {
    for sandbox in [SandboxKind::None, SandboxKind::Auto] {
        let bench = Bench::with(ScriptBounds::default(), sandbox);
        let directory = bench.home.path().join("tools/compiled");
        fs::create_dir_all(&directory).unwrap();
        // `cat` prints its stdin back.
        fs::copy(Path::new("/bin/cat"), directory.join("prog")).unwrap();
        let mut compiled = script("compiled", "", "");
        compiled.interpreter = None;
        compiled.manifest.entry_file = Some("prog".into());
        compiled.manifest.protocol = Some(skillz_tool::Protocol::Json);
        let tool = bench.register(compiled).await;
        assert_eq!(tool.manifest.interpreter, None);
        let text = value(bench.run(&tool, json!({"a": 1})).await);
        assert_eq!(parsed(text), json!({"a": 1}));
    }
}

#[tokio::test]
async fn memory_and_processes_are_limited() {
    let bench = Bench::with(ScriptBounds::default(), SandboxKind::Auto);
    let hog = "def run(mb=0):\n    x = bytearray(mb * 1000000)\n    for i in range(0, len(x), 4096): x[i] = 1\n    return len(x)";
    let process = "import sys\nx = bytearray(600000000)\nfor i in range(0, len(x), 4096): x[i] = 1\nprint(len(x))";
    for (name, code) in [("hog", hog), ("hog_process", process)] {
        let mut limited = script(name, "python3", code);
        limited.manifest.limits.memory_mb = Some(200);
        let tool = bench.register(limited).await;
        let error = bench.run(&tool, if name == "hog" { json!({"mb": 600}) } else { json!({}) }).await.expect_err("is too large");
        assert!(error.text().contains("200 MiB"), "{error}");
        assert_eq!(error.kind, skillz_tool::ErrorKind::LimitExceeded);
        if name == "hog" {
            assert_eq!(value(bench.run(&tool, json!({"mb": 1})).await), json!(1_000_000));
        }
    }
    let mut bomb = script("bomb", "bash", "f() { f | f & }; f; sleep 30");
    bomb.manifest.limits.max_processes = Some(20);
    bomb.manifest.limits.timeout_ms = Some(3_000);
    let tool = bench.register(bomb).await;
    assert!(bench.run(&tool, json!({})).await.is_err());
    assert_eq!(bench.once("bash", "echo still here", json!({})).await, json!("still here\n"));
}

#[tokio::test]
async fn leftovers_end_inside_too() {
    let bench = Bench::with(ScriptBounds::default(), SandboxKind::Auto);
    let code = "import os, subprocess\nmark = 'skillz-leftover-' + os.urandom(6).hex()\ndef run():\n    for command in (['sleep', '300'], ['setsid', 'sleep', '301']):\n        subprocess.Popen(command, env={'MARK': mark, 'PATH': os.environ['PATH']})\n    return mark";
    let tool = bench.register(script("leaves", "python3", code)).await;
    let mark = value(bench.run(&tool, json!({})).await).as_str().unwrap().to_owned();
    crate::support::eventually("what was left behind is gone", || !anybody_carries(&mark)).await;
    assert_eq!(value(bench.run(&tool, json!({})).await), json!(mark), "the worker is the same");
}

/// Whether any process on the machine has this in its environment.
fn anybody_carries(mark: &str) -> bool {
    fs::read_dir("/proc").unwrap().flatten().any(|entry| {
        let environment = fs::read(entry.path().join("environ")).unwrap_or_default();
        environment.windows(mark.len()).any(|window| window == mark.as_bytes())
    })
}
