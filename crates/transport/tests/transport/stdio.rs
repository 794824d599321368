//! Sessions over in-memory pipes, with a handler that only echoes: what the transport does with whatever
//! a client sends.

use std::{
    io::{PipeWriter, Write},
    sync::mpsc,
    thread,
    time::{Duration, Instant},
};

use crate::http_support::{Echo, initialize};
use serde_json::{Value, json};
use skillz_test_support::json_lines;
use skillz_transport::serve_pipes;
use tokio_util::sync::CancellationToken;

/// Longest wait for something that must happen.
const DEADLINE: Duration = Duration::from_mins(1);

/// A client at the other end of two pipes.
struct Client {
    input: Option<PipeWriter>,
    lines: mpsc::Receiver<Value>,
    stop: CancellationToken,
    server: thread::JoinHandle<()>,
}

impl Client {
    fn start() -> Self {
        let (server_input, input) = std::io::pipe().expect("a pipe");
        let (output, server_output) = std::io::pipe().expect("a pipe");
        let stop = CancellationToken::new();
        let stopped = stop.clone();
        let server = thread::spawn(move || {
            let runtime = tokio::runtime::Runtime::new().expect("a runtime");
            runtime.block_on(serve_pipes(Echo::default(), server_input, server_output, stopped)).expect("the threads start");
        });
        Self { input: Some(input), lines: json_lines(output), stop, server }
    }

    /// A client that has shaken hands in `version`.
    fn open(version: &str) -> Self {
        let mut client = Self::start();
        client.send(&json!({"jsonrpc": "2.0", "id": "init", "method": "initialize", "params": {
            "protocolVersion": version, "capabilities": {}, "clientInfo": {"name": "test", "version": "1"}}}));
        assert_eq!(client.answer(&json!("init"))["result"]["protocolVersion"], version);
        client.send(&json!({"jsonrpc": "2.0", "method": "notifications/initialized"}));
        client
    }

    fn send(&mut self, message: &Value) {
        self.send_raw(message.to_string().as_bytes());
    }

    fn send_raw(&mut self, line: &[u8]) {
        let input = self.input.as_mut().expect("still open");
        input.write_all(line).expect("the server reads");
        input.write_all(b"\n").expect("the server reads");
    }

    fn next(&self) -> Value {
        self.lines.recv_timeout(DEADLINE).expect("the server answers")
    }

    fn answer(&self, id: &Value) -> Value {
        loop {
            let line = self.next();
            if line.get("id") == Some(id) {
                return line;
            }
        }
    }

    fn ping(&mut self) {
        self.send(&json!({"jsonrpc": "2.0", "id": "ping", "method": "ping"}));
        assert_eq!(self.answer(&json!("ping"))["result"], json!({}));
    }

    /// Closes stdin, and waits for the server to end.
    fn finish(mut self) -> Vec<Value> {
        drop(self.input.take());
        let rest: Vec<Value> = self.lines.iter().collect();
        self.server.join().expect("the server ends cleanly");
        rest
    }
}

fn call(id: i64, name: &str) -> Value {
    json!({"jsonrpc": "2.0", "id": id, "method": "tools/call", "params": {"name": name, "arguments": {"id": id}}})
}

