//! A runtime in a folder of its own, tools made from a line of text, and a host that remembers what it was asked.
#![allow(dead_code, unreachable_pub, reason = "each test file uses a part of it")]
#![allow(clippy::unwrap_used, clippy::expect_used, clippy::panic, clippy::indexing_slicing, reason = "only tests use it")]

use std::{
    path::{Path, PathBuf},
    sync::{Arc, Mutex, OnceLock},
    time::{Duration, Instant},
};

use async_trait::async_trait;
use futures::future::BoxFuture;
use skillz_json::{Map, Value, json};
use skillz_process::Launcher;
use skillz_runtime_wasm::{WasmRuntime, WasmSettings};
use skillz_sandbox::SandboxKind;
use skillz_tool::{
    Answer, AnswerAction, CallClock, CallContext, Draft, EffectiveLimits, ErrorKind, Grants, Host, LogLevel, Manifest, Output,
    Progress, SourceCode, Tool, ToolCall, ToolError, ToolKind, ToolName, ToolOutcome, ToolRuntime, Version,
};
use tempfile::TempDir;

/// What a host does when `again` is called.
pub type Again = Box<dyn Fn(Map<String, Value>) -> BoxFuture<'static, Result<Value, ToolError>> + Send + Sync>;

/// A host with memory for one tool, and three tools to call: `shout`, `wait` and `again`.
#[derive(Default)]
pub struct TestHost {
    pub again: OnceLock<Again>,
    pub memory: Mutex<Map<String, Value>>,
    pub logs: Mutex<Vec<String>>,
    pub progress: Mutex<Vec<Progress>>,
    /// Never answered requests wait for this.
    pub released: tokio::sync::Notify,
    /// Told when a request begins to wait.
    pub waiting: tokio::sync::Notify,
}

#[async_trait]
impl Host for TestHost {
    async fn call_tool(&self, name: &str, arguments: Map<String, Value>) -> Result<Value, ToolError> {
        match name {
            "shout" => Ok(json!(arguments["text"].as_str().unwrap_or_default().to_uppercase())),
            "wait" => {
                self.waiting.notify_one();
                self.released.notified().await;
                Ok(Value::Null)
            }
            "again" => self.again.get().unwrap()(arguments).await,
            _ => Err(ToolError::new(ErrorKind::NotFound, format!("There is no tool `{name}`"))),
        }
    }

    async fn list_tools(&self, query: Option<&str>) -> Result<Value, ToolError> {
        Ok(json!({"tools": [{"name": "shout"}], "query": query}))
    }

    async fn describe_tool(&self, name: &str) -> Result<Value, ToolError> {
        Ok(json!({"name": name}))
    }

    async fn memory_get(&self, key: &str) -> Result<Option<Value>, ToolError> {
        Ok(self.memory.lock().unwrap().get(key).cloned())
    }

    async fn memory_set(&self, key: &str, value: Value, _ttl_seconds: Option<f64>) -> Result<(), ToolError> {
        self.memory.lock().unwrap().insert(key.to_owned(), value);
        Ok(())
    }

    async fn memory_list(&self, prefix: &str) -> Result<Vec<String>, ToolError> {
        Ok(self.memory.lock().unwrap().keys().filter(|key| key.starts_with(prefix)).cloned().collect())
    }

    async fn memory_delete(&self, key: &str) -> Result<bool, ToolError> {
        Ok(self.memory.lock().unwrap().shift_remove(key).is_some())
    }

    async fn list_resources(&self) -> Result<Value, ToolError> {
        Ok(json!({"resources": []}))
    }

    async fn read_resource(&self, uri: &str) -> Result<Value, ToolError> {
        Ok(json!({"contents": [{"uri": uri, "text": "a resource"}]}))
    }

    async fn ask_user(&self, _message: &str, _schema: Value) -> Result<Answer, ToolError> {
        Ok(Answer { action: AnswerAction::Accept, content: Some(json!({"name": "Ada"})) })
    }

    async fn sample(&self, _parameters: Value) -> Result<Value, ToolError> {
        Ok(json!({"role": "assistant", "model": "m", "content": {"type": "text", "text": "sampled"}}))
    }

    async fn roots(&self) -> Result<Value, ToolError> {
        Ok(json!({"roots": []}))
    }

    fn progress(&self, progress: Progress) {
        self.progress.lock().unwrap().push(progress);
    }

    fn log(&self, _level: LogLevel, message: &str, _data: Option<Value>) {
        self.logs.lock().unwrap().push(message.to_owned());
    }
}

/// A runtime with its home.
pub struct Bench {
    pub home: TempDir,
    pub runtime: Arc<WasmRuntime>,
    pub host: Arc<TestHost>,
}

impl Bench {
    pub fn new() -> Self {
        Self::with(|_| {})
    }

    pub fn with(change: impl FnOnce(&mut WasmSettings)) -> Self {
        let home = tempfile::tempdir().unwrap();
        let mut settings = settings_in(home.path());
        change(&mut settings);
        Self { home, runtime: Arc::new(WasmRuntime::new(settings)), host: Arc::default() }
    }

