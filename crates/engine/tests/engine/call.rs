//! The way of a call: found or not, arguments, result, failure, history, depth, cancelling.

use std::{sync::Arc, time::Duration};

use crate::support::{DEADLINE, Fixture, until};
use skillz_engine::{CallFailure, CallRequest, Concurrency, NoClient};
use skillz_json::{Value, json};
use skillz_tool::ErrorKind;

fn text(reply: &skillz_engine::CallReply) -> String {
    reply.text()
}

#[tokio::test]
async fn a_value_goes_in_and_comes_out() {
    let fixture = Fixture::new().await;
    fixture.publish("echo", "echo").await;
    let reply = fixture.call("echo", json!({"a": [1, "ü", 9_007_199_254_740_993_i64]})).await;
    assert_eq!(reply.structured_content, Some(json!({"a": [1, "ü", 9_007_199_254_740_993_i64]})));
    assert_eq!(text(&reply), "{\"a\":[1,\"ü\",9007199254740993]}");
    assert!(!reply.is_error && reply.failure.is_none());
    for nothing in [Value::Null, json!("")] {
        assert_eq!(fixture.call("echo", nothing).await.structured_content, Some(json!({})));
    }
    for wrong in [json!([1]), json!("{\"a\":1}"), json!(7)] {
        let reply = fixture.call("echo", wrong.clone()).await;
        assert_eq!(reply.failure.map(|error| error.kind), Some(ErrorKind::InvalidInput), "{wrong}");
    }
}

#[tokio::test]
async fn unknown_tools_name_the_closest() {
    let fixture = Fixture::new().await;
    let failure = |name: &str| {
        let request = CallRequest { tool_name: name.to_owned(), version: None, arguments: json!({}), client: Arc::new(NoClient) };
        let engine = fixture.engine.clone();
        async move {
            let CallFailure::UnknownTool { message } = engine.call(request).await.expect_err("unknown");
            message
        }
    };
    assert_eq!(failure("x").await, "There is no tool `x`. There are no tools yet: `build_tool` and `register_script` make them");
    fixture.publish("word_count", "echo").await;
    assert!(failure("wrod_count").await.starts_with("There is no tool `wrod_count`. Close to it: `word_count`."));
    assert!(failure("memory").await.contains("one of the server's own tools"));
    assert!(failure("zzzzzzzz").await.contains("`list_tools` with a `query`"));
}

