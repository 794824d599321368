//! The real binary over HTTP: every protocol at one address, who is let in, what is left of lost clients, and the end.

use std::{
    io::{BufRead, BufReader, Read, Write},
    net::TcpStream,
    process::{Child, Command, Stdio},
    thread,
    time::{Duration, Instant},
};

use serde_json::{Value, json};
use skillz_test_support::{DEADLINE, Home, Run, open_files, resident_bytes, threads, until};

use crate::{bash_tool, skillz};

/// A server on a free port.
pub(crate) struct HttpServer {
    process: Child,
    address: String,
    stderr: thread::JoinHandle<String>,
}

impl HttpServer {
    pub(crate) fn start(home: &Home) -> Self {
        Self::run(Run::new(skillz(), home).arguments(&["--transport", "http", "--port", "0"]))
    }

    fn run(run: Run<'_>) -> Self {
        let mut command = run.variable("SKILLZ_LOG", "warn,skillz_transport=info").command();
        let spawned = command.stdin(Stdio::null()).stdout(Stdio::piped()).stderr(Stdio::piped()).spawn();
        let mut process = spawned.expect("the server starts");
        let mut stderr = BufReader::new(process.stderr.take().expect("stderr is a pipe"));
        let mut said = String::new();
        while !said.contains("listening") {
            assert_ne!(stderr.read_line(&mut said).expect("stderr is text"), 0, "the server ended: {said}");
        }
        let address = said.split("address=").nth(1).expect("an address").trim().to_owned();
        let stderr = thread::spawn(move || {
            let _ = stderr.read_to_string(&mut said);
            said
        });
        Self { process, address, stderr }
    }

    /// Sends bytes and leaves the connection open.
    pub(crate) fn raw(&self, bytes: &[u8]) -> TcpStream {
        let mut connection = TcpStream::connect(&self.address).expect("the server listens");
        connection.set_read_timeout(Some(DEADLINE)).expect("a timeout");
        let _ = connection.write_all(bytes);
        connection
    }

    pub(crate) fn head(&self, method: &str, path: &str, headers: &[(&str, &str)], length: usize) -> String {
        let more: String = headers.iter().map(|(name, value)| format!("{name}: {value}\r\n")).collect();
        let address = &self.address;
        format!("{method} {path} HTTP/1.1\r\nhost: {address}\r\nconnection: close\r\ncontent-length: {length}\r\n{more}\r\n")
    }

    /// A request's status, headers and body.
    fn request(&self, method: &str, path: &str, headers: &[(&str, &str)], body: &str) -> (u16, String, String) {
        read(self.raw((self.head(method, path, headers, body.len()) + body).as_bytes()))
    }

    pub(crate) fn post(&self, headers: &[(&str, &str)], message: &Value) -> (u16, String, String) {
        self.request("POST", "/mcp", &with_json(headers), &message.to_string())
    }

    /// Calls a tool in the stateless protocol and gives the answer.
    pub(crate) fn call(&self, name: &str, arguments: &Value) -> Value {
        let (headers, message) = stateless_call(name, arguments);
        let headers: Vec<(&str, &str)> = headers.iter().map(|(name, value)| (*name, value.as_str())).collect();
        message_in(&self.post(&headers, &message).2)
    }

    /// Opens a session of 2025-11-25 and gives its id.
    pub(crate) fn open(&self) -> String {
        let (status, head, _) = self.post(&[], &initialize("2025-11-25"));
        assert_eq!(status, 200);
        let session = head.lines().find_map(|line| line.strip_prefix("mcp-session-id: ")).expect("a session").to_owned();
        let headers = session_headers(&session);
        assert_eq!(self.post(&headers, &json!({"jsonrpc": "2.0", "method": "notifications/initialized"})).0, 202);
        session
    }

    fn metric(&self, name: &str) -> u64 {
        let (_, _, text) = self.request("GET", "/metrics", &[], "");
        let value = text.lines().find_map(|line| line.strip_prefix(name));
        value.unwrap_or_else(|| panic!("no `{name}` in {text}")).trim().parse().expect("a number")
    }

    /// Asks the server to end, and gives its exit code, stdout, stderr, and how long it took.
    pub(crate) fn terminate(mut self) -> (Option<i32>, String, String, Duration) {
        let asked = Instant::now();
        let pid = self.process.id().to_string();
        assert!(Command::new("kill").args(["-TERM", &pid]).status().expect("`kill` runs").success());
        let mut stdout = String::new();
        self.process.stdout.take().expect("a pipe").read_to_string(&mut stdout).expect("text");
        let status = self.process.wait().expect("it ends");
        (status.code(), stdout, self.stderr.join().expect("stderr is read"), asked.elapsed())
    }
}

