//! What the server says by itself, and what it stops when it is told.

use std::time::{Duration, Instant};

use serde_json::json;
use skillz_test_support::{DEADLINE, Era, Home, Run, wait_until_gone, with_argument};

use crate::{bash_tool, echo_module, server, skillz};

#[test]
fn clients_are_told_when_the_list_changes() {
    let home = Home::new();
    let mut server = server(&home);
    server.value("register_script", bash_tool("one", "echo 1"));
    server.wait_for_method("notifications/tools/list_changed");
    server.unasked();
    server.value("delete_tool", json!({"tool_name": "one"}));
    server.wait_for_method("notifications/tools/list_changed");
}

#[test]
fn stateless_clients_are_told_once_they_listen() {
    let home = Home::new();
    let mut server = Run::new(skillz(), &home).connect(Era::Stateless);
    server.send("subscriptions/listen", json!({"notifications": {"toolsListChanged": true}}));
    server.wait_for_method("notifications/subscriptions/acknowledged");
    server.value("register_script", bash_tool("one", "echo 1"));
    server.wait_for_method("notifications/tools/list_changed");
}

#[test]
fn an_edit_by_hand_is_noticed() {
    let home = Home::new();
    let mut server = server(&home);
    server.value("register_script", bash_tool("edited", "echo before"));
    let folder = home.tools().join("edited");
    let manifest: serde_json::Value =
        serde_json::from_str(&std::fs::read_to_string(folder.join("manifest.json")).expect("a manifest")).expect("JSON");
    std::fs::write(folder.join(manifest["entry_file"].as_str().expect("an entry")), "echo after\n").expect("an edit");
    let end = Instant::now() + DEADLINE;
    while server.value("edited", json!({})) != "after" {
        assert!(Instant::now() < end, "the edit never arrived");
        std::thread::sleep(Duration::from_millis(50));
    }
}

#[test]
fn a_cancelled_call_is_gone_with_everything_it_started() {
    let home = Home::new();
    let mut server = server(&home);
    server.value("register_script", bash_tool("sleeps", "sleep 31415.91 & sleep 31415.92"));
    let id = server.send("tools/call", json!({"name": "sleeps", "arguments": {}}));
    let end = Instant::now() + DEADLINE;
    while with_argument("31415.91").is_empty() || with_argument("31415.92").is_empty() {
        assert!(Instant::now() < end, "the script never started");
        std::thread::sleep(Duration::from_millis(10));
    }
    let pids = [with_argument("31415.91"), with_argument("31415.92")].concat();
    server.notify("notifications/cancelled", json!({"requestId": id, "reason": "changed my mind"}));
    assert_eq!(wait_until_gone(&pids, Duration::from_secs(20)), [0_u32; 0]);
    server.request("ping", json!({}));
    let late = server.unasked().into_iter().find(|message| message["id"] == json!(id) && message.get("result").is_some());
    assert_eq!(late, None, "a cancelled call gives no result");
    server.value("build_tool", echo_module("echo"));
    assert_eq!(server.value("echo", json!({"a": 1})), json!({"a": 1}));
}

#[test]
fn quick_calls_do_not_wait_for_slow_ones() {
    let home = Home::new();
    let mut server = server(&home);
    server.value("register_script", bash_tool("slow", "sleep 31415.93"));
    server.value("build_tool", echo_module("echo"));
    let slow = server.send("tools/call", json!({"name": "slow", "arguments": {}}));
    for number in 0..20 {
        assert_eq!(server.value("echo", json!({"n": number})), json!({"n": number}));
        assert_eq!(server.result("ping", json!({})), json!({}));
    }
    server.notify("notifications/cancelled", json!({"requestId": slow}));
}
