//! The memory's rules, through the trait that the engine uses, on a real file.

#![allow(clippy::unwrap_used, clippy::expect_used, clippy::panic, clippy::indexing_slicing, reason = "a test fails by them")]

use std::time::{Duration, Instant};

use skillz_json::{Map, Value, json};
use skillz_store::{LibsqlMemory, MemoryLocation};
use skillz_tool::{MemoryStats, MemoryStore, StoreError};
use tempfile::TempDir;

struct Fixture {
    memory: LibsqlMemory,
    folder: TempDir,
}

fn fixture() -> Fixture {
    let folder = tempfile::tempdir().unwrap();
    let memory = LibsqlMemory::new(MemoryLocation::File(folder.path().join("home/memory.db")));
    Fixture { memory, folder }
}

#[expect(clippy::needless_pass_by_value, reason = "literals read better by value")]
fn object(value: Value) -> Map<String, Value> {
    value.as_object().unwrap().clone()
}

#[tokio::test]
async fn nothing_is_opened_before_the_first_use() {
    let Fixture { memory, folder } = fixture();
    assert_eq!(folder.path().read_dir().unwrap().count(), 0);
    assert_eq!(memory.get("t", "absent").await, Ok(None));
    assert!(folder.path().join("home/memory.db").exists());
}

