//! All imported servers of a home: those of the folder are running, and those of others are noticed.

use std::{
    collections::{BTreeMap, HashMap},
    sync::{Arc, Mutex, MutexGuard, PoisonError, Weak},
    time::Duration,
};

use async_trait::async_trait;
use skillz_json::{Value, json};
use skillz_tool::{ErrorKind, ServerDefinition, Tool, ToolError, ToolName, UpstreamTools, Upstreams};
use tokio::{sync::watch, time::timeout};
use tokio_util::sync::CancellationToken;

use crate::{
    definition::{self, Reach},
    folder::{Folder, Found, ServerFile, Stamp},
    link::HttpClient,
    names, report, served,
    server::{Phase, Server},
    settings::{Start, UpstreamSettings},
    tool,
};

/// How often the folder is looked at; what others do there is noticed within a second.
const LOOK_EVERY: Duration = Duration::from_millis(400);
/// How long whoever adds or refreshes a server waits for its tools. Clients wait a little longer.
const WAIT_FOR_TOOLS: Duration = Duration::from_secs(8);
/// How long whoever removes a server waits for its end.
const WAIT_FOR_END: Duration = Duration::from_secs(1);

/// The imported servers of a home. Cheap to clone; all end with the last clone.
#[derive(Clone)]
pub struct ImportedServers {
    inner: Arc<Inner>,
}

struct Inner {
    settings: Arc<UpstreamSettings>,
    folder: Folder,
    http: HttpClient,
    servers: Mutex<BTreeMap<String, Arc<Server>>>,
    /// Files that are no definitions, and why.
    problems: Mutex<BTreeMap<String, String>>,
    tools: watch::Sender<UpstreamTools>,
    /// Held while the folder is looked at or changed, so that nothing old is taken for new.
    turn: tokio::sync::Mutex<()>,
    /// Held while a new list of tools is made.
    rebuilding: Mutex<()>,
    loaded: watch::Sender<bool>,
    stop: CancellationToken,
}

impl Drop for Inner {
    fn drop(&mut self) {
        self.stop.cancel();
    }
}

impl ImportedServers {
    /// Reads the folder in the background, and starts its servers if told so. Needs a tokio runtime.
    pub fn open(settings: UpstreamSettings) -> Self {
        let inner = Arc::new(Inner {
            folder: Folder::new(settings.directory.clone()),
            http: HttpClient::new(&settings.environment),
            settings: Arc::new(settings),
            servers: Mutex::default(),
            problems: Mutex::default(),
            tools: watch::Sender::new(UpstreamTools::default()),
            turn: tokio::sync::Mutex::default(),
            rebuilding: Mutex::default(),
            loaded: watch::Sender::new(false),
            stop: CancellationToken::new(),
        });
        tokio::spawn(follow(Arc::downgrade(&inner), inner.stop.clone()));
        Self { inner }
    }

    /// The server of that name.
    pub(crate) fn server(&self, name: &str) -> Option<Arc<Server>> {
        self.inner.servers().get(name).cloned()
    }

    fn known(&self, name: &str) -> Result<Arc<Server>, ToolError> {
        self.server(name).ok_or_else(|| {
            if let Some(problem) = self.inner.problems().get(name) {
                return ToolError::new(ErrorKind::Config, format!("The server `{name}` cannot be used: {problem}"));
            }
            let servers = self.inner.servers();
            let names: Vec<String> = servers.keys().map(|name| format!("`{name}`")).collect();
            let there = if names.is_empty() { "none is imported".to_owned() } else { format!("there are {}", names.join(", ")) };
            ToolError::new(ErrorKind::NotFound, format!("There is no imported server `{name}`: {there}"))
        })
    }

    /// Removes the folder that a confined server had as its home; tells what remains.
    async fn remove_private_folder(&self, name: &str) -> Option<String> {
        names::check_server_name(name).ok()?;
        let folder = self.inner.settings.data_directory.join(name);
        let shown = folder.display().to_string();
        let removed = tokio::task::spawn_blocking(move || std::fs::remove_dir_all(folder)).await.map_err(std::io::Error::other);
        match removed.and_then(|removed| removed) {
            Err(error) if error.kind() != std::io::ErrorKind::NotFound => {
                Some(format!("Its own folder `{shown}` could not be removed whole: {error}. Remove it by hand"))
            }
            _ => None,
        }
    }

