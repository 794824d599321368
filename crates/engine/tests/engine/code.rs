//! `execute_code`: what a program may call, and under which bounds.

use std::sync::Arc;

use async_trait::async_trait;
use skillz_engine::{CodeRequest, CodeRun, CodeRuntime, NoClient};
use skillz_json::{Map, Value, json};
use skillz_tool::{ErrorKind, Host, ToolError};

use crate::support::Fixture;

/// Programs of lines: each calls the tool that it names, `memory` remembers, `forever` hangs.
struct Lines;

#[async_trait]
impl CodeRuntime for Lines {
    async fn run(&self, run: CodeRun, host: Arc<dyn Host>) -> Result<Value, ToolError> {
        let mut results = Vec::new();
        for line in run.code.lines() {
            match line {
                "forever" => std::future::pending::<()>().await,
                "panic" => panic!("as asked"),
                "memory" => host.memory_set("key", json!(1), None).await?,
                name => results.push(host.call_tool(name, Map::new()).await?),
            }
        }
        let tools: Vec<&str> = run.tools.iter().map(|tool| tool.name.as_str()).collect();
        Ok(json!({"result": results, "tools": tools}))
    }
}

async fn run(fixture: &Fixture, code: &str, fields: Value) -> Result<Value, ToolError> {
    let mut whole = json!({"code": code});
    whole.as_object_mut().expect("an object").extend(fields.as_object().cloned().expect("an object"));
    let request: CodeRequest = skillz_json::from_value(whole).expect("a request");
    fixture.engine.execute_code(request, Arc::new(NoClient)).await
}

async fn fixture() -> Fixture {
    let fixture = Fixture::with_code(Arc::new(Lines)).await;
    fixture.publish("long", "long 300000").await;
    fixture.publish("speak", "print hello").await;
    fixture
}

#[tokio::test]
async fn programs_call_tools_and_get_whole_values() {
    let fixture = fixture().await;
    let answer = run(&fixture, "speak\nlong\nmemory", json!({})).await.expect("it runs");
    assert_eq!(answer["result"][0], "hello");
    assert_eq!(answer["result"][1].as_str().map(str::len), Some(300_000));
    assert_eq!(answer["tools"], json!(["long", "speak"]));
    assert!(fixture.history.only("speak").parent_id.is_some());
    let reply = fixture.engine.reply_with("execute_code", answer).await;
    assert_eq!(reply.content[2]["type"], "resource_link", "what comes back is bounded like any result");
}

#[tokio::test]
async fn tools_can_be_restricted_and_built_ins_are_out_of_reach() {
    let fixture = fixture().await;
    let only = json!({"tools": ["speak"]});
    assert_eq!(run(&fixture, "speak", only.clone()).await.expect("it runs")["tools"], json!(["speak"]));
    assert!(
        run(&fixture, "long", only)
            .await
            .expect_err("not named")
            .text()
            .contains("may not call `long`: its `tools` names `speak`")
    );
    assert!(run(&fixture, "", json!({"tools": ["spaek"]})).await.expect_err("unknown").text().contains("Close to it: `speak`"));
    assert!(
        run(&fixture, "delete_tool", json!({})).await.expect_err("built in").text().contains("tools may call `list_tools` only")
    );
    assert!(run(&fixture, "nothing", json!({})).await.expect_err("unknown").text().contains("There is no tool `nothing`"));
}

#[tokio::test]
async fn programs_end_in_time_and_alone() {
    let fixture = fixture().await;
    let error = run(&fixture, "forever", json!({"timeout": 0.05})).await.expect_err("time is up");
    assert_eq!((error.kind, error.message.as_str()), (ErrorKind::TimedOut, "The program was stopped after its limit of 0.05 s"));
    assert_eq!(run(&fixture, "panic", json!({})).await.expect_err("it panics").kind, ErrorKind::Internal);
    for timeout in [0.0, -1.0, 1e9] {
        assert_eq!(run(&fixture, "", json!({"timeout": timeout})).await.expect_err("no time").kind, ErrorKind::InvalidInput);
    }
}