fn read(mut connection: TcpStream) -> (u16, String, String) {
    let mut bytes = Vec::new();
    let _ = connection.read_to_end(&mut bytes);
    let text = String::from_utf8_lossy(&bytes).into_owned();
    let (head, body) = text.split_once("\r\n\r\n").unwrap_or((&text, ""));
    let status = head.split(' ').nth(1).and_then(|status| status.parse().ok()).unwrap_or(0);
    (status, head.to_ascii_lowercase(), body.to_owned())
}

/// The last message in a body, be it JSON, events or chunks of those.
pub(crate) fn message_in(body: &str) -> Value {
    let lines = body.lines().map(|line| line.strip_prefix("data:").unwrap_or(line).trim());
    let message = lines.filter_map(|line| serde_json::from_str::<Value>(line).ok()).rfind(Value::is_object);
    message.unwrap_or_else(|| panic!("no message in {body:?}"))
}

pub(crate) fn with_json<'a>(headers: &[(&'a str, &'a str)]) -> Vec<(&'a str, &'a str)> {
    let mut all = vec![("content-type", "application/json"), ("accept", "application/json, text/event-stream")];
    all.extend_from_slice(headers);
    all
}

pub(crate) fn session_headers(session: &str) -> [(&str, &str); 2] {
    [("mcp-session-id", session), ("mcp-protocol-version", "2025-11-25")]
}

fn initialize(version: &str) -> Value {
    json!({"jsonrpc": "2.0", "id": 0, "method": "initialize", "params": {
        "protocolVersion": version, "capabilities": {}, "clientInfo": {"name": "test", "version": "1"}}})
}

