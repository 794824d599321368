//! A runner whose workers are this test binary, and a host that really carries a few tools out.

use std::{
    collections::BTreeMap,
    path::{Path, PathBuf},
    sync::{
        Arc, Mutex,
        atomic::{AtomicUsize, Ordering},
    },
    time::Duration,
};

use async_trait::async_trait;
use skillz_environments::{EnvironmentSettings, Environments};
use skillz_json::{Map, Value, json};
use skillz_process::Launcher;
use skillz_runtime_code::{CodeFailure, CodeRequest, CodeResult, CodeRunner, CodeSettings, Language, Runtime};
use skillz_runtime_script::{ScriptBounds, ScriptRuntime, ScriptSettings, SearchPath};
use skillz_sandbox::SandboxKind;
use skillz_tool::{
    Answer, AnswerAction, CallClock, EffectiveLimits, ErrorKind, Grants, Host, LogLevel, Manifest, Progress, Tool, ToolError,
    ToolKind, ToolName, Version,
};
use tempfile::TempDir;

/// Programs under test and what they run against.
pub(crate) struct Bench {
    pub(crate) runner: CodeRunner,
    pub(crate) host: Arc<TestHost>,
    _scratch: TempDir,
}

/// What a test may change of a request.
pub(crate) struct Options {
    pub(crate) language: Language,
    pub(crate) runtime: Runtime,
    pub(crate) timeout: Duration,
    pub(crate) memory_mb: u64,
    pub(crate) grants: Grants,
}

impl Default for Options {
    fn default() -> Self {
        Self {
            language: Language::Python,
            runtime: Runtime::Embedded,
            timeout: Duration::from_mins(1),
            memory_mb: 256,
            grants: Grants::default(),
        }
    }
}

impl Bench {
    pub(crate) fn new() -> Self {
        Self::with_worker(std::env::current_exe().expect("this binary"))
    }

    /// With another program in the place of the workers of embedded interpreters.
    pub(crate) fn with_worker(program: PathBuf) -> Self {
        let scratch = tempfile::tempdir().expect("a folder");
        let launcher = Launcher::new(std::env::current_exe().expect("this binary"), SandboxKind::Auto);
        let settings = CodeSettings { scripts: scripts(&launcher, scratch.path()), launcher, program, workers: 4 };
        Self { runner: CodeRunner::new(settings), host: Arc::new(TestHost::default()), _scratch: scratch }
    }

    pub(crate) async fn run_with(&self, code: &str, options: &Options) -> Result<CodeResult, CodeFailure> {
        let limits = EffectiveLimits { timeout: options.timeout, ..EffectiveLimits::with_memory_mb(options.memory_mb) };
        let request = CodeRequest {
            code: code.to_owned(),
            language: options.language,
            runtime: options.runtime,
            dependencies: Vec::new(),
            tools: tools(),
            grants: options.grants.clone(),
            roots: Vec::new(),
            excluded: vec!["hidden".to_owned(), "hidden-too".to_owned()],
            clock: CallClock::start(options.timeout),
            limits,
        };
        self.runner.run(request, self.host.clone()).await
    }

    pub(crate) async fn python(&self, code: &str) -> Result<CodeResult, CodeFailure> {
        self.run_with(code, &Options::default()).await
    }

    pub(crate) async fn javascript(&self, code: &str) -> Result<CodeResult, CodeFailure> {
        self.run_with(code, &Options { language: Language::JavaScript, ..Options::default() }).await
    }

    /// Checks the result of many programs.
    pub(crate) async fn check(&self, options: &Options, cases: &[(&str, Value)]) {
        for (code, expected) in cases {
            match self.run_with(code, options).await {
                Ok(result) => assert_eq!(result.result, *expected, "{code}\nstdout: {}", result.stdout),
                Err(failure) => panic!("{code}\n{}", ToolError::from(failure)),
            }
        }
    }