    /// Waits a little until it is clear how a server does.
    async fn settle(&self, server: &Arc<Server>) -> Value {
        let mut phases = server.phases();
        let settled = phases.wait_for(|phase| match phase {
            Phase::Idle | Phase::Connecting { .. } => false,
            Phase::Ready { listed, .. } => *listed,
            Phase::Down { .. } | Phase::Stopped => true,
        });
        let is_settled = timeout(WAIT_FOR_TOOLS, settled).await.is_ok_and(|phase| phase.is_ok());
        let mut entry = report::entry(server, &self.tools());
        if let (false, Some(members)) = (is_settled, entry.as_object_mut()) {
            let goes_on = "It goes on in the background; its tools appear when it answers";
            let note = members
                .get("note")
                .and_then(Value::as_str)
                .map_or_else(|| goes_on.to_owned(), |note| format!("{goes_on}. {note}"));
            members.insert("note".to_owned(), json!(note));
        }
        entry
    }
}

#[async_trait]
impl Upstreams for ImportedServers {
    async fn ready(&self) {
        // The other end lives as long as `self`.
        let _ = self.inner.loaded.subscribe().wait_for(|loaded| *loaded).await;
    }

    fn tools(&self) -> UpstreamTools {
        self.inner.tools.borrow().clone()
    }

    async fn changed(&self, seen: u64) -> u64 {
        let mut tools = self.inner.tools.subscribe();
        let generation = tools.wait_for(|tools| tools.generation != seen).await.map(|tools| tools.generation);
        match generation {
            Ok(generation) => generation,
            Err(_) => std::future::pending().await,
        }
    }

    async fn add(&self, name: &str, definition: ServerDefinition, overwrite: bool) -> Result<Value, ToolError> {
        names::check_server_name(name)?;
        if let Reach::Command(command) = definition::check(&definition)? {
            let beside = self.inner.settings.working_directory.join(&command);
            if !(command.contains('/') && beside.is_file()) {
                (self.inner.settings.find_program)(&command)?;
            }
        }
        self.ready().await;
        let turn = self.inner.turn.lock().await;
        let (folder, own_name) = (self.inner.folder.clone(), name.to_owned());
        let added = tokio::task::spawn_blocking(move || {
            folder.change(&own_name, |before| {
                if before.is_some() && !overwrite {
                    return Err(ToolError::invalid(format!("There is a server `{own_name}` already; nothing was changed"))
                        .with_hint("Pass `overwrite: true` to replace it, or choose another name"));
                }
                Ok(Some(match before {
                    Some(Ok(before)) => before.replaced_by(definition),
                    _ => ServerFile::new(definition),
                }))
            })
        });
        let file = added.await.map_err(ToolError::internal)??;
        if let Some(replaced) = self.inner.take(name, None) {
            replaced.end(WAIT_FOR_END).await;
        }
        self.inner.take(name, file.map(Ok));
        drop(turn);
        let server = self.known(name)?;
        server.start();
        Ok(self.settle(&server).await)
    }

    async fn remove(&self, name: &str) -> Result<Value, ToolError> {
        self.ready().await;
        if !self.inner.problems().contains_key(name) {
            self.known(name)?;
        }
        let _turn = self.inner.turn.lock().await;
        let (folder, own_name) = (self.inner.folder.clone(), name.to_owned());
        let removed = tokio::task::spawn_blocking(move || folder.change(&own_name, |_| Ok(None)));
        removed.await.map_err(ToolError::internal)??;
        if let Some(server) = self.inner.take(name, None) {
            server.end(WAIT_FOR_END).await;
        }
        let mut answer = json!({"removed": name});
        if let (Some(note), Some(members)) = (self.remove_private_folder(name).await, answer.as_object_mut()) {
            members.insert("note".to_owned(), json!(note));
        }
        Ok(answer)
    }

