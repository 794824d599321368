//! Each way of failing has its own message.

#![allow(
    clippy::unwrap_used,
    clippy::expect_used,
    clippy::panic,
    clippy::indexing_slicing,
    reason = "helpers of tests may fail them"
)]

mod support;

use std::{sync::Arc, time::Duration};

use skillz_json::{Value, json};
use skillz_tool::{
    ErrorKind, FolderGrant, FolderMode, Limits, Manifest, NetworkPermission, SourceCode, Tool, ToolCall, ToolError, ToolKind,
};
use support::{Bench, call_of, printed};

skillz_process::helper_entry!();

/// Does what its argument `do` says.
const MISBEHAVE: &str = r#"
use std::io::{Read, Write};

fn deep(number: u64) -> u64 {
    let mut block = [0u64; 512];
    block[(number % 512) as usize] = number;
    if number == u64::MAX { return 0; }
    deep(std::hint::black_box(number + 1)) + std::hint::black_box(block)[(number % 511) as usize]
}

fn main() {
    let mut input = String::new();
    std::io::stdin().read_to_string(&mut input).unwrap();
    let has = |word: &str| input.contains(&format!("\"{word}\""));
    eprintln!("a line for the log");
    if has("panic") { let list: Vec<u8> = vec![1]; println!("{}", list[std::hint::black_box(7)]); }
    if has("panic_twice") { panic!("first line\nsecond line"); }
    if has("exit") { println!("before"); std::process::exit(3); }
    if has("exit_high") { std::process::exit(200); }
    if has("fail") { println!("only stdout"); std::process::exit(1); }
    if has("abort") { std::process::abort(); }
    if has("hoard") { let mut all = Vec::new(); loop { all.push(vec![1u8; 1 << 20]); } }
    if has("hoard_at_once") { let block = std::hint::black_box(vec![1u8; 1 << 30]); println!("{}", block.len()); }
    if has("recover") { let mut list: Vec<u8> = Vec::new(); println!("{}", list.try_reserve(1 << 30).is_err()); }
    if has("deep") { println!("{}", deep(0)); }
    if has("flood") { let line = [b'x'; 8192]; loop { std::io::stdout().write_all(&line).ok(); } }
    if has("flood_stderr") { let line = [b'x'; 8192]; loop { std::io::stderr().write_all(&line).ok(); } }
    if has("read") { println!("{}", std::fs::read_to_string("/etc/passwd").unwrap()); }
    if has("read_or") { std::fs::read_to_string("/etc/passwd").map_err(|error| { println!("{error}"); std::process::exit(1) }).ok(); }
    if has("read_given") { println!("{}", std::fs::read_to_string(word(&input)).unwrap()); }
    if has("write_given") { std::fs::write(word(&input), "new").unwrap(); }
    if has("connect") { std::net::TcpStream::connect("1.1.1.1:80").unwrap(); }
    if has("thread") { std::thread::spawn(|| {}).join().unwrap(); }
    if has("env") { for (name, value) in std::env::vars() { println!("{name}={value}"); } }
    if has("utf8") { std::io::stdout().write_all(b"a\xffb").unwrap(); }
}

fn word(input: &str) -> String {
    input.split("\"path\":\"").nth(1).unwrap().split('"').next().unwrap().to_owned()
}
"#;

fn doing(tool: &Arc<Tool>, what: &str) -> ToolCall {
    let mut call = call_of(tool, json!({"do": what}));
    call.limits.memory_bytes = 64 << 20;
    call.limits.max_output_bytes = 1_000_000;
    call
}

fn assert_error(error: &ToolError, kind: ErrorKind, parts: &[&str]) {
    let text = error.text();
    assert_eq!(error.kind, kind, "{text}");
    for part in parts {
        assert!(text.contains(part), "{part:?} is not in {text:?}");
    }
}

