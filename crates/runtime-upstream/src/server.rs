//! One imported server: a task that connects, learns its tools, and starts again with growing pauses when it is lost.

use std::{
    sync::{
        Arc, Mutex, MutexGuard, PoisonError,
        atomic::{AtomicBool, Ordering},
    },
    time::Duration,
};

use skillz_tool::{ErrorKind, ServerDefinition, ToolError};
use tokio::{
    sync::{Notify, watch},
    time::Instant,
};
use tokio_util::{sync::CancellationToken, task::TaskTracker};

use crate::{
    client::{self, Greeting},
    connection::Connection,
    error::{LinkError, RequestError},
    folder::{Folder, ServerFile},
    known::KnownTool,
    link::{HttpClient, Tail},
    secrets::Secrets,
    settings::UpstreamSettings,
};

/// The first pause after a loss; each further one is twice as long.
const FIRST_PAUSE: Duration = Duration::from_secs(1);
/// The longest pause.
const LONGEST_PAUSE: Duration = Duration::from_secs(60);
/// A server that was there for this long is healthy again.
const HEALTHY: Duration = Duration::from_secs(60);
/// A call waits for a server that is tried again within this time.
const PATIENCE: Duration = Duration::from_millis(1_500);
/// How long a call waits for a server that has just come up to settle down.
const SETTLING: Duration = Duration::from_secs(2);
/// How long whoever refreshes a server waits for its list of tools.
const REFRESHING: Duration = Duration::from_secs(30);
/// How long the first list of tools may take, after which the server counts as lost.
const FIRST_LIST: Duration = Duration::from_secs(60);
/// How long further notes of changes are waited for before the list is read anew.
const GATHER: Duration = Duration::from_millis(50);

/// Where a server stands.
pub(crate) enum Phase {
    /// Not started yet.
    Idle,
    /// On the way to its first word; there is no deadline.
    Connecting { since: Instant },
    /// It answers. Its tools may not be read yet.
    Ready { connection: Arc<Connection>, greeting: Greeting, listed: bool, since: Instant },
    /// Lost, until the next try.
    Down { failure: Failure, retry_at: Instant, failures: u32 },
    /// Taken away.
    Stopped,
}

/// Why a server is down, as it may be shown.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(crate) struct Failure {
    pub(crate) reason: String,
    pub(crate) hint: Option<String>,
    /// The last lines of its stderr.
    pub(crate) output: String,
}

/// One imported server.
pub(crate) struct Server {
    pub(crate) name: String,
    /// How it is reached; another way makes another server.
    pub(crate) definition: ServerDefinition,
    pub(crate) settings: Arc<UpstreamSettings>,
    pub(crate) http: HttpClient,
    pub(crate) secrets: Secrets,
    pub(crate) stop: CancellationToken,
    pub(crate) tasks: TaskTracker,
    folder: Folder,
    file: Mutex<ServerFile>,
    phase: watch::Sender<Phase>,
    tail: Mutex<Tail>,
    wake: Notify,
    started: AtomicBool,
    /// Names that were given to its tools and are not in the file yet: the original, the name before, the name.
    unsaved_names: Mutex<Vec<(String, Option<String>, String)>>,
    /// Held while these are written, so that whoever waits for it finds them written.
    saving_names: tokio::sync::Mutex<()>,
    /// Told when the tools may have changed.
    tell: Box<dyn Fn() + Send + Sync>,
}

impl Server {
    pub(crate) fn new(
        name: &str,
        file: ServerFile,
        (settings, folder, http): (Arc<UpstreamSettings>, Folder, HttpClient),
        stop: CancellationToken,
        tell: Box<dyn Fn() + Send + Sync>,
    ) -> Arc<Self> {
        let secrets = Secrets::of(&file.definition, &settings.environment);
        Arc::new(Self {
            name: name.to_owned(),
            definition: file.definition.clone(),
            settings,
            http,
            secrets,
            stop,
            tasks: TaskTracker::new(),
            folder,
            file: Mutex::new(file),
            phase: watch::Sender::new(Phase::Idle),
            tail: Mutex::default(),
            wake: Notify::new(),
            started: AtomicBool::new(false),
            unsaved_names: Mutex::default(),
            saving_names: tokio::sync::Mutex::default(),
            tell,
        })
    }

