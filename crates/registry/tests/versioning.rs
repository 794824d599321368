//! Versions: listed, compared, called, brought back, and never lost.

#![allow(clippy::unwrap_used, clippy::expect_used, clippy::panic, clippy::indexing_slicing, reason = "a test fails by them")]

mod workshop;

use std::fs;

use skillz_registry::{Expectation, RegistryError, RegistryEvent};
use skillz_tool::{Manifest, Origin};
use workshop::{Workshop, contents, name, next_event, schema, script, version};

#[tokio::test]
async fn a_rollback_is_a_new_entry_and_loses_nothing() {
    let workshop = Workshop::new().await;
    for code in ["1", "2", "3"] {
        workshop.publish("t", code).await.unwrap();
    }
    let tool = workshop.rollback("t", "1.0.0").await.unwrap();
    assert_eq!((tool.version.to_string().as_str(), workshop.served("t").as_deref()), ("1.0.3", Some("1")));
    assert_eq!(tool.manifest.source, Some(skillz_json::json!({"rolled_back_to": "1.0.0", "origin": "rollback"})));
    workshop.rollback("t", "1.0.2").await.unwrap();
    workshop.rollback("t", "1.0.3").await.unwrap();
    let history = workshop.history("t").await;
    let codes: Vec<&str> = history.iter().map(|(_, _, code)| code.as_str()).collect();
    assert_eq!(codes, ["1", "3", "1", "3", "2", "1"]);
    let list = workshop.versions("t").await;
    assert_eq!(list.current, Some(version("1.0.5")));
    assert_eq!(list.versions[0].hash, list.versions[5].hash, "the same content has the same hash");
    workshop.publish("t", "4").await.unwrap();
    let source = workshop.catalog().get("t").unwrap().manifest.source.clone();
    assert_eq!(source, Some(skillz_json::json!({"origin": "register"})));
}

#[tokio::test]
async fn earlier_versions_can_be_called() {
    let workshop = Workshop::new().await;
    workshop.publish_manifest(Manifest { input_schema: schema(&["a"]), ..script("t") }, "1", Expectation::Absent).await.unwrap();
    workshop.publish("t", "2").await.unwrap();
    let registry = &workshop.registry;
    let first = registry.tool_version(&name("t"), version("1.0.0")).await.unwrap();
    assert_eq!(fs::read_to_string(first.source_path().unwrap()).unwrap(), "1");
    assert_eq!(first.input_schema.violations(&skillz_json::json!({})).unwrap().len(), 1, "it has its own schema");
    let again = registry.tool_version(&name("t"), version("1.0.0")).await.unwrap();
    assert!(std::sync::Arc::ptr_eq(&first, &again), "it is kept ready");
    let current = registry.tool_version(&name("t"), version("1.0.1")).await.unwrap();
    assert!(std::sync::Arc::ptr_eq(&current, workshop.catalog().get("t").unwrap()));
    let error = registry.tool_version(&name("t"), version("9.0.0")).await.unwrap_err();
    assert_eq!(error.to_string(), "`t` has no version `9.0.0`; it has `1.0.1`, `1.0.0`");
    let error = registry.tool_version(&name("u"), version("1.0.0")).await.unwrap_err();
    assert!(matches!(error, RegistryError::UnknownTool { .. }), "{error}");
    assert!(matches!(registry.versions(&name("u")).await, Err(RegistryError::UnknownTool { .. })));
}

#[tokio::test]
async fn differences_show_manifest_and_files() {
    let workshop = Workshop::new().await;
    workshop.publish("t", "one\ntwo\nthree\n").await.unwrap();
    let manifest = Manifest { description: "Another".to_owned(), ..script("t") };
    workshop.publish_manifest(manifest, "one\n2\nthree\n", Expectation::Anything).await.unwrap();
    let diff = workshop.registry.diff(&name("t"), version("1.0.0"), version("1.0.1")).await.unwrap();
    for part in ["--- a/manifest.json", "-  \"description\": \"A tool\"", "+++ b/main.py", "-two\n+2\n three"] {
        assert!(diff.contains(part), "{part} in {diff}");
    }
    assert!(!diff.contains("updated_at"), "what differs anyway is left out: {diff}");
    assert_eq!(workshop.registry.diff(&name("t"), version("1.0.1"), version("1.0.1")).await.unwrap(), "");
    let error = workshop.registry.diff(&name("t"), version("1.0.0"), version("7.0.0")).await.unwrap_err();
    assert!(matches!(error, RegistryError::UnknownVersion { .. }), "{error}");
}