#[tokio::test]
async fn a_program_may_fail_in_many_ways() {
    let bench = Bench::new();
    let tool = bench.build("bad", MISBEHAVE, &[]).await.unwrap();
    for (what, kind, parts) in [
        (
            "panic",
            ErrorKind::Failed,
            &["`bad` panicked: index out of bounds: the len is 1 but the index is 7 (at src.rs:", "a line for the log"][..],
        ),
        ("panic_twice", ErrorKind::Failed, &["`bad` panicked: first line\nsecond line (at src.rs:"]),
        ("exit", ErrorKind::Failed, &["`bad` ended with exit code 3", "a line for the log"]),
        ("exit_high", ErrorKind::Failed, &["`bad` ended with exit code 200"]),
        ("abort", ErrorKind::Failed, &["`bad` aborted"]),
        ("hoard", ErrorKind::LimitExceeded, &["`bad` needed more memory than its limit of 64 MB", "limits.memory_mb"]),
        ("hoard_at_once", ErrorKind::LimitExceeded, &["more memory than its limit of 64 MB (it asked for 10"]),
        ("deep", ErrorKind::LimitExceeded, &["`bad` overflowed its stack", "recursion"]),
        ("flood", ErrorKind::LimitExceeded, &["`bad` printed more than 1000000 bytes", "limits.max_output_bytes"]),
        ("flood_stderr", ErrorKind::LimitExceeded, &["`bad` printed more than 1000000 bytes"]),
        (
            "read",
            ErrorKind::Denied,
            &["`bad` tried to open a file or folder outside of what it may see", "It sees no files at all", "permissions.fs"],
        ),
        ("read_or", ErrorKind::Denied, &["outside of what it may see"]),
        ("connect", ErrorKind::Denied, &["do not have, such as sockets", "skillz::http"]),
        ("thread", ErrorKind::Denied, &["do not have", "threads"]),
    ] {
        let error = bench.run(doing(&tool, what)).await.expect_err(what);
        assert_error(&error, kind, parts);
        assert!(!error.text().contains("RUST_BACKTRACE"), "{error}");
    }
    // None of them harmed the next.
    assert_eq!(printed(bench.run(doing(&tool, "recover")).await.unwrap()), "true\n");
    assert_eq!(printed(bench.run(doing(&tool, "env")).await.unwrap()), "");
    let outcome = bench.run(doing(&tool, "utf8")).await.unwrap();
    assert_eq!(outcome.notes, ["Bytes that are not UTF-8 were replaced"]);
    assert_eq!(printed(outcome), "a\u{fffd}b");
    assert!(bench.host.logs.lock().unwrap().iter().any(|line| line == "a line for the log"));
}

#[tokio::test]
async fn where_stderr_is_empty_stdout_speaks() {
    let bench = Bench::new();
    let code = r#"fn main() { println!("only stdout"); std::process::exit(1); }"#;
    let tool = bench.build("mute", code, &[]).await.unwrap();
    let error = bench.call(&tool, json!({})).await.unwrap_err();
    assert_error(&error, ErrorKind::Failed, &["`mute` ended with exit code 1", "only stdout"]);
}

#[tokio::test]
async fn folders_are_seen_at_their_own_paths() {
    let bench = Bench::new();
    let tool = bench.build("files", MISBEHAVE, &[]).await.unwrap();
    let folder = tempfile::tempdir().unwrap();
    let path = folder.path().canonicalize().unwrap();
    std::fs::write(path.join("a.txt"), "content").unwrap();
    std::os::unix::fs::symlink("/etc/passwd", path.join("link")).unwrap();
    let call = |what: &str, file: &str, mode: FolderMode| {
        let mut call = call_of(&tool, json!({"do": what, "path": path.join(file)}));
        call.grants.folders = vec![FolderGrant { path: path.clone(), mode }];
        call
    };
    assert_eq!(printed(bench.run(call("read_given", "a.txt", FolderMode::Ro)).await.unwrap()), "content\n");
    bench.run(call("write_given", "new.txt", FolderMode::Rw)).await.unwrap();
    assert_eq!(std::fs::read_to_string(path.join("new.txt")).unwrap(), "new");
    let error = bench.run(call("write_given", "a.txt", FolderMode::Ro)).await.unwrap_err();
    assert_error(&error, ErrorKind::Denied, &["was refused access to a file", "\"rw\""]);
    // What is outside looks to the program as if it were not there.
    let error = bench.run(call("read_given", "/etc/passwd", FolderMode::Rw)).await.unwrap_err();
    assert_error(&error, ErrorKind::Failed, &["NotFound", "It sees only `"]);
    for file in ["link", "../escape"] {
        let error = bench.run(call("read_given", file, FolderMode::Rw)).await.unwrap_err();
        assert_error(&error, ErrorKind::Denied, &["outside of"]);
    }
    assert_eq!(std::fs::read_to_string(path.join("a.txt")).unwrap(), "content");
}

