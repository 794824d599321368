//! The engine as everybody uses it, and the parts it is made of.

use std::{
    collections::HashMap,
    sync::{Arc, Mutex, MutexGuard, OnceLock, PoisonError},
};

use skillz_json::Value;
use skillz_pipeline::PipelineRuntime;
use skillz_registry::{Catalog, Registry, SkillShelf};
use skillz_tool::{
    HistoryStore, MemoryStore, SourceFetcher, Tool, ToolKind, ToolName, ToolRuntime, UpstreamTools, Upstreams, Version,
};
use tokio::sync::{oneshot, watch};

use crate::{
    CallReply, CodeRuntime, EngineSettings, Exposed, Machine, ResourceSource, ResultStore,
    callable::Callable,
    catalogue::ServedTools,
    consent::Consents,
    follow,
    queue::Queue,
    record::CallIds,
    search::ToolSearch,
    shape::{self, Subject},
    view::{SharedView, View},
};

/// Most bytes of text in the result of a built-in, as of a tool that does not say otherwise.
const BUILTIN_RESULT_BYTES: usize = 100_000;

/// The runtimes by kind.
pub(crate) type Runtimes = HashMap<ToolKind, Arc<dyn ToolRuntime>>;
type OlderVersions = HashMap<(ToolName, Version), Arc<Callable>>;

/// What an engine is made of.
pub struct EngineParts {
    /// Tools on disk.
    pub registry: Registry,
    /// One runtime for each kind of tool but pipelines, which the engine runs itself. Calls of a kind without
    /// one fail and say so.
    pub runtimes: HashMap<ToolKind, Arc<dyn ToolRuntime>>,
    /// The tools' memory.
    pub memory: Arc<dyn MemoryStore>,
    /// The call log.
    pub history: Arc<dyn HistoryStore>,
    /// What runs programs that call tools.
    pub code: Option<Arc<dyn CodeRuntime>>,
    /// Imported servers; their tools are called by the runtime for [`ToolKind::Mcp`].
    pub upstreams: Option<Arc<dyn Upstreams>>,
    /// What the operator decided.
    pub settings: EngineSettings,
}

/// The heart of the server. Cheap to clone; clones share everything.
#[derive(Clone)]
pub struct Engine {
    pub(crate) inner: Arc<Inner>,
}

pub(crate) struct Inner {
    registry: Registry,
    runtimes: Runtimes,
    pipelines: Arc<PipelineRuntime>,
    memory: Arc<dyn MemoryStore>,
    history: Arc<dyn HistoryStore>,
    code: Option<Arc<dyn CodeRuntime>>,
    upstreams: Option<Arc<dyn Upstreams>>,
    settings: EngineSettings,
    results: ResultStore,
    consents: Consents,
    queue: Queue,
    call_ids: CallIds,
    resources: OnceLock<Arc<dyn ResourceSource>>,
    machine: OnceLock<Arc<dyn Machine>>,
    fetcher: OnceLock<Arc<dyn SourceFetcher>>,
    skills: SkillShelf,
    view: SharedView,
    /// Held while a new view is made, so that views follow each other in order.
    refreshing: Mutex<()>,
    /// Versions that are not in service but were asked for; forgotten at each change.
    older_versions: Mutex<OlderVersions>,
    search: ToolSearch,
    changes: watch::Sender<u64>,
    /// Dropped with the engine, which ends the task that follows the registry.
    _alive: oneshot::Sender<()>,
}

impl Engine {
    /// Puts an engine together. Needs a tokio runtime, in which it follows the registry for as long as it lives.
    pub fn new(parts: EngineParts) -> Self {
        let EngineParts { registry, mut runtimes, memory, history, code, upstreams, settings } = parts;
        let view = SharedView::default();
        let pipelines = Arc::new(PipelineRuntime::new(Arc::new(ServedTools::new(view.clone()))));
        runtimes.insert(ToolKind::Pipeline, Arc::clone(&pipelines) as Arc<dyn ToolRuntime>);
        let (alive, ended) = oneshot::channel();
        let inner = Inner {
            _alive: alive,
            results: ResultStore::new(settings.cache.join("results")),
            consents: Consents::new(settings.home.join("consents.json")),
            queue: Queue::new(settings.concurrency),
            call_ids: CallIds::new(),
            resources: OnceLock::new(),
            machine: OnceLock::new(),
            fetcher: OnceLock::new(),
            skills: SkillShelf::new(settings.home.join("skills")),
            view,
            refreshing: Mutex::default(),
            older_versions: Mutex::default(),
            search: ToolSearch::default(),
            changes: watch::Sender::new(0),
            registry,
            runtimes,
            pipelines,
            memory,
            history,
            code,
            upstreams,
            settings,
        };
        let engine = Self { inner: Arc::new(inner) };
        engine.refresh();
        follow::start(Arc::downgrade(&engine.inner), engine.registry().clone(), ended);
        engine
    }

    /// Waits until the tools that were on disk at the start are loaded.
    pub async fn ready(&self) {
        self.inner.registry.ready().await;
        if let Some(upstreams) = self.upstreams() {
            upstreams.ready().await;
        }
        self.refresh();
    }

    /// Waits until what was edited by hand so far is recorded or refused: for commands that are over before a
    /// server would have got to it.
    pub async fn settle(&self) {
        self.ready().await;
        for name in self.registry().snapshot().edited() {
            self.take_edit(name).await;
        }
    }