    /// Publishes WebAssembly text without a build.
    pub fn wat(&self, name: &str, text: &str) -> Arc<Tool> {
        self.module(name, &wat::parse_str(text).unwrap())
    }

    /// Publishes a module without a build.
    pub fn module(&self, name: &str, module: &[u8]) -> Arc<Tool> {
        let directory = self.home.path().join("tools").join(name);
        std::fs::create_dir_all(&directory).unwrap();
        std::fs::write(directory.join(format!("{name}.wasm")), module).unwrap();
        tool_in(directory, Manifest::new(name, "A test", ToolKind::Wasm))
    }

    /// Builds a Rust tool.
    pub async fn build(&self, name: &str, code: &str, dependencies: &[&str]) -> Result<Arc<Tool>, ToolError> {
        let mut manifest = Manifest::new(name, "A test", ToolKind::Wasm);
        manifest.wasm_dependencies = dependencies.iter().map(|text| (*text).to_owned()).collect();
        self.prepare(manifest, SourceCode::Text(code.to_owned())).await
    }

    /// Prepares a draft in the tool's own folder.
    pub async fn prepare(&self, manifest: Manifest, source: SourceCode) -> Result<Arc<Tool>, ToolError> {
        let directory = self.home.path().join("tools").join(&manifest.name);
        std::fs::create_dir_all(&directory).unwrap();
        let draft = Draft { manifest, source, directory: directory.clone() };
        let prepared = self.runtime.prepare(draft, Arc::clone(&self.host) as Arc<dyn Host>).await?;
        Ok(tool_in(directory, prepared.manifest))
    }

    /// Calls a tool with default limits and nothing granted.
    pub async fn call(&self, tool: &Arc<Tool>, arguments: Value) -> Result<ToolOutcome, ToolError> {
        self.run(call_of(tool, arguments)).await
    }

    pub async fn run(&self, call: ToolCall) -> Result<ToolOutcome, ToolError> {
        self.runtime.call(call, Arc::clone(&self.host) as Arc<dyn Host>).await
    }
}

pub fn runtime_in(home: &Path) -> Arc<WasmRuntime> {
    Arc::new(WasmRuntime::new(settings_in(home)))
}

#[expect(clippy::disallowed_methods, reason = "a test finds the toolchain where its own environment says")]
pub fn settings_in(home: &Path) -> WasmSettings {
    let launcher = Launcher::new(std::env::current_exe().unwrap(), SandboxKind::Auto);
    let mut settings = WasmSettings::new(home.join("cache"), launcher);
    settings.toolchain.search_path = std::env::split_paths(&std::env::var_os("PATH").unwrap_or_default()).collect();
    settings.toolchain.user_home = std::env::home_dir();
    settings.toolchain.cargo_home = std::env::var_os("CARGO_HOME").map(PathBuf::from);
    settings.toolchain.rustup_home = std::env::var_os("RUSTUP_HOME").map(PathBuf::from);
    settings
}

pub fn tool_in(directory: PathBuf, manifest: Manifest) -> Arc<Tool> {
    let name: ToolName = manifest.name.parse().unwrap();
    Arc::new(Tool::new(name, "1.0.0".parse::<Version>().unwrap(), directory, manifest, String::new()))
}

/// A call with the limits that the tool's manifest asks for.
pub fn call_of(tool: &Arc<Tool>, arguments: Value) -> ToolCall {
    let limits = EffectiveLimits::with_memory_mb(256).asked(&tool.manifest.limits);
    let Value::Object(arguments) = arguments else { panic!("arguments are an object") };
    ToolCall {
        tool: Arc::clone(tool),
        arguments,
        clock: CallClock::start(limits.timeout),
        limits,
        grants: Grants::default(),
        context: CallContext::default(),
    }
}

/// A call that may take so long.
pub fn timed(tool: &Arc<Tool>, arguments: Value, timeout: Duration) -> ToolCall {
    let mut call = call_of(tool, arguments);
    call.limits.timeout = timeout;
    call.clock = CallClock::start(timeout);
    call
}

/// Waits until something holds, and fails if it never does.
pub async fn eventually(what: &str, mut holds: impl FnMut() -> bool) {
    let deadline = Instant::now() + Duration::from_secs(20);
    while !holds() {
        assert!(Instant::now() < deadline, "{what} never came about");
        tokio::time::sleep(Duration::from_millis(2)).await;
    }
}

/// What a tool printed.
pub fn printed(outcome: ToolOutcome) -> String {
    match outcome.output {
        Output::Printed(text) => text,
        other => panic!("printed nothing but gave {other:?}"),
    }
}

/// What a tool returned.
pub fn returned(outcome: ToolOutcome) -> Value {
    match outcome.output {
        Output::Value(value) => value,
        other => panic!("returned nothing but gave {other:?}"),
    }
}
