//! What runs come to: values, order, failures, reports, cancellation.

use std::{
    path::PathBuf,
    sync::{Arc, atomic::Ordering},
    time::Duration,
};

use crate::support::{TestHost, Tools, run_steps};
use skillz_json::{Value, json};
use skillz_pipeline::{PipelineRuntime, StepStatus};
use skillz_tool::{
    CallClock, CallContext, EffectiveLimits, ErrorKind, Grants, Manifest, Output, Tool, ToolCall, ToolKind, ToolName,
    ToolRuntime, Version,
};

async fn value_of(steps: Value, input: Value) -> Value {
    let host = TestHost::default();
    let run = run_steps(&steps, &input, &host).await;
    run.result.unwrap_or_else(|error| panic!("{steps}\n{error}"))
}

async fn error_of(steps: Value, input: Value) -> String {
    let host = TestHost::default();
    let run = run_steps(&steps, &input, &host).await;
    run.result.expect_err(&steps.to_string()).text()
}

#[tokio::test]
async fn references_keep_types_and_texts_take_them_in() {
    let input = json!({"n": 3, "big": 9_007_199_254_740_993_i64, "s": "abc", "b": true, "none": null, "list": [1, {"x": "y"}], "o": {"k": [0]}});
    for (argument, expected) in [
        (json!("$input.n"), json!(3)),
        (json!("$input.big"), json!(9_007_199_254_740_993_i64)),
        (json!("$input.list"), json!([1, {"x": "y"}])),
        (json!("$input.list[1].x"), json!("y")),
        (json!("$input.list[-1]"), json!({"x": "y"})),
        (json!("$input.o"), json!({"k": [0]})),
        (json!("$input.none"), json!(null)),
        (json!("$input"), input.clone()),
        (json!("${input.n}"), json!(3)),
        (json!("n=$input.n"), json!("n=3")),
        (json!("${input.s}def"), json!("abcdef")),
        (json!("$input.s$input.n"), json!("abc3")),
        (json!("$input.s."), json!("abc.")),
        (json!("$input.s-$input.n"), json!("abc-3")),
        (json!("[$input.list]"), json!("[[1,{\"x\":\"y\"}]]")),
        (json!("$input.b and $input.none"), json!("true and null")),
        (json!("costs $$5"), json!("costs $5")),
        (json!("$$input.n"), json!("$input.n")),
        (json!("$$$input.n"), json!("$3")),
        (json!("$5"), json!("$5")),
        (json!("$"), json!("$")),
        (json!(["$input.n", {"deep": ["$input.s", "$$"]}]), json!([3, {"deep": ["abc", "$"]}])),
        (json!({"$input.n": "$input.n"}), json!({"$input.n": 3})),
        (json!(5), json!(5)),
        (json!("名 ${input.s}é"), json!("名 abcé")),
    ] {
        let value = value_of(json!([{"tool": "echo", "args": {"v": argument}}]), input.clone()).await;
        assert_eq!(value["v"], expected, "{argument}");
    }
    assert_eq!(value_of(json!([{"tool": "echo", "args": "$input.o"}]), input.clone()).await, json!({"k": [0]}));
}

#[tokio::test]
async fn each_step_sees_those_before_it() {
    let steps = json!([
        {"name": "first", "tool": "upper", "args": {"text": "$input.text"}},
        {"tool": "count_words", "args": {"text": "$prev"}},
        {"tool": "echo", "args": {"first": "$first", "second": "$step_2.words", "previous": "$prev", "text": "${first}!"}},
    ]);
    assert_eq!(
        value_of(steps, json!({"text": "a b c"})).await,
        json!({"first": "A B C", "second": 3, "previous": {"words": 3}, "text": "A B C!"})
    );
}

#[tokio::test]
async fn conditions_skip_and_the_value_before_goes_on() {
    let steps = json!([
        {"tool": "upper", "args": {"text": "$input.text"}},
        {"name": "maybe", "tool": "count_words", "args": {"text": "$prev"}, "condition": "$input.count"},
        {"tool": "echo", "args": {"previous": "$prev", "maybe": "$maybe"}},
    ]);
    assert_eq!(
        value_of(steps.clone(), json!({"text": "a b", "count": true})).await,
        json!({"previous": {"words": 2}, "maybe": {"words": 2}})
    );
    assert_eq!(value_of(steps, json!({"text": "a b", "count": false})).await, json!({"previous": "A B", "maybe": null}));
    assert_eq!(value_of(json!([{"tool": "echo", "condition": "false"}]), json!({})).await, json!(null));
    let into = error_of(
        json!([{"name": "a", "tool": "echo", "condition": "false"}, {"tool": "echo", "args": {"x": "$a.b"}}]),
        json!({}),
    )
    .await;
    assert!(into.contains("Step 2 `step_2` (tool `echo`) failed: `$a.b` leads nowhere: the step `a` was skipped"), "{into}");
}

