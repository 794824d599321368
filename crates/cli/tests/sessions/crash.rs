//! `kill -9` at any moment: what was acknowledged is there, whole, and nothing is there by half.

use std::{collections::BTreeMap, fs, time::Duration};

use serde_json::{Value, json};
use skillz_test_support::Home;

use crate::{bash_tool, server};

/// Rounds of starting a server, publishing, and killing it.
const ROUNDS: u64 = 200;
/// Names that the rounds take turns with.
const NAMES: u64 = 4;

/// A small generator of numbers that look random, the same in every run.
struct Numbers(u64);

impl Numbers {
    fn below(&mut self, bound: u64) -> u64 {
        self.0 = self.0.wrapping_mul(6_364_136_223_846_793_005).wrapping_add(1_442_695_040_888_963_407);
        (self.0 >> 33) % bound
    }
}

/// A tool whose manifest and source carry one number, so that a mixture of two versions shows.
fn numbered(name: &str, number: u64) -> Value {
    let mut arguments = bash_tool(name, &format!("echo {number}"));
    arguments["description"] = json!(format!("Number {number}"));
    arguments["overwrite"] = json!(true);
    arguments
}

/// The number of the tool on disk; `None` where there is no such tool. Fails where it is there by half.
fn number_on_disk(home: &Home, name: &str) -> Option<u64> {
    let folder = home.tools().join(name);
    if !folder.exists() {
        return None;
    }
    let manifest =
        fs::read_to_string(folder.join("manifest.json")).unwrap_or_else(|error| panic!("{name} has no manifest: {error}"));
    let manifest: Value = serde_json::from_str(&manifest).unwrap_or_else(|error| panic!("{name}: {error} in {manifest}"));
    let source = fs::read_to_string(folder.join(manifest["entry_file"].as_str().expect("an entry"))).expect("a source");
    let described = manifest["description"].as_str().and_then(|text| text.strip_prefix("Number "));
    let printed = source.trim().strip_prefix("echo ");
    assert_eq!(described, printed, "{name} is a mixture of two versions");
    printed?.parse().ok()
}

#[test]
fn no_publish_is_ever_half_or_lost_under_load() {
    let home = Home::new();
    let mut numbers = Numbers(42);
    let mut acknowledged: BTreeMap<String, u64> = BTreeMap::new();
    let mut number = 0;
    for round in 0..ROUNDS {
        let mut server = server(&home);
        let mut sent = Vec::new();
        for _ in 0..6 {
            number += 1;
            let name = format!("tool_{}", numbers.below(NAMES));
            let id = server.send("tools/call", json!({"name": "register_script", "arguments": numbered(&name, number)}));
            sent.push((id, name, number));
        }
        let patience = Duration::from_micros(numbers.below(40_000));
        let end = std::time::Instant::now() + patience;
        let mut answers = Vec::new();
        while let Some(message) = server.next_message(end.saturating_duration_since(std::time::Instant::now())) {
            answers.push(message);
        }
        server.kill();
        for (id, name, number) in sent {
            let answer = answers.iter().find(|answer| answer["id"] == json!(id));
            if answer.is_some_and(|answer| answer["result"]["isError"] != json!(true) && answer.get("error").is_none()) {
                let highest = acknowledged.entry(name).or_default();
                *highest = number.max(*highest);
            }
        }
        for (name, least) in &acknowledged {
            let found = number_on_disk(&home, name).unwrap_or_else(|| panic!("round {round}: {name} is lost"));
            // Publishes of one round run side by side: whichever came last is current, and none of an earlier round.
            assert!(found + 6 > *least, "round {round}: {name} has {found}, though {least} was acknowledged");
        }
    }
    assert!(acknowledged.len() > 1, "some publishes must get through: {acknowledged:?}");

    let mut server = server(&home);
    for (name, acknowledged) in &acknowledged {
        let found = number_on_disk(&home, name).expect("it is there");
        assert_eq!(server.value(name, json!({})), json!(found.to_string()).as_str().map(Value::from).expect("a text"));
        let versions = server.value("version", json!({"action": "list", "tool_name": name}));
        let listed = versions["versions"].as_array().expect("a list").len();
        assert!(listed >= 1, "{name} with {acknowledged} has no versions: {versions}");
    }
    let listed = server.value("list_tools", json!({}));
    assert_eq!(listed.get("broken"), None, "{listed}");
}

#[test]
fn acknowledged_memory_survives() {
    let home = Home::new();
    let mut numbers = Numbers(7);
    let mut acknowledged = BTreeMap::new();
    for round in 0..30_u64 {
        let mut server = server(&home);
        let ids: Vec<(u64, u64)> = (0..8)
            .map(|key| {
                let arguments = json!({"action": "store", "tool_name": "t", "key": format!("{round}-{key}"), "value": {"round": round, "key": key}});
                (server.send("tools/call", json!({"name": "memory", "arguments": arguments})), key)
            })
            .collect();
        let end = std::time::Instant::now() + Duration::from_micros(numbers.below(30_000));
        while let Some(message) = server.next_message(end.saturating_duration_since(std::time::Instant::now())) {
            if let Some((_, key)) = ids.iter().find(|(id, _)| message["id"] == json!(id)) {
                assert_ne!(message["result"]["isError"], json!(true), "{message}");
                acknowledged.insert(format!("{round}-{key}"), json!({"round": round, "key": key}));
            }
        }
        server.kill();
    }
    assert!(!acknowledged.is_empty(), "some writes must get through");
    let mut server = server(&home);
    for (key, value) in acknowledged {
        let got = server.value("memory", json!({"action": "get", "tool_name": "t", "key": key}));
        assert_eq!(got, json!({"found": true, "value": value}), "{key}");
    }
}