    /// All tools as of now.
    pub fn catalog(&self) -> Arc<Catalog> {
        Arc::clone(&self.view().catalog)
    }

    /// A number that grows with each change of what is published.
    pub fn changes(&self) -> watch::Receiver<u64> {
        self.inner.changes.subscribe()
    }

    /// The tools that belong in `tools/list` now.
    pub fn exposed(&self) -> Arc<Exposed> {
        Arc::clone(&self.view().exposed)
    }

    /// The tools' memory.
    pub fn memory(&self) -> &Arc<dyn MemoryStore> {
        &self.inner.memory
    }

    /// The call log.
    pub fn history(&self) -> &Arc<dyn HistoryStore> {
        &self.inner.history
    }

    /// Results that were too long for one answer.
    pub fn results(&self) -> &ResultStore {
        &self.inner.results
    }

    /// What the operator decided.
    pub fn settings(&self) -> &EngineSettings {
        &self.inner.settings
    }

    /// Lays out what a built-in gives back as a reply for a client: long results are cut and linked like those of
    /// tools. `name` is the built-in's.
    pub async fn reply_with(&self, name: &str, value: Value) -> CallReply {
        let subject = Subject { name, has_output_schema: false };
        shape::value_reply(subject, value, BUILTIN_RESULT_BYTES, self.results()).await.0
    }

    /// Sets where running tools read resources from; the first caller wins.
    pub fn set_resources(&self, resources: Arc<dyn ResourceSource>) {
        drop(self.inner.resources.set(resources));
    }

    /// Sets who knows what this machine lacks; the first caller wins.
    pub fn set_machine(&self, machine: Arc<dyn Machine>) {
        drop(self.inner.machine.set(machine));
    }

    /// Sets what fetches sources to import from; the first caller wins.
    pub fn set_fetcher(&self, fetcher: Arc<dyn SourceFetcher>) {
        drop(self.inner.fetcher.set(fetcher));
    }

    /// The knowledge skills of this home.
    pub fn skills(&self) -> &SkillShelf {
        &self.inner.skills
    }

    /// What whoever lists tools should know of this machine and of imported servers.
    pub(crate) async fn warnings(&self) -> Vec<String> {
        let mut warnings = match self.inner.machine.get() {
            Some(machine) => machine.warnings().await,
            None => Vec::new(),
        };
        warnings.extend(self.upstreams().map(|upstreams| upstreams.warnings()).into_iter().flatten());
        warnings
    }

    /// Takes over what the registry and the imported servers have, if it is new: callers, lists and runtimes see it
    /// when this returns.
    pub(crate) fn refresh(&self) {
        let _turn = self.inner.refreshing.lock().unwrap_or_else(PoisonError::into_inner);
        let local = self.inner.registry.snapshot();
        let imported = self.upstreams().map_or_else(UpstreamTools::default, |upstreams| upstreams.tools());
        let before = self.view();
        if before.is_of(&local, &imported) {
            return;
        }
        let after = Arc::new(View::of(local, imported, &before, &self.inner.settings, &self.inner.runtimes));
        let gone = before.gone_in(&after);
        self.inner.view.set(after);
        self.older_versions().clear();
        for tool in &gone {
            self.retire(tool);
        }
        self.inner.changes.send_modify(|number| *number += 1);
    }

    /// Has the runtime let go of a version that nobody calls any more.
    pub(crate) fn retire(&self, tool: &Tool) {
        if let Some(runtime) = self.inner.runtimes.get(&tool.kind()) {
            runtime.retire(tool);
        }
    }

    pub(crate) fn view(&self) -> Arc<View> {
        self.inner.view.get()
    }

    pub(crate) fn registry(&self) -> &Registry {
        &self.inner.registry
    }

    pub(crate) fn runtimes(&self) -> &Runtimes {
        &self.inner.runtimes
    }

    pub(crate) fn pipelines(&self) -> &PipelineRuntime {
        &self.inner.pipelines
    }

    pub(crate) fn code(&self) -> Option<&Arc<dyn CodeRuntime>> {
        self.inner.code.as_ref()
    }

    pub(crate) fn upstreams(&self) -> Option<&Arc<dyn Upstreams>> {
        self.inner.upstreams.as_ref()
    }

    pub(crate) fn resources(&self) -> Option<&Arc<dyn ResourceSource>> {
        self.inner.resources.get()
    }

    pub(crate) fn fetcher(&self) -> Option<&Arc<dyn SourceFetcher>> {
        self.inner.fetcher.get()
    }

    /// Tells whoever follows the lists that there is something new which is no tool.
    pub(crate) fn note_change(&self) {
        self.inner.changes.send_modify(|number| *number += 1);
    }

    pub(crate) fn consents(&self) -> &Consents {
        &self.inner.consents
    }

    pub(crate) fn queue(&self) -> &Queue {
        &self.inner.queue
    }

    pub(crate) fn search(&self) -> &ToolSearch {
        &self.inner.search
    }

    pub(crate) fn next_call_id(&self) -> String {
        self.inner.call_ids.next()
    }

    pub(crate) fn make_callable(&self, tool: Arc<Tool>) -> Callable {
        Callable::new(tool, &self.inner.settings, &self.inner.runtimes)
    }

    pub(crate) fn older_versions(&self) -> MutexGuard<'_, OlderVersions> {
        self.inner.older_versions.lock().unwrap_or_else(PoisonError::into_inner)
    }
}
