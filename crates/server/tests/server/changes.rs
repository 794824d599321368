//! Who is told of changes, and what resources, prompts and completions hold.

use crate::support::{Client, Rig};
use skillz_json::{Value, json};

fn listen(client: &mut Client, filter: Value) -> i64 {
    let id = client.begin("subscriptions/listen", json!({"notifications": filter}));
    client.heard("notifications/subscriptions/acknowledged");
    id
}

#[test]
fn every_client_is_told_when_a_tool_is_published() {
    let rig = Rig::new();
    let mut old = [rig.legacy("2024-11-05", json!({})), rig.legacy("2025-11-25", json!({}))];
    let mut new = rig.modern(json!({}));
    let stream = listen(&mut new, json!({"toolsListChanged": true}));
    // The session is open once something has been answered in it.
    for client in &mut old {
        client.request("tools/list", json!({}));
    }
    rig.publish("fresh", "echo", |_| ());
    for client in &mut old {
        client.heard("notifications/tools/list_changed");
        client.heard("notifications/resources/list_changed");
        client.heard("notifications/prompts/list_changed");
    }
    let note = new.heard("notifications/tools/list_changed");
    assert_eq!(note["params"]["_meta"]["io.modelcontextprotocol/subscriptionId"], stream);
    assert!(!new.has_heard("notifications/resources/list_changed"), "only what was asked for");
}

#[test]
fn no_change_is_lost_between_acknowledgement_and_listening() {
    let rig = Rig::new();
    for round in 0..30 {
        let mut client = rig.modern(json!({}));
        listen(&mut client, json!({"toolsListChanged": true}));
        rig.publish(&format!("tool_{round}"), "echo", |_| ());
        client.heard("notifications/tools/list_changed");
    }
}

#[test]
fn nobody_is_told_of_what_was_there_before() {
    let rig = Rig::new();
    rig.publish("before", "echo", |_| ());
    let mut old = rig.legacy("2025-11-25", json!({}));
    let mut new = rig.modern(json!({}));
    listen(&mut new, json!({"toolsListChanged": true}));
    old.call("before", json!({}));
    new.call("before", json!({}));
    assert!(!old.has_heard("notifications/tools/list_changed") && !new.has_heard("notifications/tools/list_changed"));
}

#[test]
fn subscribers_hear_of_their_resource_only() {
    let rig = Rig::new();
    rig.publish("mine", "echo", |_| ());
    rig.publish("other", "echo", |_| ());
    let mut old = rig.legacy("2025-11-25", json!({}));
    old.request("resources/subscribe", json!({"uri": "skillz://tools/mine"}));
    assert_eq!(old.refused("resources/subscribe", json!({"uri": "file:///etc/passwd"}))["code"], -32002);
    let mut new = rig.modern(json!({}));
    listen(&mut new, json!({"resourceSubscriptions": ["skillz://tools/mine"]}));
    rig.publish("other", "list", |_| ());
    old.heard("notifications/resources/list_changed");
    assert!(!old.has_heard("notifications/resources/updated") && !new.has_heard("notifications/resources/updated"));
    rig.publish("mine", "list", |_| ());
    for client in [&mut old, &mut new] {
        assert_eq!(client.heard("notifications/resources/updated")["params"]["uri"], "skillz://tools/mine");
    }
    old.request("resources/unsubscribe", json!({"uri": "skillz://tools/mine"}));
    rig.publish("mine", "echo", |_| ());
    new.heard("notifications/resources/updated");
    old.heard("notifications/resources/list_changed");
    assert!(!old.has_heard("notifications/resources/updated"));
}

