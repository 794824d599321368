//! The built-in `pipeline`, on the one call path.

use std::sync::Arc;

use skillz_engine::{NoClient, PipelineDefinition, PipelineRequest};
use skillz_json::{Value, json};
use skillz_tool::ToolError;

use crate::support::Fixture;

async fn pipeline(fixture: &Fixture, request: PipelineRequest) -> Result<Value, ToolError> {
    fixture.engine.pipeline(request, Arc::new(NoClient)).await
}

fn create(name: &str, steps: Value) -> PipelineRequest {
    let definition = PipelineDefinition {
        name: name.to_owned(),
        description: "Chains tools".to_owned(),
        steps,
        ..PipelineDefinition::default()
    };
    PipelineRequest::Create(Box::new(definition))
}

fn run(name: &str, arguments: Value) -> PipelineRequest {
    PipelineRequest::Run { name: name.to_owned(), arguments }
}

#[tokio::test]
async fn pipelines_are_tools_that_report_their_steps() {
    let fixture = Fixture::new().await;
    fixture.publish("echo", "echo").await;
    let steps =
        json!([{"tool": "echo", "args": {"n": "$input.n"}}, {"name": "last", "tool": "echo", "args": {"again": "$prev.n"}}]);
    let report = pipeline(&fixture, create("twice", steps)).await.expect("created");
    assert_eq!(
        (report["name"].clone(), report["kind"].clone(), report["version"].clone()),
        (json!("twice"), json!("pipeline"), json!("1.0.0"))
    );
    let ran = pipeline(&fixture, run("twice", json!({"n": 5}))).await.expect("ran");
    assert_eq!(ran["result"], json!({"again": 5}));
    assert_eq!((ran["steps"][1]["name"].clone(), ran["steps"][1]["status"].clone()), (json!("last"), json!("ok")));
    assert_eq!(fixture.call("twice", json!({"n": 6})).await.structured_content, Some(json!({"again": 6})));
    let list = pipeline(&fixture, PipelineRequest::List).await.expect("listed");
    assert_eq!(list["pipelines"][0]["steps"], 2);
    let shown = pipeline(&fixture, PipelineRequest::Show { name: "twice".to_owned() }).await.expect("shown");
    assert_eq!(shown["steps"][0]["tool"], "echo");
    pipeline(&fixture, PipelineRequest::Delete { name: "twice".to_owned() }).await.expect("deleted");
    assert!(pipeline(&fixture, run("twice", json!({}))).await.expect_err("gone").text().contains("There is no tool `twice`"));
}

#[tokio::test]
async fn a_failing_step_is_named_with_all_the_others() {
    let fixture = Fixture::new().await;
    fixture.publish("echo", "echo").await;
    fixture.publish("sad", "fail It rains").await;
    pipeline(&fixture, create("gloomy", json!([{"tool": "echo"}, {"tool": "sad"}, {"tool": "echo"}]))).await.expect("created");
    let error = pipeline(&fixture, run("gloomy", json!({}))).await.expect_err("step 2 fails");
    let text = error.text();
    for part in ["Step 2", "It rains", "step 1 `step_1` (echo): ok", "step 3 `step_3` (echo): not run"] {
        assert!(text.contains(part), "{part} is missing: {text}");
    }
    assert_eq!(error.data.expect("the steps")["steps"].as_array().map(Vec::len), Some(3));
    assert_eq!(fixture.history.only("gloomy").status, "failed");
}

#[tokio::test]
async fn faults_come_all_at_once_and_other_tools_are_no_pipelines() {
    let fixture = Fixture::new().await;
    fixture.publish("echo", "echo").await;
    let error = pipeline(&fixture, create("wrong", json!([{"tool": "ecko"}, {"tool": "echo", "args": {"x": "$later.y"}}])))
        .await
        .expect_err("two faults");
    assert!(error.text().contains("`ecko`") && error.text().contains("later"), "{error}");
    assert!(pipeline(&fixture, run("echo", json!({}))).await.expect_err("no pipeline").text().contains("no pipeline"));
    assert!(pipeline(&fixture, PipelineRequest::Show { name: "echo".to_owned() }).await.is_err());
}
