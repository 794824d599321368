//! The way of a publish: what is refused, what is tried, what is seen afterwards.

use std::sync::Arc;

use skillz_engine::PublishRequest;
use skillz_json::json;
use skillz_tool::ErrorKind;

use crate::support::{Fixture, client::FakeClient, request, until};

#[tokio::test]
async fn a_tool_is_there_at_once_and_everybody_is_told() {
    let fixture = Fixture::new().await;
    let mut changes = fixture.engine.changes();
    let before = *changes.borrow_and_update();
    let report = fixture.engine.publish(request("fresh", "echo", json!({}))).await.expect("published");
    assert_eq!((report.name.as_str(), report.version.to_string().as_str(), report.size_bytes), ("fresh", "1.0.0", 4));
    let told = skillz_json::to_value(&report).expect("JSON");
    assert_eq!(told["kind"], "wasm");
    assert_eq!(told["examples"], json!({"passed": 0, "failed": 0}));
    assert!(*changes.borrow_and_update() > before);
    assert!(fixture.engine.catalog().get("fresh").is_some());
    assert_eq!(fixture.engine.exposed().tools.len(), 1);
    assert!(!fixture.call("fresh", json!({})).await.is_error);
}

#[tokio::test]
async fn names_and_faults_are_refused_before_anything_is_made() {
    let fixture = Fixture::new().await;
    for (name, fields, sentence) in [
        ("../x", json!({}), "`x` would do"),
        ("list_tools", json!({}), "belongs to a built-in tool"),
        ("Upper", json!({}), "`upper` would do"),
        ("fine", json!({"description": ""}), "`description` is empty"),
        ("fine", json!({"input_schema": {"type": "array"}}), "must describe an object"),
        ("fine", json!({"examples": [{}]}), "expects nothing"),
    ] {
        let error = fixture.engine.publish(request(name, "echo", fields)).await.expect_err(name);
        assert!(error.text().contains(sentence) && error.kind == ErrorKind::InvalidInput, "{name}: {error}");
    }
    assert!(fixture.engine.catalog().is_empty());
}

#[tokio::test]
async fn existing_tools_are_replaced_only_on_demand() {
    let fixture = Fixture::new().await;
    fixture.publish("speak", "print one").await;
    let error = fixture.engine.publish(request("speak", "print two", json!({}))).await.expect_err("it is there");
    assert!(
        error.text().contains("There is a tool `speak` already (wasm, version 1.0.0)")
            && error.text().contains("`overwrite: true`")
    );
    let old_hash = fixture.engine.catalog().get("speak").expect("there").hash.clone();
    fixture.publish("speak", "print two").await;
    assert_eq!(fixture.call("speak", json!({})).await.text(), "two");
    let retired = fixture.runtime.retired.lock().expect("whole").clone();
    assert!(retired.contains(&format!("speak {old_hash}")), "{retired:?}");
}

#[tokio::test]
async fn failing_examples_keep_the_old_version() {
    let fixture = Fixture::new().await;
    let examples = |result| json!({"examples": [{"arguments": {"a": 1}, "result": {"a": 1.0}}, {"description": "the other", "arguments": {"b": 2}, "result": result}]});
    let report = fixture.publish_with("echo", "echo", examples(json!({"b": 2}))).await.expect("both hold");
    assert_eq!((report.examples.passed, report.examples.failed), (2, 0));

    let error = fixture.publish_with("echo", "echo", examples(json!({"b": 3}))).await.expect_err("one does not");
    let text = error.text();
    assert!(
        text.starts_with(
            "1 of 2 examples of `echo` did not hold, so version 1.0.0 stays in service:\n- example 1 (the other) with {\"b\":2}"
        ),
        "{text}"
    );
    assert!(text.contains("expected: exactly {\"b\":3}") && text.contains("actual: {\"b\":2}"), "{text}");
    assert_eq!(fixture.engine.catalog().get("echo").expect("there").version.to_string(), "1.0.0");
    assert!(fixture.history.records().is_empty(), "examples are not calls of anybody");

    let error = fixture.publish_with("newcomer", "fail no", json!({"examples": [{"contains": "x"}]})).await.expect_err("fails");
    assert!(error.text().contains("so nothing was published") && error.text().contains("actual: a failure: no"), "{error}");
}

#[tokio::test]
async fn examples_call_other_tools_on_the_same_path() {
    let fixture = Fixture::new().await;
    fixture.publish("leaf", "print hello").await;
    let report = fixture.publish_with("outer", "call leaf", json!({"examples": [{"contains": "ell"}]})).await.expect("published");
    assert_eq!(report.examples.passed, 1);
    assert!(fixture.history.records().is_empty());
}

#[tokio::test]
async fn a_dry_run_publishes_nothing() {
    let fixture = Fixture::new().await;
    let dry = PublishRequest { dry_run: true, ..request("dry", "echo", json!({"examples": [{"result": {}}]})) };
    let report = fixture.engine.publish(dry).await.expect("it would do");
    assert!(report.dry_run && report.examples.passed == 1);
    assert!(fixture.engine.catalog().is_empty());
    let dry = PublishRequest { dry_run: true, ..request("dry", "broken", json!({})) };
    assert!(fixture.engine.publish(dry).await.expect_err("does not compile").text().contains("does not compile"));
}

