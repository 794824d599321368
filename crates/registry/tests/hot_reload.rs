//! Following what others do in the folder: editors, git, other servers.

#![allow(clippy::unwrap_used, clippy::expect_used, clippy::panic, clippy::indexing_slicing, reason = "a test fails by them")]

mod workshop;

use std::{fs, time::Duration};

use skillz_registry::{RegistryError, RegistryEvent};
use skillz_tool::Origin;
use workshop::{Workshop, contents, name, next_event, until, version};

/// Records the edit of a tool as the engine does, without checking it.
async fn record(workshop: &Workshop, tool: &str) -> Result<String, RegistryError> {
    let edit = workshop.registry.stage_edit(&name(tool)).await?.expect("there is an edit");
    Ok(workshop.registry.record_edit(edit).await?.version.to_string())
}

const PIPELINE: &str = r#"{"name": "p", "description": "d", "tool_type": "pipeline"}"#;

#[tokio::test]
async fn what_other_servers_do_shows() {
    let workshop = Workshop::watched().await;
    let other = workshop.second(true).await;
    let mut events = other.events();
    workshop.publish("t", "1").await.unwrap();
    let event = next_event(&mut events, |event| matches!(event, RegistryEvent::Published { .. })).await;
    assert_eq!(event, RegistryEvent::Published { name: name("t"), version: version("1.0.0"), previous: None });
    workshop.publish("t", "2").await.unwrap();
    let event = next_event(&mut events, |event| matches!(event, RegistryEvent::Published { .. })).await;
    assert_eq!(event, RegistryEvent::Published { name: name("t"), version: version("1.0.1"), previous: Some(version("1.0.0")) });
    let current = other.snapshot().get("t").cloned().unwrap();
    assert_eq!(fs::read_to_string(current.source_path().unwrap()).unwrap(), "2");
    workshop.rollback("t", "1.0.0").await.unwrap();
    until(&other, "the rollback shows", |catalog| catalog.get("t").is_some_and(|tool| tool.version == version("1.0.2"))).await;
    workshop.registry.delete(&name("t")).await.unwrap();
    next_event(&mut events, |event| *event == RegistryEvent::Removed { name: name("t") }).await;
    assert!(other.snapshot().is_empty());
    // Again and again, so that no watch is lost with the folders that are replaced.
    for round in 0..5_u32 {
        workshop.publish("t", &format!("round {round}")).await.unwrap();
        let wanted = version(&format!("1.0.{}", round + 3));
        until(&other, "every publish shows", |catalog| catalog.get("t").is_some_and(|tool| tool.version == wanted)).await;
    }
}

#[tokio::test]
async fn an_edit_waits_to_be_recorded_and_keeps_what_was_before() {
    let workshop = Workshop::watched().await;
    workshop.publish("t", "1").await.unwrap();
    let mut events = workshop.registry.events();
    workshop.write("t/main.py", "edited");
    next_event(&mut events, |event| *event == RegistryEvent::Edited { name: name("t") }).await;
    assert_eq!(workshop.catalog().edited(), [name("t")]);
    assert_eq!(workshop.served("t").as_deref(), Some("1"));
    let edit = workshop.registry.stage_edit(&name("t")).await.unwrap().unwrap();
    assert_eq!(edit.changed_files, ["main.py"]);
    assert_eq!(edit.previous, Some(version("1.0.0")));
    let tool = workshop.registry.record_edit(edit).await.unwrap();
    assert_eq!((tool.version, workshop.served("t").as_deref()), (version("1.0.1"), Some("edited")));
    assert!(workshop.catalog().edited().is_empty());
    let history: Vec<_> = workshop.history("t").await;
    assert_eq!(history[0], ("1.0.1".to_owned(), Origin::Edit, "edited".to_owned()));
    assert_eq!(history[1], ("1.0.0".to_owned(), Origin::Register, "1".to_owned()));
    assert!(workshop.registry.stage_edit(&name("t")).await.unwrap().is_none(), "there is no edit any more");
    // The folder that took its place is watched too.
    workshop.write("t/main.py", "edited again");
    next_event(&mut events, |event| *event == RegistryEvent::Edited { name: name("t") }).await;
    assert_eq!(record(&workshop, "t").await.unwrap(), "1.0.2");
}