#[tokio::test]
async fn for_each_keeps_order_and_bounds_what_runs() {
    let host = TestHost::default();
    let items: Vec<i64> = (0..20).collect();
    let expected: Vec<i64> = items.iter().map(|item| item + item).collect();
    let steps = json!([{"tool": "add", "for_each": "$input.items", "parallel": 4, "args": {"a": "$item", "b": "$index"}}]);
    let run = run_steps(&steps, &json!({"items": items}), &host).await;
    assert_eq!(run.result.expect("ran"), json!(expected));
    assert_eq!(host.most_running.load(Ordering::SeqCst), 4, "as many at once as allowed, and no more");
    assert_eq!((run.steps[0].items, run.steps[0].attempts), (Some(20), 20));

    let host = TestHost::default();
    let steps = json!([{"tool": "add", "for_each": [3, 2, 1], "args": {"a": "$item", "b": 0}}]);
    assert_eq!(run_steps(&steps, &json!({}), &host).await.result.expect("ran"), json!([3, 2, 1]));
    assert_eq!(host.most_running.load(Ordering::SeqCst), 1, "one after the other unless asked for");

    for (for_each, condition, expected) in [
        (json!([]), Value::Null, json!([])),
        (json!([1, 2, 3, 4]), json!("$item > 2"), json!([3, 4])),
        (json!([5, 6, 7]), json!("$index == 1"), json!([6])),
        (json!([5, 6]), json!("false"), json!(null)),
        (json!(["$input.a", "$input.b"]), Value::Null, json!([10, 20])),
    ] {
        let steps = json!([{"tool": "add", "for_each": for_each, "condition": condition, "args": {"a": "$item", "b": 0}}]);
        assert_eq!(value_of(steps.clone(), json!({"a": 10, "b": 20})).await, expected, "{steps}");
    }
    let nested = json!([{"tool": "echo", "for_each": [{"a": [1, 2]}], "args": {"x": "$item.a[1]", "t": "no. $index"}}]);
    assert_eq!(value_of(nested, json!({})).await, json!([{"x": 2, "t": "no. 0"}]));
    let no_array = error_of(json!([{"tool": "echo", "for_each": "$input.x"}]), json!({"x": 5})).await;
    assert!(no_array.contains("`for_each` must come to an array, not a number"), "{no_array}");
}

#[tokio::test]
async fn a_group_runs_at_once_and_gives_an_object() {
    let host = TestHost::default();
    let steps = json!([
        {"tool": "upper", "args": {"text": "start"}},
        {"name": "a", "tool": "add", "group": "g", "args": {"a": 1, "b": 1}},
        {"name": "b", "tool": "echo", "group": "g", "args": {"previous": "$prev"}},
        {"name": "c", "tool": "echo", "group": "g", "condition": "false"},
        {"name": "d", "tool": "fail", "group": "g", "on_error": "continue"},
        {"tool": "echo", "args": {"all": "$prev", "b": "$b.previous"}},
    ]);
    let run = run_steps(&steps, &json!({}), &host).await;
    assert_eq!(
        run.result.expect("ran"),
        json!({"all": {"a": 2, "b": {"previous": "START"}, "c": null, "d": null}, "b": "START"})
    );
    assert!(host.most_running.load(Ordering::SeqCst) >= 2, "members overlap");
    assert_eq!(*host.progress.lock().expect("not poisoned"), [1.0, 5.0, 6.0]);

    let last =
        value_of(json!([{"name": "x", "tool": "echo", "group": "g"}, {"name": "y", "tool": "echo", "group": "g"}]), json!({}))
            .await;
    assert_eq!(last, json!({"x": {}, "y": {}}), "a group at the end is the result");
    let two_groups = value_of(
        json!([{"name": "x", "tool": "echo", "group": "g"}, {"name": "y", "tool": "echo", "group": "h", "args": {"p": "$prev"}}]),
        json!({}),
    )
    .await;
    assert_eq!(two_groups, json!({"p": {}}), "a group of one is a step");
}

