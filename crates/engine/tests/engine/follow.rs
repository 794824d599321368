//! What others do to the tools folder: servers beside this one, and people with editors.

use std::fs;

use skillz_json::{Value, json};

use crate::support::{Fixture, until};

#[tokio::test]
async fn an_edit_by_hand_becomes_a_version() {
    let fixture = Fixture::new().await;
    fixture.publish("speak", "print one").await;
    let source = fixture.home().join("tools/speak/line.txt");
    fs::write(&source, "print edited").expect("written");
    until("the edit", || fixture.engine.catalog().get("speak").is_some_and(|tool| tool.version.to_string() == "1.0.1")).await;
    assert_eq!(fixture.call("speak", json!({})).await.text(), "edited");
}

#[tokio::test]
async fn a_broken_edit_leaves_the_last_good_version_in_service() {
    let fixture = Fixture::new().await;
    fixture.publish_with("speak", "print one", json!({"examples": [{"result": "one"}]})).await.expect("published");
    let source = fixture.home().join("tools/speak/line.txt");
    for (line, reason) in [("broken line", "does not compile"), ("print two", "1 of its examples do not hold")] {
        fs::write(&source, line).expect("written");
        until(reason, || fixture.engine.catalog().broken().iter().any(|broken| broken.reason.contains(reason))).await;
        assert_eq!(fixture.call("speak", json!({})).await.text(), "one");
    }
    fs::write(&source, "print one").expect("written");
    until("the repair", || fixture.engine.catalog().broken().is_empty()).await;
}

#[tokio::test]
async fn tools_that_are_copied_in_and_removed_are_noticed() {
    let fixture = Fixture::new().await;
    fixture.publish("original", "print copied").await;
    let tools = fixture.home().join("tools");
    let other = Fixture::new().await;
    let target = other.home().join("tools/original");
    fs::create_dir_all(&target).expect("made");
    for file in ["line.txt", "manifest.json"] {
        fs::copy(tools.join("original").join(file), target.join(file)).expect("copied");
    }
    until("the copy", || other.engine.catalog().get("original").is_some()).await;
    assert_eq!(other.call("original", json!({})).await.text(), "copied");
    fs::remove_dir_all(&target).expect("removed");
    until("the removal", || other.engine.catalog().get("original").is_none()).await;
}

#[tokio::test]
async fn broken_manifests_are_reported_and_hide_nobody() {
    let fixture = Fixture::new().await;
    fixture.publish("fine", "echo").await;
    let folder = fixture.home().join("tools/torn");
    fs::create_dir_all(&folder).expect("made");
    fs::write(folder.join("manifest.json"), "{\n  \"name\": \"torn\",\n  oops\n}").expect("written");
    until("the report", || !fixture.engine.catalog().broken().is_empty()).await;
    let list = fixture.engine.list(skillz_engine::ListRequest::default()).await.expect("a list");
    assert_eq!(
        (list["total"].clone(), list["broken"][0]["name"].clone(), list["broken"][0]["line"].clone()),
        (json!(1), json!("torn"), json!(3))
    );
    assert_ne!(list["broken"][0]["reason"], Value::Null);
    let error = fixture.publish_with("torn", "echo", json!({})).await.expect_err("not overwritten");
    assert!(error.text().contains("is there already, cannot be loaded, and is not overwritten"), "{error}");
}

#[tokio::test]
async fn servers_on_one_home_see_each_others_tools() {
    let first = Fixture::new().await;
    let tools = first.home().join("tools");
    let second = Fixture::with(|settings| settings.tools_directory = tools).await;
    first.publish("shared", "print one").await;
    until("the publish", || second.engine.catalog().get("shared").is_some()).await;
    second.publish("shared", "print two").await;
    until("the new version", || first.engine.catalog().get("shared").is_some_and(|tool| tool.version.to_string() == "1.0.1"))
        .await;
    assert_eq!(first.call("shared", json!({})).await.text(), "two");
    first.engine.delete("shared").await.expect("deleted");
    until("the deletion", || second.engine.catalog().is_empty()).await;
}

#[tokio::test]
async fn commands_see_edits_that_nobody_has_taken_yet() {
    let first = Fixture::new().await;
    first.publish("speak", "print one").await;
    let Fixture { folder, engine, .. } = first;
    drop(engine);
    fs::write(folder.path().join("home/tools/speak/line.txt"), "print edited").expect("written");
    let second = Fixture::in_folder(folder, |_| ()).await;
    second.engine.settle().await;
    assert_eq!(second.call("speak", json!({})).await.text(), "edited");
}