    /// Checks the failure of many programs: each names a part of its text.
    pub(crate) async fn check_failures(&self, options: &Options, cases: &[(&str, &str)]) {
        for (code, part) in cases {
            match self.run_with(code, options).await {
                Ok(result) => panic!("{code}\ngave {} {}", result.result, result.stdout),
                Err(failure) => {
                    let text = ToolError::from(failure).text();
                    assert!(text.contains(part), "{code}\nexpected: {part}\nfound: {text}");
                }
            }
        }
    }
}

/// Looks where interpreters are, as the server does.
#[expect(clippy::disallowed_methods, reason = "the test stands for whoever reads the environment")]
fn scripts(launcher: &Launcher, home: &Path) -> Arc<ScriptRuntime> {
    let path = std::env::var("PATH").unwrap_or_default();
    // The system's own come first: shims of version managers start slowly.
    let path = ["/usr/bin", "/usr/local/bin"].into_iter().chain(path.split(':')).map(PathBuf::from).collect();
    let cache_directory = home.join("cache");
    let environments = Environments::new(EnvironmentSettings {
        directory: home.join("envs"),
        cache_directory: cache_directory.clone(),
        launcher: launcher.clone(),
        variables: Vec::new(),
    });
    Arc::new(ScriptRuntime::new(ScriptSettings {
        launcher: launcher.clone(),
        environments,
        search: SearchPath { path, ..SearchPath::default() },
        cache_directory,
        bounds: ScriptBounds::default(),
    }))
}

/// The tools that programs may call.
pub(crate) fn tools() -> Vec<Arc<Tool>> {
    let text =
        json!({"type": "object", "required": ["text"], "properties": {"limit": {"type": "integer"}, "text": {"type": "string"}}});
    let pair =
        json!({"type": "object", "required": ["a", "b"], "properties": {"a": {"type": "integer"}, "b": {"type": "integer"}}});
    let tools = [
        ("word_count", text.clone()),
        ("shout", text),
        ("add", pair),
        ("echo", json!({"type": "object"})),
        ("fail", json!({"type": "object"})),
        ("meet", json!({"type": "object"})),
        ("slow", json!({"type": "object"})),
        ("my-tool", json!({"type": "object"})),
        ("class", json!({"type": "object"})),
        ("sum", json!({"type": "object"})),
    ];
    let tool = |(name, schema): (&str, Value)| {
        let mut manifest = Manifest::new(name, "A tool of the tests", ToolKind::Script);
        manifest.input_schema = Some(schema);
        Arc::new(Tool::new(
            ToolName::for_existing(name).expect("valid"),
            Version::FIRST,
            PathBuf::new(),
            manifest,
            "hash".to_owned(),
        ))
    };
    tools.into_iter().map(tool).collect()
}

/// Carries the tools out, and counts.
#[derive(Default)]
pub(crate) struct TestHost {
    memory: Mutex<BTreeMap<String, Value>>,
    running: AtomicUsize,
    pub(crate) most_running: AtomicUsize,
    pub(crate) given_up: AtomicUsize,
    calls: AtomicUsize,
    pub(crate) logged: Mutex<Vec<String>>,
    meeting: tokio::sync::Notify,
}

struct Running<'a>(&'a TestHost, bool);

impl Drop for Running<'_> {
    fn drop(&mut self) {
        self.0.running.fetch_sub(1, Ordering::SeqCst);
        if !self.1 {
            self.0.given_up.fetch_add(1, Ordering::SeqCst);
        }
    }
}

impl TestHost {
    pub(crate) fn running(&self) -> usize {
        self.running.load(Ordering::SeqCst)
    }

    /// How many calls of tools there were.
    pub(crate) fn calls(&self) -> usize {
        self.calls.load(Ordering::SeqCst)
    }

