//! Random damage to honest messages, over pipes and over HTTP: nothing ends the server or mixes up its answers.
//! `SKILLZ_FUZZ_SECONDS` makes it longer.

use std::{
    io::{BufRead, BufReader, Write},
    thread,
    time::{Duration, Instant},
};

use crate::http_support::{Echo, Server, call, initialize, modern_meta};
use serde_json::{Value, json};
use skillz_transport::serve_pipes;
use tokio_util::sync::CancellationToken;

/// How long each test damages messages where nothing else is said.
const SECONDS: u64 = 3;

/// A small generator whose seed is printed when a test fails.
struct Dice(u64);

impl Dice {
    #[expect(clippy::print_stdout, reason = "a failure can be looked into only with the seed")]
    fn new() -> Self {
        let seed = std::time::UNIX_EPOCH.elapsed().map_or(1, |elapsed| elapsed.as_nanos() as u64) | 1;
        println!("seed {seed}");
        Self(seed)
    }

    fn roll(&mut self, sides: usize) -> usize {
        self.0 ^= self.0 << 13;
        self.0 ^= self.0 >> 7;
        self.0 ^= self.0 << 17;
        (self.0 >> 11) as usize % sides.max(1)
    }
}

#[expect(clippy::disallowed_methods, reason = "a switch for whoever runs the tests, not a setting")]
fn duration() -> Duration {
    let asked = std::env::var("SKILLZ_FUZZ_SECONDS").ok().and_then(|seconds| seconds.parse().ok());
    Duration::from_secs(asked.unwrap_or(SECONDS))
}

fn honest(dice: &mut Dice) -> Value {
    match dice.roll(9) {
        0 => call(i64::try_from(dice.roll(1_000)).unwrap(), "echo"),
        1 => json!({"jsonrpc": "2.0", "id": 5, "method": "tools/list", "params": {"cursor": "x", "_meta": modern_meta()}}),
        2 => json!({"jsonrpc": "2.0", "method": "notifications/cancelled", "params": {"requestId": 5, "reason": "r"}}),
        3 => json!({"jsonrpc": "2.0", "id": "s", "method": "resources/read", "params": {"uri": "skillz://guide"}}),
        4 => json!({"jsonrpc": "2.0", "id": 9, "result": {"roots": []}}),
        5 => json!({"jsonrpc": "2.0", "id": 9, "error": {"code": -1, "message": "m", "data": [1, {"a": null}]}}),
        6 => json!([call(1, "echo"), {"jsonrpc": "2.0", "id": 2, "method": "ping"}]),
        7 => initialize("2025-03-26"),
        _ => {
            json!({"jsonrpc": "2.0", "id": 3, "method": "completion/complete", "params": {"ref": {"type": "ref/prompt", "name": "p"},
            "argument": {"name": "a", "value": "v"}}})
        }
    }
}

/// Changes some bytes, or some values.
fn damage(message: &Value, dice: &mut Dice) -> Vec<u8> {
    let mut bytes = message.to_string().into_bytes();
    for _ in 0..dice.roll(4) {
        let position = dice.roll(bytes.len());
        match dice.roll(6) {
            0 => bytes[position] = dice.roll(256) as u8,
            1 => bytes.truncate(position),
            2 => bytes.insert(position, b"{}[]\",:\\\0\xff"[dice.roll(10)]),
            3 => {
                let copy = bytes[position..].to_vec();
                bytes.extend(copy);
            }
            4 => bytes.splice(position..position, b"null".iter().copied()).for_each(drop),
            _ => bytes.splice(position..position, "[".repeat(dice.roll(300)).into_bytes()).for_each(drop),
        }
        if bytes.is_empty() {
            bytes.push(b' ');
        }
    }
    bytes.retain(|byte| *byte != b'\n');
    bytes
}

#[test]
fn damaged_lines_end_no_session() {
    let (server_input, mut input) = std::io::pipe().expect("a pipe");
    let (output, server_output) = std::io::pipe().expect("a pipe");
    let server = thread::spawn(move || {
        let runtime = tokio::runtime::Runtime::new().expect("a runtime");
        let serving = Box::pin(serve_pipes(Echo::default(), server_input, server_output, CancellationToken::new()));
        runtime.block_on(serving).expect("the threads start");
    });
    let (sender, answers) = std::sync::mpsc::channel::<Value>();
    thread::spawn(move || {
        for line in BufReader::new(output).lines() {
            let line = line.expect("the server writes UTF-8");
            let _ = sender.send(serde_json::from_str(&line).expect("each line is JSON"));
        }
    });
    let mut dice = Dice::new();
    let mut send = |bytes: &[u8]| {
        input.write_all(bytes).expect("the server reads");
        input.write_all(b"\n").expect("the server reads");
    };
    send(initialize("2025-03-26").to_string().as_bytes());
    let until = Instant::now() + duration();
    let mut probe = 0;
    while Instant::now() < until {
        for _ in 0..200 {
            let message = honest(&mut dice);
            send(&damage(&message, &mut dice));
        }
        probe += 1;
        let id = format!("probe-{probe}");
        send(json!({"jsonrpc": "2.0", "id": id, "method": "ping"}).to_string().as_bytes());
        let deadline = Instant::now() + Duration::from_mins(1);
        loop {
            let answer = answers.recv_timeout(deadline.saturating_duration_since(Instant::now())).expect("the session goes on");
            if answer["id"] == id {
                assert_eq!(answer["result"], json!({}), "{answer}");
                break;
            }
        }
    }
    drop(input);
    server.join().expect("the server ends cleanly");
}

#[test]
fn damaged_requests_end_no_server() {
    let server = Server::start();
    let session = server.open("2025-03-26");
    let headers = [("mcp-session-id", session.as_str())];
    let mut dice = Dice::new();
    let until = Instant::now() + duration();
    // No damaged message has such an id, so none is mistaken for the honest call.
    let mut id = 1_000_000;
    while Instant::now() < until {
        for _ in 0..20 {
            let body = damage(&honest(&mut dice), &mut dice);
            let (host, length) = (server.address(), body.len());
            let session_line = if dice.roll(2) == 0 { format!("mcp-session-id: {session}\r\n") } else { String::new() };
            let version_line = if dice.roll(3) == 0 { "mcp-protocol-version: 2026-07-28\r\n" } else { "" };
            let head = format!(
                "POST /mcp HTTP/1.1\r\nhost: {host}\r\nconnection: close\r\ncontent-type: application/json\r\n\
                 accept: application/json, text/event-stream\r\n{session_line}{version_line}content-length: {length}\r\n\r\n"
            );
            let mut bytes = head.into_bytes();
            bytes.extend_from_slice(&body);
            if dice.roll(4) == 0 {
                let position = dice.roll(bytes.len());
                bytes[position] = dice.roll(256) as u8;
            }
            // Some clients leave without reading; others leave in the middle.
            let sent = if dice.roll(5) == 0 { &bytes[..dice.roll(bytes.len())] } else { &bytes[..] };
            drop(server.raw(sent));
        }
        id += 1;
        let answer = server.post("/mcp", &headers, &call(id, "echo"));
        assert_eq!(answer.event()["id"], id, "{answer:?}");
    }
    server.until(|| server.metric("skillz_http_connections ") <= 1);
}
