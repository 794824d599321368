//! What the call path itself costs: calls of a runtime that does nothing, beside that runtime called directly.
//! Run with `cargo bench -p skillz-engine`.
#![allow(clippy::expect_used, clippy::panic, reason = "a bench that cannot be set up has nothing to measure")]

use std::{
    collections::HashMap,
    hint::black_box,
    sync::Arc,
    time::{Duration, Instant},
};

use async_trait::async_trait;
use criterion::{Criterion, criterion_group, criterion_main};
use skillz_engine::{CallRequest, Engine, EngineParts, EngineSettings, ListRequest, NoClient, PublishRequest};
use skillz_json::{Map, Value, json};
use skillz_registry::{Registry, RegistrySettings};
use skillz_tool::{
    CallRecord, Draft, HistoryStore, Host, Manifest, MemoryStats, MemoryStore, Origin, Prepared, SourceCode, StoreError, Tool,
    ToolCall, ToolError, ToolKind, ToolOutcome, ToolRuntime,
};

/// Gives the arguments back; a tool whose name starts with `outer` calls `echo` with them.
struct NoWork;

#[async_trait]
impl ToolRuntime for NoWork {
    async fn prepare(&self, draft: Draft, _host: Arc<dyn Host>) -> Result<Prepared, ToolError> {
        let mut manifest = draft.manifest;
        let source = draft.directory.join("source.txt");
        std::fs::write(source, &manifest.name).map_err(ToolError::internal)?;
        manifest.entry_file = Some("source.txt".to_owned());
        Ok(Prepared { manifest, size_bytes: 0, notes: Vec::new() })
    }

    async fn call(&self, call: ToolCall, host: Arc<dyn Host>) -> Result<ToolOutcome, ToolError> {
        if call.tool.name.as_str().starts_with("outer") {
            return host.call_tool("echo", call.arguments).await.map(ToolOutcome::value);
        }
        Ok(ToolOutcome::value(Value::Object(call.arguments)))
    }

    fn retire(&self, _tool: &Tool) {}
}

/// Keeps nothing.
struct NoStore;

#[async_trait]
impl HistoryStore for NoStore {
    fn record(&self, record: CallRecord) {
        black_box(record);
    }
    async fn recent(&self, _: Option<&str>, _: bool, _: usize) -> Result<Vec<CallRecord>, StoreError> {
        Ok(Vec::new())
    }
    async fn flush(&self) {}
}

#[async_trait]
impl MemoryStore for NoStore {
    async fn get(&self, _: &str, _: &str) -> Result<Option<Value>, StoreError> {
        Ok(None)
    }
    async fn set(&self, _: &str, _: &str, _: &Value, _: Option<f64>) -> Result<Option<f64>, StoreError> {
        Ok(None)
    }
    async fn update(&self, _: &str, _: &str, _: &Map<String, Value>, _: Option<f64>) -> Result<Value, StoreError> {
        Ok(Value::Null)
    }
    async fn list(&self, _: &str, _: &str, _: Option<&str>, _: usize) -> Result<Vec<String>, StoreError> {
        Ok(Vec::new())
    }
    async fn delete(&self, _: &str, _: &str) -> Result<bool, StoreError> {
        Ok(false)
    }
    async fn clear(&self, _: &str) -> Result<u64, StoreError> {
        Ok(0)
    }
    async fn stats(&self, _: Option<&str>) -> Result<Vec<MemoryStats>, StoreError> {
        Ok(Vec::new())
    }
}

async fn engine(home: &std::path::Path, tools: usize) -> Engine {
    let settings = EngineSettings::new(home);
    let registry = Registry::open(RegistrySettings { tools_directory: settings.tools_directory.clone(), watch: false });
    let engine = Engine::new(EngineParts {
        registry,
        runtimes: HashMap::from([(ToolKind::Script, Arc::new(NoWork) as Arc<dyn ToolRuntime>)]),
        memory: Arc::new(NoStore),
        history: Arc::new(NoStore),
        code: None,
        upstreams: None,
        settings,
    });
    engine.ready().await;
    for name in ["echo".to_owned(), "outer".to_owned()].into_iter().chain((0..tools).map(|number| format!("tool_{number}"))) {
        publish(&engine, &name).await;
    }
    engine
}

async fn publish(engine: &Engine, name: &str) {
    let mut manifest = Manifest::new(name, format!("Does what number {name} does"), ToolKind::Script);
    manifest.input_schema = Some(json!({
        "type": "object", "required": ["text"], "properties": {"text": {"type": "string"}, "limit": {"type": "integer"}},
    }));
    let request = PublishRequest {
        manifest,
        source: SourceCode::Text(String::new()),
        origin: Origin::Register,
        overwrite: true,
        dry_run: false,
        client: Arc::new(NoClient),
    };
    engine.publish(request).await.unwrap_or_else(|error| panic!("{name}: {error}"));
}

fn request(name: &str) -> CallRequest {
    let arguments = json!({"text": "how much wood would a woodchuck chuck", "limit": 10});
    CallRequest { tool_name: name.to_owned(), version: None, arguments, client: Arc::new(NoClient) }
}

fn call_path(criterion: &mut Criterion) {
    let runtime = tokio::runtime::Builder::new_current_thread().enable_all().build().expect("a runtime");
    let folder = tempfile::tempdir().expect("a folder");
    let engine = runtime.block_on(engine(folder.path(), 40));
    criterion.bench_function("request made and dropped", |bencher| bencher.iter(|| black_box(request("echo"))));
    criterion.bench_function("call of a tool that does nothing", |bencher| {
        bencher.to_async(Local(&runtime)).iter(|| async { engine.call(request("echo")).await });
    });
    criterion.bench_function("call with one inner call", |bencher| {
        bencher.to_async(Local(&runtime)).iter(|| async { engine.call(request("outer")).await });
    });
    criterion.bench_function("list of names", |bencher| {
        bencher.to_async(Local(&runtime)).iter(|| async { engine.list(ListRequest::default()).await });
    });
    criterion.bench_function("publish over an old version", |bencher| {
        bencher.to_async(Local(&runtime)).iter_custom(|rounds| {
            let engine = engine.clone();
            async move {
                let started = Instant::now();
                for _ in 0..rounds {
                    publish(&engine, "tool_1").await;
                }
                started.elapsed()
            }
        });
    });
}

/// Runs futures on a runtime of this thread.
struct Local<'a>(&'a tokio::runtime::Runtime);

impl criterion::async_executor::AsyncExecutor for Local<'_> {
    fn block_on<T>(&self, future: impl Future<Output = T>) -> T {
        self.0.block_on(future)
    }
}

criterion_group! {
    name = benches;
    config = Criterion::default().warm_up_time(Duration::from_millis(500)).measurement_time(Duration::from_secs(2));
    targets = call_path
}
criterion_main!(benches);
