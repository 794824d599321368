//! Counters for operators, in Prometheus' text format.

use std::{
    sync::{
        Arc,
        atomic::{AtomicU64, Ordering},
    },
    time::Duration,
};

use skillz_engine::Engine;
use skillz_tool::ToolKind;
use tokio::sync::Notify;

use crate::running::Ending;

/// What the server counts.
#[derive(Debug, Default)]
pub(crate) struct Counters {
    going_on: AtomicU64,
    succeeded: AtomicU64,
    failed: AtomicU64,
    refused: AtomicU64,
    /// Told when a call ends and no other is going on.
    at_rest: Notify,
}

/// What a server does, seen from outside. Keeps nothing of the server alive.
pub struct Activity(pub(crate) Arc<Counters>);

impl Activity {
    /// Waits until clients have made calls and then none for as long as `quiet`. One may wait at a time.
    pub async fn rest(&self, quiet: Duration) {
        self.0.rest(quiet).await;
    }
}

/// A call that is going on; counted for as long as it lives.
pub(crate) struct CountedCall(Arc<Counters>);

impl Drop for CountedCall {
    fn drop(&mut self) {
        if self.0.going_on.fetch_sub(1, Ordering::Relaxed) == 1 {
            self.0.at_rest.notify_one();
        }
    }
}

impl CountedCall {
    /// Counts how the call ended. One that is dropped before was cancelled, and counts as none.
    pub(crate) fn ended(&self, ending: &Ending) {
        let counter = match ending {
            Ok(result) if result.is_error == Some(true) => &self.0.failed,
            Ok(_) => &self.0.succeeded,
            Err(_) => &self.0.refused,
        };
        counter.fetch_add(1, Ordering::Relaxed);
    }
}

impl Counters {
    pub(crate) fn call(self: &Arc<Self>) -> CountedCall {
        self.going_on.fetch_add(1, Ordering::Relaxed);
        CountedCall(Arc::clone(self))
    }

    async fn rest(&self, quiet: Duration) {
        self.at_rest.notified().await;
        loop {
            let others = tokio::time::timeout(quiet, self.at_rest.notified()).await;
            if others.is_err() && self.going_on.load(Ordering::Relaxed) == 0 {
                return;
            }
        }
    }

    /// Everything as text.
    pub(crate) fn render(&self, engine: &Engine) -> String {
        let catalog = engine.catalog();
        let of_kind = |kind: ToolKind| catalog.tools().filter(|tool| tool.kind() == kind).count();
        let calls = |outcome: &str, counter: &AtomicU64| {
            format!("skillz_calls_total{{outcome=\"{outcome}\"}} {}", counter.load(Ordering::Relaxed))
        };
        let lines = [
            "# HELP skillz_calls_total Calls of clients that have ended.".to_owned(),
            "# TYPE skillz_calls_total counter".to_owned(),
            calls("ok", &self.succeeded),
            calls("failed", &self.failed),
            calls("refused", &self.refused),
            "# HELP skillz_calls_running Calls of clients that are going on.".to_owned(),
            "# TYPE skillz_calls_running gauge".to_owned(),
            format!("skillz_calls_running {}", self.going_on.load(Ordering::Relaxed)),
            "# HELP skillz_tools Tools in service.".to_owned(),
            "# TYPE skillz_tools gauge".to_owned(),
            format!("skillz_tools{{kind=\"wasm\"}} {}", of_kind(ToolKind::Wasm)),
            format!("skillz_tools{{kind=\"script\"}} {}", of_kind(ToolKind::Script)),
            format!("skillz_tools{{kind=\"pipeline\"}} {}", of_kind(ToolKind::Pipeline)),
            format!("skillz_tools{{kind=\"mcp\"}} {}", of_kind(ToolKind::Mcp)),
            "# HELP skillz_tools_broken Folders that cannot be used.".to_owned(),
            "# TYPE skillz_tools_broken gauge".to_owned(),
            format!("skillz_tools_broken {}", catalog.broken().len()),
            String::new(),
        ];
        lines.join("\n")
    }
}