    async fn carry_out(&self, name: &str, arguments: Map<String, Value>) -> Result<Value, ToolError> {
        let text = || arguments.get("text").and_then(Value::as_str).unwrap_or_default().to_owned();
        let number = |name: &str| arguments.get(name).and_then(Value::as_i64).unwrap_or_default();
        match name {
            "word_count" => Ok(json!({"words": text().split_whitespace().count()})),
            "shout" => Ok(json!(text().to_uppercase())),
            "add" => Ok(json!(number("a") + number("b"))),
            "echo" | "my-tool" | "class" | "sum" => Ok(Value::Object(arguments)),
            "fail" => Err(ToolError::failed("`fail` ended with exit code 3").with_output("boom").with_data(json!({"code": 3}))),
            // Returns when so many calls are there at once: without concurrency it never does.
            "meet" => {
                let wanted = usize::try_from(number("count")).unwrap_or(2);
                loop {
                    let changed = self.meeting.notified();
                    if self.most_running.load(Ordering::SeqCst) >= wanted {
                        self.meeting.notify_waiters();
                        return Ok(json!(wanted));
                    }
                    changed.await;
                }
            }
            "slow" => std::future::pending().await,
            other => Err(ToolError::new(ErrorKind::NotFound, format!("There is no tool `{other}`"))),
        }
    }
}

#[async_trait]
impl Host for TestHost {
    async fn call_tool(&self, name: &str, arguments: Map<String, Value>) -> Result<Value, ToolError> {
        self.calls.fetch_add(1, Ordering::SeqCst);
        let running = self.running.fetch_add(1, Ordering::SeqCst) + 1;
        self.most_running.fetch_max(running, Ordering::SeqCst);
        self.meeting.notify_waiters();
        let mut call = Running(self, false);
        let result = self.carry_out(name, arguments).await;
        call.1 = true;
        result
    }

    async fn list_tools(&self, query: Option<&str>) -> Result<Value, ToolError> {
        Ok(json!({"tools": [{"name": "word_count", "query": query}]}))
    }

    async fn describe_tool(&self, name: &str) -> Result<Value, ToolError> {
        Ok(json!({"name": name, "description": "A tool of the tests"}))
    }

    async fn memory_get(&self, key: &str) -> Result<Option<Value>, ToolError> {
        Ok(self.memory.lock().expect("not poisoned").get(key).cloned())
    }

    async fn memory_set(&self, key: &str, value: Value, _ttl_seconds: Option<f64>) -> Result<(), ToolError> {
        self.memory.lock().expect("not poisoned").insert(key.to_owned(), value);
        Ok(())
    }

    async fn memory_list(&self, prefix: &str) -> Result<Vec<String>, ToolError> {
        Ok(self.memory.lock().expect("not poisoned").keys().filter(|key| key.starts_with(prefix)).cloned().collect())
    }

    async fn memory_delete(&self, key: &str) -> Result<bool, ToolError> {
        Ok(self.memory.lock().expect("not poisoned").remove(key).is_some())
    }

    async fn list_resources(&self) -> Result<Value, ToolError> {
        Ok(json!({"resources": []}))
    }

    async fn read_resource(&self, uri: &str) -> Result<Value, ToolError> {
        Err(ToolError::new(ErrorKind::NotFound, format!("There is no resource `{uri}`")))
    }

    async fn ask_user(&self, message: &str, _schema: Value) -> Result<Answer, ToolError> {
        if message == "no" {
            return Ok(Answer { action: AnswerAction::Decline, content: None });
        }
        Ok(Answer { action: AnswerAction::Accept, content: Some(json!({"answer": message})) })
    }

    async fn sample(&self, parameters: Value) -> Result<Value, ToolError> {
        let prompt = parameters.pointer("/messages/0/content/text").cloned().unwrap_or_default();
        Ok(json!({"role": "assistant", "content": {"type": "text", "text": prompt}}))
    }

    async fn roots(&self) -> Result<Value, ToolError> {
        Ok(json!({"roots": []}))
    }

    fn progress(&self, _progress: Progress) {}

    fn log(&self, _level: LogLevel, message: &str, _data: Option<Value>) {
        self.logged.lock().expect("not poisoned").push(message.to_owned());
    }
}
