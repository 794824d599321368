//! One line of the history for each call, written however the call ends.

use std::{
    sync::{
        Arc,
        atomic::{AtomicU64, Ordering},
    },
    time::{Instant, SystemTime, UNIX_EPOCH},
};

use skillz_tool::{CallRecord, ErrorKind, HistoryStore, Tool, ToolError};

use crate::secrets::Secrets;

/// Longest error kept, in bytes.
const ERROR_LENGTH: usize = 300;

/// Gives calls their ids: a random part for this server, and a number.
pub(crate) struct CallIds {
    server: String,
    next: AtomicU64,
}

/// The record of a running call. Dropped without an end, it tells that the call was cancelled.
pub(crate) struct CallLog {
    history: Arc<dyn HistoryStore>,
    /// Absent once written, or where the call is not to be recorded.
    record: Option<CallRecord>,
    started: Instant,
}

impl CallIds {
    pub(crate) fn new() -> Self {
        let random = uuid::Uuid::new_v4().simple().to_string();
        let server = random.get(..12).unwrap_or(&random).to_owned();
        Self { server, next: AtomicU64::new(1) }
    }

    pub(crate) fn next(&self) -> String {
        format!("{}-{}", self.server, self.next.fetch_add(1, Ordering::Relaxed))
    }
}

impl CallLog {
    /// Opens the record of a call that starts now.
    pub(crate) fn open(
        history: &Arc<dyn HistoryStore>,
        tool: &Tool,
        call_id: &str,
        parent_id: Option<&str>,
        argument_bytes: u64,
    ) -> Self {
        let record = CallRecord {
            call_id: call_id.to_owned(),
            parent_id: parent_id.map(str::to_owned),
            tool_name: tool.name.to_string(),
            version: tool.version.to_string(),
            started_at: SystemTime::now().duration_since(UNIX_EPOCH).map_or(0.0, |since| since.as_secs_f64()),
            duration_ms: 0.0,
            status: "cancelled".to_owned(),
            error: None,
            argument_bytes,
            result_bytes: 0,
        };
        Self { history: Arc::clone(history), record: Some(record), started: Instant::now() }
    }

    /// A record that is never written, for examples.
    pub(crate) fn off(history: &Arc<dyn HistoryStore>) -> Self {
        Self { history: Arc::clone(history), record: None, started: Instant::now() }
    }

    /// Ends the record of a call that succeeded.
    pub(crate) fn succeeded(mut self, result_bytes: u64) {
        self.write(|record| {
            "ok".clone_into(&mut record.status);
            record.result_bytes = result_bytes;
        });
    }

    /// Ends the record of a call that failed.
    pub(crate) fn failed(mut self, error: &ToolError, secrets: &Secrets<'_>) {
        self.write(|record| {
            status(error.kind).clone_into(&mut record.status);
            record.error = Some(secrets.hide(&first_sentence(&error.message)).into_owned());
        });
    }

    fn write(&mut self, complete: impl FnOnce(&mut CallRecord)) {
        let Some(mut record) = self.record.take() else { return };
        record.duration_ms = self.started.elapsed().as_secs_f64() * 1_000.0;
        complete(&mut record);
        self.history.record(record);
    }
}

impl Drop for CallLog {
    fn drop(&mut self) {
        self.write(|_| ());
    }
}

fn status(kind: ErrorKind) -> &'static str {
    match kind {
        ErrorKind::TimedOut => "timed_out",
        ErrorKind::Cancelled => "cancelled",
        ErrorKind::Denied => "denied",
        ErrorKind::InvalidInput => "invalid",
        ErrorKind::NotFound
        | ErrorKind::Failed
        | ErrorKind::LimitExceeded
        | ErrorKind::Unavailable
        | ErrorKind::Config
        | ErrorKind::Internal => "failed",
    }
}

/// The first line of a failure, up to its first full stop: faults of arguments, which quote values, stand on
/// lines of their own.
fn first_sentence(message: &str) -> String {
    let line = message.lines().next().unwrap_or_default();
    let sentence = line.find(". ").and_then(|end| line.get(..end)).unwrap_or(line);
    let end = sentence.floor_char_boundary(ERROR_LENGTH);
    sentence.get(..end).unwrap_or_default().trim_end_matches(['.', ':']).to_owned()
}

#[cfg(test)]
mod tests {

    use super::*;

    #[test]
    fn the_history_keeps_the_first_sentence_only() {
        for (message, kept) in [
            ("The arguments of `x` do not fit:\n- `/a`: \"secret\" is wrong", "The arguments of `x` do not fit"),
            ("`x` ended with exit code 3. More about it", "`x` ended with exit code 3"),
            ("`x` took 1.5 s", "`x` took 1.5 s"),
            ("", ""),
        ] {
            assert_eq!(first_sentence(message), kept);
        }
        assert_eq!(first_sentence(&"ü".repeat(400)).len(), ERROR_LENGTH);
    }

    #[test]
    fn ids_differ() {
        let ids = CallIds::new();
        assert_ne!(ids.next(), ids.next());
        assert_ne!(CallIds::new().next(), CallIds::new().next());
    }
}
