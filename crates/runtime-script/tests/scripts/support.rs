//! Runs scripts the way the engine does: prepare a draft in a folder, then call it.
#![allow(dead_code, unreachable_pub, reason = "the bench uses a part of this file")]

use std::{
    collections::BTreeMap,
    path::{Path, PathBuf},
    sync::{Arc, Mutex},
    time::Duration,
};

use async_trait::async_trait;
use skillz_environments::{EnvironmentSettings, Environments};
use skillz_json::{Map, Value, json};
use skillz_process::Launcher;
use skillz_runtime_script::{ScriptBounds, ScriptRuntime, ScriptSettings, SearchPath};
use skillz_sandbox::SandboxKind;
use skillz_tool::{
    Answer, AnswerAction, CallClock, CallContext, Draft, EffectiveLimits, ErrorKind, Grants, Host, LogLevel, Manifest, Output,
    Prepared, Progress, Protocol, SourceCode, Tool, ToolCall, ToolError, ToolKind, ToolName, ToolOutcome, ToolRuntime, Version,
};
use tempfile::TempDir;

/// What a fake host was told, and what it remembers.
#[derive(Default)]
pub struct FakeHost {
    pub memory: Mutex<BTreeMap<String, Value>>,
    pub logs: Mutex<Vec<(LogLevel, String)>>,
    pub progress: Mutex<Vec<Progress>>,
    /// How many requests wait at `tool:barrier` before any is answered.
    pub barrier: Option<Arc<tokio::sync::Barrier>>,
}

impl FakeHost {
    pub fn log_text(&self) -> String {
        self.logs.lock().unwrap().iter().flat_map(|(_, message)| [message.as_str(), "\n"]).collect()
    }
}

#[async_trait]
impl Host for FakeHost {
    async fn call_tool(&self, name: &str, arguments: Map<String, Value>) -> Result<Value, ToolError> {
        match name {
            "echo" => Ok(Value::Object(arguments)),
            "slow" => {
                tokio::time::sleep(Duration::from_mins(1)).await;
                Ok(Value::Null)
            }
            "barrier" => {
                if let Some(barrier) = &self.barrier {
                    barrier.wait().await;
                }
                Ok(Value::Object(arguments))
            }
            _ => Err(ToolError::new(ErrorKind::NotFound, format!("There is no tool `{name}`"))),
        }
    }

    async fn list_tools(&self, query: Option<&str>) -> Result<Value, ToolError> {
        Ok(json!({"tools": [{"name": "echo", "query": query}]}))
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
        Ok(self.memory.lock().unwrap().remove(key).is_some())
    }

    async fn list_resources(&self) -> Result<Value, ToolError> {
        Ok(json!({"resources": [{"uri": "skillz://guide", "name": "guide"}]}))
    }

    async fn read_resource(&self, uri: &str) -> Result<Value, ToolError> {
        Ok(json!({"contents": [{"uri": uri, "text": "read"}]}))
    }

    async fn ask_user(&self, message: &str, _schema: Value) -> Result<Answer, ToolError> {
        if message == "no" {
            return Ok(Answer { action: AnswerAction::Decline, content: None });
        }
        Ok(Answer { action: AnswerAction::Accept, content: Some(json!({"answer": message})) })
    }

    async fn sample(&self, parameters: Value) -> Result<Value, ToolError> {
        let prompt = parameters.pointer("/messages/0/content/text").cloned().unwrap_or_default();
        Ok(json!({"role": "assistant", "model": "m", "content": {"type": "text", "text": format!("sampled {prompt}")}}))
    }

    async fn roots(&self) -> Result<Value, ToolError> {
        Ok(json!({"roots": [{"uri": "file:///project"}]}))
    }

    fn progress(&self, progress: Progress) {
        self.progress.lock().unwrap().push(progress);
    }

    fn log(&self, level: LogLevel, message: &str, _data: Option<Value>) {
        self.logs.lock().unwrap().push((level, message.to_owned()));
    }
}

/// A runtime in a home of its own.
pub struct Bench {
    pub home: TempDir,
    pub runtime: Arc<ScriptRuntime>,
    pub environments: Environments,
}

/// A tool on its way.
pub struct Script<'a> {
    pub name: &'a str,
    pub code: &'a str,
    pub interpreter: Option<&'a str>,
    pub manifest: Manifest,
}

pub fn script<'a>(name: &'a str, interpreter: &'a str, code: &'a str) -> Script<'a> {
    Script { name, code, interpreter: Some(interpreter), manifest: Manifest::new(name, "A test", ToolKind::Script) }
}

impl Bench {
    pub fn new() -> Self {
        Self::with(ScriptBounds::default(), SandboxKind::None)
    }

    pub fn with(bounds: ScriptBounds, sandbox: SandboxKind) -> Self {
        let variables = std::env::vars().filter(|(name, _)| skillz_environments::is_installer_variable(name)).collect();
        Self::with_settings(bounds, sandbox, search_path(), variables)
    }

    /// A machine without some programs.
    pub fn new_hiding(names: &[&str]) -> Self {
        let variables = std::env::vars().filter(|(name, _)| skillz_environments::is_installer_variable(name)).collect();
        let mut search = search_path();
        let has = |folder: &PathBuf| names.iter().any(|name| folder.join(name).exists());
        search.path.retain(|folder| !has(folder));
        search.home = search.home.filter(|home| !has(&home.join(".local/bin")) && !has(&home.join(".cargo/bin")));
        Self::with_settings(ScriptBounds::default(), SandboxKind::Auto, search, variables)
    }

