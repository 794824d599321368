//! What a proxied call costs over a direct one: the same server, spoken to over its pipes by this program and through the
//! runtime. Run with `cargo bench --profile dev -p skillz-runtime-upstream`.
#![allow(
    clippy::unwrap_used,
    clippy::expect_used,
    clippy::panic,
    clippy::print_stdout,
    clippy::disallowed_methods,
    clippy::indexing_slicing,
    reason = "a bench that cannot go on should say so, prints its table, and starts the server that it is measured against"
)]

use std::{
    collections::BTreeMap,
    io::{BufRead, BufReader, Write},
    path::PathBuf,
    process::{Child, ChildStdin, ChildStdout, Command, Stdio},
    sync::Arc,
    time::{Duration, Instant},
};

use async_trait::async_trait;
use skillz_json::{Map, Value, json};
use skillz_process::Launcher;
use skillz_runtime_upstream::{FoundProgram, ImportedServers, Start, UpstreamRuntime, UpstreamSettings};
use skillz_sandbox::SandboxKind;
use skillz_tool::{
    Answer, CallClock, CallContext, EffectiveLimits, Grants, Host, LogLevel, Progress, ServerDefinition, Tool, ToolCall,
    ToolError, ToolRuntime, Upstreams,
};

const RUNS: usize = 2_000;
const WARM_UP: usize = 200;

/// A server in Python that does nothing but answer.
const SERVER: &str = r#"
import json, sys
tool = {"name": "echo", "description": "Echo", "inputSchema": {"type": "object"}}
for line in sys.stdin:
    message = json.loads(line)
    method = message.get("method")
    if "id" not in message:
        continue
    if method == "initialize":
        result = {"protocolVersion": "2025-11-25", "capabilities": {"tools": {}}, "serverInfo": {"name": "bench", "version": "1"}}
    elif method == "tools/list":
        result = {"tools": [tool]}
    else:
        result = {"content": [{"type": "text", "text": message["params"]["arguments"]["message"]}]}
    sys.stdout.write(json.dumps({"jsonrpc": "2.0", "id": message["id"], "result": result}) + "\n")
    sys.stdout.flush()
"#;

fn main() {
    skillz_process::run_helper_if_asked();
    let runtime = tokio::runtime::Builder::new_multi_thread().worker_threads(2).enable_all().build().unwrap();
    let direct = median(&mut direct());
    let proxied = runtime.block_on(async { median(&mut proxied().await) });
    let added = proxied.saturating_sub(direct);
    println!("direct call   {:>8.1} µs (median of {RUNS})", micros(direct));
    println!("proxied call  {:>8.1} µs", micros(proxied));
    println!("added         {:>8.1} µs (must stay under 500)", micros(added));
    assert!(added < Duration::from_micros(500), "a proxied call costs too much");
}

fn micros(time: Duration) -> f64 {
    time.as_secs_f64() * 1e6
}

fn median(times: &mut [Duration]) -> Duration {
    times.sort_unstable();
    times[times.len() / 2]
}

/// The server with pipes of this program's own.
struct Direct {
    process: Child,
    stdin: ChildStdin,
    stdout: BufReader<ChildStdout>,
    id: u64,
}

impl Direct {
    fn request(&mut self, method: &str, params: Value) -> Value {
        self.id += 1;
        let request = json!({"jsonrpc": "2.0", "id": self.id, "method": method, "params": params});
        self.stdin.write_all(format!("{request}\n").as_bytes()).unwrap();
        self.stdin.flush().unwrap();
        let mut line = String::new();
        self.stdout.read_line(&mut line).unwrap();
        serde_json::from_str(&line).unwrap()
    }
}

fn direct() -> Vec<Duration> {
    let mut process = Command::new("python3")
        .args(["-c", SERVER])
        .stdin(Stdio::piped())
        .stdout(Stdio::piped())
        .spawn()
        .expect("python3 starts");
    let (stdin, stdout) = (process.stdin.take().unwrap(), BufReader::new(process.stdout.take().unwrap()));
    let mut direct = Direct { process, stdin, stdout, id: 0 };
    direct.request("initialize", json!({}));
    let mut times = Vec::with_capacity(RUNS);
    for run in 0..RUNS + WARM_UP {
        let started = Instant::now();
        let answer = direct.request("tools/call", json!({"name": "echo", "arguments": {"message": "hello"}}));
        if run >= WARM_UP {
            times.push(started.elapsed());
        }
        assert_eq!(answer["result"]["content"][0]["text"], "hello");
    }
    drop(direct.stdin);
    direct.process.wait().unwrap();
    times
}