#[tokio::test]
async fn values_of_every_kind_come_back_as_they_were() {
    let Fixture { memory, .. } = fixture();
    let values = [
        json!(null),
        json!(true),
        json!(9_007_199_254_740_993_u64),
        json!(-1),
        json!(0.1),
        json!(""),
        json!("重要 ★ 🎉 é \u{0} \u{7f}"),
        json!([1, [2, {"a": null}]]),
        json!({"b": 1, "a": {"z": [], "y": {}}}),
        json!("x".repeat(900_000)),
    ];
    for (number, value) in values.iter().enumerate() {
        let key = format!("k{number}");
        assert_eq!(memory.set("t", &key, value, None).await, Ok(None));
        assert_eq!(memory.get("t", &key).await, Ok(Some(value.clone())));
    }
    let kept = memory.get("t", "k8").await.unwrap().unwrap();
    assert_eq!(kept.to_string(), r#"{"b":1,"a":{"z":[],"y":{}}}"#, "members keep their order");
}

#[tokio::test]
async fn keys_of_every_kind_are_apart() {
    let Fixture { memory, .. } = fixture();
    let keys = ["a", "A", "a ", " a", "a\0b", "a\0c", "é", "e\u{301}", "'; DROP TABLE memory; --", "%", "_", "🎉"];
    for (number, key) in keys.iter().enumerate() {
        memory.set("t", key, &json!(number), None).await.unwrap();
    }
    for (number, key) in keys.iter().enumerate() {
        assert_eq!(memory.get("t", key).await, Ok(Some(json!(number))), "{key:?}");
    }
    let mut sorted: Vec<&str> = keys.to_vec();
    sorted.sort_unstable();
    assert_eq!(memory.list("t", "", None, 100).await.unwrap(), sorted);
    assert_eq!(memory.get("T", "a").await, Ok(None), "another tool has another memory");
}

#[tokio::test]
async fn prefixes_are_taken_literally_and_pages_follow_each_other() {
    let Fixture { memory, .. } = fixture();
    for key in ["a", "a%", "a%1", "a_", "a_1", "ab", "A%", "b", "é1", "é2", "\u{10FFFF}x"] {
        memory.set("t", key, &json!(1), None).await.unwrap();
    }
    let check = async |prefix: &str, expected: &[&str]| {
        assert_eq!(memory.list("t", prefix, None, 100).await.unwrap(), expected, "{prefix:?}");
    };
    check("a%", &["a%", "a%1"]).await;
    check("a_", &["a_", "a_1"]).await;
    check("A", &["A%"]).await;
    check("é", &["é1", "é2"]).await;
    check("\u{10FFFF}", &["\u{10FFFF}x"]).await;
    check("nothing", &[]).await;

    let mut pages = Vec::new();
    let mut after: Option<String> = None;
    loop {
        let page = memory.list("t", "a", after.as_deref(), 2).await.unwrap();
        let Some(last) = page.last() else { break };
        after = Some(last.clone());
        pages.push(page);
    }
    assert_eq!(pages, [vec!["a", "a%"], vec!["a%1", "a_"], vec!["a_1", "ab"]]);
    assert_eq!(memory.list("t", "b", Some("a%"), 2).await.unwrap(), ["b"], "a cursor before the prefix changes nothing");
    assert!(memory.list("t", "a", None, 0).await.unwrap().is_empty());
}

#[tokio::test]
async fn entries_expire_for_every_reader() {
    let Fixture { memory, .. } = fixture();
    let expires_at = memory.set("t", "short", &json!({"a": 1}), Some(0.05)).await.unwrap().unwrap();
    let far = memory.set("t", "long", &json!(2), Some(1e6)).await.unwrap().unwrap();
    assert!(far > expires_at + 900_000.0);
    let deadline = Instant::now() + Duration::from_secs(20);
    while memory.get("t", "short").await.unwrap().is_some() {
        assert!(Instant::now() < deadline, "the entry never expired");
        tokio::task::yield_now().await;
    }
    assert_eq!(memory.list("t", "", None, 10).await.unwrap(), ["long"]);
    let stats = memory.stats(None).await.unwrap();
    assert_eq!(stats, [MemoryStats { tool_name: "t".to_owned(), entries: 1, bytes: 5 }]);
    assert_eq!(memory.delete("t", "short").await, Ok(false), "an expired entry is not there");
    let patch = object(json!({"b": 1}));
    assert_eq!(memory.update("t", "short", &patch, None).await, Ok(json!({"b": 1})), "nothing of it is left");
}

#[tokio::test]
async fn storing_again_replaces_value_and_expiry() {
    let Fixture { memory, .. } = fixture();
    memory.set("t", "k", &json!(1), Some(0.02)).await.unwrap();
    assert_eq!(memory.set("t", "k", &json!(2), None).await, Ok(None));
    let other = memory.set("t", "other", &json!(1), Some(0.02)).await.unwrap();
    assert!(other.is_some());
    while memory.get("t", "other").await.unwrap().is_some() {
        tokio::task::yield_now().await;
    }
    assert_eq!(memory.get("t", "k").await, Ok(Some(json!(2))), "the later store has no time to live");
}

#[tokio::test]
async fn updates_merge_members() {
    let Fixture { memory, .. } = fixture();
    let update = async |patch: Value| memory.update("t", "k", &object(patch), None).await;
    assert_eq!(update(json!({"a": 1, "b": {"x": 1}})).await, Ok(json!({"a": 1, "b": {"x": 1}})));
    assert_eq!(update(json!({"b": {"y": 2}, "c": null})).await, Ok(json!({"a": 1, "b": {"y": 2}, "c": null})));
    assert_eq!(update(json!({})).await, Ok(json!({"a": 1, "b": {"y": 2}, "c": null})));
    memory.set("t", "list", &json!([1]), None).await.unwrap();
    let error = memory.update("t", "list", &object(json!({"a": 1})), None).await.unwrap_err();
    assert!(matches!(&error, StoreError::Invalid(text) if text.contains("`list` is no object")), "{error}");
    assert_eq!(memory.get("t", "list").await, Ok(Some(json!([1]))));
    let half = "x".repeat(600_000);
    memory.set("t", "big", &json!({"a": half}), None).await.unwrap();
    let error = memory.update("t", "big", &object(json!({"b": half})), None).await.unwrap_err();
    assert!(matches!(error, StoreError::Invalid(_)), "the merged value is beyond the limit");
}

#[tokio::test]
async fn an_update_keeps_the_expiry_unless_it_brings_its_own() {
    let Fixture { memory, .. } = fixture();
    memory.set("t", "k", &json!({"a": 1}), Some(0.3)).await.unwrap();
    memory.update("t", "k", &object(json!({"b": 1})), None).await.unwrap();
    memory.set("t", "longer", &json!({"a": 1}), Some(0.01)).await.unwrap();
    memory.update("t", "longer", &object(json!({"b": 1})), Some(1e6)).await.unwrap();
    let deadline = Instant::now() + Duration::from_secs(20);
    while memory.get("t", "k").await.unwrap().is_some() {
        assert!(Instant::now() < deadline, "the update made the entry last for ever");
        tokio::task::yield_now().await;
    }
    assert!(memory.get("t", "longer").await.unwrap().is_some());
}

#[tokio::test]
async fn what_breaks_a_limit_is_refused_with_a_sentence() {
    let Fixture { memory, .. } = fixture();
    let refused = async |outcome: Result<(), StoreError>, word: &str| match outcome {
        Err(StoreError::Invalid(text)) => assert!(text.contains(word), "{text}"),
        other => panic!("{other:?}"),
    };
    let long = "k".repeat(513);
    refused(memory.set("t", "", &json!(1), None).await.map(drop), "empty").await;
    refused(memory.set("t", &long, &json!(1), None).await.map(drop), "513 bytes").await;
    refused(memory.get("t", &long).await.map(drop), "at most 512").await;
    refused(memory.set("t", "k", &json!("x".repeat(1_000_000)), None).await.map(drop), "1000002 bytes").await;
    refused(memory.set("t", "k", &json!(1), Some(0.0)).await.map(drop), "above 0").await;
    refused(memory.set("t", "k", &json!(1), Some(f64::NAN)).await.map(drop), "`ttl` NaN").await;
    refused(memory.list("t", &long, None, 1).await.map(drop), "513 bytes").await;
    assert_eq!(memory.stats(None).await, Ok(vec![]), "nothing was written");
}

#[tokio::test]
async fn deleting_clearing_and_counting_stay_within_the_namespace() {
    let Fixture { memory, .. } = fixture();
    for (namespace, key) in [("one", "a"), ("one", "bb"), ("two", "a")] {
        memory.set(namespace, key, &json!("12"), None).await.unwrap();
    }
    let of = |tool_name: &str, entries, bytes| MemoryStats { tool_name: tool_name.to_owned(), entries, bytes };
    assert_eq!(memory.stats(None).await.unwrap(), [of("one", 2, 11), of("two", 1, 5)]);
    assert_eq!(memory.stats(Some("two")).await.unwrap(), [of("two", 1, 5)]);
    assert_eq!(memory.stats(Some("three")).await.unwrap(), []);
    assert_eq!(memory.delete("one", "a").await, Ok(true));
    assert_eq!(memory.delete("one", "a").await, Ok(false));
    assert_eq!(memory.clear("one").await, Ok(1));
    assert_eq!(memory.clear("one").await, Ok(0));
    assert_eq!(memory.get("two", "a").await, Ok(Some(json!("12"))));
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn updates_at_once_lose_nothing() {
    let folder = tempfile::tempdir().unwrap();
    let path = folder.path().join("memory.db");
    let memories: Vec<_> = (0..3).map(|_| std::sync::Arc::new(LibsqlMemory::new(MemoryLocation::File(path.clone())))).collect();
    let mut tasks = Vec::new();
    for number in 0..120 {
        let memory = memories[number % memories.len()].clone();
        tasks.push(tokio::spawn(async move {
            memory.update("t", "shared", &object(json!({(format!("m{number}")): number})), None).await.unwrap();
        }));
    }
    for task in tasks {
        task.await.unwrap();
    }
    let merged = memories[0].get("t", "shared").await.unwrap().unwrap();
    assert_eq!(merged.as_object().unwrap().len(), 120);
}

#[tokio::test]
async fn a_damaged_file_is_named_and_can_be_replaced_while_running() {
    let folder = tempfile::tempdir().unwrap();
    let path = folder.path().join("memory.db");
    std::fs::write(&path, "this is no database, whatever its name says. ".repeat(200)).unwrap();
    let memory = LibsqlMemory::new(MemoryLocation::File(path.clone()));
    for outcome in [memory.get("t", "k").await.map(drop), memory.set("t", "k", &json!(1), None).await.map(drop)] {
        let Err(StoreError::Failed(text)) = outcome else { panic!("{outcome:?}") };
        assert!(text.contains("damaged") && text.contains("memory.db") && text.contains("Move it away"), "{text}");
    }
    assert!(std::fs::read_to_string(&path).unwrap().starts_with("this is no database"), "it was not touched");
    std::fs::rename(&path, folder.path().join("memory.db.damaged")).unwrap();
    memory.set("t", "k", &json!(1), None).await.unwrap();
    assert_eq!(memory.get("t", "k").await, Ok(Some(json!(1))));
}

#[tokio::test]
async fn a_file_of_a_newer_version_is_left_alone() {
    let Fixture { memory, folder } = fixture();
    memory.set("t", "k", &json!(1), None).await.unwrap();
    drop(memory);
    let path = folder.path().join("home/memory.db");
    // The dropped memory's threads may still be closing their connections.
    let connection = libsql::Builder::new_local(&path).build().await.unwrap().connect().unwrap();
    connection.busy_timeout(Duration::from_secs(20)).unwrap();
    connection.execute_batch("PRAGMA user_version = 99").await.unwrap();
    let memory = LibsqlMemory::new(MemoryLocation::File(path));
    let error = memory.get("t", "k").await.unwrap_err();
    assert!(error.to_string().contains("newer version of Skillz"), "{error}");
}

#[tokio::test]
async fn a_server_by_url_says_that_it_is_not_there_and_keeps_the_password() {
    let url = "libsql://user:secret@example.test".to_owned();
    let memory = LibsqlMemory::new(MemoryLocation::Remote { url, token: Some("token".to_owned()) });
    let error = memory.get("t", "k").await.unwrap_err().to_string();
    assert!(error.contains("example.test") && error.contains("SKILLZ_MEMORY_URL"), "{error}");
    assert!(!error.contains("secret") && !error.contains("token"), "{error}");
}