#[tokio::test]
async fn failures_tell_what_and_why_and_go_into_the_history() {
    let fixture = Fixture::new().await;
    let schema = json!({"input_schema": {"type": "object", "required": ["a"], "properties": {"a": {"type": "integer"}}}});
    fixture.publish_with("strict", "echo", schema).await.expect("published");
    fixture.publish("broken_inside", "fail It went wrong. Very wrong").await;
    fixture.publish("crashing", "panic at the disco").await;

    let reply = fixture.call("strict", json!({"a": "secret value"})).await;
    assert!(reply.is_error && text(&reply).contains("`/a`"), "{reply:?}");
    let record = fixture.history.only("strict");
    assert_eq!(
        (record.status.as_str(), record.error.as_deref()),
        ("invalid", Some("The arguments of `strict` do not fit its input schema"))
    );
    assert_eq!(record.argument_bytes, r#"{"a":"secret value"}"#.len() as u64);

    let reply = fixture.call("broken_inside", json!({})).await;
    assert_eq!(text(&reply), "It went wrong. Very wrong");
    assert_eq!(fixture.history.only("broken_inside").error.as_deref(), Some("It went wrong"));

    let reply = fixture.call("crashing", json!({})).await;
    assert_eq!(reply.failure.map(|error| error.kind), Some(ErrorKind::Internal));
    assert_eq!(fixture.history.only("crashing").status, "failed");
    assert_eq!(fixture.runtime.running(), 0);
}

#[tokio::test]
async fn successes_are_recorded_with_sizes_and_without_values() {
    let fixture = Fixture::new().await;
    fixture.publish("echo", "echo").await;
    fixture.publish("outer", "call echo").await;
    fixture.call("outer", json!({"key": "a secret"})).await;
    let (inner, outer) = (fixture.history.only("echo"), fixture.history.only("outer"));
    assert_eq!((outer.status.as_str(), outer.version.as_str(), outer.parent_id.as_deref()), ("ok", "1.0.0", None));
    assert_eq!(inner.parent_id, Some(outer.call_id.clone()));
    assert_eq!((outer.argument_bytes, outer.result_bytes), (18, 18));
    assert!(outer.started_at > 1.7e9 && outer.duration_ms >= inner.duration_ms);
    assert!(!serde_json::to_string(&[inner, outer]).expect("JSON").contains("a secret"));
}

#[tokio::test]
async fn a_call_that_is_dropped_ends_with_all_its_inner_calls() {
    let fixture = Fixture::new().await;
    fixture.publish("endless", "forever").await;
    fixture.publish("middle", "call endless").await;
    fixture.publish("outer", "call middle").await;
    {
        let call = fixture.call("outer", json!({}));
        tokio::select! {
            reply = call => panic!("it cannot end: {reply:?}"),
            () = until("the innermost call", || fixture.runtime.running() == 3) => {}
        }
    }
    assert_eq!(fixture.runtime.running(), 0);
    for name in ["outer", "middle", "endless"] {
        assert_eq!(fixture.history.only(name).status, "cancelled");
    }
}

#[tokio::test]
async fn time_runs_out_even_if_the_runtime_does_not_notice() {
    let fixture = Fixture::new().await;
    fixture.publish_with("endless", "forever", json!({"limits": {"timeout_ms": 50}})).await.expect("published");
    let reply = fixture.call("endless", json!({})).await;
    assert_eq!(text(&reply).lines().next(), Some("`endless` ran longer than its limit of 50 ms and was stopped"));
    assert_eq!(fixture.history.only("endless").status, "timed_out");
    assert_eq!(fixture.runtime.running(), 0);
}

#[tokio::test]
async fn circles_end_and_say_where_they_run() {
    let fixture = Fixture::new().await;
    fixture.publish("ping", "call pong").await;
    fixture.publish("pong", "call ping").await;
    let reply = fixture.call("ping", json!({})).await;
    let text = text(&reply);
    assert!(reply.is_error && text.contains("tools call each other in a circle: ping -> pong -> ping"), "{text}");
    assert_eq!(fixture.runtime.begun.lock().expect("whole").len(), 16);
}

#[tokio::test]
async fn inner_calls_pass_whole_values_and_fail_with_the_same_texts() {
    let fixture = Fixture::new().await;
    fixture.publish("long", "long 300000").await;
    fixture.publish("measure", "call long").await;
    fixture.publish("lost", "call lnog").await;
    fixture.publish("greedy", "call build_tool").await;
    fixture.publish("lister", "call list_tools").await;
    let reply = fixture.call("measure", json!({})).await;
    assert_eq!(reply.content[2]["type"], "resource_link", "the client gets a link");
    assert_eq!(fixture.history.only("long").result_bytes, 300_002, "and the other tool the whole text");
    assert!(text(&fixture.call("lost", json!({})).await).contains("There is no tool `lnog`. Close to it: `long`"));
    assert!(text(&fixture.call("greedy", json!({})).await).contains("tools may call `list_tools` only"));
    let reply = fixture.call("lister", json!({"detail": "names"})).await;
    assert_eq!(reply.structured_content.expect("a list")["total"], 5);
    assert!(fixture.call("lister", json!({"detial": 1})).await.is_error);
}

#[tokio::test]
async fn long_results_are_kept_for_their_reader() {
    let fixture = Fixture::new().await;
    fixture.publish("long", "long 150000").await;
    fixture.publish_with("roomy", "long 150000", json!({"limits": {"max_result_bytes": 200_000}})).await.expect("published");
    let reply = fixture.call("long", json!({})).await;
    let uri = reply.content[2]["uri"].as_str().expect("a link").to_owned();
    let id = uri.strip_prefix("skillz://results/").expect("a result");
    assert_eq!(fixture.engine.results().read(id).await.expect("kept").text.len(), 150_000);
    let shown: usize = reply.content.iter().filter_map(|block| block["text"].as_str()).map(str::len).sum();
    assert!(shown <= 100_000);
    assert_eq!(fixture.call("roomy", json!({})).await.content.len(), 1);
}

#[tokio::test]
async fn calls_wait_for_a_place_and_can_give_up_while_they_do() {
    let fixture = Fixture::with(|settings| settings.concurrency = Concurrency { calls: 2, scripts: 1 }).await;
    fixture.publish("first", "wait").await;
    fixture.publish("second", "wait").await;
    fixture.publish("third", "echo").await;
    let engine = fixture.engine.clone();
    let spawn = |name: &str| {
        let request = CallRequest { tool_name: name.to_owned(), version: None, arguments: json!({}), client: Arc::new(NoClient) };
        let engine = engine.clone();
        tokio::spawn(async move { engine.call(request).await })
    };
    let running = [spawn("first"), spawn("second")];
    until("two calls", || fixture.runtime.running() == 2).await;
    let gone = spawn("third");
    let patient = spawn("third");
    tokio::task::yield_now().await;
    gone.abort();
    assert!(gone.await.expect_err("aborted").is_cancelled());
    fixture.runtime.go.notify_one();
    let reply = tokio::time::timeout(DEADLINE, patient).await.expect("in time").expect("no panic").expect("a reply");
    assert!(!reply.is_error);
    fixture.runtime.go.notify_one();
    for call in running {
        assert!(!call.await.expect("no panic").expect("a reply").is_error);
    }
    assert_eq!(fixture.runtime.most_running.load(std::sync::atomic::Ordering::SeqCst), 2);
    until("the history", || fixture.history.records().iter().filter(|record| record.status == "cancelled").count() == 1).await;
}

#[tokio::test]
async fn inner_calls_ride_on_their_callers_place() {
    let fixture = Fixture::with(|settings| settings.concurrency = Concurrency { calls: 1, scripts: 1 }).await;
    for (name, line, kind) in [
        ("leaf", "echo", "script"),
        ("middle", "call leaf", "script"),
        ("outer", "call middle", "wasm"),
        ("twin", "both middle middle", "wasm"),
    ] {
        fixture.publish_with(name, line, json!({"tool_type": kind})).await.expect("published");
    }
    for name in ["outer", "twin", "middle"] {
        let reply = tokio::time::timeout(DEADLINE, fixture.call(name, json!({}))).await.expect("nothing waits in a circle");
        assert!(!reply.is_error, "{name}: {reply:?}");
    }
}

#[tokio::test]
async fn older_versions_can_be_called() {
    let fixture = Fixture::new().await;
    fixture.publish("speak", "print one").await;
    fixture.publish("speak", "print two").await;
    let call = |version: &str| {
        let request = CallRequest {
            tool_name: "speak".to_owned(),
            version: Some(version.to_owned()),
            arguments: json!({}),
            client: Arc::new(NoClient),
        };
        let engine = fixture.engine.clone();
        async move { engine.call(request).await.expect("a known tool") }
    };
    assert_eq!(text(&call("1.0.0").await), "one");
    assert_eq!(text(&call("1.0.1").await), "two");
    assert_eq!(text(&call("1.0.0").await), "one");
    assert!(text(&call("3.0.0").await).contains("`speak` has no version `3.0.0`"));
    assert!(text(&call("../1").await).contains("is not a version"));
}

#[tokio::test]
async fn limits_are_the_tools_own_within_the_operators() {
    let caps = skillz_tool::Limits { timeout_ms: Some(60_000), memory_mb: Some(512), ..Default::default() };
    let fixture = Fixture::with(|settings| settings.caps = caps).await;
    fixture.publish_with("wasm_tool", "echo", json!({})).await.expect("published");
    let asked = json!({"tool_type": "script", "limits": {"timeout_ms": 3_600_000, "max_processes": 3}});
    fixture.publish_with("script_tool", "echo", asked).await.expect("published");
    fixture.call("wasm_tool", json!({})).await;
    let limits = fixture.runtime.last_call().limits;
    assert_eq!((limits.timeout, limits.memory_bytes, limits.max_processes), (Duration::from_secs(30), 256 << 20, 64));
    fixture.call("script_tool", json!({})).await;
    let limits = fixture.runtime.last_call().limits;
    assert_eq!((limits.timeout, limits.memory_bytes, limits.max_processes), (Duration::from_mins(1), 512 << 20, 3));
}

#[tokio::test]
async fn tools_that_need_services_say_so() {
    let fixture = Fixture::new().await;
    fixture.publish_with("needy", "echo", json!({"requires_services": ["db"]})).await.expect("published");
    assert!(text(&fixture.call("needy", json!({})).await).contains("needs the services `db`"));
}
