//! The call history: batches, bounds, and nothing lost at a clean end.

#![allow(clippy::unwrap_used, clippy::expect_used, clippy::panic, clippy::indexing_slicing, reason = "a test fails by them")]

use std::{path::Path, time::Duration};

use skillz_store::{HistorySettings, LibsqlHistory};
use skillz_tool::{CallRecord, HistoryStore};

fn record(number: usize, tool_name: &str, status: &str) -> CallRecord {
    CallRecord {
        call_id: format!("call{number}"),
        parent_id: (number % 2 == 1).then(|| "parent".to_owned()),
        tool_name: tool_name.to_owned(),
        version: "1.0.0".to_owned(),
        started_at: std::time::SystemTime::now().duration_since(std::time::UNIX_EPOCH).unwrap().as_secs_f64(),
        duration_ms: 1.5,
        status: status.to_owned(),
        error: (status != "ok").then(|| "It failed".to_owned()),
        argument_bytes: 10,
        result_bytes: u64::from(u32::MAX) * 2,
    }
}

fn settings(folder: &Path) -> HistorySettings {
    HistorySettings::new(folder.join("history.db"))
}

fn numbers(records: &[CallRecord]) -> Vec<&str> {
    records.iter().map(|record| record.call_id.trim_start_matches("call")).collect()
}

#[tokio::test]
async fn entries_come_back_newest_first_and_filtered() {
    let folder = tempfile::tempdir().unwrap();
    let history = LibsqlHistory::new(settings(folder.path()));
    history.flush().await;
    assert!(!folder.path().join("history.db").exists(), "nothing was recorded, so nothing is opened");
    let first = record(0, "a", "ok");
    history.record(first.clone());
    history.record(record(1, "b", "failed"));
    history.record(record(2, "a", "timed_out"));
    let all = history.recent(None, false, 10).await.unwrap();
    assert_eq!(numbers(&all), ["2", "1", "0"]);
    assert_eq!(all[2], first);
    assert_eq!(numbers(&history.recent(Some("a"), false, 10).await.unwrap()), ["2", "0"]);
    assert_eq!(numbers(&history.recent(None, true, 10).await.unwrap()), ["2", "1"]);
    assert_eq!(numbers(&history.recent(Some("a"), true, 10).await.unwrap()), ["2"]);
    assert_eq!(numbers(&history.recent(None, false, 1).await.unwrap()), ["2"]);
}

#[tokio::test]
async fn a_clean_end_loses_nothing() {
    let folder = tempfile::tempdir().unwrap();
    let history = LibsqlHistory::new(settings(folder.path()));
    for number in 0..2_500 {
        history.record(record(number, "a", "ok"));
    }
    history.flush().await;
    let other = LibsqlHistory::new(settings(folder.path()));
    assert_eq!(other.recent(None, false, 10_000).await.unwrap().len(), 2_500, "flushed records are on disk");
    history.record(record(2_500, "a", "ok"));
    drop(history);
    assert_eq!(other.recent(None, false, 1).await.unwrap()[0].call_id, "call2500", "dropping writes the rest");
}

#[tokio::test]
async fn entries_reach_the_file_without_being_asked() {
    let folder = tempfile::tempdir().unwrap();
    let history = LibsqlHistory::new(settings(folder.path()));
    history.record(record(1, "a", "ok"));
    let other = LibsqlHistory::new(settings(folder.path()));
    let deadline = std::time::Instant::now() + Duration::from_secs(20);
    while other.recent(None, false, 1).await.unwrap().is_empty() {
        assert!(std::time::Instant::now() < deadline, "the record never arrived");
        tokio::time::sleep(Duration::from_millis(20)).await;
    }
}

#[tokio::test]
async fn old_entries_go() {
    let folder = tempfile::tempdir().unwrap();
    let history = LibsqlHistory::new(HistorySettings { max_entries: 100, ..settings(folder.path()) });
    for number in 0..3_000 {
        history.record(record(number, "a", "ok"));
    }
    history.flush().await;
    let kept = history.recent(None, false, 10_000).await.unwrap();
    assert!((100..=1_100).contains(&kept.len()), "{} are kept", kept.len());
    assert_eq!(kept[0].call_id, "call2999");

    let aged = CallRecord { started_at: 1.0, ..record(1, "old", "ok") };
    let folder = tempfile::tempdir().unwrap();
    let history = LibsqlHistory::new(settings(folder.path()));
    history.record(aged);
    history.record(record(2, "new", "ok"));
    assert_eq!(numbers(&history.recent(None, false, 10).await.unwrap()), ["2"], "the first batch trims by age");
}

#[tokio::test]
async fn a_damaged_file_costs_the_history_only() {
    let folder = tempfile::tempdir().unwrap();
    std::fs::write(folder.path().join("history.db"), "nonsense ".repeat(1_000)).unwrap();
    let history = LibsqlHistory::new(settings(folder.path()));
    history.record(record(1, "a", "ok"));
    history.flush().await;
    let error = history.recent(None, false, 1).await.unwrap_err().to_string();
    assert!(error.contains("history.db") && error.contains("damaged"), "{error}");
    std::fs::remove_file(folder.path().join("history.db")).unwrap();
    assert_eq!(numbers(&history.recent(None, false, 10).await.unwrap()), ["1"], "what waited is written after all");
}
