//! What belongs to one running guest.

use std::sync::Arc;

use skillz_json::Value;
use skillz_tool::{Host, NetworkPermission};
use tokio::sync::{mpsc, oneshot};
use wasmtime::ResourceLimiter;
use wasmtime_wasi::p1::WasiP1Ctx;

use super::ticker::Ticker;
use crate::http::HttpClients;

/// The data of a guest's store.
pub(crate) struct Guest {
    pub(crate) wasi: WasiP1Ctx,
    pub(crate) memory: MemoryLimit,
    pub(crate) link: HostLink,
}

/// The way from a guest to the server.
pub(crate) struct HostLink {
    pub(crate) tool_name: Arc<str>,
    pub(crate) host: Arc<dyn Host>,
    /// Requests are carried out by the task that made the call, not on the guests' threads.
    pub(crate) requests: mpsc::UnboundedSender<HostRequest>,
    /// Longest result, in bytes.
    pub(crate) max_output_bytes: u64,
    pub(crate) network: NetworkPermission,
    pub(crate) http: Arc<HttpClients>,
    pub(crate) ticker: Arc<Ticker>,
    /// The last reply, until the guest takes it.
    pub(crate) reply: Vec<u8>,
    pub(crate) answer: Answer,
    /// What the guest was refused, for the text of its failure.
    pub(crate) refused_network: Option<String>,
    /// Progress reports that may still be sent at once.
    pub(crate) progress: super::import::Allowance,
}

/// What a guest said about its result other than by printing.
#[derive(Debug, Default)]
pub(crate) struct Answer {
    /// The value it returned.
    pub(crate) value: Option<Value>,
    /// Why it failed, in its own words.
    pub(crate) failure: Option<String>,
    /// Chunks that it streamed.
    pub(crate) chunks: String,
}

/// A request that waits for its reply.
pub(crate) struct HostRequest {
    pub(crate) method: String,
    pub(crate) params: Value,
    pub(crate) reply: oneshot::Sender<Vec<u8>>,
}

/// Bounds a guest's memory and remembers when the bound was hit: the guest itself only sees a failed allocation.
#[derive(Debug)]
pub(crate) struct MemoryLimit {
    limit: usize,
    used: usize,
    /// Bytes that were asked for when the limit was hit.
    pub(crate) refused: Option<usize>,
}

impl MemoryLimit {
    pub(crate) fn new(limit: u64) -> Self {
        Self { limit: usize::try_from(limit).unwrap_or(usize::MAX), used: 0, refused: None }
    }
}

impl ResourceLimiter for MemoryLimit {
    fn memory_growing(&mut self, current: usize, desired: usize, _: Option<usize>) -> wasmtime::Result<bool> {
        let total = self.used.saturating_add(desired.saturating_sub(current));
        if total > self.limit {
            self.refused = Some(total);
            return Ok(false);
        }
        self.used = total;
        Ok(true)
    }

    fn table_growing(&mut self, _: usize, desired: usize, _: Option<usize>) -> wasmtime::Result<bool> {
        // Sixteen bytes an element at most, within the same bound as memory.
        Ok(desired.saturating_mul(16) <= self.limit)
    }

    fn instances(&self) -> usize {
        1
    }
}