#[tokio::test]
async fn a_failure_says_which_step_why_and_what_it_got() {
    let host = TestHost::default();
    let steps = json!([
        {"name": "a", "tool": "upper", "args": {"text": "x"}},
        {"name": "broken", "tool": "fail", "args": {"text": "$a", "more": "$input.more"}},
        {"name": "never", "tool": "echo"},
    ]);
    let run = run_steps(&steps, &json!({"more": "m".repeat(10_000)}), &host).await;
    let error = run.result.expect_err("a step fails");
    assert_eq!(error.kind, ErrorKind::Failed);
    let text = error.text();
    assert!(
        text.starts_with("Step 2 `broken` (tool `fail`) failed: `fail` ended with exit code 3\nIt got {\"text\":\"X\","),
        "{text}"
    );
    assert!(text.contains("boom") && text.ends_with("Do not call it") && text.len() < 1_000, "{text}");
    let statuses: Vec<StepStatus> = run.steps.iter().map(|step| step.status).collect();
    assert_eq!(statuses, [StepStatus::Ok, StepStatus::Failed, StepStatus::Skipped]);
    let reported = skillz_json::to_value(&run.steps[1]).expect("serialises");
    assert_eq!(reported["got"]["text"], "X");
    assert_eq!((&reported["status"], &reported["attempts"], &reported["tool"]), (&json!("failed"), &json!(1), &json!("fail")));
    assert!(reported["ms"].is_number() && reported["error"].as_str().expect("a text").contains("exit code 3"));
    assert_eq!(host.tools_called(), ["upper", "fail"]);

    for (steps, part) in [
        (
            json!([{"tool": "echo", "args": {"x": "$input.missing"}}]),
            "Step 1 `step_1` (tool `echo`) failed: `$input.missing` leads nowhere: `$input` is an object with `present`",
        ),
        (
            json!([{"tool": "upper", "args": {"text": "x"}}, {"tool": "echo", "args": {"x": "$prev.y"}}]),
            "`$prev.y` leads nowhere: `$prev` is a text",
        ),
        (json!([{"tool": "echo", "condition": "$input.missing > 1"}]), "In the condition: `$input.missing` leads nowhere"),
        (json!([{"tool": "echo", "args": "$input.present"}]), "`args` must come to an object, not a number"),
        (json!([{"tool": "unknown"}]), "There is no tool `unknown`"),
        (json!([{"tool": "fail", "for_each": [1, 2]}]), "Item 0 of 2: `fail` ended with exit code 3"),
    ] {
        let error = error_of(steps.clone(), json!({"present": 1})).await;
        assert!(error.contains(part), "{steps}\n{error}");
    }
}

#[tokio::test]
async fn failures_can_be_passed_over() {
    for step in [
        json!({"tool": "fail", "name": "f", "on_error": "continue"}),
        json!({"tool": "fail", "name": "f", "continue_on_error": true}),
    ] {
        let host = TestHost::default();
        let steps =
            json!([{"tool": "upper", "args": {"text": "x"}}, step, {"tool": "echo", "args": {"previous": "$prev", "f": "$f"}}]);
        let run = run_steps(&steps, &json!({}), &host).await;
        assert_eq!(run.result.expect("goes on"), json!({"previous": null, "f": null}));
        assert_eq!(run.steps[1].status, StepStatus::Failed);
        assert!(run.steps[1].error.is_some());
    }
    let host = TestHost::default();
    let steps =
        json!([{"tool": "fail", "for_each": [1, 2, 3], "condition": "$item != 2", "on_error": "continue", "parallel": 2}]);
    let run = run_steps(&steps, &json!({}), &host).await;
    assert_eq!(run.result.expect("goes on"), json!([null, null]));
    assert!(
        run.steps[0].error.as_deref().expect("an error").starts_with("2 of 3 items failed. Item 0 of 3: "),
        "{:?}",
        run.steps[0].error
    );
    let into = error_of(
        json!([{"name": "a", "tool": "fail", "on_error": "continue"}, {"tool": "echo", "args": {"x": "$a.b"}}]),
        json!({}),
    )
    .await;
    assert!(into.contains("the step `a` failed, so that its result is null"), "{into}");
}

#[tokio::test(start_paused = true)]
async fn retries_help_where_they_can() {
    for (step, calls, succeeds) in [
        (json!({"tool": "flaky", "args": {"failures": 2}, "on_error": "retry"}), 3, true),
        (json!({"tool": "flaky", "args": {"failures": 2}, "retries": 2}), 3, true),
        (json!({"tool": "flaky", "args": {"failures": 3}, "on_error": "retry", "retries": 2}), 3, false),
        (json!({"tool": "flaky", "args": {"failures": 9}, "on_error": "retry"}), 4, false),
        (json!({"tool": "flaky", "args": {"failures": 1}, "on_error": "retry", "retries": 0}), 1, false),
        (json!({"tool": "flaky", "args": {"failures": 1}}), 1, false),
        (json!({"tool": "fail", "args": {"kind": "invalid"}, "on_error": "retry"}), 1, false),
        (json!({"tool": "fail", "args": {"kind": "denied"}, "on_error": "retry"}), 1, false),
        (json!({"tool": "fail", "on_error": "retry", "retries": 10}), 11, false),
        (json!({"tool": "unknown", "on_error": "retry"}), 1, false),
    ] {
        let host = TestHost::default();
        let run = run_steps(&json!([step]), &json!({}), &host).await;
        assert_eq!(host.tools_called().len(), calls, "{step}");
        assert_eq!(run.steps[0].attempts as usize, calls, "{step}");
        assert_eq!(run.result.is_ok(), succeeds, "{step}");
        if let Err(error) = run.result {
            assert_eq!(error.text().contains(&format!("after {calls} calls")), calls > 1, "{error}");
        }
    }
    let host = TestHost::default();
    let steps = json!([{"tool": "fail", "on_error": "retry", "retries": 1, "continue_on_error": true}, {"tool": "echo"}]);
    assert_eq!(run_steps(&steps, &json!({}), &host).await.result.expect("goes on"), json!({}));
    assert_eq!(host.tools_called(), ["fail", "fail", "echo"]);
}

