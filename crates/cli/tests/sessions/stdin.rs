//! Whatever comes in on stdin, the server answers with an error or ignores it, and goes on.

use serde_json::json;
use skillz_test_support::{Era, Home, Run, TestServer};

use crate::{server, skillz};

/// Sends a line and then a ping, whose answer proves that the server goes on; gives what came before it.
fn survives(server: &mut TestServer, what: &str, line: &[u8]) -> Vec<serde_json::Value> {
    server.send_line(line);
    let answer = server.request("ping", json!({}));
    assert_eq!(answer["result"], json!({}), "after {what}");
    server.unasked()
}

#[test]
fn bad_lines_do_not_end_the_session() {
    let home = Home::new();
    let mut server = server(&home);
    let deep = format!(r#"{{"jsonrpc":"2.0","id":"deep","method":"ping","params":{}{}}}"#, "[".repeat(5_000), "]".repeat(5_000));
    let deep_arguments = format!(
        r#"{{"jsonrpc":"2.0","id":"deeper","method":"tools/call","params":{{"name":"list_tools","arguments":{}{}}}}}"#,
        r#"{"a":"#.repeat(5_000),
        "1".to_owned() + &"}".repeat(5_000),
    );
    let cases: Vec<(&str, Vec<u8>)> = vec![
        ("nothing", b"".to_vec()),
        ("blanks", b"   \t ".to_vec()),
        ("a carriage return", b"\r".to_vec()),
        ("no JSON", b"hello there".to_vec()),
        ("half of JSON", br#"{"jsonrpc":"2.0","id":1"#.to_vec()),
        ("bytes that are no UTF-8", b"\xff\xfe\x00\x80".to_vec()),
        ("no UTF-8 inside JSON", b"{\"jsonrpc\":\"2.0\",\"id\":\"u\",\"method\":\"\xff\"}".to_vec()),
        ("a number", b"42".to_vec()),
        ("null", b"null".to_vec()),
        ("a text", br#""ping""#.to_vec()),
        ("an empty object", b"{}".to_vec()),
        ("an empty batch", b"[]".to_vec()),
        ("an unknown method", br#"{"jsonrpc":"2.0","id":"m","method":"no/such"}"#.to_vec()),
        ("a method that is no text", br#"{"jsonrpc":"2.0","id":"n","method":7}"#.to_vec()),
        ("parameters that are no object", br#"{"jsonrpc":"2.0","id":"p","method":"tools/call","params":7}"#.to_vec()),
        ("an answer to nothing", br#"{"jsonrpc":"2.0","id":999,"result":{}}"#.to_vec()),
        ("an id that is an object", br#"{"jsonrpc":"2.0","id":{},"method":"ping"}"#.to_vec()),
        ("another version of JSON-RPC", br#"{"jsonrpc":"1.0","id":"v","method":"ping"}"#.to_vec()),
        ("5,000 levels", deep.into_bytes()),
        ("5,000 levels of arguments", deep_arguments.into_bytes()),
        ("a byte order mark", "\u{feff}{\"jsonrpc\":\"2.0\",\"id\":\"b\",\"method\":\"ping\"}".as_bytes().to_vec()),
        ("a lone surrogate", br#"{"jsonrpc":"2.0","id":"s","method":"tools/call","params":{"name":"\ud800"}}"#.to_vec()),
    ];
    for (what, line) in cases {
        survives(&mut server, what, &line);
    }
}

#[test]
fn a_line_of_50_megabytes_is_refused_and_forgotten() {
    let home = Home::new();
    let mut server = server(&home);
    let mut line =
        br#"{"jsonrpc":"2.0","id":"long","method":"tools/call","params":{"name":"list_tools","arguments":{"query":""#.to_vec();
    line.resize(50 << 20, b'x');
    line.extend_from_slice(br#""}}}"#);
    survives(&mut server, "50 MB", &line);
    survives(&mut server, "50 MB without any JSON", &vec![b'y'; 50 << 20]);
}

#[test]
fn broken_requests_are_answered_with_their_codes() {
    let home = Home::new();
    let mut server = server(&home);
    for (line, id, code) in [
        (&br#"{"jsonrpc":"2.0","id":"m","method":"no/such"}"#[..], "m", -32601),
        (br#"{"jsonrpc":"2.0","id":"p","method":"tools/call","params":{"name":7}}"#, "p", -32602),
    ] {
        // Requests are answered at the same time, so a later one may be answered first.
        server.send_line(line);
        let answer = server.wait_for("the answer", |message| message["id"] == id);
        assert_eq!(answer["error"]["code"], json!(code), "{answer}");
    }
}

#[test]
fn a_batch_is_answered_or_ignored_and_the_session_goes_on() {
    let home = Home::new();
    let batch = br#"[{"jsonrpc":"2.0","id":"one","method":"ping"},{"jsonrpc":"2.0","method":"notifications/initialized"},{"jsonrpc":"2.0","id":"two","method":"tools/list"}]"#;
    for era in [Era::Handshake("2025-03-26"), Era::NEWEST_HANDSHAKE] {
        let mut server = Run::new(skillz(), &home).connect(era);
        survives(&mut server, "a batch", batch);
    }
}

#[test]
fn a_client_that_says_nothing_and_leaves_is_no_error() {
    let home = Home::new();
    let (status, stderr) = Run::new(skillz(), &home).start().close();
    assert!(status.success(), "{status}: {stderr}");
    assert_eq!(stderr, "");
    let mut server = Run::new(skillz(), &home).start();
    server.send_line(b"not even JSON");
    let (status, stderr) = server.close();
    assert!(status.success(), "{status}: {stderr}");
}

#[test]
fn leaving_is_silent() {
    let home = Home::new();
    for era in [Era::NEWEST_HANDSHAKE, Era::Stateless] {
        let mut server = Run::new(skillz(), &home).connect(era);
        server.tool_names();
        let (status, stderr) = server.close();
        assert!(status.success(), "{era:?} {status}");
        assert_eq!(stderr, "", "{era:?}");
    }
}