#[tokio::test]
async fn a_granted_folder_that_is_not_there_is_named() {
    let bench = Bench::new();
    let tool = bench.build("files", "fn main() {}", &[]).await.unwrap();
    let mut call = call_of(&tool, json!({}));
    call.grants.folders = vec![FolderGrant { path: "/no/such/folder".into(), mode: FolderMode::Ro }];
    assert_error(&bench.run(call).await.unwrap_err(), ErrorKind::Failed, &["`/no/such/folder`", "permissions.fs"]);
}

#[tokio::test]
async fn only_granted_variables_are_there() {
    let bench = Bench::new();
    let tool = bench.build("bad", MISBEHAVE, &[]).await.unwrap();
    let mut call = doing(&tool, "env");
    call.grants.environment = vec![skillz_tool::EnvironmentVariable { name: "SKILLZ_KEY".into(), value: "s3".into() }];
    assert_eq!(printed(bench.run(call).await.unwrap()), "SKILLZ_KEY=s3\n");
}

#[tokio::test]
async fn deterministic_calls_print_the_same_bytes() {
    let bench = Bench::new();
    let code = r#"
        use std::{collections::HashMap, time::{Instant, SystemTime}};
        fn main() {
            let map: HashMap<u32, u32> = (0..50).map(|number| (number, number)).collect();
            let started = Instant::now();
            println!("{:?} {:?} {:?}", map, SystemTime::now(), started.elapsed());
        }"#;
    let tool = bench.build("dice", code, &[]).await.unwrap();
    let mut frozen = std::collections::HashSet::new();
    let mut free = std::collections::HashSet::new();
    for _ in 0..100 {
        let mut call = call_of(&tool, json!({}));
        free.insert(printed(bench.run(call.clone()).await.unwrap()));
        call.limits.deterministic = true;
        frozen.insert(printed(bench.run(call).await.unwrap()));
    }
    assert_eq!(frozen.len(), 1, "clock and random numbers stand still");
    assert_eq!(free.len(), 100, "without the limit they do not");
}

#[tokio::test]
async fn a_refused_host_is_a_refusal() {
    let bench = Bench::new();
    let code = r"
        #[skillz::tool]
        fn run(url: String, insist: bool) -> Result<String, String> {
            let response = if insist { skillz::http::get(&url).unwrap() } else { skillz::http::get(&url)? };
            Ok(response.body)
        }";
    let tool = bench.build("fetch", code, &[]).await.unwrap();
    for insist in [false, true] {
        let mut call = call_of(&tool, json!({"url": "https://other.example.com/", "insist": insist}));
        call.grants.network = NetworkPermission::Hosts(vec!["api.example.com".to_owned().try_into().unwrap()]);
        let error = bench.run(call).await.unwrap_err();
        assert_error(
            &error,
            ErrorKind::Denied,
            &["`fetch` may not reach `other.example.com:443`", "allows only api.example.com"],
        );
    }
}