    /// A machine with the system's interpreters only, whose package index is a folder.
    pub fn with_packages(folder: &Path, sandbox: SandboxKind) -> Self {
        let search = SearchPath { path: vec!["/usr/bin".into(), "/bin".into()], ..SearchPath::default() };
        let variables = vec![("PIP_NO_INDEX".into(), "1".into()), ("PIP_FIND_LINKS".into(), folder.display().to_string())];
        Self::with_settings(ScriptBounds::default(), sandbox, search, variables)
    }

    fn with_settings(bounds: ScriptBounds, sandbox: SandboxKind, search: SearchPath, variables: Vec<(String, String)>) -> Self {
        let home = tempfile::tempdir().unwrap();
        let launcher = Launcher::new(std::env::current_exe().unwrap(), sandbox);
        let environments = Environments::new(EnvironmentSettings {
            directory: home.path().join("envs"),
            cache_directory: home.path().join("cache"),
            launcher: launcher.clone(),
            variables,
        });
        let runtime = ScriptRuntime::new(ScriptSettings {
            launcher,
            environments: environments.clone(),
            search,
            cache_directory: home.path().join("cache"),
            bounds,
        });
        Self { home, runtime: Arc::new(runtime), environments }
    }

    pub async fn prepare(&self, script: Script<'_>) -> Result<(Prepared, PathBuf), ToolError> {
        let directory = self.home.path().join("tools").join(script.name);
        std::fs::create_dir_all(&directory).unwrap();
        let mut manifest = script.manifest;
        manifest.interpreter = manifest.interpreter.or(script.interpreter.map(str::to_owned));
        let source = if script.code.is_empty() { SourceCode::Folder } else { SourceCode::Text(script.code.to_owned()) };
        let draft = Draft { manifest, source, directory: directory.clone() };
        Ok((self.runtime.prepare(draft, Arc::new(FakeHost::default())).await?, directory))
    }

    pub async fn register(&self, script: Script<'_>) -> Arc<Tool> {
        let name = script.name.to_owned();
        match self.prepare(script).await {
            Ok((prepared, directory)) => tool(prepared.manifest, &directory),
            Err(error) => panic!("`{name}` was refused: {error}"),
        }
    }

    pub fn call(&self, tool: &Arc<Tool>, arguments: Value) -> ToolCall {
        let limits = EffectiveLimits::with_memory_mb(1024).asked(&tool.manifest.limits);
        let Value::Object(arguments) = arguments else { panic!("arguments are an object") };
        ToolCall {
            tool: Arc::clone(tool),
            arguments,
            clock: CallClock::start(limits.timeout),
            limits,
            grants: Grants::default(),
            context: CallContext {
                call_id: "c".into(),
                depth: 1,
                roots: vec!["/project".into()],
                data_directory: self.home.path().join("data").join(tool.name.as_str()),
                tools_directory: self.home.path().join("tools"),
                ..CallContext::default()
            },
        }
    }

    pub async fn run_with(&self, tool: &Arc<Tool>, arguments: Value, host: &Arc<FakeHost>) -> Result<ToolOutcome, ToolError> {
        self.runtime.call(self.call(tool, arguments), Arc::clone(host) as Arc<dyn Host>).await
    }

    pub async fn run(&self, tool: &Arc<Tool>, arguments: Value) -> Result<ToolOutcome, ToolError> {
        self.run_with(tool, arguments, &Arc::new(FakeHost::default())).await
    }

    pub async fn runtime_discard(&self, tool: &Tool, others: &[Arc<Tool>]) {
        self.runtime.discard(tool, others).await;
    }

    pub fn runtime_retire(&self, tool: &Tool) {
        self.runtime.retire(tool);
    }

    /// Registers and calls once; gives the value, or the printed text.
    pub async fn once(&self, interpreter: &str, code: &str, arguments: Value) -> Value {
        let tool = self.register(script("once", interpreter, code)).await;
        self.runtime.retire(&tool);
        value(self.run(&tool, arguments).await)
    }
}

pub fn tool(manifest: Manifest, directory: &Path) -> Arc<Tool> {
    let hash = format!("{:?}", std::time::SystemTime::now());
    let name = ToolName::for_existing(&manifest.name).unwrap();
    Arc::new(Tool::new(name, Version::FIRST, directory.to_path_buf(), manifest, hash))
}

pub fn search_path() -> SearchPath {
    SearchPath {
        path: std::env::split_paths(&std::env::var_os("PATH").unwrap_or_default()).collect(),
        home: std::env::home_dir(),
        variables: std::env::vars().collect(),
    }
}

/// The value of an outcome: returned, or printed text.
pub fn value(outcome: Result<ToolOutcome, ToolError>) -> Value {
    match outcome.map(|outcome| outcome.output) {
        Ok(Output::Value(value)) => value,
        Ok(Output::Printed(text)) => Value::String(text),
        Ok(other) => panic!("{other:?}"),
        Err(error) => panic!("the call failed: {error}"),
    }
}

pub fn with_timeout(mut script: Script<'_>, milliseconds: u64) -> Script<'_> {
    script.manifest.limits.timeout_ms = Some(milliseconds);
    script
}

pub fn with_protocol(mut script: Script<'_>, protocol: Protocol) -> Script<'_> {
    script.manifest.protocol = Some(protocol);
    script
}

/// Waits until a condition holds.
pub async fn eventually(what: &str, condition: impl Fn() -> bool) {
    let deadline = std::time::Instant::now() + Duration::from_secs(20);
    while !condition() {
        assert!(std::time::Instant::now() < deadline, "never came true: {what}");
        tokio::time::sleep(Duration::from_millis(10)).await;
    }
}
