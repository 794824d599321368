//! What a running call says and asks: progress, log, questions, cancellation, in both kinds of protocol.

use std::{
    sync::atomic::Ordering,
    time::{Duration, Instant},
};

use crate::support::{Client, DEADLINE, Rig};
use skillz_json::{Value, json};

fn everything() -> Value {
    json!({"elicitation": {}, "sampling": {}, "roots": {}})
}

fn named(name: &str) -> Value {
    json!({"action": "accept", "content": {"name": name}})
}

fn said(text: &str) -> Value {
    json!({"role": "assistant", "content": {"type": "text", "text": text}, "model": "m"})
}

/// Waits until no call is going on.
fn until_idle(rig: &Rig) {
    let deadline = Instant::now() + DEADLINE;
    while rig.words.running.load(Ordering::SeqCst) > 0 {
        assert!(Instant::now() < deadline, "a call goes on");
        std::thread::sleep(Duration::from_millis(5));
    }
}

#[test]
fn older_clients_are_asked_by_requests() {
    let rig = Rig::new();
    rig.publish("ask", "ask-all", |_| ());
    let mut client = rig.legacy("2025-11-25", everything());
    let call = client.begin("tools/call", json!({"name": "ask", "arguments": {}}));
    let sampling = client.heard("sampling/createMessage");
    let form = client.heard("elicitation/create");
    let roots = client.heard("roots/list");
    assert_eq!(form["params"]["requestedSchema"]["properties"]["name"]["type"], "string");
    assert_eq!(sampling["params"]["maxTokens"], 50);
    client.reply(&roots, json!({"roots": [{"uri": "file:///work"}]}));
    client.reply(&form, named("Ada"));
    client.reply(&sampling, said("Paris"));
    let value = client.result(call)["structuredContent"].clone();
    assert_eq!(value["user"], named("Ada"), "{value}");
    assert_eq!(value["model"]["content"]["text"], "Paris");
    assert!(value["roots"].to_string().contains("/work"), "{value}");
}

#[test]
fn an_answer_that_does_not_fit_the_form_is_none() {
    let rig = Rig::new();
    rig.publish("ask", "ask", |_| ());
    let mut client = rig.legacy("2025-11-25", everything());
    for (answer, fails) in [(json!({"action": "accept", "content": {"name": 5}}), true), (json!({"action": "decline"}), false)] {
        let call = client.begin("tools/call", json!({"name": "ask"}));
        let form = client.heard("elicitation/create");
        client.reply(&form, answer);
        assert_eq!(client.result(call)["isError"], fails);
    }
}

#[test]
fn a_client_that_answers_nothing_is_asked_nothing() {
    let rig = Rig::new();
    rig.publish("ask", "ask", |_| ());
    rig.publish("sample", "sample", |_| ());
    let mut old = rig.legacy("2025-11-25", json!({}));
    let failure = old.failure("ask", json!({}));
    assert!(failure.contains("elicitation"), "{failure}");
    let mut new = rig.modern(json!({}));
    let error = new.refused("tools/call", json!({"name": "sample"}));
    assert_eq!((&error["code"], &error["data"]["requiredCapabilities"]), (&json!(-32021), &json!({"sampling": {}})));
}

#[test]
fn newer_clients_are_asked_in_rounds_and_the_call_runs_once() {
    let rig = Rig::new();
    rig.publish("ask", "ask-twice", |_| ());
    let mut client = rig.modern(everything());
    let params = json!({"name": "ask", "arguments": {}});
    let first = client.request("tools/call", params.clone());
    assert_eq!(first["resultType"], "input_required");
    let question = &first["inputRequests"]["user_name"];
    assert_eq!((&question["method"], &question["params"]["message"]), (&json!("elicitation/create"), &json!("First?")));

    let retry = |state: &Value, answer: Value| {
        let mut params = params.clone();
        params["requestState"] = state.clone();
        params["inputResponses"] = json!({"user_name": answer, "unasked": 1});
        params
    };
    let again = client.request("tools/call", retry(&first["requestState"], json!(12345)));
    assert_eq!(again["inputRequests"]["user_name"]["params"]["message"], "First?", "a bad answer is asked for again");
    let second = client.request("tools/call", retry(&again["requestState"], named("Ada")));
    assert_eq!(second["inputRequests"]["user_name"]["params"]["message"], "Second?", "{second}");
    assert_ne!(second["requestState"], first["requestState"]);
    let last = client.request("tools/call", retry(&second["requestState"], named("Bob")));
    assert_eq!(last["structuredContent"]["first"]["content"]["name"], "Ada");
    assert_eq!(last["structuredContent"]["second"]["content"]["name"], "Bob");
    assert_eq!(rig.words.started.load(Ordering::SeqCst), 1);
    for used in [&first, &again, &second] {
        let error = client.refused("tools/call", retry(&used["requestState"], named("Eve")));
        assert_eq!(error["code"], -32602, "a ticket is good once");
    }
    assert_eq!(rig.words.started.load(Ordering::SeqCst), 1);
}