#[tokio::test]
async fn a_failing_member_stops_its_group() {
    let host = TestHost::default();
    let steps = json!([
        {"name": "slow", "tool": "slow", "group": "g"},
        {"name": "broken", "tool": "fail", "group": "g"},
        {"name": "never", "tool": "echo"},
    ]);
    let run = tokio::time::timeout(Duration::from_secs(30), run_steps(&steps, &json!({}), &host))
        .await
        .expect("does not wait for the slow one");
    assert!(run.result.expect_err("fails").text().contains("Step 2 `broken`"));
    assert_eq!(host.given_up.load(Ordering::SeqCst), 1, "the slow call was given up");
    assert_eq!(run.steps[0].status, StepStatus::Skipped);
}

#[tokio::test]
async fn dropping_a_run_gives_its_calls_up() {
    for steps in [
        json!([{"tool": "slow"}]),
        json!([{"tool": "slow", "group": "g"}, {"tool": "slow", "group": "g"}]),
        json!([{"tool": "slow", "for_each": [1, 2, 3], "parallel": 3}]),
    ] {
        let host = TestHost::default();
        {
            let input = json!({});
            let mut running = Box::pin(run_steps(&steps, &input, &host));
            assert!(futures::poll!(&mut running).is_pending(), "{steps}");
            assert!(host.running.load(Ordering::SeqCst) > 0);
        }
        assert_eq!(host.running.load(Ordering::SeqCst), 0, "{steps}");
        assert!(host.given_up.load(Ordering::SeqCst) > 0);
    }
}

fn call(steps: Value, hash: &str, timeout: Duration) -> ToolCall {
    let mut manifest = Manifest::new("mine", "Mine", ToolKind::Pipeline);
    manifest.pipeline_steps = Some(steps);
    let name = ToolName::for_new("mine").expect("a valid name");
    let tool = Arc::new(Tool::new(name, Version::FIRST, PathBuf::new(), manifest, hash.to_owned()));
    ToolCall {
        tool,
        arguments: json!({"text": "a b"}).as_object().cloned().expect("an object"),
        limits: EffectiveLimits::with_memory_mb(1),
        clock: CallClock::start(timeout),
        grants: Grants::default(),
        context: CallContext::default(),
    }
}

#[tokio::test]
async fn the_runtime_runs_versions_apart_and_within_their_time() {
    let runtime = PipelineRuntime::new(Arc::new(Tools::standard()));
    let host = Arc::new(TestHost::default());
    let long = Duration::from_mins(1);
    let count = json!([{"tool": "count_words", "args": {"text": "$input.text"}}]);
    let upper = json!([{"tool": "upper", "args": {"text": "$input.text"}}]);
    for (steps, hash, expected) in [
        (&count, "1", json!({"words": 2})),
        (&count, "1", json!({"words": 2})),
        (&upper, "2", json!("A B")),
        (&count, "", json!({"words": 2})),
        (&upper, "", json!("A B")),
    ] {
        let outcome = runtime.call(call(steps.clone(), hash, long), host.clone()).await.expect("runs");
        assert_eq!(outcome.output, Output::Value(expected), "{hash}");
    }
    let error =
        runtime.call(call(json!([{"tool": "slow"}]), "3", Duration::from_millis(20)), host.clone()).await.expect_err("too slow");
    assert_eq!(error.kind, ErrorKind::TimedOut);
    assert_eq!(host.running.load(Ordering::SeqCst), 0);
    let error = runtime.call(call(json!([{"tool": "echo", "colour": 1}]), "4", long), host.clone()).await.expect_err("not valid");
    assert_eq!(error.kind, ErrorKind::Config);
    let run = runtime.run_with_report(call(json!([{"tool": "fail"}]), "5", long), host).await.expect("ran");
    assert!(run.result.is_err() && run.steps.len() == 1);
}