#[tokio::test]
async fn every_way_to_save_a_file_is_seen() {
    let workshop = Workshop::watched().await;
    workshop.publish("t", "1").await.unwrap();
    let path = |file: &str| workshop.path("t").join(file);
    let edits: [(&str, &dyn Fn()); 6] = [
        ("written in place", &|| fs::write(path("main.py"), "in place").unwrap()),
        ("through a temporary file", &|| {
            fs::write(path("main.py.new"), "renamed").unwrap();
            fs::rename(path("main.py.new"), path("main.py")).unwrap();
        }),
        ("by way of a backup", &|| {
            fs::rename(path("main.py"), path("main.py~")).unwrap();
            fs::write(path("main.py"), "with backup").unwrap();
        }),
        ("a file added", &|| fs::write(path("helper.py"), "x").unwrap()),
        ("a folder added", &|| {
            fs::create_dir_all(path("lib/inner")).unwrap();
            fs::write(path("lib/inner/a.py"), "x").unwrap();
        }),
        ("a file in a folder changed", &|| fs::write(path("lib/inner/a.py"), "y").unwrap()),
    ];
    for (number, (how, edit)) in edits.iter().enumerate() {
        edit();
        workshop.until(how, |catalog| !catalog.edited().is_empty()).await;
        assert_eq!(record(&workshop, "t").await.unwrap(), format!("1.0.{}", number + 1), "{how}");
    }
    assert!(!workshop.path("t/main.py~").exists(), "a backup is no part of a version");
    fs::remove_file(path("helper.py")).unwrap();
    workshop.until("a file removed", |catalog| !catalog.edited().is_empty()).await;
    let edit = workshop.registry.stage_edit(&name("t")).await.unwrap().unwrap();
    assert_eq!(edit.changed_files, ["helper.py"]);
}

#[tokio::test]
async fn touching_and_reformatting_is_no_edit() {
    let workshop = Workshop::watched().await;
    let tool = workshop.publish("t", "1").await.unwrap();
    let mut events = workshop.registry.events();
    let manifest: skillz_json::Value = serde_json::from_str(&workshop.read("t/manifest.json")).unwrap();
    workshop.write("t/manifest.json", &manifest.to_string());
    workshop.write("t/main.py", "1");
    workshop.write("t/.main.py.swp", "an editor's");
    workshop.write("other/manifest.json", PIPELINE);
    let first = next_event(&mut events, |_| true).await;
    assert!(matches!(&first, RegistryEvent::Published { name, .. } if name.as_str() == "other"), "{first:?}");
    assert!(std::sync::Arc::ptr_eq(&tool, workshop.catalog().get("t").unwrap()));
}

#[tokio::test]
async fn a_broken_edit_leaves_the_last_good_version_in_service() {
    let workshop = Workshop::watched().await;
    workshop.publish("t", "1").await.unwrap();
    let manifest = workshop.read("t/manifest.json");
    workshop.write("t/main.py", "edited");
    workshop.write("t/manifest.json", &manifest[..manifest.len() / 2]);
    let catalog = workshop.until("the half manifest is reported", |catalog| !catalog.broken().is_empty()).await;
    assert!(catalog.broken()[0].in_service && catalog.broken()[0].line.is_some(), "{:?}", catalog.broken());
    assert_eq!(workshop.served("t").as_deref(), Some("1"));
    // Over a restart too.
    let workshop = workshop.restarted(true).await;
    assert_eq!(workshop.served("t").as_deref(), Some("1"));
    assert_eq!(workshop.catalog().broken().len(), 1);
    workshop.write("t/manifest.json", &manifest);
    let catalog = workshop.until("the whole manifest is taken", |catalog| catalog.broken().is_empty()).await;
    assert_eq!(catalog.edited(), [name("t")], "the edit of the source is left");
    assert_eq!(record(&workshop, "t").await.unwrap(), "1.0.1");
}