#[test]
fn whatever_comes_in_the_session_goes_on() {
    let mut client = Client::open("2025-11-25");
    let deep = format!(
        r#"{{"jsonrpc":"2.0","id":70,"method":"tools/call","params":{{"a":{}1{}}}}}"#,
        "[".repeat(5_000),
        "]".repeat(5_000)
    );
    let long = format!(r#"{{"jsonrpc":"2.0","id":71,"method":"ping","x":"{}"}}"#, "y".repeat(50 << 20));
    for (line, code, id) in [
        (&b"no json"[..], -32700, Value::Null),
        (b"\xff\xfe\xfd", -32700, Value::Null),
        (deep.as_bytes(), -32700, json!(70)),
        (long.as_bytes(), -32600, Value::Null),
        (b"[]", -32600, Value::Null),
        (br#"[{"jsonrpc":"2.0","id":1,"method":"ping"}]"#, -32600, Value::Null),
        (br#"{"jsonrpc":"2.0","id":72,"method":"tools/call","params":{"name":"echo","arguments":[1]}}"#, -32602, json!(72)),
        (br#"{"jsonrpc":"2.0","id":73,"method":"no/such"}"#, -32601, json!(73)),
    ] {
        client.send_raw(line);
        let answer = client.next();
        assert_eq!((&answer["error"]["code"], &answer["id"]), (&json!(code), &id), "{answer}");
        client.ping();
    }
    for ignored in
        ["", "   ", r#"{"jsonrpc":"2.0","id":999,"result":{}}"#, r#"{"jsonrpc":"2.0","method":"notifications/unknown"}"#]
    {
        client.send_raw(ignored.as_bytes());
        client.ping();
    }
    assert_eq!(client.finish(), Vec::<Value>::new());
}

#[test]
fn nothing_before_the_session_is_open_ends_it() {
    let mut client = Client::start();
    for line in [
        r#"{"jsonrpc":"2.0","method":"notifications/initialized"}"#,
        r#"{"jsonrpc":"2.0","id":4,"result":{}}"#,
        r#"{"jsonrpc":"2.0","id":4,"error":{"code":1,"message":"x"}}"#,
    ] {
        client.send_raw(line.as_bytes());
    }
    client.send(&call(1, "echo"));
    assert_eq!(client.answer(&json!(1))["error"]["code"], -32602);
    client.send(&json!({"jsonrpc": "2.0", "id": 2, "method": "initialize", "params": {}}));
    assert_eq!(client.answer(&json!(2))["error"]["code"], -32602);
    client.ping();
    client.send(&json!({"jsonrpc": "2.0", "id": 3, "method": "initialize", "params": {
        "protocolVersion": "2025-06-18", "capabilities": {}, "clientInfo": {"name": "test", "version": "1"}}}));
    assert_eq!(client.answer(&json!(3))["result"]["protocolVersion"], "2025-06-18");
    client.send(&call(5, "echo"));
    assert_eq!(client.answer(&json!(5))["result"]["content"][0]["text"], r#"{"id":5}"#);
    client.finish();
}

#[test]
fn a_client_may_turn_from_the_stateless_protocol_to_the_handshake() {
    let mut client = Client::start();
    let meta = json!({"io.modelcontextprotocol/protocolVersion": "2026-07-28", "io.modelcontextprotocol/clientCapabilities": {}});
    client.send(&json!({"jsonrpc": "2.0", "id": 1, "method": "server/discover", "params": {"_meta": meta}}));
    assert_eq!(client.answer(&json!(1))["result"]["resultType"], "complete");
    client.send(&json!({"jsonrpc": "2.0", "id": 2, "method": "tools/call", "params": {"name": "echo", "_meta": meta}}));
    assert_eq!(client.answer(&json!(2))["result"]["resultType"], "complete");
    client.send(&json!({"jsonrpc": "2.0", "id": 3, "method": "initialize", "params": {
        "protocolVersion": "2025-11-25", "capabilities": {}, "clientInfo": {"name": "test", "version": "1"}}}));
    assert_eq!(client.answer(&json!(3))["result"]["protocolVersion"], "2025-11-25");
    client.send(&call(4, "echo"));
    assert!(client.answer(&json!(4))["result"].get("resultType").is_none());
    client.finish();
}

#[test]
fn a_second_handshake_changes_no_version() {
    let mut client = Client::open("2025-03-26");
    for version in ["2026-07-28", "20nonsense", "2025-11-25"] {
        client.send(&initialize(version));
        assert_eq!(client.answer(&json!("init"))["result"]["protocolVersion"], "2025-03-26");
        client.ping();
    }
    client.finish();
}

#[test]
fn a_batch_is_answered_as_one_in_the_protocol_that_has_them() {
    let mut client = Client::open("2025-03-26");
    let batch = json!([
        call(1, "echo"), {"jsonrpc": "2.0", "method": "notifications/roots/list_changed"}, 7, call(2, "echo"),
        {"jsonrpc": "2.0", "id": 3, "method": "initialize", "params": {"protocolVersion": "2025-03-26", "capabilities": {},
            "clientInfo": {"name": "test", "version": "1"}}},
    ]);
    client.send(&batch);
    let answer = client.next();
    let answers = answer.as_array().expect("one array");
    let mut seen: Vec<(String, bool)> =
        answers.iter().map(|answer| (answer["id"].to_string(), answer.get("result").is_some())).collect();
    seen.sort();
    assert_eq!(seen, [("1".to_owned(), true), ("2".to_owned(), true), ("3".to_owned(), false), ("null".to_owned(), false)]);
    client.ping();
    client.finish();
}

#[test]
fn thousands_of_requests_may_be_sent_before_the_first_answer_is_read() {
    let mut client = Client::open("2025-11-25");
    for id in 0..5_000 {
        client.send(&call(id, "echo"));
        client.send_raw(b"garbage");
    }
    let mut answered = std::collections::HashSet::new();
    let mut refused = 0;
    while answered.len() < 5_000 || refused < 5_000 {
        let line = client.next();
        match line["id"].as_i64() {
            Some(id) => {
                assert_eq!(line["result"]["content"][0]["text"], format!(r#"{{"id":{id}}}"#));
                assert!(answered.insert(id), "{id} was answered twice");
            }
            None => refused += 1,
        }
    }
    client.finish();
}

#[test]
fn answers_in_flight_are_written_after_stdin_ends() {
    let mut client = Client::open("2025-11-25");
    for id in 0..50 {
        client.send(&call(id, "echo"));
    }
    let rest = client.finish();
    assert_eq!(rest.len(), 50, "{rest:?}");
}

#[test]
fn work_of_a_client_that_is_gone_is_cancelled() {
    let mut client = Client::open("2025-11-25");
    client.send(&call(1, "wait"));
    client.ping();
    let started = Instant::now();
    let rest = client.finish();
    assert!(rest.iter().all(|answer| answer["error"]["message"] == "cancelled"), "{rest:?}");
    assert!(started.elapsed() < Duration::from_secs(20), "the handler must have been cancelled");
}

#[test]
fn a_cancelled_request_is_not_waited_for() {
    let mut client = Client::open("2025-11-25");
    client.send(&call(1, "wait"));
    client.send(&json!({"jsonrpc": "2.0", "method": "notifications/cancelled", "params": {"requestId": 1}}));
    client.ping();
    assert_eq!(client.finish(), Vec::<Value>::new());
}

#[test]
fn a_server_that_is_told_to_stop_stops_with_its_work() {
    let mut client = Client::open("2025-11-25");
    client.send(&call(1, "wait"));
    client.ping();
    client.stop.cancel();
    client.server.join().expect("the server ends cleanly although stdin is open");
}

#[test]
fn a_client_that_no_longer_reads_ends_the_server() {
    let (server_input, mut input) = std::io::pipe().expect("a pipe");
    let (output, server_output) = std::io::pipe().expect("a pipe");
    drop(output);
    let server = thread::spawn(move || {
        let runtime = tokio::runtime::Runtime::new().expect("a runtime");
        runtime
            .block_on(serve_pipes(Echo::default(), server_input, server_output, CancellationToken::new()))
            .expect("the threads start");
    });
    input.write_all(b"garbage\n").expect("the server reads");
    server.join().expect("the server ends cleanly although stdin is open");
}
