//! A client's call with everything that happens inside it: what all of its inner calls share, and where each stands.

use std::{
    path::PathBuf,
    sync::{Arc, Mutex, PoisonError},
};

use skillz_tool::{CallClock, ClientCapabilities, PauseGuard, Progress};
use tokio::sync::OnceCell;

use crate::{ClientPort, EngineSettings};

/// Added to a progress that would not grow: clients may drop reports that do not.
const PROGRESS_STEP: f64 = 0.001;

/// What all calls inside one client's call share.
pub(crate) struct CallTree {
    client: Arc<dyn ClientPort>,
    pub(crate) capabilities: ClientCapabilities,
    roots: OnceCell<Vec<PathBuf>>,
    /// The last progress that the client was told.
    progress: Mutex<f64>,
    reports_progress: bool,
}

/// One running call, linked to the one that made it.
pub(crate) struct Frame {
    pub(crate) name: Arc<str>,
    pub(crate) call_id: String,
    /// 1 for a client's call.
    pub(crate) depth: usize,
    /// Absent while a tool is made rather than called.
    pub(crate) clock: CallClock,
    /// Whether this call, or one above it, holds a place among the scripts.
    pub(crate) holds_script_place: bool,
    /// Whether inner calls go into the history.
    pub(crate) is_recorded: bool,
    pub(crate) caller: Option<Arc<Frame>>,
}

impl CallTree {
    pub(crate) fn new(client: Arc<dyn ClientPort>) -> Self {
        Self {
            capabilities: client.capabilities(),
            reports_progress: client.progress_token().is_some(),
            client,
            roots: OnceCell::new(),
            progress: Mutex::new(f64::NEG_INFINITY),
        }
    }

    pub(crate) fn client(&self) -> &dyn ClientPort {
        self.client.as_ref()
    }

    /// The workspace roots: the client's, else the operator's. The client is asked once.
    pub(crate) async fn roots(&self, settings: &EngineSettings) -> Vec<PathBuf> {
        self.roots.get_or_init(|| self.ask_for_roots(settings)).await.clone()
    }

    /// The workspace roots as far as they are known without asking.
    pub(crate) fn known_roots(&self, settings: &EngineSettings) -> Vec<PathBuf> {
        self.roots.get().unwrap_or(&settings.roots).clone()
    }

    async fn ask_for_roots(&self, settings: &EngineSettings) -> Vec<PathBuf> {
        let roots = match self.client.roots().await {
            Some(roots) if !roots.is_empty() => roots,
            _ => return settings.roots.clone(),
        };
        if !self.client.is_remote() {
            return roots;
        }
        // A client on another machine names folders of this one; only what the operator opened counts.
        let allowed: Vec<PathBuf> = settings.roots.iter().filter_map(|root| root.canonicalize().ok()).collect();
        let within =
            |root: &PathBuf| root.canonicalize().is_ok_and(|real| allowed.iter().any(|allowed| real.starts_with(allowed)));
        roots.into_iter().filter(within).collect()
    }

    /// Passes progress on, always growing. Inner calls count for themselves, so theirs is told as a message only.
    pub(crate) fn progress(&self, depth: usize, mut progress: Progress) {
        if !self.reports_progress || !progress.current.is_finite() {
            return;
        }
        {
            let mut last = self.progress.lock().unwrap_or_else(PoisonError::into_inner);
            if depth > 1 || progress.current <= *last {
                if progress.message.is_none() {
                    return;
                }
                progress.current = if last.is_finite() { *last + PROGRESS_STEP } else { 0.0 };
                if depth > 1 {
                    progress.total = None;
                }
            }
            *last = progress.current;
        }
        self.client.progress(progress);
    }
}

impl Frame {
    /// Stops the clocks of this call and of all that wait for it.
    pub(crate) fn pause(&self) -> Vec<PauseGuard> {
        self.chain().map(|frame| frame.clock.pause()).collect()
    }

    /// The names of this call and of all that wait for it, the client's call first.
    pub(crate) fn names(&self) -> Vec<Arc<str>> {
        let mut names: Vec<Arc<str>> = self.chain().map(|frame| Arc::clone(&frame.name)).collect();
        names.reverse();
        names
    }

    fn chain(&self) -> impl Iterator<Item = &Self> {
        std::iter::successors(Some(self), |frame| frame.caller.as_deref())
    }
}