#[test]
fn questions_asked_at_once_go_in_one_round() {
    let rig = Rig::new();
    rig.publish("ask", "ask-all", |_| ());
    let mut client = rig.modern(everything());
    let round = client.request("tools/call", json!({"name": "ask", "arguments": {}}));
    let mut methods: Vec<&str> = round["inputRequests"]
        .as_object()
        .expect("requests")
        .values()
        .map(|request| request["method"].as_str().expect("a method"))
        .collect();
    methods.sort_unstable();
    assert_eq!(methods, ["elicitation/create", "roots/list", "sampling/createMessage"]);
    let answers = json!({"user_name": named("Ada"), "client_roots": {"roots": []}, "question_2": said("Paris")});
    let done = client.request(
        "tools/call",
        json!({"name": "ask", "arguments": {}, "requestState": round["requestState"], "inputResponses": answers}),
    );
    assert_eq!(done["structuredContent"]["user"], named("Ada"), "{done}");
}

#[test]
fn a_ticket_is_for_one_client_one_tool_and_the_same_arguments() {
    let rig = Rig::new();
    rig.publish("ask", "ask", |_| ());
    rig.publish("other", "ask", |_| ());
    let mut client = rig.modern(everything());
    let round = client.request("tools/call", json!({"name": "ask", "arguments": {"a": 1}}));
    let state = round["requestState"].as_str().expect("a state").to_owned();
    let retry = |name: &str, arguments: Value, state: &str| {
        json!({"name": name, "arguments": arguments, "requestState": state,
        "inputResponses": {"user_name": named("Ada")}})
    };
    let mut thief = rig.modern(everything());
    thief.meta.as_mut().expect("modern")["io.modelcontextprotocol/clientInfo"] = json!({"name": "thief", "version": "1"});
    assert_eq!(thief.refused("tools/call", retry("ask", json!({"a": 1}), &state))["code"], -32602);
    for params in [
        retry("other", json!({"a": 1}), &state),
        retry("ask", json!({"a": 2}), &state),
        retry("ask", json!({"a": 1}), &format!("{state}x")),
        retry("ask", json!({"a": 1}), "x"),
    ] {
        assert_eq!(client.refused("tools/call", params)["code"], -32602);
    }
    assert_eq!(client.request("tools/call", retry("ask", json!({"a": 1}), &state))["structuredContent"], named("Ada"));
}

#[test]
fn answers_may_come_before_the_question() {
    let rig = Rig::new();
    rig.publish("ask", "ask", |_| ());
    let mut client = rig.modern(everything());
    let mut call =
        |responses: Value| client.request("tools/call", json!({"name": "ask", "arguments": {}, "inputResponses": responses}));
    assert_eq!(call(json!({"user_name": named("Ada"), "more": {}}))["structuredContent"], named("Ada"));
    assert_eq!(call(json!({"wrong_key": named("Ada")}))["resultType"], "input_required");
    assert_eq!(call(json!({"user_name": 12345}))["resultType"], "input_required");
    assert_eq!(call(Value::Null)["resultType"], "input_required");
}

#[test]
fn progress_and_log_reach_whoever_wants_them() {
    let rig = Rig::new();
    rig.publish("report", "report", |_| ());
    let mut old = rig.legacy("2025-11-25", json!({}));
    let call = old.begin("tools/call", json!({"name": "report", "_meta": {"progressToken": "p1"}}));
    let mut reached = Vec::new();
    for _ in 0..3 {
        let note = old.heard("notifications/progress");
        assert_eq!(note["params"]["progressToken"], "p1");
        reached.push(note["params"]["progress"].as_f64().expect("a number"));
    }
    assert!(reached.windows(2).all(|pair| pair[0] < pair[1]), "{reached:?}");
    let line = old.heard("notifications/message");
    assert_eq!(line["params"]["level"], "warning", "debug is not wanted: {line}");
    assert_eq!(line["params"]["data"], json!({"message": "careful", "data": {"a": 1}}));
    old.result(call);
    old.request("logging/setLevel", json!({"level": "error"}));
    old.call("report", json!({}));
    assert!(!old.has_heard("notifications/message") && !old.has_heard("notifications/progress"));

    let mut new = rig.modern(json!({}));
    new.call("report", json!({}));
    assert!(!new.has_heard("notifications/message"), "no log without a level in the request");
    new.request(
        "tools/call",
        json!({"name": "report", "_meta": {"io.modelcontextprotocol/logLevel": "debug", "progressToken": 7}}),
    );
    assert_eq!(new.heard("notifications/message")["params"]["level"], "debug");
    assert_eq!(new.heard("notifications/progress")["params"]["progressToken"], 7);
}

