//! A server over a real engine and registry, with a runtime whose scripts are words, and a client at the other
//! end of two pipes.

mod runtime;
mod stores;

use std::{
    collections::HashMap,
    io::{PipeWriter, Write},
    sync::{Arc, mpsc},
    time::{Duration, Instant},
};

use skillz_engine::{Engine, EngineParts, EngineSettings, Exposure, NoClient, PublishRequest};
use skillz_json::{Map, Value, json};
use skillz_registry::{Registry, RegistrySettings};
use skillz_server::{ClientOrigin, SkillzServer};
use skillz_test_support::json_lines;
use skillz_tool::{Manifest, Origin, SourceCode, ToolKind, ToolRuntime};
use tokio_util::sync::CancellationToken;

pub(crate) use runtime::Words;

/// Longest wait for something that must happen.
pub(crate) const DEADLINE: Duration = Duration::from_mins(1);

/// A server that clients connect to.
pub(crate) struct Rig {
    pub(crate) runtime: tokio::runtime::Runtime,
    pub(crate) server: SkillzServer,
    pub(crate) engine: Engine,
    pub(crate) words: Arc<Words>,
    _home: tempfile::TempDir,
}

impl Rig {
    pub(crate) fn new() -> Self {
        Self::with(|_| ())
    }

    pub(crate) fn with(change: impl FnOnce(&mut EngineSettings)) -> Self {
        let home = tempfile::tempdir().expect("a folder");
        let runtime = tokio::runtime::Builder::new_multi_thread().worker_threads(2).enable_all().build().expect("a runtime");
        let _inside = runtime.enter();
        let mut settings = EngineSettings::new(home.path());
        change(&mut settings);
        let registry = Registry::open(RegistrySettings { tools_directory: settings.tools_directory.clone(), watch: false });
        let words = Arc::new(Words::default());
        let script: Arc<dyn ToolRuntime> = Arc::clone(&words) as Arc<dyn ToolRuntime>;
        let engine = Engine::new(EngineParts {
            registry,
            runtimes: HashMap::from([(ToolKind::Script, Arc::clone(&script)), (ToolKind::Wasm, script)]),
            memory: Arc::new(stores::Memory::default()),
            history: Arc::new(stores::History::default()),
            code: None,
            upstreams: None,
            settings,
        });
        let server = SkillzServer::new(engine.clone());
        drop(_inside);
        Self { runtime, server, engine, words, _home: home }
    }

    /// Publishes a tool behind the clients' backs.
    pub(crate) fn publish(&self, name: &str, source: &str, change: impl FnOnce(&mut Manifest)) {
        let mut manifest = Manifest::new(name, format!("Does {source}"), ToolKind::Script);
        change(&mut manifest);
        let request = PublishRequest {
            manifest,
            source: SourceCode::Text(source.to_owned()),
            origin: Origin::Register,
            overwrite: true,
            dry_run: false,
            client: Arc::new(NoClient),
        };
        self.runtime.block_on(self.engine.publish(request)).expect("the tool is valid");
    }

    /// Connects a client that has sent nothing yet.
    pub(crate) fn connect(&self) -> Client {
        let (server_input, input) = std::io::pipe().expect("a pipe");
        let (output, server_output) = std::io::pipe().expect("a pipe");
        let server = self.server.with_session(ClientOrigin::Local);
        let stop = CancellationToken::new();
        self.runtime.spawn(Box::pin(skillz_transport::serve_pipes(server, server_input, server_output, stop)));
        Client { input: Some(input), lines: json_lines(output), pending: Vec::new(), meta: None, next_id: 0 }
    }

    /// Connects a client of an older protocol.
    pub(crate) fn legacy(&self, version: &str, capabilities: Value) -> Client {
        let mut client = self.connect();
        let answer = client.request(
            "initialize",
            json!({
            "protocolVersion": version, "capabilities": capabilities, "clientInfo": {"name": "test", "version": "1"}}),
        );
        assert_eq!(answer["protocolVersion"], version);
        client.send(&json!({"jsonrpc": "2.0", "method": "notifications/initialized"}));
        client
    }

    /// Connects a client of the stateless protocol.
    pub(crate) fn modern(&self, capabilities: Value) -> Client {
        let mut client = self.connect();
        client.meta = Some(Map::from_iter([
            ("io.modelcontextprotocol/protocolVersion".to_owned(), json!("2026-07-28")),
            ("io.modelcontextprotocol/clientCapabilities".to_owned(), capabilities),
            ("io.modelcontextprotocol/clientInfo".to_owned(), json!({"name": "test", "version": "1"})),
        ]));
        client
    }
}

/// A client at the other end of two pipes.
pub(crate) struct Client {
    input: Option<PipeWriter>,
    lines: mpsc::Receiver<Value>,
    /// Lines that came while another was waited for.
    pending: Vec<Value>,
    /// What every request of the stateless protocol carries.
    pub(crate) meta: Option<Map<String, Value>>,
    next_id: i64,
}