#[test]
fn resources_show_what_there_is() {
    let rig = Rig::new();
    rig.publish("shown", "echo", |manifest| {
        manifest.input_schema = Some(json!({"type": "object", "properties": {"x": {"type": "string"}}}));
    });
    for mut client in [rig.legacy("2025-06-18", json!({})), rig.modern(json!({}))] {
        client.call("shown", json!({"x": "1"}));
        let list = client.request("resources/list", json!({}));
        let uris: Vec<&str> =
            list["resources"].as_array().expect("resources").iter().map(|one| one["uri"].as_str().expect("a uri")).collect();
        assert_eq!(
            uris,
            ["skillz://examples", "skillz://guide", "skillz://history", "skillz://protocol", "skillz://tools/shown"]
        );
        let mut read = |uri: &str| client.request("resources/read", json!({"uri": uri}))["contents"][0].clone();
        let guide = read("skillz://guide");
        assert!(guide["text"].as_str().expect("text").contains("shown"), "{guide}");
        assert!(!guide["text"].as_str().expect("text").contains("{{"));
        assert!(read("skillz://examples")["text"].as_str().expect("text").contains("register_script"));
        let tool: Value = serde_json::from_str(read("skillz://tools/shown")["text"].as_str().expect("text")).expect("JSON");
        assert_eq!((&tool["version"], &tool["source_code"]), (&json!("1.0.0"), &json!("echo")), "{tool}");
        assert_eq!(tool["versions"].as_array().map(Vec::len), Some(1));
        let file = read("skillz://tools/shown/files/main.txt");
        assert_eq!(file["text"], "echo");
        let history: Value = serde_json::from_str(read("skillz://history")["text"].as_str().expect("text")).expect("JSON");
        assert_eq!(history["calls"][0]["tool_name"], "shown");
        let code = if client.meta.is_some() { -32602 } else { -32002 };
        for uri in [
            "skillz://tools/none",
            "skillz://results/none",
            "skillz://nothing",
            "file:///etc/passwd",
            "skillz://tools/shown/files/none",
            "skillz://tools/shown/files/../../../etc/passwd",
            "skillz://tools/shown/files/%2e%2e/x",
            "skillz://tools/shown/files//etc/passwd",
            "skillz://tools/shown/files/.versions",
            "skillz://tools/../x",
        ] {
            assert_eq!(client.refused("resources/read", json!({"uri": uri}))["code"], code, "{uri}");
        }
    }
}

#[test]
#[cfg(unix)]
fn a_link_in_a_tools_folder_leads_nowhere() {
    let rig = Rig::new();
    rig.publish("linked", "echo", |_| ());
    let directory = rig.engine.catalog().get("linked").expect("published").directory.clone();
    std::os::unix::fs::symlink("/etc/passwd", directory.join("passwd.txt")).expect("a link");
    let mut client = rig.legacy("2025-06-18", json!({}));
    assert_eq!(client.refused("resources/read", json!({"uri": "skillz://tools/linked/files/passwd.txt"}))["code"], -32002);
}

#[test]
fn running_tools_see_resources_but_no_results_and_no_history() {
    let rig = Rig::new();
    rig.publish("see", "resources", |_| ());
    rig.publish("spy", "history", |_| ());
    let mut client = rig.legacy("2025-06-18", json!({}));
    let seen = client.call("see", json!({}))["structuredContent"].to_string();
    assert!(seen.contains("skillz://guide") && !seen.contains("skillz://history"), "{seen}");
    client.failure("spy", json!({}));
}

#[test]
fn prompts_are_filled_in_and_complete() {
    let rig = Rig::new();
    rig.publish("word_count", "echo", |_| ());
    rig.publish("word_list", "echo", |_| ());
    let mut client = rig.legacy("2025-06-18", json!({}));
    assert_eq!(client.request("prompts/list", json!({}))["prompts"].as_array().map(Vec::len), Some(6));
    let prompt = client.request("prompts/get", json!({"name": "improve_tool", "arguments": {"tool_name": "word_count"}}));
    assert!(prompt["messages"][0]["content"]["text"].as_str().expect("text").contains("skillz://tools/word_count"), "{prompt}");
    assert_eq!(client.refused("prompts/get", json!({"name": "improve_tool"}))["code"], -32602);
    assert_eq!(client.refused("prompts/get", json!({"name": "none"}))["code"], -32602);
    let mut complete = |reference: Value, name: &str, value: &str| {
        let argument = json!({"name": name, "value": value});
        client.request(
            "completion/complete",
            json!({"ref": reference, "argument": argument, "context": {"arguments": {"name": "word_count"}}}),
        )["completion"]["values"]
            .clone()
    };
    let prompt = json!({"type": "ref/prompt", "name": "improve_tool"});
    assert_eq!(complete(prompt.clone(), "tool_name", "word_"), json!(["word_count", "word_list"]));
    assert_eq!(complete(prompt, "problem", "w"), json!([]));
    let tool = json!({"type": "ref/resource", "uri": "skillz://tools/{name}"});
    assert_eq!(complete(tool, "name", "word_l"), json!(["word_list"]));
    let file = json!({"type": "ref/resource", "uri": "skillz://tools/{name}/files/{path}"});
    assert_eq!(complete(file, "path", "main"), json!(["main.txt"]));
}