    fn list(&self, name: Option<&str>) -> Result<Value, ToolError> {
        let tools = self.tools();
        let servers: Vec<Value> = match name {
            Some(name) => vec![report::entry(&*self.known(name)?, &tools)],
            None => self.inner.servers().values().map(|server| report::entry(server, &tools)).collect(),
        };
        let mut answer = json!({"servers": servers});
        let problems = self.inner.problems();
        if let (false, None, Some(members)) = (problems.is_empty(), name, answer.as_object_mut()) {
            members.insert("broken".to_owned(), json!(*problems));
        }
        Ok(answer)
    }

    async fn refresh(&self, name: &str) -> Result<Value, ToolError> {
        self.ready().await;
        let server = self.known(name)?;
        let changed = server.file().known.changed.clone();
        server.refresh().await?;
        let mut entry = self.settle(&server).await;
        if let (false, Some(members)) = (changed.is_empty(), entry.as_object_mut()) {
            members.insert("accepted".to_owned(), json!(changed));
        }
        Ok(entry)
    }

    async fn hide(&self, tool: &Tool) -> Result<(), ToolError> {
        let (server, original) = tool::place(tool)
            .ok_or_else(|| ToolError::internal(format!("`{}` does not say which imported server it belongs to", tool.name)))?;
        let original = original.to_owned();
        let hide = move |file: &mut ServerFile| {
            file.known.hidden.insert(original.clone());
        };
        self.known(server)?.change_file(false, hide).await
    }

    fn explain(&self, tool_name: &str) -> Option<String> {
        let servers = self.inner.servers();
        let begins = |name: &str| tool_name.strip_prefix(name).is_some_and(|rest| rest.starts_with('_'));
        servers.values().filter(|server| begins(&server.name)).find_map(|server| report::absence(server))
    }

    fn warnings(&self) -> Vec<String> {
        let problems: Vec<String> = self.inner.problems().values().cloned().collect();
        let servers = self.inner.servers();
        problems.into_iter().chain(servers.values().filter_map(|server| report::warning(server))).collect()
    }
}

/// Follows the folder for as long as anybody needs it.
async fn follow(inner: Weak<Inner>, stop: CancellationToken) {
    let mut known = BTreeMap::new();
    loop {
        let Some(current) = inner.upgrade() else { return };
        let turn = current.turn.lock().await;
        let folder = current.folder.clone();
        let before = known.clone();
        if let Ok((stamps, found)) = tokio::task::spawn_blocking(move || look(&folder, &before)).await {
            known = stamps;
            // Names are given when all files are read, since each keeps the names of its own tools.
            let is_other = !found.is_empty();
            let changed: Vec<Arc<Server>> = found
                .into_iter()
                .filter_map(|(name, found)| {
                    current.absorb(&name, found);
                    current.servers().get(&name).cloned()
                })
                .collect();
            if is_other {
                current.rebuild();
            }
            if current.settings.start == Start::AtOnce {
                changed.iter().for_each(Server::start);
            }
        }
        drop(turn);
        current.loaded.send_replace(true);
        if current.settings.start == Start::OnDemand {
            return;
        }
        drop(current);
        tokio::select! {
            () = stop.cancelled() => return,
            () = tokio::time::sleep(LOOK_EVERY) => {}
        }
    }
}

/// What is in the folder now, and every file that is another than before.
fn look(folder: &Folder, before: &BTreeMap<String, Stamp>) -> (BTreeMap<String, Stamp>, Vec<(String, Option<Found>)>) {
    let stamps = folder.stamps();
    let gone = before.keys().filter(|name| !stamps.contains_key(*name)).map(|name| (name.clone(), None));
    let changed = stamps.iter().filter(|(name, stamp)| before.get(*name) != Some(stamp));
    let found = changed.map(|(name, _)| (name.clone(), folder.read(name)));
    let found = gone.chain(found).collect();
    (stamps, found)
}