#[tokio::test]
async fn modules_that_cannot_run_are_refused_when_they_are_made() {
    let bench = Bench::new();
    let memory = r#"(memory (export "memory") 1)"#;
    for (source, parts) in [
        (
            format!(r#"(module (import "env" "magic" (func)) {memory} (func (export "_start")))"#),
            &["imports what is not there: `env::magic`", "wasm-bindgen"][..],
        ),
        (
            format!(r#"(module (import "wasi_snapshot_preview1" "fd_teleport" (func)) {memory} (func (export "_start")))"#),
            &["imports what is not there", "fd_teleport"],
        ),
        (format!("(module {memory})"), &["not a WASI command", "no function `_start`"]),
        (format!(r#"(module {memory} (func (export "_start") (param i32)))"#), &["not a WASI command", "has parameters"]),
        ("(component)".to_owned(), &["component", "wasm32-wasip1"]),
        ("(module (func (export \"_start\") (drop)))".to_owned(), &["not valid WebAssembly"]),
        ("(modul".to_owned(), &["does not parse", "(module ...)"]),
    ] {
        let error =
            bench.prepare(Manifest::new("bad", "A test", ToolKind::Wasm), SourceCode::Wat(source.clone())).await.unwrap_err();
        assert_error(&error, ErrorKind::InvalidInput, parts);
    }
    for (bytes, part) in
        [(&b"MZ not wasm"[..], "does not start with"), (b"", "does not start with"), (b"\0asm\x01\0\0\0\xff\xff", "not valid")]
    {
        let error =
            bench.prepare(Manifest::new("bad", "A test", ToolKind::Wasm), SourceCode::Module(bytes.to_vec())).await.unwrap_err();
        assert_error(&error, ErrorKind::InvalidInput, &[part]);
    }
    let long = SourceCode::Module(vec![0; (32 << 20) + 1]);
    let error = bench.prepare(Manifest::new("bad", "A test", ToolKind::Wasm), long).await.unwrap_err();
    assert_error(&error, ErrorKind::LimitExceeded, &["33554433 bytes"]);
}

#[tokio::test]
async fn traps_of_hand_written_modules() {
    let bench = Bench::new();
    let module = |body: &str| {
        format!(
            r#"(module (memory (export "memory") 1) (table 1 funcref) (func (export "_start") {body}) (func $deep (call $deep)))"#
        )
    };
    for (body, kind, part) in [
        ("(drop (i32.div_u (i32.const 1) (i32.const 0)))", ErrorKind::Failed, "integer divide by zero"),
        ("(call_indirect (i32.const 0))", ErrorKind::Failed, "was stopped by a trap"),
        ("(drop (i32.load (i32.const 70000)))", ErrorKind::Failed, "out of bounds memory access"),
        ("unreachable", ErrorKind::Failed, "`trap` aborted"),
        ("(call $deep)", ErrorKind::LimitExceeded, "`trap` overflowed its stack"),
    ] {
        let error = bench.call(&bench.wat("trap", &module(body)), json!({})).await.unwrap_err();
        assert_error(&error, kind, &[part]);
    }
    let big = r#"(module (memory (export "memory") 2000) (func (export "_start")))"#;
    let mut manifest = Manifest::new("big", "A test", ToolKind::Wasm);
    manifest.limits = Limits { memory_mb: Some(16), ..Limits::default() };
    let tool = bench.prepare(manifest, SourceCode::Wat(big.to_owned())).await.unwrap();
    assert_error(&bench.call(&tool, json!({})).await.unwrap_err(), ErrorKind::LimitExceeded, &["its limit of 16 MB"]);
}

/// All sorts at once, ten of each, with a quick one between them.
#[tokio::test(flavor = "multi_thread")]
async fn misbehaving_guests_end_by_themselves_while_others_go_on() {
    let bench = Bench::new();
    let code = format!("{MISBEHAVE}\n#[allow(dead_code)] fn unused() {{}}").replace(
        "if has(\"panic\")",
        "if has(\"spin\") { loop { std::hint::black_box(1); } }\n if has(\"sleep\") { std::thread::sleep(std::time::Duration::from_secs(3600)); }\n if has(\"panic\")",
    );
    let tool = bench.build("bad", &code, &[]).await.unwrap();
    bench.run(doing(&tool, "nothing")).await.unwrap();
    let mut calls = Vec::new();
    for _ in 0..10 {
        for (what, part) in [
            ("spin", "did not finish"),
            ("sleep", "did not finish"),
            ("hoard", "more memory"),
            ("deep", "overflowed its stack"),
            ("flood", "printed more than"),
        ] {
            let mut call = doing(&tool, what);
            call.limits.timeout = Duration::from_secs(1);
            call.clock = skillz_tool::CallClock::start(call.limits.timeout);
            call.limits.memory_bytes = 32 << 20;
            let (runtime, host) = (Arc::clone(&bench.runtime), Arc::clone(&bench.host));
            calls.push(tokio::spawn(async move {
                let error = skillz_tool::ToolRuntime::call(&*runtime, call, host).await.expect_err(what);
                // On a machine that is busy besides, whatever needs the processor may run out of time first.
                assert!(error.message.contains(part) || error.kind == ErrorKind::TimedOut, "{what}: {error}");
            }));
        }
    }
    let mut times = Vec::new();
    while calls.iter().any(|call| !call.is_finished()) {
        let started = std::time::Instant::now();
        bench.run(doing(&tool, "nothing")).await.unwrap();
        times.push(started.elapsed());
    }
    for call in calls {
        call.await.unwrap();
    }
    times.sort();
    println!(
        "{} quick calls beside them, median {:?}, p95 {:?}",
        times.len(),
        times[times.len() / 2],
        times[times.len() * 95 / 100]
    );
    assert!(times[times.len() / 2] < Duration::from_millis(250), "median {:?}", times[times.len() / 2]);
    support::eventually("the end of all guests", || bench.runtime.running_guests() == 0).await;
    let _ = Value::Null;
}
