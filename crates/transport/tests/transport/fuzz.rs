//! Random damage to honest messages, over pipes and over HTTP: nothing ends the server or mixes up its answers.

use std::{
    io::Write,
    thread,
    time::{Duration, Instant},
};

use crate::http_support::{Echo, Server, call, initialize};
use serde_json::json;
use skillz_test_support::{Damage, fuzz_duration, json_lines};
use skillz_transport::serve_pipes;
use tokio_util::sync::CancellationToken;

#[test]
fn damaged_lines_end_no_session() {
    let (server_input, mut input) = std::io::pipe().expect("a pipe");
    let (output, server_output) = std::io::pipe().expect("a pipe");
    let server = thread::spawn(move || {
        let runtime = tokio::runtime::Runtime::new().expect("a runtime");
        let serving = Box::pin(serve_pipes(Echo::default(), server_input, server_output, CancellationToken::new()));
        runtime.block_on(serving).expect("the threads start");
    });
    let answers = json_lines::<serde_json::Value>(output);
    let mut damage = Damage::of_this_moment();
    let mut send = |bytes: &[u8]| {
        input.write_all(bytes).expect("the server reads");
        input.write_all(b"\n").expect("the server reads");
    };
    send(initialize("2025-03-26").to_string().as_bytes());
    let until = Instant::now() + fuzz_duration();
    let mut probe = 0;
    while Instant::now() < until {
        for _ in 0..200 {
            send(&damage.message());
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
    let mut damage = Damage::of_this_moment();
    let until = Instant::now() + fuzz_duration();
    // No damaged message has such an id, so none is mistaken for the honest call.
    let mut id = 1_000_000;
    while Instant::now() < until {
        for _ in 0..20 {
            let body = damage.message();
            let (host, length) = (server.address(), body.len());
            let session_line = if damage.roll(2) == 0 { format!("mcp-session-id: {session}\r\n") } else { String::new() };
            let version_line = if damage.roll(3) == 0 { "mcp-protocol-version: 2026-07-28\r\n" } else { "" };
            let head = format!(
                "POST /mcp HTTP/1.1\r\nhost: {host}\r\nconnection: close\r\ncontent-type: application/json\r\n\
                 accept: application/json, text/event-stream\r\n{session_line}{version_line}content-length: {length}\r\n\r\n"
            );
            let mut bytes = head.into_bytes();
            bytes.extend_from_slice(&body);
            if damage.roll(4) == 0 {
                let position = damage.roll(bytes.len());
                bytes[position] = u8::try_from(damage.roll(256)).unwrap();
            }
            // Some clients leave without reading; others leave in the middle.
            let sent = if damage.roll(5) == 0 { &bytes[..damage.roll(bytes.len())] } else { &bytes[..] };
            drop(server.raw(sent));
        }
        id += 1;
        let answer = server.post("/mcp", &headers, &call(id, "echo"));
        assert_eq!(answer.event()["id"], id, "{answer:?}");
    }
    server.until(|| server.metric("skillz_http_connections ") <= 1);
}