impl Inner {
    fn servers(&self) -> MutexGuard<'_, BTreeMap<String, Arc<Server>>> {
        self.servers.lock().unwrap_or_else(PoisonError::into_inner)
    }

    fn problems(&self) -> MutexGuard<'_, BTreeMap<String, String>> {
        self.problems.lock().unwrap_or_else(PoisonError::into_inner)
    }

    /// Takes over what a file says now, and makes the list of tools anew. Gives the server that is over with that.
    fn take(self: &Arc<Self>, name: &str, found: Option<Found>) -> Option<Arc<Server>> {
        let over = self.absorb(name, found);
        self.rebuild();
        over
    }

    /// Takes over what a file says now. Gives the server that is over with that, which ends by itself. A file that
    /// became unreadable costs nothing but a warning: its server goes on as it was. Starts nothing.
    fn absorb(self: &Arc<Self>, name: &str, found: Option<Found>) -> Option<Arc<Server>> {
        let file = match found {
            Some(Err(problem)) => {
                tracing::warn!(server = name, %problem, "A file among the servers is no definition");
                self.problems().insert(name.to_owned(), problem);
                return None;
            }
            Some(Ok(file)) => Some(file),
            None => None,
        };
        self.problems().remove(name);
        let over = {
            let mut servers = self.servers();
            match file {
                None => servers.remove(name),
                Some(file) if servers.get(name).is_some_and(|server| server.take_file(file.clone())) => None,
                Some(file) => servers.insert(name.to_owned(), self.make(name, file)),
            }
        };
        if let Some(server) = &over {
            server.stop.cancel();
        }
        over
    }

    fn make(self: &Arc<Self>, name: &str, file: ServerFile) -> Arc<Server> {
        let inner = Arc::downgrade(self);
        let tell = move || {
            if let Some(inner) = inner.upgrade() {
                inner.rebuild();
            }
        };
        let parts = (Arc::clone(&self.settings), self.folder.clone(), self.http.clone());
        Server::new(name, file, parts, self.stop.child_token(), Box::new(tell))
    }

    /// Makes the list of all tools anew; tells of it only if it is another.
    fn rebuild(&self) {
        let _turn = self.rebuilding.lock().unwrap_or_else(PoisonError::into_inner);
        let before = self.tools.borrow().clone();
        let kept: HashMap<&str, &Arc<Tool>> = before.tools.iter().map(|tool| (tool.name.as_str(), tool)).collect();
        let current = kept.iter().filter_map(|(name, tool)| Some((*name, tool::place(tool)?))).collect();
        let servers: Vec<Arc<Server>> = self.servers().values().cloned().collect();
        let files: Vec<ServerFile> = servers.iter().map(|server| server.file().clone()).collect();
        let known: Vec<_> = servers.iter().zip(&files).map(|(server, file)| (server.name.as_str(), &file.known)).collect();
        let names = served::give(&known, &current);
        let mut tools = Vec::new();
        for (server, file) in servers.iter().zip(&files) {
            let mut is_new = false;
            for known in &file.known.tools {
                let place = (server.name.as_str(), known.name.as_str());
                let Some(name) = names.get(&place) else { continue };
                if known.served_as.as_ref() != Some(name) {
                    server.name_tool(&known.name, known.served_as.as_deref(), name);
                    is_new = true;
                }
                if !file.known.offers(known) {
                    continue;
                }
                let same = kept.get(name.as_str()).filter(|tool| {
                    tool.hash == known.hash && tool.manifest.limits == file.limits && tool::place(tool) == Some(place)
                });
                if let Some(same) = same {
                    tools.push(Arc::clone(same));
                } else if let Ok(name) = ToolName::for_new(name) {
                    tools.push(Arc::new(tool::tool(&server.name, name, known, &file.limits)));
                }
            }
            if is_new && let Ok(runtime) = tokio::runtime::Handle::try_current() {
                let server = Arc::clone(server);
                runtime.spawn(async move { server.save_names().await });
            }
        }
        tools.sort_by(|left, right| left.name.cmp(&right.name));
        let is_same = tools.len() == before.tools.len()
            && tools.iter().zip(before.tools.iter()).all(|(left, right)| Arc::ptr_eq(left, right));
        if !is_same {
            self.tools.send_replace(UpstreamTools { generation: before.generation + 1, tools: Arc::new(tools) });
        }
    }
}