    /// Starts it, unless it is started already.
    pub(crate) fn start(self: &Arc<Self>) {
        if !self.started.swap(true, Ordering::AcqRel) {
            self.tasks.spawn(Arc::clone(self).run());
        }
    }

    /// Stops it and waits until nothing of it is left, for at most `patience`.
    pub(crate) async fn end(&self, patience: Duration) {
        self.stop.cancel();
        self.tasks.close();
        let _ = tokio::time::timeout(patience, self.tasks.wait()).await;
    }

    pub(crate) fn file(&self) -> MutexGuard<'_, ServerFile> {
        self.file.lock().unwrap_or_else(PoisonError::into_inner)
    }

    /// Takes over what stands on disk now; `false` where that is another way to reach it, so that it must be made anew.
    pub(crate) fn take_file(&self, file: ServerFile) -> bool {
        let (own, other) = (&self.definition, &file.definition);
        let same = (&own.command, &own.args, &own.env, &own.url, &own.headers, own.sandbox)
            == (&other.command, &other.args, &other.env, &other.url, &other.headers, other.sandbox);
        if same {
            *self.file() = file;
        }
        same
    }

    pub(crate) fn phases(&self) -> watch::Receiver<Phase> {
        self.phase.subscribe()
    }

    /// The last lines of its stderr, as they may be shown.
    pub(crate) fn last_words(&self) -> String {
        let tail = self.tail.lock().unwrap_or_else(PoisonError::into_inner).clone();
        self.secrets.hide(&tail.text())
    }

    pub(crate) fn new_tail(&self) -> Tail {
        let tail = Tail::default();
        *self.tail.lock().unwrap_or_else(PoisonError::into_inner) = tail.clone();
        tail
    }

    /// The conversation with it, as soon as there is one. A server that is down and not tried again soon is an error.
    pub(crate) async fn connection(self: &Arc<Self>) -> Result<Arc<Connection>, ToolError> {
        self.start();
        let mut phases = self.phase.subscribe();
        loop {
            let mut patience = None;
            match &*phases.borrow_and_update() {
                Phase::Ready { connection, listed, since, .. } if !connection.is_closed() => {
                    // Servers ask about their surroundings first, which is nothing of the call's; a slow list holds up nobody.
                    if *listed || since.elapsed() >= SETTLING {
                        return Ok(Arc::clone(connection));
                    }
                    patience = Some(*since + SETTLING);
                }
                Phase::Down { failure, retry_at, .. } if *retry_at > Instant::now() + PATIENCE => {
                    return Err(self.unavailable(failure));
                }
                Phase::Stopped => {
                    return Err(ToolError::new(
                        ErrorKind::Unavailable,
                        format!("The imported server `{}` was taken away", self.name),
                    ));
                }
                _ => {}
            }
            let changed = match patience {
                Some(end) => tokio::time::timeout_at(end, phases.changed()).await.unwrap_or(Ok(())),
                None => phases.changed().await,
            };
            if changed.is_err() {
                return Err(ToolError::new(ErrorKind::Unavailable, format!("The imported server `{}` is gone", self.name)));
            }
        }
    }

    /// Reads its list of tools anew and takes it for granted; tries at once where it is down.
    pub(crate) async fn refresh(self: &Arc<Self>) -> Result<(), ToolError> {
        self.start();
        let connection = match &*self.phase.borrow() {
            Phase::Ready { connection, .. } => Some(Arc::clone(connection)),
            _ => None,
        };
        let Some(connection) = connection else {
            self.wake.notify_one();
            return Ok(());
        };
        let listed = list_within(REFRESHING, &connection).await.map_err(|error| {
            let message = format!(
                "The tools of the imported server `{}` could not be listed: {}",
                self.name,
                self.secrets.hide(&error.to_string())
            );
            ToolError::failed(message)
        })?;
        self.learn(listed, true).await;
        Ok(())
    }

    /// Changes its file, on disk and here. Where the disk refuses, only here if `anyway`.
    pub(crate) async fn change_file(
        &self,
        anyway: bool,
        change: impl Fn(&mut ServerFile) + Send + Sync + 'static,
    ) -> Result<(), ToolError> {
        let (folder, name) = (self.folder.clone(), self.name.clone());
        let change = Arc::new(change);
        let on_disk = Arc::clone(&change);
        let changed = tokio::task::spawn_blocking(move || {
            folder.change(&name, |before| match before {
                None => Ok(None),
                Some(Err(reason)) => Err(ToolError::new(ErrorKind::Config, reason)),
                Some(Ok(mut file)) => {
                    on_disk(&mut file);
                    Ok(Some(file))
                }
            })
        });
        match changed.await.map_err(ToolError::internal)? {
            Ok(Some(file)) => {
                self.take_file(file);
            }
            // Taken away meanwhile.
            Ok(None) => return Ok(()),
            Err(error) if anyway => {
                tracing::warn!(server = %self.name, %error, "What was learnt of a server could not be kept");
                change(&mut self.file());
            }
            Err(error) => return Err(error),
        }
        (self.tell)();
        Ok(())
    }

    /// Gives a tool its name here. [`Self::save_names`] keeps it.
    pub(crate) fn name_tool(&self, original: &str, before: Option<&str>, name: &str) {
        self.file().known.rename(original, before, name);
        let given = (original.to_owned(), before.map(str::to_owned), name.to_owned());
        self.unsaved_names.lock().unwrap_or_else(PoisonError::into_inner).push(given);
    }

    /// Writes names that were given into the file.
    pub(crate) async fn save_names(&self) {
        let _turn = self.saving_names.lock().await;
        let names = std::mem::take(&mut *self.unsaved_names.lock().unwrap_or_else(PoisonError::into_inner));
        if names.is_empty() {
            return;
        }
        let saved = self.change_file(true, move |file| {
            for (original, before, name) in &names {
                file.known.rename(original, before.as_deref(), name);
            }
        });
        if let Err(error) = saved.await {
            tracing::warn!(server = %self.name, %error, "The names of a server's tools could not be kept");
        }
    }

    async fn learn(&self, listed: Vec<KnownTool>, accept: bool) {
        let learnt = self.change_file(true, move |file| {
            if accept {
                file.known.accept(&listed);
            } else {
                let hold = file.definition.pin;
                file.known.learn(&listed, hold);
            }
        });
        if let Err(error) = learnt.await {
            tracing::warn!(server = %self.name, %error, "What was learnt of a server could not be kept");
        }
        self.save_names().await;
    }

    async fn run(self: Arc<Self>) {
        let mut failures = 0_u32;
        loop {
            self.phase.send_replace(Phase::Connecting { since: Instant::now() });
            let (lost, ready_for) = tokio::select! {
                () = self.stop.cancelled() => break,
                lost = self.serve() => lost,
            };
            if ready_for.is_some_and(|ready_for| ready_for >= HEALTHY) {
                failures = 0;
            }
            // A session that a server has forgotten is made anew at once, unless that happens all the time.
            let at_once = lost == RequestError::Link(LinkError::SessionLost) && ready_for.is_some_and(|time| time >= FIRST_PAUSE);
            failures += 1;
            let pause = if at_once { Duration::ZERO } else { pause_after(failures) };
            let failure = self.failure(&lost);
            tracing::info!(server = %self.name, reason = %failure.reason, pause_ms = pause.as_millis(), "An imported server is down");
            self.phase.send_replace(Phase::Down { failure, retry_at: Instant::now() + pause, failures });
            tokio::select! {
                () = self.stop.cancelled() => break,
                () = self.wake.notified() => {}
                () = tokio::time::sleep(pause) => {}
            }
        }
        self.phase.send_replace(Phase::Stopped);
    }

    /// Connects and keeps the tools up to date until the server is lost; tells why it was, and how long it was there.
    async fn serve(self: &Arc<Self>) -> (RequestError, Option<Duration>) {
        let session = self.stop.child_token();
        let _ending = session.clone().drop_guard();
        let (connection, greeting) = match self.connect(&session).await {
            Ok(connected) => connected,
            Err(error) => return (error, None),
        };
        let _closing = Closing(Arc::clone(&connection));
        let since = Instant::now();
        let mut changes = connection.list_changes();
        let ready = |listed| Phase::Ready { connection: Arc::clone(&connection), greeting: greeting.clone(), listed, since };
        self.phase.send_replace(ready(false));
        let mut is_first = true;
        loop {
            changes.mark_unchanged();
            let listing = async {
                // A server that is in use is not lost over a list that it has told once.
                if is_first { list_within(FIRST_LIST, &connection).await } else { client::list_tools(&connection).await }
            };
            let listed = match listing.await {
                Ok(listed) => listed,
                Err(error) => return (error, Some(since.elapsed())),
            };
            is_first = false;
            self.learn(listed, false).await;
            self.phase.send_replace(ready(true));
            tokio::select! {
                reason = connection.closed() => return (RequestError::Link(reason), Some(since.elapsed())),
                _ = changes.changed() => tokio::time::sleep(GATHER).await,
            }
        }
    }

    fn failure(&self, error: &RequestError) -> Failure {
        let missing: Vec<String> =
            self.definition.variables().into_iter().filter(|name| !self.settings.environment.contains_key(name)).collect();
        let hint = match error {
            RequestError::Link(error) => error.hint().map(str::to_owned),
            _ => None,
        };
        let hint = hint.or_else(|| {
            (!missing.is_empty())
                .then(|| format!("It is given {}, which the server's own environment does not have", dollars(&missing)))
        });
        let reason = self.secrets.hide(&error.to_string());
        Failure { reason, hint, output: self.last_words() }
    }

    fn unavailable(&self, failure: &Failure) -> ToolError {
        let message = format!("The imported server `{}` is down: {}", self.name, failure.reason);
        let hint = failure.hint.clone().unwrap_or_else(|| {
            format!("It is tried again by itself; `import_mcp(action: \"refresh\", name: \"{}\")` tries at once", self.name)
        });
        ToolError::new(ErrorKind::Unavailable, message).with_output(failure.output.clone()).with_hint(hint)
    }
}

