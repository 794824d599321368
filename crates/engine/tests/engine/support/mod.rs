//! An engine on a real registry in a temporary folder, with a runtime whose tools are one line of instructions,
//! and stores in memory.

pub(crate) mod client;
pub(crate) mod runtime;
pub(crate) mod stores;

use std::{collections::HashMap, path::PathBuf, sync::Arc, time::Duration};

use skillz_engine::{
    CallReply, CallRequest, ClientPort, CodeRuntime, Engine, EngineParts, EngineSettings, NoClient, PublishReport, PublishRequest,
};
use skillz_json::{Value, json};
use skillz_registry::{Registry, RegistrySettings};
use skillz_tool::{Manifest, Origin, SourceCode, ToolError, ToolKind, ToolRuntime, Upstreams};
use tempfile::TempDir;

use self::runtime::FakeRuntime;
use self::stores::{HistoryInMemory, MemoryInMemory};

/// How long a test waits for an event before it fails; far more than any takes.
pub(crate) const DEADLINE: Duration = Duration::from_secs(30);

/// An engine and all that stands around it.
pub(crate) struct Fixture {
    pub(crate) engine: Engine,
    pub(crate) runtime: Arc<FakeRuntime>,
    pub(crate) history: Arc<HistoryInMemory>,
    pub(crate) folder: TempDir,
}

impl Fixture {
    /// An engine with default settings.
    pub(crate) async fn new() -> Self {
        Self::with(|_| ()).await
    }

    /// An engine with other settings.
    pub(crate) async fn with(change: impl FnOnce(&mut EngineSettings)) -> Self {
        let folder = tempfile::tempdir().expect("a folder");
        Self::in_folder(folder, change).await
    }

    /// An engine that runs programs.
    pub(crate) async fn with_code(code: Arc<dyn CodeRuntime>) -> Self {
        let folder = tempfile::tempdir().expect("a folder");
        Self::of(folder, |_| (), Some(code), None).await
    }

    /// An engine on what a folder already holds.
    pub(crate) async fn in_folder(folder: TempDir, change: impl FnOnce(&mut EngineSettings)) -> Self {
        Self::of(folder, change, None, None).await
    }

    /// An engine that imports servers.
    pub(crate) async fn with_upstreams(upstreams: Arc<dyn Upstreams>, change: impl FnOnce(&mut EngineSettings)) -> Self {
        let folder = tempfile::tempdir().expect("a folder");
        Self::of(folder, change, None, Some(upstreams)).await
    }

    async fn of(
        folder: TempDir,
        change: impl FnOnce(&mut EngineSettings),
        code: Option<Arc<dyn CodeRuntime>>,
        upstreams: Option<Arc<dyn Upstreams>>,
    ) -> Self {
        let mut settings = EngineSettings::new(folder.path().join("home"));
        change(&mut settings);
        let registry = Registry::open(RegistrySettings { tools_directory: settings.tools_directory.clone(), watch: true });
        let runtime = Arc::new(FakeRuntime::default());
        let history = Arc::new(HistoryInMemory::default());
        let runtimes: HashMap<ToolKind, Arc<dyn ToolRuntime>> = [ToolKind::Wasm, ToolKind::Script, ToolKind::Mcp]
            .into_iter()
            .map(|kind| (kind, Arc::clone(&runtime) as Arc<dyn ToolRuntime>))
            .collect();
        let engine = Engine::new(EngineParts {
            registry,
            runtimes,
            memory: Arc::new(MemoryInMemory::default()),
            history: history.clone(),
            code,
            upstreams,
            settings,
        });
        engine.ready().await;
        Self { engine, runtime, history, folder }
    }

    /// The data folder.
    pub(crate) fn home(&self) -> PathBuf {
        self.folder.path().join("home")
    }

    /// Publishes a tool that does what `line` says.
    pub(crate) async fn publish(&self, name: &str, line: &str) {
        self.publish_with(name, line, json!({})).await.expect("it is published");
    }

    /// Publishes a tool with further manifest fields, over an older version if there is one.
    pub(crate) async fn publish_with(&self, name: &str, line: &str, fields: Value) -> Result<PublishReport, ToolError> {
        self.engine.publish(PublishRequest { overwrite: true, ..request(name, line, fields) }).await
    }

    /// Calls a tool without a client.
    pub(crate) async fn call(&self, name: &str, arguments: Value) -> CallReply {
        self.call_by(name, arguments, Arc::new(NoClient)).await
    }

    /// Calls a tool for a client.
    pub(crate) async fn call_by(&self, name: &str, arguments: Value, client: Arc<dyn ClientPort>) -> CallReply {
        let request = CallRequest { tool_name: name.to_owned(), version: None, arguments, client };
        self.engine.call(request).await.unwrap_or_else(|failure| panic!("{name}: {failure}"))
    }
}

/// A publish of a wasm tool (the fake runtime does not mind) that does what `line` says.
pub(crate) fn request(name: &str, line: &str, fields: Value) -> PublishRequest {
    let mut whole = json!({"name": name, "description": format!("Does {line}"), "tool_type": "wasm"});
    whole.as_object_mut().expect("an object").extend(fields.as_object().cloned().expect("fields are an object"));
    let manifest: Manifest = skillz_json::from_value(whole).expect("a manifest");
    PublishRequest {
        manifest,
        source: SourceCode::Text(line.to_owned()),
        origin: Origin::Build,
        overwrite: false,
        dry_run: false,
        client: Arc::new(NoClient),
    }
}

/// Waits until a condition holds.
pub(crate) async fn until(what: &str, mut holds: impl FnMut() -> bool) {
    let waiting = async {
        while !holds() {
            tokio::time::sleep(Duration::from_millis(5)).await;
        }
    };
    tokio::time::timeout(DEADLINE, waiting).await.unwrap_or_else(|_| panic!("{what} did not happen"));
}
