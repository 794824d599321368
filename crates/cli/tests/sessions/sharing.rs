//! Several servers on one home.

use std::time::{Duration, Instant};

use serde_json::json;
use skillz_test_support::{DEADLINE, Home, TestServer};

use crate::{bash_tool, server};

/// Waits until a server lists a tool, or no longer does.
fn wait_until_listed(server: &mut TestServer, name: &str, listed: bool) {
    let end = Instant::now() + DEADLINE;
    while server.tool_names().iter().any(|there| there == name) != listed {
        assert!(Instant::now() < end, "`{name}` should be listed: {listed}");
        std::thread::sleep(Duration::from_millis(20));
    }
}

#[test]
fn what_one_publishes_changes_or_deletes_the_others_serve() {
    let home = Home::new();
    let (mut one, mut two) = (server(&home), server(&home));
    one.value("register_script", bash_tool("shared", "echo first"));
    two.wait_for_method("notifications/tools/list_changed");
    wait_until_listed(&mut two, "shared", true);
    assert_eq!(two.value("shared", json!({})), "first");

    let mut changed = bash_tool("shared", "echo second");
    changed["overwrite"] = json!(true);
    two.value("register_script", changed);
    let end = Instant::now() + DEADLINE;
    while one.value("shared", json!({})) != "second" {
        assert!(Instant::now() < end, "the change never arrived");
        std::thread::sleep(Duration::from_millis(20));
    }
    one.value("delete_tool", json!({"tool_name": "shared"}));
    wait_until_listed(&mut two, "shared", false);
}

#[test]
fn of_two_that_publish_one_name_at_once_one_wins() {
    let home = Home::new();
    let (mut one, mut two) = (server(&home), server(&home));
    for round in 0..10 {
        let name = format!("race_{round}");
        let first = one.send("tools/call", json!({"name": "register_script", "arguments": bash_tool(&name, "echo one")}));
        let second = two.send("tools/call", json!({"name": "register_script", "arguments": bash_tool(&name, "echo two")}));
        let winners = [one.answer(first), two.answer(second)].map(|answer| answer["result"]["isError"] != json!(true));
        assert!(winners[0] != winners[1], "round {round}: exactly one wins, not {winners:?}");
        let expected = if winners[0] { "one" } else { "two" };
        wait_until_listed(&mut one, &name, true);
        wait_until_listed(&mut two, &name, true);
        assert_eq!(one.value(&name, json!({})), expected);
        assert_eq!(two.value(&name, json!({})), expected);
    }
}

#[test]
fn memory_is_one_for_all() {
    let home = Home::new();
    let (mut one, mut two) = (server(&home), server(&home));
    one.value("memory", json!({"action": "store", "tool_name": "t", "key": "k", "value": {"a": 1}}));
    let got = two.value("memory", json!({"action": "get", "tool_name": "t", "key": "k"}));
    assert_eq!(got, json!({"found": true, "value": {"a": 1}}));
}

#[test]
fn writers_from_several_processes_wait_and_do_not_fail() {
    let home = Home::new();
    let mut servers: Vec<TestServer> = (0..4).map(|_| server(&home)).collect();
    let mut sent = Vec::new();
    for key in 0..25 {
        for (index, server) in servers.iter_mut().enumerate() {
            let arguments = json!({"action": "store", "tool_name": "t", "key": format!("{index}-{key}"), "value": key});
            sent.push((index, server.send("tools/call", json!({"name": "memory", "arguments": arguments}))));
        }
    }
    for (index, id) in sent {
        let answer = servers[index].answer(id);
        assert_ne!(answer["result"]["isError"], json!(true), "{answer}");
    }
    let stats = servers[0].value("memory", json!({"action": "stats", "tool_name": "t"}));
    assert!(stats.to_string().contains("100"), "{stats}");
}
