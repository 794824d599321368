//! What a program's requests go through on their way to the host: its inner calls are counted, bounded and noted.

use std::{
    sync::{Arc, Mutex, PoisonError},
    time::Instant,
};

use async_trait::async_trait;
use skillz_json::{Map, Value};
use skillz_tool::{Answer, CallClock, Host, LogLevel, Progress, ToolError};
use tokio::sync::Semaphore;

use crate::outcome::CallRecord;

/// Inner calls of one run that go on at once.
const CALLS_AT_ONCE: usize = 8;

/// The host of one program.
pub(crate) struct ProgramHost {
    inner: Arc<dyn Host>,
    places: Semaphore,
    clock: CallClock,
    notes: Mutex<Notes>,
}

#[derive(Default)]
struct Notes {
    /// Calls that have ended, in their order.
    ended: Vec<CallRecord>,
    /// Names of those that went on when the program's time was up.
    late: Vec<String>,
}

/// A call that goes on. Dropped before it has ended, it was given up.
struct Open<'a> {
    host: &'a ProgramHost,
    name: &'a str,
    started: Instant,
    /// Whether it succeeded, once it has ended.
    ok: Option<bool>,
}

impl ProgramHost {
    pub(crate) fn new(inner: Arc<dyn Host>, clock: CallClock) -> Self {
        Self { inner, clock, places: Semaphore::new(CALLS_AT_ONCE), notes: Mutex::default() }
    }

    /// The calls that have ended so far, in the order in which they did.
    pub(crate) fn calls(&self) -> Vec<CallRecord> {
        self.notes().ended.clone()
    }

    /// The tools that were being waited for when the program's time was up.
    pub(crate) fn late(&self) -> Vec<String> {
        self.notes().late.clone()
    }

    fn notes(&self) -> std::sync::MutexGuard<'_, Notes> {
        self.notes.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

impl Drop for Open<'_> {
    fn drop(&mut self) {
        let ms = (self.started.elapsed().as_secs_f64() * 1_000_000.0).round() / 1_000.0;
        let mut notes = self.host.notes();
        if self.ok.is_none() && self.host.clock.remaining().is_zero() {
            notes.late.push(self.name.to_owned());
        }
        notes.ended.push(CallRecord { tool: self.name.to_owned(), ms, ok: self.ok.unwrap_or(false) });
    }
}

#[async_trait]
impl Host for ProgramHost {
    async fn call_tool(&self, name: &str, arguments: Map<String, Value>) -> Result<Value, ToolError> {
        let _place = self.places.acquire().await;
        let mut call = Open { host: self, name, started: Instant::now(), ok: None };
        let result = self.inner.call_tool(name, arguments).await;
        call.ok = Some(result.is_ok());
        result
    }

    async fn list_tools(&self, query: Option<&str>) -> Result<Value, ToolError> {
        self.inner.list_tools(query).await
    }

    async fn describe_tool(&self, name: &str) -> Result<Value, ToolError> {
        self.inner.describe_tool(name).await
    }

    async fn memory_get(&self, key: &str) -> Result<Option<Value>, ToolError> {
        self.inner.memory_get(key).await
    }

    async fn memory_set(&self, key: &str, value: Value, ttl_seconds: Option<f64>) -> Result<(), ToolError> {
        self.inner.memory_set(key, value, ttl_seconds).await
    }

    async fn memory_list(&self, prefix: &str) -> Result<Vec<String>, ToolError> {
        self.inner.memory_list(prefix).await
    }

    async fn memory_delete(&self, key: &str) -> Result<bool, ToolError> {
        self.inner.memory_delete(key).await
    }

    async fn list_resources(&self) -> Result<Value, ToolError> {
        self.inner.list_resources().await
    }

    async fn read_resource(&self, uri: &str) -> Result<Value, ToolError> {
        self.inner.read_resource(uri).await
    }

    async fn ask_user(&self, message: &str, schema: Value) -> Result<Answer, ToolError> {
        self.inner.ask_user(message, schema).await
    }

    async fn sample(&self, parameters: Value) -> Result<Value, ToolError> {
        self.inner.sample(parameters).await
    }

    async fn roots(&self) -> Result<Value, ToolError> {
        self.inner.roots().await
    }

    fn session(&self) -> Option<u64> {
        self.inner.session()
    }

    fn progress(&self, progress: Progress) {
        self.inner.progress(progress);
    }

    fn log(&self, level: LogLevel, message: &str, data: Option<Value>) {
        self.inner.log(level, message, data);
    }
}
