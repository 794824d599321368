//! Random damage to honest messages, sent to the real server: it goes on, and what it writes stays protocol.

use std::time::Instant;

use serde_json::json;
use skillz_test_support::{Damage, Era, Home, Run, fuzz_duration};

use crate::{
    echo_module,
    http::{HttpServer, message_in, session_headers, with_json},
    skillz,
};

#[test]
fn damaged_lines_end_no_session() {
    let home = Home::new();
    let mut server = Run::new(skillz(), &home).connect(Era::Handshake("2025-03-26"));
    server.value("build_tool", echo_module("echo"));
    let mut damage = Damage::of_this_moment();
    let until = Instant::now() + fuzz_duration();
    while Instant::now() < until {
        for _ in 0..50 {
            server.send_line(&damage.message());
        }
        // Its id is far from those of damaged messages. Every line that comes before its answer is JSON, or this panics.
        server.send_line(br#"{"jsonrpc":"2.0","id":"probe","method":"tools/call","params":{"name":"echo","arguments":{"n":1}}}"#);
        let answer = server.wait_for("the probe's answer", |message| message["id"] == "probe");
        assert_eq!(answer["result"]["structuredContent"], json!({"n": 1}), "{answer}");
        server.unasked();
    }
    let (status, stderr) = server.close();
    assert!(status.success() && !stderr.contains("panicked"), "{stderr}");
}

#[test]
fn damaged_requests_end_no_server() {
    let home = Home::new();
    let server = HttpServer::start(&home);
    server.call("build_tool", &echo_module("echo"));
    let session = server.open();
    let mut damage = Damage::of_this_moment();
    let until = Instant::now() + fuzz_duration();
    let mut id = 1_000_000;
    while Instant::now() < until {
        for _ in 0..20 {
            let body = damage.message();
            let mut headers = with_json(&[]);
            match damage.roll(4) {
                0 | 1 => headers.extend(session_headers(&session)),
                2 => headers.extend([("mcp-protocol-version", "2026-07-28"), ("mcp-method", "tools/call"), ("mcp-name", "echo")]),
                _ => {}
            }
            let mut bytes = server.head("POST", "/mcp", &headers, body.len()).into_bytes();
            bytes.extend_from_slice(&body);
            if damage.roll(4) == 0 {
                let position = damage.roll(bytes.len());
                bytes[position] = u8::try_from(damage.roll(256)).unwrap();
            }
            // Some clients leave in the middle, and none reads.
            let sent = if damage.roll(5) == 0 { damage.roll(bytes.len()) } else { bytes.len() };
            drop(server.raw(&bytes[..sent]));
        }
        id += 1;
        let call =
            json!({"jsonrpc": "2.0", "id": id, "method": "tools/call", "params": {"name": "echo", "arguments": {"n": id}}});
        let answer = message_in(&server.post(&session_headers(&session), &call).2);
        assert_eq!((&answer["id"], &answer["result"]["structuredContent"]["n"]), (&json!(id), &json!(id)), "{answer}");
    }
    let (code, stdout, stderr, _) = server.terminate();
    assert!(code == Some(0) && stdout.is_empty() && !stderr.contains("panicked"), "{stderr}");
}
