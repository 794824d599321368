//! Honest messages with random damage. `SKILLZ_FUZZ_SECONDS` says how long tests send them, and the seed is printed, so that
//! a failure can be looked into.

use std::time::Duration;

use serde_json::{Value, json};

/// How long a test sends damaged messages where nothing else is said: four tests of it take half a minute on two cores.
const SECONDS: u64 = 10;
/// Least and most ids of the calls among them, so that no honest call is mistaken for one of these.
const IDS: usize = 1_000;

/// How long to go on.
#[expect(clippy::disallowed_methods, reason = "a switch for whoever runs the tests, not a setting")]
pub fn fuzz_duration() -> Duration {
    let asked = std::env::var("SKILLZ_FUZZ_SECONDS").ok().and_then(|seconds| seconds.parse().ok());
    Duration::from_secs(asked.unwrap_or(SECONDS))
}

/// A source of damaged messages: a small generator of random numbers.
#[derive(Debug)]
pub struct Damage(u64);

impl Damage {
    /// A source with a seed of this moment, which it prints.
    #[expect(clippy::print_stdout, reason = "a failure can be looked into only with the seed")]
    pub fn of_this_moment() -> Self {
        let seed = std::time::UNIX_EPOCH.elapsed().map_or(1, |elapsed| elapsed.as_nanos() as u64) | 1;
        println!("seed {seed}");
        Self(seed)
    }

    /// A number below `sides`.
    pub fn roll(&mut self, sides: usize) -> usize {
        self.0 ^= self.0 << 13;
        self.0 ^= self.0 >> 7;
        self.0 ^= self.0 << 17;
        usize::try_from(self.0 >> 33).unwrap_or_default() % sides.max(1)
    }

    /// A message without line breaks: up to three times damaged, or by luck not at all. Calls are of a tool `echo`, and have
    /// ids below a thousand.
    pub fn message(&mut self) -> Vec<u8> {
        let mut bytes = self.honest().to_string().into_bytes();
        for _ in 0..self.roll(4) {
            self.harm(&mut bytes);
        }
        bytes.retain(|byte| *byte != b'\n');
        bytes
    }

    fn honest(&mut self) -> Value {
        let id = self.roll(IDS);
        let request =
            |id: Value, method: &str, params: Value| json!({"jsonrpc": "2.0", "id": id, "method": method, "params": params});
        let call = request(json!(id), "tools/call", json!({"name": "echo", "arguments": {"id": id}}));
        let stateless =
            json!({"io.modelcontextprotocol/protocolVersion": "2026-07-28", "io.modelcontextprotocol/clientCapabilities": {}});
        match self.roll(10) {
            0 => call,
            1 => request(json!(5), "tools/list", json!({"cursor": "x", "_meta": stateless})),
            2 => json!({"jsonrpc": "2.0", "method": "notifications/cancelled", "params": {"requestId": id, "reason": "r"}}),
            3 => request(json!("s"), "resources/read", json!({"uri": "skillz://guide"})),
            4 => json!({"jsonrpc": "2.0", "id": 9, "result": {"roots": []}}),
            5 => json!({"jsonrpc": "2.0", "id": 9, "error": {"code": -1, "message": "m", "data": [1, {"a": null}]}}),
            6 => json!([call, {"jsonrpc": "2.0", "id": 2, "method": "ping"}]),
            7 => request(
                json!("init"),
                "initialize",
                json!({"protocolVersion": "2025-03-26", "capabilities": {}, "clientInfo": {"name": "test", "version": "1"}}),
            ),
            8 => request(
                json!(4),
                "subscriptions/listen",
                json!({"notifications": {"toolsListChanged": true}, "_meta": stateless}),
            ),
            _ => request(
                json!(3),
                "completion/complete",
                json!({"ref": {"type": "ref/prompt", "name": "p"}, "argument": {"name": "a", "value": "v"}}),
            ),
        }
    }

    fn harm(&mut self, bytes: &mut Vec<u8>) {
        let position = self.roll(bytes.len());
        match self.roll(6) {
            0 => bytes[position] = u8::try_from(self.roll(256)).unwrap_or_default(),
            1 => bytes.truncate(position),
            2 => bytes.insert(position, b"{}[]\",:\\\0\xff"[self.roll(10)]),
            3 => {
                let copy = bytes[position..].to_vec();
                bytes.extend(copy);
            }
            4 => bytes.splice(position..position, b"null".iter().copied()).for_each(drop),
            _ => bytes.splice(position..position, "[".repeat(self.roll(300)).into_bytes()).for_each(drop),
        }
        if bytes.is_empty() {
            bytes.push(b' ');
        }
    }
}