fn stateless_call(name: &str, arguments: &Value) -> (Vec<(&'static str, String)>, Value) {
    let meta = json!({"io.modelcontextprotocol/protocolVersion": "2026-07-28", "io.modelcontextprotocol/clientCapabilities": {}});
    let message = json!({"jsonrpc": "2.0", "id": 1, "method": "tools/call",
        "params": {"name": name, "arguments": arguments, "_meta": meta}});
    let headers = [("mcp-protocol-version", "2026-07-28"), ("mcp-method", "tools/call"), ("mcp-name", name)];
    (headers.map(|(name, value)| (name, value.to_owned())).to_vec(), message)
}

/// Reads events until one holds what is wanted, and gives everything read.
fn read_until(connection: &mut BufReader<TcpStream>, wanted: &str) -> String {
    let mut all = String::new();
    while !all.contains(wanted) {
        assert_ne!(connection.read_line(&mut all).expect("the stream is open"), 0, "`{wanted}` never came: {all}");
    }
    all
}

#[test]
fn it_serves_until_it_is_told_to_end_and_forgets_sessions_with_that() {
    let home = Home::new();
    let server = HttpServer::start(&home);
    assert_eq!(server.request("GET", "/health", &[], "").2, r#"{"status":"ok"}"#);
    let made = server.call("register_script", &bash_tool("slow", "sleep 0.4; echo done"));
    assert_eq!(made["result"]["structuredContent"]["version"], "1.0.0", "{made}");
    let session = server.open();
    let call = json!({"jsonrpc": "2.0", "id": 2, "method": "tools/call", "params": {"name": "slow", "arguments": {}}});
    let headers = session_headers(&session);
    assert_eq!(message_in(&server.post(&headers, &call).2)["result"]["content"][0]["text"], "done");
    assert!(server.metric("skillz_tools{kind=\"script\"}") == 1, "the operator sees the tools");
    assert_eq!(server.post(&headers, &json!("x".repeat(17 << 20))).0, 413);

    // A call that is running when the end is asked for gets to finish.
    let (stateless, message) = stateless_call("slow", &json!({}));
    let stateless: Vec<(&str, &str)> = stateless.iter().map(|(name, value)| (*name, value.as_str())).collect();
    let text = message.to_string();
    let running = server.raw((server.head("POST", "/mcp", &with_json(&stateless), text.len()) + &text).as_bytes());
    until("the running call", || server.metric("skillz_calls_running") == 1);
    let (code, stdout, stderr, took) = server.terminate();
    assert_eq!((code, stdout.as_str()), (Some(0), ""), "{stderr}");
    assert!(took < Duration::from_secs(5), "the end took {took:?}");
    assert_eq!(message_in(&read(running).2)["result"]["content"][0]["text"], "done");

    let server = HttpServer::start(&home);
    assert_eq!(server.post(&headers, &call).0, 404, "a session of the server before is unknown, so the client starts anew");
    let session = server.open();
    assert_eq!(message_in(&server.post(&session_headers(&session), &call).2)["result"]["content"][0]["text"], "done");
    server.terminate();
}

#[test]
fn others_are_let_in_only_with_the_token() {
    let home = Home::new();
    let elsewhere = ["--transport", "http", "--host", "0.0.0.0", "--port", "0"];
    let (code, stdout, stderr) = Run::new(skillz(), &home).arguments(&elsewhere).output();
    assert!(code == 4 && stdout.is_empty() && stderr.contains("SKILLZ_AUTH_TOKEN"), "{code} {stderr}");

    let run = Run::new(skillz(), &home).arguments(&["--transport", "http", "--port", "0"]);
    let server = HttpServer::run(run.variable("SKILLZ_AUTH_TOKEN", "hunter2-of-the-test"));
    let token = ("authorization", "Bearer hunter2-of-the-test");
    let status = |headers: &[(&str, &str)]| server.post(headers, &initialize("2025-11-25")).0;
    assert_eq!(status(&[]), 401);
    assert_eq!(status(&[("authorization", "Bearer wrong")]), 401);
    assert_eq!(status(&[token]), 200);
    assert_eq!(status(&[token, ("origin", "http://localhost.evil")]), 403);
    assert_eq!(server.request("GET", "/health", &[], "").0, 200);
    assert_eq!(server.request("GET", "/metrics", &[], "").0, 401);
    let rebound = "POST /mcp HTTP/1.1\r\nhost: evil.test\r\nconnection: close\r\ncontent-length: 0\r\n\r\n";
    assert_eq!(read(server.raw(rebound.as_bytes())).0, 403);
    let (code, _, stderr, _) = server.terminate();
    assert!(code == Some(0) && !stderr.contains("hunter2"), "{stderr}");
}

#[test]
fn what_one_session_asks_for_reaches_no_other() {
    let home = Home::new();
    let server = HttpServer::start(&home);
    server.call("register_script", &bash_tool("watched", "echo 1"));
    let (asking, other) = (server.open(), server.open());
    let stream = |session: &str| {
        let headers = [&[("accept", "text/event-stream")], &session_headers(session)[..]].concat();
        BufReader::new(server.raw(server.head("GET", "/mcp", &headers, 0).as_bytes()))
    };
    let (mut asked, mut told) = (stream(&asking), stream(&other));
    for reader in [&mut asked, &mut told] {
        read_until(reader, "\r\n\r\n");
    }
    let subscribe =
        json!({"jsonrpc": "2.0", "id": 1, "method": "resources/subscribe", "params": {"uri": "skillz://tools/watched"}});
    assert!(message_in(&server.post(&session_headers(&asking), &subscribe).2).get("result").is_some());
    let change = |code: &str, description: &str| {
        let mut changed = bash_tool("watched", code);
        changed["overwrite"] = json!(true);
        changed["description"] = json!(description);
        server.call("register_script", &changed);
    };
    change("echo 2", "Changed once");
    read_until(&mut asked, "skillz://tools/watched");
    let first = read_until(&mut told, "notifications/prompts/list_changed");
    change("echo 3", "Changed twice");
    let second = read_until(&mut told, "notifications/prompts/list_changed");
    assert!(first.contains("tools/list_changed") && !(first + &second).contains("resources/updated"), "{second}");
    drop((asked, told));
    server.terminate();
}

#[test]
fn two_thousand_clients_that_leave_without_goodbye_leave_nothing_behind() {
    let home = Home::new();
    let server = HttpServer::start(&home);
    server.call("register_script", &bash_tool("wait", "sleep 300"));
    let (headers, message) = stateless_call("wait", &json!({}));
    let headers: Vec<(&str, &str)> = headers.iter().map(|(name, value)| (*name, value.as_str())).collect();
    let waits = message.to_string();
    let waits = server.head("POST", "/mcp", &with_json(&headers), waits.len()) + &waits;
    let begins = initialize("2025-11-25").to_string();
    let begins = server.head("POST", "/mcp", &with_json(&[]), begins.len()) + &begins;
    let listens = server.head("GET", "/sse", &[], 0);
    let half = "POST /mcp HTTP/1.1\r\nhost: localhost\r\ncontent-le".to_owned();
    let leave = |count: usize| {
        for index in 0..count {
            // Most of them at the beginning, some in the middle of a call.
            let bytes = if index % 50 == 0 { &waits } else { [&begins, &listens, &half][index % 3] };
            drop(server.raw(bytes.as_bytes()));
        }
        until("the end of their connections", || server.metric("skillz_http_connections ") <= 1);
        until("the end of their streams", || server.metric("skillz_http_sessions{route=\"/sse\"}") == 0);
        until("the end of their calls", || server.metric("skillz_calls_running") == 0);
        until("the end of their sessions", || server.metric("skillz_http_sessions{route=\"/mcp\"}") <= 256);
    };
    // What is made once, and what the allocator keeps for the next of them, is there after the first time.
    leave(2_000);
    let (descriptors, started, memory) =
        (open_files(server.process.id()), threads(server.process.id()), resident_bytes(server.process.id()));
    leave(2_000);
    // Databases and pools come and go with their own clocks; clients would leave hundreds.
    until("closed descriptors", || open_files(server.process.id()) <= descriptors + 16);
    until("ended threads", || threads(server.process.id()) <= started + 8);
    until("the memory as before", || resident_bytes(server.process.id()) < memory + (16 << 20));
    server.terminate();
}