#[tokio::test]
async fn a_refused_edit_is_reported_until_it_changes() {
    let workshop = Workshop::watched().await;
    workshop.publish("t", "1").await.unwrap();
    workshop.write("t/main.py", "bad");
    workshop.until("the edit is seen", |catalog| !catalog.edited().is_empty()).await;
    let edit = workshop.registry.stage_edit(&name("t")).await.unwrap().unwrap();
    workshop.registry.refuse_edit(edit, "Example 1 failed".to_owned()).await;
    let catalog = workshop.catalog();
    assert!(catalog.edited().is_empty());
    let broken = &catalog.broken()[0];
    assert_eq!(
        (broken.reason.as_str(), broken.in_service, &broken.file),
        ("Example 1 failed", true, &workshop.path("t/main.py"))
    );
    assert_eq!(workshop.served("t").as_deref(), Some("1"));
    workshop.write("t/main.py", "good");
    workshop.until("the next edit is seen", |catalog| !catalog.edited().is_empty() && catalog.broken().is_empty()).await;
    workshop.write("t/main.py", "1");
    workshop.until("taken back, it is no edit", |catalog| catalog.edited().is_empty() && catalog.broken().is_empty()).await;
}

#[tokio::test]
async fn an_edit_that_goes_on_is_a_conflict_and_loses_nothing() {
    let workshop = Workshop::watched().await;
    workshop.publish("t", "1").await.unwrap();
    workshop.write("t/main.py", "first thought");
    workshop.until("the edit is seen", |catalog| !catalog.edited().is_empty()).await;
    let edit = workshop.registry.stage_edit(&name("t")).await.unwrap().unwrap();
    let mut events = workshop.registry.events();
    workshop.write("t/main.py", "second thought");
    next_event(&mut events, |event| *event == RegistryEvent::Edited { name: name("t") }).await;
    let error = workshop.registry.record_edit(edit).await.unwrap_err();
    assert!(matches!(error, RegistryError::Conflict { .. }), "{error}");
    next_event(&mut events, |event| *event == RegistryEvent::Edited { name: name("t") }).await;
    assert_eq!(workshop.read("t/main.py"), "second thought");
    assert_eq!(record(&workshop, "t").await.unwrap(), "1.0.1");
    assert_eq!(workshop.served("t").as_deref(), Some("second thought"));
}

#[tokio::test]
async fn two_servers_record_one_edit_once() {
    let workshop = Workshop::watched().await;
    let other = workshop.second(true).await;
    workshop.publish("t", "1").await.unwrap();
    until(&other, "the publish shows", |catalog| catalog.get("t").is_some()).await;
    workshop.write("t/main.py", "edited");
    workshop.until("one sees the edit", |catalog| !catalog.edited().is_empty()).await;
    until(&other, "the other sees it too", |catalog| !catalog.edited().is_empty()).await;
    let edit = workshop.registry.stage_edit(&name("t")).await.unwrap().unwrap();
    let waiting = tokio::spawn(async move { other.stage_edit(&name("t")).await.map(|edit| edit.is_some()) });
    assert!(
        tokio::time::timeout(Duration::from_millis(100), async {
            while !waiting.is_finished() {
                tokio::task::yield_now().await;
            }
        })
        .await
        .is_err()
    );
    workshop.registry.record_edit(edit).await.unwrap();
    assert!(!waiting.await.unwrap().unwrap(), "the other one finds nothing left to do");
    assert_eq!(workshop.versions("t").await.versions.len(), 2);
}

#[tokio::test]
async fn edits_made_while_no_server_ran_are_noticed() {
    let workshop = Workshop::new().await;
    workshop.publish("t", "1").await.unwrap();
    workshop.write("t/main.py", "edited");
    let workshop = workshop.restarted(false).await;
    assert_eq!(workshop.catalog().edited(), [name("t")]);
    assert_eq!(workshop.served("t").as_deref(), Some("1"));
    assert_eq!(record(&workshop, "t").await.unwrap(), "1.0.1");
    assert_eq!(workshop.history("t").await[1].2, "1");
}

