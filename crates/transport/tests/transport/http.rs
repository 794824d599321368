//! The HTTP transport against a raw client, with a handler that only echoes.

use std::{
    io::Read,
    time::{Duration, Instant},
};

use crate::http_support::{DEADLINE, Server, call, initialize, modern_meta};
use serde_json::{Value, json};

#[test]
fn the_stateless_protocol_is_answered_on_one_address() {
    let server = Server::start();
    let answer = server.modern("server/discover", json!({}), &[]);
    assert_eq!((answer.status, &answer.event()["result"]["resultType"]), (200, &json!("complete")));
    let answer = server.modern("tools/call", json!({"name": "echo", "arguments": {"a": 1}}), &[("mcp-name", "echo")]);
    assert_eq!(answer.event()["result"]["content"][0]["text"], r#"{"a":1}"#, "{answer:?}");
    let answer = server.modern("ping", json!({}), &[]);
    assert_eq!((answer.status, &answer.json()["error"]["code"]), (404, &json!(-32601)));
    assert_eq!(
        server.request("GET", "/mcp", &[("accept", "text/event-stream"), ("mcp-protocol-version", "2026-07-28")], "").status,
        405
    );
}

#[test]
fn older_protocols_have_sessions_that_end() {
    let server = Server::start();
    for version in ["2025-03-26", "2025-06-18", "2025-11-25"] {
        let session = server.open(version);
        let headers = [("mcp-session-id", session.as_str()), ("mcp-protocol-version", version)];
        let answer = server.post("/mcp", &headers, &call(1, "echo"));
        assert_eq!(answer.event()["result"]["content"][0]["text"], r#"{"id":1}"#, "{answer:?}");
        assert_eq!(server.request("DELETE", "/mcp", &headers, "").status, 200);
        assert_eq!(server.post("/mcp", &headers, &call(2, "echo")).status, 404);
    }
    let unknown = [("mcp-session-id", "of-a-server-before"), ("mcp-protocol-version", "2025-11-25")];
    assert_eq!(server.post("/mcp", &unknown, &call(1, "echo")).status, 404, "a client of a server before starts anew");
    assert_eq!(server.post("/mcp", &[], &call(1, "echo")).status, 400);
}

#[test]
fn what_cannot_be_read_is_refused_and_the_server_goes_on() {
    let server = Server::start();
    let session = server.open("2025-11-25");
    let headers = [("mcp-session-id", session.as_str()), ("mcp-protocol-version", "2025-11-25")];
    let deep =
        format!(r#"{{"jsonrpc":"2.0","id":3,"method":"tools/call","params":{}1{}}}"#, "[".repeat(5_000), "]".repeat(5_000));
    for (body, code) in [("no json", -32700), (deep.as_str(), -32700), ("1", -32600), ("{}", -32600), ("[]", -32600)] {
        let answer = server.post_text("/mcp", &headers, body);
        let shown: String = body.chars().take(40).collect();
        assert_eq!((answer.status, &answer.json()["error"]["code"]), (400, &json!(code)), "{shown}: {answer:?}");
    }
    let huge = "x".repeat(17 << 20);
    assert_eq!(server.post_text("/mcp", &headers, &huge).status, 413);
    assert_eq!(
        server
            .request("POST", "/mcp", &[("content-type", "text/plain"), ("accept", "application/json, text/event-stream")], "{}")
            .status,
        415
    );
    assert_eq!(
        server.request("POST", "/mcp", &[("content-type", "application/json"), ("accept", "text/html")], "{}").status,
        406
    );
    assert_eq!(server.request("PUT", "/mcp", &[], "").status, 405);
    assert_eq!(server.request("GET", "/etc/passwd", &[], "").status, 404);
    assert_eq!(server.request("POST", "/health", &[], "").status, 405);
    assert_eq!(server.post("/mcp", &headers, &call(9, "echo")).event()["id"], 9);
}

#[test]
fn a_batch_is_answered_as_one() {
    let server = Server::start();
    let session = server.open("2025-03-26");
    let headers = [("mcp-session-id", session.as_str())];
    let batch = json!([call(1, "echo"), {"jsonrpc": "2.0", "method": "notifications/roots/list_changed"}, 7, call(2, "echo")]);
    let answers = server.post("/mcp", &headers, &batch).json();
    let ids: Vec<&Value> = answers.as_array().expect("an array").iter().map(|answer| &answer["id"]).collect();
    assert_eq!(ids, [&json!(1), &Value::Null, &json!(2)]);
    let newer = [("mcp-session-id", session.as_str()), ("mcp-protocol-version", "2025-11-25")];
    assert_eq!(server.post("/mcp", &newer, &batch).status, 400);
}

#[test]
fn only_the_right_host_origin_and_token_are_let_in() {
    let server = Server::with(|settings| {
        settings.token = Some("s3cret".to_owned());
        settings.allowed_origins = vec!["https://app.example.com".to_owned()];
    });
    let body = initialize("2025-11-25").to_string();
    let status = |headers: &[(&str, &str)]| {
        let mut all = vec![("content-type", "application/json"), ("accept", "application/json, text/event-stream")];
        all.extend_from_slice(headers);
        server.request("POST", "/mcp", &all, &body).status
    };
    let token = ("authorization", "Bearer s3cret");
    assert_eq!(status(&[token]), 200);
    assert_eq!(status(&[]), 401);
    assert_eq!(status(&[("authorization", "Bearer wrong")]), 401);
    assert_eq!(status(&[token, ("host", "evil.test")]), 403);
    assert_eq!(status(&[token, ("origin", "null")]), 403);
    assert_eq!(status(&[token, ("origin", "http://localhost.evil")]), 403);
    assert_eq!(status(&[token, ("origin", "https://app.example.com")]), 200);
    assert_eq!(server.request("GET", "/health", &[], "").json(), json!({"status": "ok"}));
    assert_eq!(server.request("GET", "/metrics", &[], "").status, 401);
    assert_eq!(server.request("GET", "/sse", &[], "").status, 401);
    assert_eq!(server.request("POST", "/message?sessionId=x", &[], "{}").status, 401);
    let preflight = server.request(
        "OPTIONS",
        "/mcp",
        &[("origin", "https://app.example.com"), ("access-control-request-method", "POST")],
        "",
    );
    assert_eq!((preflight.status, preflight.header("access-control-allow-origin")), (204, Some("https://app.example.com")));
}

#[test]
fn a_server_for_everybody_needs_a_token() {
    let runtime = tokio::runtime::Runtime::new().expect("a runtime");
    for host in ["0.0.0.0", "::", "[::]"] {
        let settings = skillz_transport::HttpSettings { host: host.to_owned(), ..Default::default() };
        let refused = runtime.block_on(skillz_transport::BoundHttp::bind(settings)).expect_err("refused");
        assert!(refused.to_string().contains("SKILLZ_AUTH_TOKEN"), "{refused}");
    }
    let settings =
        skillz_transport::HttpSettings { host: "0.0.0.0".to_owned(), token: Some("t".to_owned()), ..Default::default() };
    assert!(!format!("{settings:?}").contains("\"t\""), "the token is never shown");
    assert!(runtime.block_on(skillz_transport::BoundHttp::bind(settings)).is_ok());
    let settings = skillz_transport::HttpSettings { token: Some("a b\n".to_owned()), ..Default::default() };
    assert!(runtime.block_on(skillz_transport::BoundHttp::bind(settings)).is_err());
}

#[test]
fn the_oldest_clients_read_events_and_post_messages() {
    let server = Server::start();
    let mut stream = server.stream("/sse", &[]);
    let endpoint = stream.next_event("endpoint");
    assert!(endpoint.starts_with("/message?sessionId="), "{endpoint}");
    assert_eq!(server.post(&endpoint, &[], &initialize("2024-11-05")).status, 202);
    assert_eq!(stream.next_message()["result"]["protocolVersion"], "2024-11-05");
    server.post(&endpoint, &[], &json!({"jsonrpc": "2.0", "method": "notifications/initialized"}));
    server.post(&endpoint, &[], &call(1, "echo"));
    assert_eq!(stream.next_message()["result"]["content"][0]["text"], r#"{"id":1}"#);
    assert_eq!(server.post_text(&endpoint, &[], "garbage").status, 202);
    assert_eq!(stream.next_message()["error"]["code"], -32700);
    assert_eq!(server.post("/message?sessionId=none", &[], &call(1, "echo")).status, 404);
    drop(stream);
    server.until(|| server.post(&endpoint, &[], &call(2, "echo")).status == 404);
}

#[test]
fn work_of_a_client_that_is_gone_is_cancelled() {
    let server = Server::start();
    let waiting = |count: usize| server.until(|| server.waiting() == count);

    let mut meta = modern_meta();
    meta["progressToken"] = json!(1);
    let request =
        json!({"jsonrpc": "2.0", "id": 1, "method": "tools/call", "params": {"name": "wait", "arguments": {}, "_meta": meta}});
    let connection =
        server.send("POST", "/mcp", &server.modern_headers("tools/call", &[("mcp-name", "wait")]), &request.to_string());
    waiting(1);
    drop(connection);
    waiting(0);

    let session = server.open("2025-11-25");
    let headers = [("mcp-session-id", session.as_str()), ("mcp-protocol-version", "2025-11-25")];
    let connection = server.send("POST", "/mcp", &Server::json_headers(&headers), &call(1, "wait").to_string());
    waiting(1);
    drop(connection);
    waiting(0);
    assert_eq!(server.post("/mcp", &headers, &call(2, "echo")).event()["id"], 2, "the session itself goes on");

    let connection = server.send("POST", "/mcp", &Server::json_headers(&headers), &call(3, "wait").to_string());
    waiting(1);
    server.request("DELETE", "/mcp", &headers, "");
    waiting(0);
    drop(connection);

    let mut stream = server.stream("/sse", &[]);
    let endpoint = stream.next_event("endpoint");
    server.post(&endpoint, &[], &initialize("2024-11-05"));
    stream.next_message();
    server.post(&endpoint, &[], &call(1, "wait"));
    waiting(1);
    drop(stream);
    waiting(0);
}

#[test]
fn a_client_with_another_stream_open_is_not_lost() {
    let server = Server::start();
    let session = server.open("2025-11-25");
    let headers = [("mcp-session-id", session.as_str()), ("mcp-protocol-version", "2025-11-25")];
    let mut standing = vec![("accept", "text/event-stream")];
    standing.extend_from_slice(&headers);
    let stream = server.stream("/mcp", &standing);
    let connection = server.send("POST", "/mcp", &Server::json_headers(&headers), &call(1, "wait").to_string());
    server.until(|| server.waiting() == 1);
    drop(connection);
    let before = Instant::now();
    while before.elapsed() < Duration::from_millis(1_500) {
        assert_eq!(server.waiting(), 1);
        std::thread::sleep(Duration::from_millis(100));
    }
    drop(stream);
    server.until(|| server.waiting() == 0);
}

#[test]
fn a_slow_head_and_a_half_body_hold_nobody_up() {
    let server = Server::start();
    let slow: Vec<_> = (0..50).map(|_| server.raw(b"POST /mcp HTTP/1.1\r\nhost: localhost\r\ncontent-le")).collect();
    let half: Vec<_> =
        (0..50).map(|_| server.raw(b"POST /mcp HTTP/1.1\r\nhost: localhost\r\ncontent-length: 1000\r\n\r\n{\"half\":")).collect();
    for garbage in [
        &b"\x16\x03\x01\x02\x00\x01\x00"[..],
        b"GET / HTTP/9.9\r\n\r\n",
        b"\r\n\r\n\r\n",
        b"POST /mcp HTTP/1.1\r\nhost: a\r\nbad header\r\n\r\n",
    ] {
        let mut connection = server.raw(garbage);
        connection.shutdown(std::net::Shutdown::Write).expect("open");
        let mut rest = Vec::new();
        let _ = connection.read_to_end(&mut rest);
    }
    let long = format!("GET /health HTTP/1.1\r\nhost: localhost\r\nx: {}\r\n\r\n", "y".repeat(200_000));
    let mut connection = server.raw(long.as_bytes());
    let mut answer = Vec::new();
    let _ = connection.read_to_end(&mut answer);
    assert!(!answer.starts_with(b"HTTP/1.1 200"), "a head of any size is not taken");
    assert_eq!(server.request("GET", "/health", &[], "").status, 200);
    drop((slow, half));
}

#[test]
fn whoever_never_finishes_is_cut_after_half_a_minute() {
    let server = Server::start();
    let unfinished: [(&[u8], &str); 3] = [
        (b"", ""),
        (b"POST /mcp HTTP/1.1\r\nhost: localhost\r\ncontent-le", ""),
        (b"POST /mcp HTTP/1.1\r\nhost: localhost\r\ncontent-length: 1000\r\n\r\n{\"half\":", "HTTP/1.1 408 "),
    ];
    let connections = unfinished.map(|(bytes, expected)| (server.raw(bytes), expected));
    for (mut connection, expected) in connections {
        // The wait for the end has a deadline of its own.
        let mut rest = String::new();
        let _ = connection.read_to_string(&mut rest);
        assert!(rest.starts_with(expected) && rest.is_empty() == expected.is_empty(), "{rest}");
    }
    server.until(|| server.metric("skillz_http_connections ") <= 1);
}

#[test]
fn clients_that_leave_without_goodbye_leave_nothing_behind() {
    let server = Server::start();
    for _ in 0..300 {
        drop(server.send("POST", "/mcp", &Server::json_headers(&[]), &initialize("2025-11-25").to_string()));
        drop(server.raw(b"GET /sse HTTP/1.1\r\nhost: localhost\r\n\r\n"));
    }
    server
        .until(|| server.metric("skillz_http_connections ") <= 1 && server.metric("skillz_http_sessions{route=\"/sse\"} ") == 0);
    // Sessions outlive connections, but only so many of them.
    server.until(|| server.metric("skillz_http_sessions{route=\"/mcp\"} ") <= 256);
}

#[test]
fn the_end_waits_a_moment_for_answers_and_then_ends_everything() {
    let server = Server::start();
    let mut stream = server.stream("/sse", &[]);
    stream.next_event("endpoint");
    let session = server.open("2025-11-25");
    let headers = [("mcp-session-id", session.as_str()), ("mcp-protocol-version", "2025-11-25")];
    let _connection = server.send("POST", "/mcp", &Server::json_headers(&headers), &call(1, "wait").to_string());
    server.until(|| server.waiting() == 1);
    let started = Instant::now();
    let waiting = server.stop();
    assert_eq!(waiting, 0, "no handler outlives the server");
    assert!(started.elapsed() < DEADLINE / 2);
}
