//! Limits of a call: what a manifest asks for, and what is in force.

use std::time::Duration;

use serde::{Deserialize, Serialize};

/// The `limits` of a manifest; whatever is absent has its default.
#[derive(Debug, Clone, PartialEq, Eq, Default, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct Limits {
    /// Longest run, in milliseconds; 30,000 by default.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub timeout_ms: Option<u64>,
    /// Most memory, in MiB; 256 for WASM and 1,024 for scripts by default.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub memory_mb: Option<u64>,
    /// Most bytes of stdout and stderr together; 64,000,000 by default.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub max_output_bytes: Option<u64>,
    /// Most processes of one script call; 64 by default.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub max_processes: Option<u32>,
    /// Most bytes of text that a result carries to a client; 100,000 by default.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub max_result_bytes: Option<u64>,
    /// WASM only: freezes clock and random numbers, so that equal arguments give equal results.
    #[serde(default, skip_serializing_if = "std::ops::Not::not")]
    pub deterministic: bool,
}

/// Limits in force for one call, after defaults and the operator's caps.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct EffectiveLimits {
    /// Longest run; the call's clock stands still while it is queued, installs, or waits for the client.
    pub timeout: Duration,
    /// Most memory, in bytes.
    pub memory_bytes: u64,
    /// Most bytes of stdout and stderr together.
    pub max_output_bytes: u64,
    /// Most processes of one script call.
    pub max_processes: u32,
    /// Most bytes of text in a result for a client.
    pub max_result_bytes: u64,
    /// Freeze clock and random numbers (WASM).
    pub deterministic: bool,
}

impl EffectiveLimits {
    /// Defaults for a kind of tool, with `memory_mb` in MiB.
    pub fn with_memory_mb(memory_mb: u64) -> Self {
        Self {
            timeout: Duration::from_secs(30),
            memory_bytes: memory_mb << 20,
            max_output_bytes: 64_000_000,
            max_processes: 64,
            max_result_bytes: 100_000,
            deterministic: false,
        }
    }

    /// What holds when a tool asks for `asked`: absent values stay, present ones replace.
    #[must_use]
    pub fn asked(mut self, asked: &Limits) -> Self {
        if let Some(timeout_ms) = asked.timeout_ms {
            self.timeout = Duration::from_millis(timeout_ms);
        }
        if let Some(memory_mb) = asked.memory_mb {
            self.memory_bytes = memory_mb.saturating_mul(1 << 20);
        }
        self.max_output_bytes = asked.max_output_bytes.unwrap_or(self.max_output_bytes);
        self.max_processes = asked.max_processes.unwrap_or(self.max_processes);
        self.max_result_bytes = asked.max_result_bytes.unwrap_or(self.max_result_bytes);
        self.deterministic |= asked.deterministic;
        self
    }

    /// Lowers each value to the operator's cap where there is one.
    #[must_use]
    pub fn capped(mut self, cap: &Limits) -> Self {
        if let Some(timeout_ms) = cap.timeout_ms {
            self.timeout = self.timeout.min(Duration::from_millis(timeout_ms));
        }
        if let Some(memory_mb) = cap.memory_mb {
            self.memory_bytes = self.memory_bytes.min(memory_mb.saturating_mul(1 << 20));
        }
        self.max_output_bytes = self.max_output_bytes.min(cap.max_output_bytes.unwrap_or(u64::MAX));
        self.max_processes = self.max_processes.min(cap.max_processes.unwrap_or(u32::MAX));
        self.max_result_bytes = self.max_result_bytes.min(cap.max_result_bytes.unwrap_or(u64::MAX));
        self
    }
}