/// Lists a server's tools, all pages within `limit`.
async fn list_within(limit: Duration, connection: &Arc<Connection>) -> Result<Vec<KnownTool>, RequestError> {
    let listed = tokio::time::timeout(limit, client::list_tools(connection)).await;
    listed.unwrap_or_else(|_| Err(RequestError::Link(LinkError::Over(late(limit)))))
}

fn late(limit: Duration) -> String {
    format!("The server did not answer `tools/list` within {} s", limit.as_secs())
}

/// Closes a connection when its session ends, however it ends.
struct Closing(Arc<Connection>);

impl Drop for Closing {
    fn drop(&mut self) {
        self.0.close(LinkError::Over("The server was stopped".to_owned()));
    }
}

fn pause_after(failures: u32) -> Duration {
    let doubled = FIRST_PAUSE.saturating_mul(1_u32.checked_shl(failures.saturating_sub(1).min(16)).unwrap_or(u32::MAX));
    doubled.min(LONGEST_PAUSE)
}

fn dollars(names: &[String]) -> String {
    names.iter().map(|name| format!("`${name}`")).collect::<Vec<_>>().join(", ")
}

#[cfg(test)]
mod tests {
    use reqwest::header::HeaderMap;

    use super::*;
    use crate::link::{HttpLink, Link};

    #[test]
    fn pauses_grow_to_a_minute() {
        let seconds: Vec<u64> = (1..=8).map(|failures| pause_after(failures).as_secs()).collect();
        assert_eq!(seconds, [1, 2, 4, 8, 16, 32, 60, 60]);
        assert_eq!(pause_after(u32::MAX), LONGEST_PAUSE);
    }
    #[tokio::test]
    async fn a_list_that_never_comes_is_given_up() {
        // It takes connections and never answers.
        let listener = std::net::TcpListener::bind("127.0.0.1:0").expect("a port");
        let address = format!("http://{}/mcp", listener.local_addr().expect("an address"));
        let client = HttpClient::new(&std::collections::BTreeMap::new());
        let link = HttpLink::new(client.get().expect("a client").clone(), address.parse().expect("a URL"), HeaderMap::new());
        let connection = Connection::new(Link::Http(link));
        let limit = Duration::from_millis(20);
        let error = list_within(limit, &connection).await.expect_err("nobody answers");
        assert_eq!(error, RequestError::Link(LinkError::Over(late(limit))));
        assert!(late(REFRESHING).ends_with("within 30 s"));
        assert!(!connection.is_closed(), "calls go on");
    }
}