#[test]
fn a_cancelled_call_stops() {
    let rig = Rig::new();
    rig.publish("wait", "wait", |_| ());
    let mut clients = [rig.legacy("2025-11-25", json!({})), rig.modern(json!({}))];
    for client in &mut clients {
        let call = client.begin("tools/call", json!({"name": "wait", "_meta": {"progressToken": 1}}));
        client.heard("notifications/progress");
        client.send(&json!({"jsonrpc": "2.0", "method": "notifications/cancelled", "params": {"requestId": call}}));
        until_idle(&rig);
        assert_eq!(client.request("prompts/list", json!({}))["prompts"].as_array().map(Vec::len), Some(6));
    }
}

#[test]
fn a_client_that_leaves_takes_its_calls_and_questions_along() {
    let rig = Rig::new();
    rig.publish("wait", "wait", |_| ());
    rig.publish("ask", "ask", |_| ());
    let mut client = rig.legacy("2025-11-25", everything());
    client.begin("tools/call", json!({"name": "wait", "_meta": {"progressToken": 1}}));
    client.heard("notifications/progress");
    let call = client.begin("tools/call", json!({"name": "ask"}));
    let form = client.heard("elicitation/create");
    client.send(&json!({"jsonrpc": "2.0", "method": "notifications/cancelled", "params": {"requestId": call}}));
    let withdrawn = client.heard("notifications/cancelled");
    assert_eq!(withdrawn["params"]["requestId"], form["id"], "the user is not left with a form that nobody reads");
    client.disconnect();
    until_idle(&rig);
}

fn task_client() -> Value {
    json!({"elicitation": {}, "extensions": {"io.modelcontextprotocol/tasks": {}}})
}

/// Polls a task until its status is `wanted`.
fn poll(client: &mut Client, task: &Value, wanted: &str) -> Value {
    let deadline = Instant::now() + DEADLINE;
    loop {
        let state = client.request("tasks/get", json!({"taskId": task["taskId"]}));
        if state["status"] == wanted {
            return state;
        }
        assert!(Instant::now() < deadline, "{state}");
        std::thread::sleep(Duration::from_millis(10));
    }
}

#[test]
fn a_long_tool_becomes_a_task_for_clients_that_know_tasks() {
    let rig = Rig::new();
    let long = |manifest: &mut skillz_tool::Manifest| manifest.limits.timeout_ms = Some(60_000);
    rig.publish("echo", "echo", long);
    rig.publish("fails", "fail", long);
    rig.publish("ask", "ask-twice", long);
    rig.publish("wait", "wait", long);
    rig.publish("short", "echo", |_| ());
    let mut client = rig.modern(task_client());
    assert_eq!(client.call("short", json!({"a": 1}))["resultType"], "complete");

    let task = client.call("echo", json!({"a": 1}));
    assert_eq!((&task["resultType"], &task["status"]), (&json!("task"), &json!("working")), "{task}");
    assert_eq!(poll(&mut client, &task, "completed")["result"]["structuredContent"], json!({"a": 1}));
    let task = client.call("fails", json!({}));
    assert_eq!(poll(&mut client, &task, "completed")["result"]["isError"], true);

    let task = client.call("ask", json!({}));
    let asked = poll(&mut client, &task, "input_required");
    assert_eq!(asked["inputRequests"]["user_name"]["params"]["message"], "First?");
    client.request("tasks/update", json!({"taskId": task["taskId"], "inputResponses": {"user_name": named("Ada")}}));
    let asked = poll(&mut client, &task, "input_required");
    let key = asked["inputRequests"].as_object().expect("requests").keys().next().expect("one").clone();
    client.request("tasks/update", json!({"taskId": task["taskId"], "inputResponses": {key: named("Bob")}}));
    assert_eq!(poll(&mut client, &task, "completed")["result"]["structuredContent"]["second"], named("Bob"));

    let task = client.call("wait", json!({}));
    client.request("tasks/cancel", json!({"taskId": task["taskId"]}));
    poll(&mut client, &task, "cancelled");
    until_idle(&rig);
    assert_eq!(client.refused("tasks/get", json!({"taskId": "none"}))["code"], -32602);

    let mut plain = rig.modern(json!({}));
    assert_eq!(plain.call("echo", json!({"a": 1}))["resultType"], "complete");
    assert_eq!(plain.refused("tasks/get", json!({"taskId": task["taskId"]}))["code"], -32021);
}