#[tokio::test]
async fn an_edit_of_a_tool_that_came_by_hand_keeps_what_came() {
    let folder = tempfile::tempdir().unwrap();
    let workshop = Workshop::in_folder(folder, false).await;
    workshop.write("t/manifest.json", r#"{"name": "t", "description": "d", "tool_type": "script", "entry_file": "main.py"}"#);
    workshop.write("t/main.py", "came");
    let before = contents(&workshop.path("t"));
    let workshop = workshop.restarted(true).await;
    assert_eq!(workshop.served("t").as_deref(), Some("came"));
    assert_eq!(contents(&workshop.path("t")), before, "the folder is as it came");
    let live = workshop.path(".live");
    tokio::time::timeout(workshop::DEADLINE, async {
        while contents(&live).is_empty() {
            tokio::time::sleep(Duration::from_millis(10)).await;
        }
    })
    .await
    .expect("a copy is made in the background");
    workshop.write("t/main.py", "edited");
    workshop.until("the edit is seen", |catalog| !catalog.edited().is_empty()).await;
    assert_eq!(workshop.served("t").as_deref(), Some("came"));
    assert_eq!(record(&workshop, "t").await.unwrap(), "1.0.1");
    let history: Vec<_> = workshop.history("t").await.into_iter().map(|(version, _, code)| (version, code)).collect();
    assert_eq!(history, [("1.0.1".to_owned(), "edited".to_owned()), ("1.0.0".to_owned(), "came".to_owned())]);
}

#[tokio::test]
async fn folders_come_go_and_are_renamed() {
    let workshop = Workshop::watched().await;
    workshop.publish("one", "1").await.unwrap();
    fs::rename(workshop.path("one"), workshop.path("two")).unwrap();
    workshop.until("the rename shows", |catalog| catalog.get("one").is_none() && catalog.get("two").is_some()).await;
    assert_eq!(workshop.catalog().edited(), [], "a rename is no edit");
    assert_eq!(workshop.served("two").as_deref(), Some("1"));
    fs::remove_dir_all(workshop.path("two")).unwrap();
    workshop.until("the removal shows", skillz_registry::Catalog::is_empty).await;
    workshop.write("three/manifest.json", PIPELINE);
    workshop.until("the new folder shows", |catalog| catalog.get("three").is_some()).await;
    fs::remove_dir_all(workshop.tools()).unwrap();
    workshop.until("all is gone", skillz_registry::Catalog::is_empty).await;
    workshop.write("four/manifest.json", PIPELINE);
    workshop.until("the folder itself may come back", |catalog| catalog.get("four").is_some()).await;
}

#[tokio::test]
async fn many_changes_at_once_are_few_reloads() {
    let workshop = Workshop::watched().await;
    let before = workshop.catalog().generation();
    for number in 0..1_000 {
        workshop.write(&format!("tool{number:04}/manifest.json"), PIPELINE);
    }
    let catalog = workshop.until("all show", |catalog| catalog.len() == 1_000).await;
    // One, unless this machine was so slow that the writing itself took longer than changes may wait.
    assert!(catalog.generation().0 - before.0 <= 5, "{before:?} {:?}", catalog.generation());
}

#[tokio::test]
async fn a_replaced_module_is_an_edit_too() {
    let workshop = Workshop::watched().await;
    workshop.write("w/manifest.json", r#"{"name": "w", "description": "d"}"#);
    workshop.write("w/src.rs", "fn main() {}");
    workshop.until("it waits for a build", |catalog| !catalog.edited().is_empty()).await;
    let edit = workshop.registry.stage_edit(&name("w")).await.unwrap().unwrap();
    fs::write(edit.staging.path().join("w.wasm"), "one").unwrap();
    workshop.registry.record_edit(edit).await.unwrap();
    workshop.write("w/w.wasm", "two");
    workshop.until("the new module is seen", |catalog| !catalog.edited().is_empty()).await;
    let served = workshop.catalog().get("w").unwrap().module_path();
    assert_eq!(fs::read_to_string(served).unwrap(), "one");
    let edit = workshop.registry.stage_edit(&name("w")).await.unwrap().unwrap();
    assert_eq!(edit.changed_files, ["w.wasm"]);
    let tool = workshop.registry.record_edit(edit).await.unwrap();
    assert_eq!(fs::read_to_string(tool.module_path()).unwrap(), "two");
    assert_eq!(workshop.versions("w").await.versions.len(), 2);
}

#[tokio::test]
async fn without_watching_only_own_publishes_show() {
    let workshop = Workshop::new().await;
    let other = workshop.second(false).await;
    other.reload().await;
    workshop.publish("t", "1").await.unwrap();
    assert!(workshop.catalog().get("t").is_some() && other.snapshot().is_empty());
    other.reload().await;
    assert!(other.snapshot().get("t").is_some());
}
