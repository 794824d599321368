//! The built-in `version`.

use std::sync::Arc;

use skillz_engine::{NoClient, VersionAction};
use skillz_json::{Value, json};
use skillz_tool::ToolError;

use crate::support::Fixture;

async fn versions(fixture: &Fixture, action: VersionAction) -> Result<Value, ToolError> {
    fixture.engine.versions(action, "speak", Arc::new(NoClient)).await
}

fn rollback(version: &str) -> VersionAction {
    VersionAction::Rollback { version: Some(version.to_owned()) }
}

#[tokio::test]
async fn every_version_is_listed_and_restored_any_number_of_times() {
    let fixture = Fixture::new().await;
    for line in ["print one", "print two", "print three"] {
        fixture.publish("speak", line).await;
    }
    let answer = versions(&fixture, rollback("1.0.0")).await.expect("rolled back");
    assert_eq!((answer["version"].clone(), answer["restored"].clone()), (json!("1.0.3"), json!("1.0.0")));
    assert_eq!(fixture.call("speak", json!({})).await.text(), "one");
    versions(&fixture, VersionAction::Rollback { version: None }).await.expect("to the one before");
    assert_eq!(fixture.call("speak", json!({})).await.text(), "three");

    let list = versions(&fixture, VersionAction::List).await.expect("listed");
    assert_eq!((list["tool_name"].clone(), list["current"].clone()), (json!("speak"), json!("1.0.4")));
    let numbers: Vec<&str> =
        list["versions"].as_array().expect("versions").iter().filter_map(|entry| entry["version"].as_str()).collect();
    assert_eq!(numbers, ["1.0.4", "1.0.3", "1.0.2", "1.0.1", "1.0.0"]);
    assert_eq!(list["versions"][0]["origin"], "rollback");
    assert_eq!(list["versions"][4]["origin"], "build");
    assert!(list["versions"][4]["hash"].as_str().is_some_and(|hash| hash.len() == 64) && list["versions"][4]["time"].is_string());
}

#[tokio::test]
async fn deleted_tools_come_back_with_all_their_versions() {
    let fixture = Fixture::new().await;
    fixture.publish("speak", "print one").await;
    fixture.publish("speak", "print two").await;
    fixture.engine.delete("speak").await.expect("deleted");
    let list = versions(&fixture, VersionAction::List).await.expect("listed");
    assert_eq!((list["current"].clone(), list["deleted"].clone()), (Value::Null, json!(true)));
    versions(&fixture, VersionAction::Rollback { version: None }).await.expect("back");
    assert_eq!(fixture.call("speak", json!({})).await.text(), "two");
    let list = versions(&fixture, VersionAction::List).await.expect("listed");
    assert_eq!(list["current"], "1.0.2", "the numbering goes on");
}

#[tokio::test]
async fn a_rollback_warns_of_examples_and_goes_on() {
    let fixture = Fixture::new().await;
    fixture.publish("leaf", "print hello").await;
    fixture.publish_with("speak", "call leaf", json!({"examples": [{"result": "hello"}]})).await.expect("published");
    fixture.publish("speak", "print other").await;
    fixture.publish("leaf", "print bye").await;
    let answer = versions(&fixture, rollback("1.0.0")).await.expect("rolled back");
    assert_eq!(answer["examples"], json!({"passed": 0, "failed": 1}));
    assert!(answer["warning"].as_str().expect("a warning").contains("expected: exactly \"hello\""));
    assert_eq!(fixture.call("speak", json!({})).await.text(), "bye");
}

#[tokio::test]
async fn versions_are_shown_and_compared() {
    let fixture = Fixture::new().await;
    fixture.publish("speak", "print one").await;
    fixture.publish("speak", "print two").await;
    let info = versions(&fixture, VersionAction::Info { version: Some("1.0.0".to_owned()) }).await.expect("shown");
    assert_eq!(
        (info["source_code"].clone(), info["current"].clone(), info["origin"].clone()),
        (json!("print one"), json!(false), json!("build"))
    );
    let info = versions(&fixture, VersionAction::Info { version: None }).await.expect("shown");
    assert_eq!((info["version"].clone(), info["current"].clone()), (json!("1.0.1"), json!(true)));
    let diff = versions(&fixture, VersionAction::Diff { version: None, to: None }).await.expect("compared");
    assert_eq!((diff["from"].clone(), diff["to"].clone()), (json!("1.0.0"), json!("1.0.1")));
    let text = diff["diff"].as_str().expect("a diff");
    assert!(text.contains("-print one") && text.contains("+print two"), "{text}");
}

#[tokio::test]
async fn wrong_versions_are_told_apart() {
    let fixture = Fixture::new().await;
    assert!(versions(&fixture, VersionAction::List).await.expect_err("unknown").text().contains("There is no tool `speak`"));
    fixture.publish("speak", "print one").await;
    for (action, sentence) in [
        (rollback("9.9.9"), "`speak` has no version 9.9.9; it has 1.0.0"),
        (rollback("latest"), "is not a version"),
        (rollback("1.0.0"), "is the current one already"),
        (VersionAction::Rollback { version: None }, "has no version before 1.0.0"),
        (VersionAction::Diff { version: None, to: None }, "has no version before 1.0.0"),
    ] {
        let error = versions(&fixture, action.clone()).await.expect_err(sentence);
        assert!(error.text().contains(sentence), "{action:?}: {error}");
    }
    assert!(fixture.engine.versions(VersionAction::List, "../x", Arc::new(NoClient)).await.is_err());
}