impl Client {
    pub(crate) fn send(&mut self, message: &Value) {
        let input = self.input.as_mut().expect("still open");
        input.write_all(format!("{message}\n").as_bytes()).expect("the server reads");
    }

    /// Sends a request without waiting for its answer.
    pub(crate) fn begin(&mut self, method: &str, mut params: Value) -> i64 {
        self.next_id += 1;
        if let Some(meta) = &self.meta {
            let given =
                params.as_object_mut().expect("params are an object").entry("_meta".to_owned()).or_insert_with(|| json!({}));
            for (key, value) in meta {
                given.as_object_mut().expect("_meta is an object").entry(key.clone()).or_insert_with(|| value.clone());
            }
        }
        self.send(&json!({"jsonrpc": "2.0", "id": self.next_id, "method": method, "params": params}));
        self.next_id
    }

    /// Sends a request and gives its result.
    pub(crate) fn request(&mut self, method: &str, params: Value) -> Value {
        let id = self.begin(method, params);
        self.result(id)
    }

    /// Sends a request and gives its error.
    pub(crate) fn refused(&mut self, method: &str, params: Value) -> Value {
        let id = self.begin(method, params);
        let answer = self.wait_for(|line| line["id"] == id && line.get("method").is_none());
        assert!(answer.get("error").is_some(), "an error was expected: {answer}");
        answer["error"].clone()
    }

    pub(crate) fn call(&mut self, name: &str, arguments: Value) -> Value {
        self.request("tools/call", json!({"name": name, "arguments": arguments}))
    }

    /// Calls a tool that must fail, and gives the failure's text.
    pub(crate) fn failure(&mut self, name: &str, arguments: Value) -> String {
        let result = self.call(name, arguments);
        assert_eq!(result["isError"], true, "{result}");
        result["content"][0]["text"].as_str().expect("a text").to_owned()
    }

    pub(crate) fn result(&mut self, id: i64) -> Value {
        let answer = self.wait_for(|line| line["id"] == id && line.get("method").is_none());
        assert!(answer.get("result").is_some(), "a result was expected: {answer}");
        answer["result"].clone()
    }

    /// The next request or notification of that method.
    pub(crate) fn heard(&mut self, method: &str) -> Value {
        self.wait_for(|line| line["method"] == method)
    }

    /// Answers a request of the server.
    pub(crate) fn reply(&mut self, request: &Value, result: Value) {
        self.send(&json!({"jsonrpc": "2.0", "id": request["id"], "result": result}));
    }

    /// Whether a line that fits has come and was not waited for. Everything sent before is there by then,
    /// because the answer to a ping comes after it.
    pub(crate) fn has_heard(&mut self, method: &str) -> bool {
        let id = self.begin("no/such/method", json!({}));
        let mut seen = Vec::new();
        loop {
            let line = self.next_line();
            let last = line["id"] == id;
            seen.push(line);
            if last {
                break;
            }
        }
        let found = seen.iter().any(|line| line["method"] == method);
        self.pending.extend(seen);
        found
    }

    pub(crate) fn wait_for(&mut self, fits: impl Fn(&Value) -> bool) -> Value {
        if let Some(index) = self.pending.iter().position(&fits) {
            return self.pending.remove(index);
        }
        let deadline = Instant::now() + DEADLINE;
        loop {
            let line = self.lines.recv_timeout(deadline.saturating_duration_since(Instant::now()));
            let line = line.unwrap_or_else(|error| panic!("the server did not say it ({error}); it said {:?}", self.pending));
            if fits(&line) {
                return line;
            }
            self.pending.push(line);
        }
    }

    fn next_line(&mut self) -> Value {
        if self.pending.is_empty() {
            self.lines.recv_timeout(DEADLINE).expect("the server answers")
        } else {
            self.pending.remove(0)
        }
    }

    /// Closes the client's end.
    pub(crate) fn disconnect(mut self) {
        drop(self.input.take());
        while self.lines.recv_timeout(DEADLINE).is_ok() {}
    }
}

/// Puts a tool on disk before the server starts.
pub(crate) fn lay_down(settings: &EngineSettings, name: &str, source: &str) {
    let folder = settings.tools_directory.join(name);
    std::fs::create_dir_all(&folder).expect("a folder");
    std::fs::write(folder.join("main.txt"), source).expect("a file");
    let manifest =
        json!({"name": name, "description": "Does", "tool_type": "script", "version": "1.0.0", "entry_file": "main.txt"});
    std::fs::write(folder.join("manifest.json"), manifest.to_string()).expect("a file");
}

/// Settings that list every tool.
pub(crate) fn expose_all(settings: &mut EngineSettings) {
    settings.exposure = Exposure::All;
}