#[tokio::test]
async fn deleted_tools_come_back_and_their_numbers_go_on() {
    let workshop = Workshop::new().await;
    for code in ["1", "2"] {
        workshop.publish("t", code).await.unwrap();
    }
    let whole = contents(&workshop.path("t"));
    let mut events = workshop.registry.events();
    let removed = workshop.registry.delete(&name("t")).await.unwrap().unwrap();
    assert_eq!(removed.version, version("1.0.1"));
    next_event(&mut events, |event| *event == RegistryEvent::Removed { name: name("t") }).await;
    assert!(workshop.catalog().is_empty() && !workshop.path("t").exists());
    let trashed: Vec<_> = fs::read_dir(workshop.path(".trash/t")).unwrap().flatten().collect();
    assert_eq!(trashed.len(), 1);
    assert_eq!(contents(&trashed[0].path()), whole);
    assert!(matches!(workshop.registry.delete(&name("t")).await, Err(RegistryError::UnknownTool { .. })));

    let list = workshop.versions("t").await;
    assert_eq!((list.current, list.versions.len()), (None, 2));
    assert!(!workshop.registry.diff(&name("t"), version("1.0.0"), version("1.0.1")).await.unwrap().is_empty());
    let old = workshop.registry.tool_version(&name("t"), version("1.0.0")).await.unwrap();
    assert_eq!(fs::read_to_string(old.source_path().unwrap()).unwrap(), "1");

    let back = workshop.rollback("t", "1.0.0").await.unwrap();
    assert_eq!(back.version, version("1.0.2"));
    assert!(!workshop.path(".trash/t").exists(), "its history moved back with it");
    workshop.registry.delete(&name("t")).await.unwrap();
    let fresh = workshop.publish("t", "fresh").await.unwrap();
    assert_eq!(fresh.version, version("1.0.3"), "a new tool of that name goes on counting");
    let history: Vec<_> =
        workshop.history("t").await.into_iter().map(|(version, origin, code)| format!("{version} {origin:?} {code}")).collect();
    assert_eq!(history, ["1.0.3 Register fresh", "1.0.2 Rollback 1", "1.0.1 Register 2", "1.0.0 Register 1"]);
}

#[tokio::test]
async fn edits_that_nobody_noticed_are_kept_when_a_publish_comes() {
    let workshop = Workshop::new().await;
    workshop.publish("t", "1").await.unwrap();
    workshop.write("t/main.py", "edited");
    assert_eq!(workshop.served("t").as_deref(), Some("1"), "calls do not see the edit");
    workshop.publish("t", "2").await.unwrap();
    let history: Vec<_> =
        workshop.history("t").await.into_iter().map(|(version, origin, code)| format!("{version} {origin:?} {code}")).collect();
    assert_eq!(history, ["1.0.2 Register 2", "1.0.1 Edit edited", "1.0.0 Register 1"]);

    workshop.write("t/main.py", "edited again");
    workshop.registry.delete(&name("t")).await.unwrap();
    let tool = workshop.rollback("t", "1.0.2").await.unwrap();
    assert_eq!(workshop.served("t").as_deref(), Some("2"), "what was in service before the edit is there after a delete");
    assert!(tool.version > version("1.0.2"));
}

#[tokio::test]
async fn a_broken_folder_gives_way_to_a_rollback_only_and_is_kept() {
    let workshop = Workshop::new().await;
    workshop.publish("t", "1").await.unwrap();
    workshop.publish("t", "2").await.unwrap();
    workshop.write("t/manifest.json", "{ half");
    workshop.registry.reload().await;
    let broken = workshop.catalog().broken().to_vec();
    assert_eq!((broken[0].name.as_str(), broken[0].line, broken[0].in_service), ("t", Some(1), true));
    assert_eq!(workshop.served("t").as_deref(), Some("2"));
    let error = workshop.publish("t", "3").await.unwrap_err();
    assert!(matches!(error, RegistryError::Broken { .. }), "{error}");
    let back = workshop.rollback("t", "1.0.0").await.unwrap();
    assert_eq!(back.version, version("1.0.2"));
    assert!(workshop.catalog().broken().is_empty());
    let kept = contents(&workshop.path("t/.versions"));
    assert!(kept.iter().any(|(path, content)| path.starts_with("broken-") && content == b"{ half"), "{kept:?}");
    assert_eq!(workshop.history("t").await.len(), 3);
    assert_eq!(workshop.history("t").await[1].2, "2", "what was in service has its place");
    let restarted = workshop.restarted(false).await;
    assert_eq!(restarted.served("t").as_deref(), Some("1"));
}

#[tokio::test]
async fn deleting_a_broken_folder_moves_it_to_the_trash() {
    let workshop = Workshop::new().await;
    workshop.write("t/manifest.json", "nonsense");
    workshop.registry.reload().await;
    assert_eq!(workshop.registry.delete(&name("t")).await.unwrap().map(|tool| tool.version), None);
    assert!(workshop.catalog().broken().is_empty());
    assert!(contents(&workshop.path(".trash/t")).iter().any(|(_, content)| content == b"nonsense"));
    assert_eq!(workshop.publish("t", "1").await.unwrap().version, version("1.0.0"));
    assert!(contents(&workshop.path(".trash/t")).iter().any(|(_, content)| content == b"nonsense"), "it is not dropped");
}