#[tokio::test]
async fn a_publish_that_fails_on_the_way_leaves_nothing() {
    let fixture = Fixture::new().await;
    let client = Arc::new(FakeClient::default());
    let refused = PublishRequest { client: client.clone(), ..request("sad", "broken code", json!({})) };
    assert!(fixture.engine.publish(refused).await.is_err());
    assert_eq!(client.progress.lock().expect("whole").len(), 1, "progress of the making reaches the client");
    let left: Vec<_> =
        std::fs::read_dir(fixture.home().join("tools")).into_iter().flatten().flatten().map(|entry| entry.file_name()).collect();
    assert!(left.iter().all(|name| name.to_string_lossy().starts_with('.')), "{left:?}");
}

#[tokio::test]
async fn of_two_publishers_at_once_one_wins() {
    let fixture = Fixture::new().await;
    let (one, two) = tokio::join!(
        fixture.engine.publish(request("race", "print one", json!({}))),
        fixture.engine.publish(request("race", "print two", json!({})))
    );
    assert_ne!(one.is_ok(), two.is_ok(), "{one:?} {two:?}");
    let winner = if one.is_ok() { "one" } else { "two" };
    assert_eq!(fixture.call("race", json!({})).await.text(), winner);
}

#[tokio::test]
async fn deleted_tools_are_gone_and_can_come_back() {
    let fixture = Fixture::new().await;
    fixture.publish("speak", "print one").await;
    fixture.publish("speak", "print two").await;
    let report = fixture.engine.delete("speak").await.expect("deleted");
    assert_eq!(report.versions_kept, 2);
    assert!(report.restore.contains("tool_name: \"speak\", version: \"1.0.1\""), "{report:?}");
    assert!(fixture.engine.catalog().is_empty() && fixture.engine.exposed().tools.is_empty());
    assert!(fixture.engine.delete("speak").await.expect_err("gone").text().contains("There is no tool `speak`"));
    assert!(fixture.engine.delete("../../etc").await.is_err());
}

#[tokio::test]
async fn stored_examples_are_run_on_demand() {
    let fixture = Fixture::new().await;
    fixture
        .publish_with("echo", "echo", json!({"examples": [{"arguments": {"a": 1}, "contains": {"a": 1}}]}))
        .await
        .expect("published");
    fixture.publish("bare", "echo").await;
    let client = || Arc::new(skillz_engine::NoClient);
    let one = fixture.engine.test(Some("echo"), client()).await.expect("tested");
    assert_eq!(one, json!({"tool_name": "echo", "version": "1.0.0", "passed": 1, "failed": 0}));
    let all = fixture.engine.test(None, client()).await.expect("tested");
    assert_eq!(
        (all["passed"].clone(), all["failed"].clone(), all["without_examples"].clone()),
        (json!(1), json!(0), json!(["bare"]))
    );
    assert!(fixture.engine.test(Some("ecko"), client()).await.expect_err("unknown").text().contains("`echo`"));
}

#[tokio::test]
async fn a_dry_run_tells_the_version_that_would_come() {
    let fixture = Fixture::new().await;
    let schema =
        |required| json!({"input_schema": {"type": "object", "required": required, "properties": {"a": {"type": "string"}}}});
    fixture.publish_with("numbered", "echo", schema(json!([]))).await.expect("published");
    for (fields, version) in
        [(schema(json!([])), "1.0.1"), (schema(json!(["a"])), "1.1.0"), (json!({"version": "3.2.1"}), "3.2.1")]
    {
        let dry = PublishRequest { dry_run: true, overwrite: true, ..request("numbered", "echo", fields.clone()) };
        assert_eq!(fixture.engine.publish(dry).await.expect("it would do").version.to_string(), version, "{fields}");
    }
    fixture.engine.delete("numbered").await.expect("deleted");
    let dry = PublishRequest { dry_run: true, ..request("numbered", "echo", json!({})) };
    assert_eq!(fixture.engine.publish(dry).await.expect("it would do").version.to_string(), "1.0.1");
    let real = fixture.engine.publish(request("numbered", "echo", json!({}))).await.expect("published");
    assert_eq!(real.version.to_string(), "1.0.1");
}

#[tokio::test]
async fn a_trial_that_is_given_up_leaves_nothing_running() {
    let fixture = Fixture::new().await;
    let examples = json!({"examples": [{"result": 1}]});
    {
        let publish = fixture.engine.publish(request("endless", "forever", examples));
        tokio::select! {
            report = publish => panic!("it cannot end: {report:?}"),
            () = until("the example", || fixture.runtime.running() == 1) => {}
        }
    }
    assert_eq!(fixture.runtime.running(), 0);
    let retired = fixture.runtime.retired.lock().expect("whole").clone();
    assert!(retired.iter().any(|retired| retired.starts_with("endless tried-")), "{retired:?}");
    assert!(fixture.engine.catalog().is_empty());
}

#[tokio::test]
async fn a_script_hands_its_lock_on_to_the_next_version() {
    let fixture = Fixture::new().await;
    let lock = || fixture.engine.catalog().get("kept").expect("is there").directory.join("lock");
    fixture.publish_with("kept", "print one", json!({"tool_type": "script"})).await.expect("published");
    assert!(!lock().exists());
    std::fs::write(lock(), "the versions").expect("written");
    for (line, kind, is_kept) in [("print two", "script", true), ("print three", "script", true), ("print four", "wasm", false)] {
        fixture.publish_with("kept", line, json!({"tool_type": kind})).await.expect("published");
        assert_eq!(lock().exists(), is_kept, "{line}");
    }
}
