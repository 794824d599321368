//! Imported servers over HTTP: with sessions and without, lost sessions, broken streams, credentials.

use std::{
    io::{Read, Write},
    net::TcpStream,
    process::{Child, Command, Stdio},
    time::{Duration, Instant},
};

use serde_json::{Value, json};
use skillz_test_support::{DEADLINE, Home, TestServer, http_upstream};

use crate::{
    server,
    upstreams::{state, wait_for_state},
};

/// A server over HTTP, which ends with this.
struct Remote {
    process: Child,
    port: String,
}

impl Remote {
    fn start(home: &Home, quirks: &[&str]) -> Self {
        let port_file = home.root().join(format!("port-{}", quirks.join("-")));
        let mut command = Command::new("python3");
        command.arg(http_upstream()).arg(&port_file).args(quirks).stdin(Stdio::null());
        let mut remote = Self { process: command.spawn().expect("python3 starts"), port: String::new() };
        let end = Instant::now() + DEADLINE;
        while remote.port.is_empty() {
            assert!(Instant::now() < end, "the server never listened");
            std::thread::sleep(Duration::from_millis(10));
            remote.port = std::fs::read_to_string(&port_file).unwrap_or_default();
        }
        remote
    }

    fn url(&self) -> String {
        format!("http://127.0.0.1:{}/mcp", self.port)
    }

    fn forget_sessions(&self) {
        let mut stream = TcpStream::connect(format!("127.0.0.1:{}", self.port)).expect("it listens");
        let request = "POST /forget HTTP/1.1\r\nHost: x\r\nContent-Length: 0\r\nConnection: close\r\n\r\n";
        stream.write_all(request.as_bytes()).expect("it reads");
        stream.read_to_end(&mut Vec::new()).expect("it answers");
    }
}

impl Drop for Remote {
    fn drop(&mut self) {
        let _ = self.process.kill();
        let _ = self.process.wait();
    }
}

fn text(server: &mut TestServer, name: &str, arguments: Value) -> Value {
    let text = server.value(name, arguments);
    serde_json::from_str(text.as_str().expect("a text")).expect("JSON")
}

#[test]
fn a_lost_session_is_made_anew_and_no_call_is_lost() {
    let home = Home::new();
    for quirks in [&["json"][..], &[], &["break"]] {
        let remote = Remote::start(&home, quirks);
        let mut server = server(&home);
        let added = server.value("import_mcp", json!({"name": "far", "url": remote.url(), "overwrite": true}));
        assert_eq!((&added["state"], &added["transport"]), (&json!("ready"), &json!("http")), "{added}");
        assert_eq!(server.value("far_echo", json!({"message": "hi"})), "hi");
        assert_eq!(text(&mut server, "far_count", json!({}))["initialized"], 1);
        remote.forget_sessions();
        assert_eq!(server.value("far_echo", json!({"message": "again"})), "again");
        assert_eq!(text(&mut server, "far_count", json!({}))["initialized"], 2);
    }
}

#[test]
fn questions_come_with_the_call_that_they_belong_to() {
    let home = Home::new();
    let remote = Remote::start(&home, &[]);
    let mut server = server(&home);
    server.value("import_mcp", json!({"name": "far", "url": remote.url()}));
    let calls = ["one", "two", "three"]
        .map(|message| (message, server.send("tools/call", json!({"name": "far_ask", "arguments": {"message": message}}))));
    for _ in &calls {
        let asked = server.wait_for_method("elicitation/create");
        let content = json!({"name": asked["params"]["message"]});
        let answer = json!({"jsonrpc": "2.0", "id": asked["id"], "result": {"action": "accept", "content": content}});
        server.send_line(answer.to_string().as_bytes());
    }
    for (message, id) in calls {
        let answer = server.answer(id);
        let text = answer["result"]["content"][0]["text"].as_str().expect("a text");
        assert!(text.contains(&format!("\"name\": \"{message}\"")), "{message}: {text}");
    }
}

#[test]
fn a_stateless_server_gets_its_headers_and_asks_in_rounds() {
    let home = Home::new();
    let remote = Remote::start(&home, &["stateless"]);
    let mut server = server(&home);
    let added = server.value("import_mcp", json!({"name": "far", "url": remote.url(), "headers": {"X-Mine": "yes"}}));
    assert_eq!(added["protocol"], "2026-07-28", "{added}");
    let headers = text(&mut server, "far_headers", json!({"region": "eu"}));
    for (name, value) in [("mcp-name", "headers"), ("mcp-method", "tools/call"), ("mcp-param-region", "eu"), ("x-mine", "yes")] {
        assert_eq!(headers[name], value, "{headers}");
    }
    let id = server.send("tools/call", json!({"name": "far_ask", "arguments": {}}));
    let asked = server.wait_for_method("elicitation/create");
    server.send_line(json!({"jsonrpc": "2.0", "id": asked["id"], "result": {"action": "decline"}}).to_string().as_bytes());
    assert_eq!(server.answer(id)["result"]["content"][0]["text"], "[\"decline\", \"sealed\"]");
}

#[test]
fn credentials_are_sent_and_never_shown() {
    let home = Home::new();
    let remote = Remote::start(&home, &["token=far-token-value"]);
    let mut server = server(&home);
    let refused = server.value("import_mcp", json!({"name": "far", "url": remote.url()}));
    assert_eq!(refused["state"], "down");
    assert!(refused["error"].as_str().expect("a reason").contains("401"), "{refused}");
    assert!(refused["hint"].as_str().expect("a hint").contains("`headers`"), "{refused}");
    let headers = json!({"Authorization": "Bearer far-token-value"});
    server.value("import_mcp", json!({"name": "far", "url": remote.url(), "headers": headers, "overwrite": true}));
    assert_eq!(server.value("far_echo", json!({"message": "hi"})), "hi");
    let entry = state(&mut server, "far");
    assert_eq!(entry["headers"], json!(["Authorization"]));
    assert!(!entry.to_string().contains("far-token-value"));
    // Whatever repeats the token is shown without it only where it is the server's failure; results are the tool's.
    drop(remote);
    let failure = server.failure("far_echo", json!({"message": "hi"}));
    assert!(failure.contains("far") && !failure.contains("far-token-value"), "{failure}");
    let entry = wait_for_state(&mut server, "far", |entry| entry["state"] == "down");
    assert!(entry["error"].as_str().expect("a reason").contains("cannot be reached"), "{entry}");
}

#[test]
fn an_address_without_a_server_says_so() {
    let home = Home::new();
    let remote = Remote::start(&home, &[]);
    let mut server = server(&home);
    let url = remote.url().replace("/mcp", "/elsewhere?key=secret-key-value");
    let added = server.value("import_mcp", json!({"name": "far", "url": url}));
    assert_eq!(added["state"], "down");
    assert!(added["error"].as_str().expect("a reason").contains("404"), "{added}");
    assert!(added["hint"].as_str().expect("a hint").contains("/mcp"), "{added}");
    assert!(!added.to_string().contains("secret-key-value"), "{added}");
}