#[tokio::test]
async fn removing_by_hand_keeps_what_was_in_service() {
    let workshop = Workshop::new().await;
    workshop.publish("t", "1").await.unwrap();
    fs::remove_dir_all(workshop.path("t")).unwrap();
    workshop.registry.reload().await;
    assert!(workshop.catalog().is_empty());
    let origins: Vec<_> = workshop.versions("t").await.versions.into_iter().map(|entry| (entry.version, entry.origin)).collect();
    assert_eq!(origins, [(version("1.0.0"), Origin::Register)]);
    workshop.rollback("t", "1.0.0").await.unwrap();
    assert_eq!(workshop.served("t").as_deref(), Some("1"));
}

#[cfg(unix)]
#[tokio::test]
async fn a_publish_leaves_the_earlier_versions_where_they_are() {
    use std::os::unix::fs::MetadataExt;
    let workshop = Workshop::new().await;
    for number in 0..4 {
        workshop.publish("t", &format!("code {number}")).await.unwrap();
    }
    let identity = |version: &str| std::fs::metadata(workshop.path(&format!("t/.versions/{version}"))).unwrap().ino();
    let before = [identity("1.0.0"), identity("1.0.1"), identity("1.0.2")];
    workshop.publish("t", "code 4").await.unwrap();
    workshop.rollback("t", "1.0.1").await.unwrap();
    assert_eq!([identity("1.0.0"), identity("1.0.1"), identity("1.0.2")], before, "their number costs nothing");
    let codes: Vec<String> = workshop.history("t").await.into_iter().map(|(_, _, code)| code).collect();
    assert_eq!(codes, ["code 1", "code 4", "code 3", "code 2", "code 1", "code 0"]);
    assert!(!workshop.path(".trash/t").exists(), "nothing is left where the history was for a moment");
    let restarted = workshop.second(false).await;
    assert!(restarted.snapshot().edited().is_empty(), "what was published is not taken for edited");
}

#[tokio::test]
async fn a_publish_that_was_cut_off_while_it_handed_the_history_over_loses_nothing() {
    for in_place in ["before the exchange", "after it"] {
        let workshop = Workshop::new().await;
        for number in 0..3 {
            workshop.publish("t", &format!("code {number}")).await.unwrap();
        }
        // What is on the disk at that moment: the history in the trash, with a copy of what is in service.
        let between = workshop.path(".trash/t/000000000000001-cut");
        std::fs::create_dir_all(&between).unwrap();
        std::fs::rename(workshop.path("t/.versions"), between.join(".versions")).unwrap();
        let copied = if in_place == "after it" { "1.0.1" } else { "1.0.2" };
        if in_place != "after it" {
            workshop::copy_all(&workshop.path("t"), &between.join(".versions").join(copied));
        }
        let workshop = workshop.restarted(false).await;
        let codes = |history: Vec<(String, Origin, String)>| history.into_iter().map(|(_, _, code)| code).collect::<Vec<_>>();
        assert_eq!(codes(workshop.history("t").await), ["code 2", "code 1", "code 0"], "{in_place}");
        let published = workshop.publish("t", "code 3").await.unwrap();
        assert_eq!(published.version.to_string(), "1.0.3");
        assert_eq!(codes(workshop.history("t").await), ["code 3", "code 2", "code 1", "code 0"], "{in_place}");
        assert!(!workshop.path(".trash/t").exists(), "{in_place}");
        assert_eq!(workshop.rollback("t", "1.0.0").await.unwrap().version.to_string(), "1.0.4");
    }
}

#[tokio::test]
async fn what_is_half_removed_hides_no_version() {
    let workshop = Workshop::new().await;
    for code in ["1", "2", "3"] {
        workshop.publish("t", code).await.unwrap();
    }
    workshop.registry.delete(&name("t")).await.unwrap();
    // As a process leaves it that is killed while it removes a folder of the trash; its name comes before all others.
    for version in ["1.0.0", "1.0.1", "1.0.2"] {
        fs::create_dir_all(workshop.path(&format!(".trash/t/000000000000000-half/.versions/{version}"))).unwrap();
    }
    let codes = |history: Vec<(String, _, String)>| history.into_iter().map(|(_, _, code)| code).collect::<Vec<_>>();
    assert_eq!(codes(workshop.history("t").await), ["3", "2", "1"]);
    workshop.publish("t", "4").await.unwrap();
    assert_eq!(codes(workshop.history("t").await), ["4", "3", "2", "1"]);
}