async fn proxied() -> Vec<Duration> {
    let home = tempfile::tempdir().unwrap();
    let servers = ImportedServers::open(UpstreamSettings {
        directory: home.path().join("servers"),
        data_directory: home.path().join("servers"),
        skillz_home: home.path().to_owned(),
        user_home: None,
        launcher: Launcher::new(std::env::current_exe().unwrap(), SandboxKind::None),
        environment: BTreeMap::new(),
        search_path: vec!["/usr/bin".into(), "/bin".into(), "/usr/local/bin".into()],
        find_program: Arc::new(|name| Ok(found(name))),
        working_directory: home.path().to_owned(),
        start: Start::AtOnce,
    });
    let definition = ServerDefinition {
        command: Some("python3".to_owned()),
        args: vec!["-c".to_owned(), SERVER.to_owned()],
        ..ServerDefinition::default()
    };
    let added = servers.add("bench", definition, false).await.unwrap();
    assert_eq!(added["state"], "ready", "{added}");
    let tool = Arc::clone(&servers.tools().tools[0]);
    let runtime = UpstreamRuntime::new(servers);
    let host: Arc<dyn Host> = Arc::new(Nobody);
    let mut times = Vec::with_capacity(RUNS);
    for run in 0..RUNS + WARM_UP {
        let call = call(&tool);
        let started = Instant::now();
        runtime.call(call, Arc::clone(&host)).await.unwrap();
        if run >= WARM_UP {
            times.push(started.elapsed());
        }
    }
    times
}

fn found(name: &str) -> FoundProgram {
    let places = ["/usr/bin", "/usr/local/bin", "/bin"].map(|place| PathBuf::from(place).join(name));
    let path = places.into_iter().find(|path| path.is_file()).expect("python3 is installed");
    FoundProgram { confined_path: path.clone(), path, visible: Vec::new() }
}

fn call(tool: &Arc<Tool>) -> ToolCall {
    let limits = EffectiveLimits::with_memory_mb(256);
    ToolCall {
        tool: Arc::clone(tool),
        arguments: Map::from_iter([("message".to_owned(), json!("hello"))]),
        clock: CallClock::start(limits.timeout),
        limits,
        grants: Grants::default(),
        context: CallContext::default(),
    }
}

/// A client that is never asked anything.
struct Nobody;

#[async_trait]
impl Host for Nobody {
    async fn call_tool(&self, _: &str, _: Map<String, Value>) -> Result<Value, ToolError> {
        Err(nobody())
    }
    async fn list_tools(&self, _: Option<&str>) -> Result<Value, ToolError> {
        Err(nobody())
    }
    async fn describe_tool(&self, _: &str) -> Result<Value, ToolError> {
        Err(nobody())
    }
    async fn memory_get(&self, _: &str) -> Result<Option<Value>, ToolError> {
        Err(nobody())
    }
    async fn memory_set(&self, _: &str, _: Value, _: Option<f64>) -> Result<(), ToolError> {
        Err(nobody())
    }
    async fn memory_list(&self, _: &str) -> Result<Vec<String>, ToolError> {
        Err(nobody())
    }
    async fn memory_delete(&self, _: &str) -> Result<bool, ToolError> {
        Err(nobody())
    }
    async fn list_resources(&self) -> Result<Value, ToolError> {
        Err(nobody())
    }
    async fn read_resource(&self, _: &str) -> Result<Value, ToolError> {
        Err(nobody())
    }
    async fn ask_user(&self, _: &str, _: Value) -> Result<Answer, ToolError> {
        Err(nobody())
    }
    async fn sample(&self, _: Value) -> Result<Value, ToolError> {
        Err(nobody())
    }
    async fn roots(&self) -> Result<Value, ToolError> {
        Err(nobody())
    }
    fn progress(&self, _: Progress) {}
    fn log(&self, _: LogLevel, _: &str, _: Option<Value>) {}
}

fn nobody() -> ToolError {
    ToolError::internal("nobody is there")
}
