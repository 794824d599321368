//! The memory of Skillz 0.8 is taken over once, whatever it looks like.

#![allow(clippy::unwrap_used, clippy::expect_used, clippy::panic, clippy::indexing_slicing, reason = "a test fails by them")]

use std::path::{Path, PathBuf};

use skillz_json::json;
use skillz_store::{LegacyImport, LibsqlMemory, MemoryLocation};
use skillz_tool::MemoryStore;

async fn legacy(folder: &Path, statements: &str) -> PathBuf {
    let path = folder.join(".memory.db");
    let connection = libsql::Builder::new_local(&path).build().await.unwrap().connect().unwrap();
    connection.execute_batch(statements).await.unwrap();
    path
}

fn memory(folder: &Path) -> LibsqlMemory {
    LibsqlMemory::new(MemoryLocation::File(folder.join("memory.db")))
}

/// As the last release of 0.8 wrote it.
const LAST_LAYOUT: &str = r#"
    CREATE TABLE _migrations (version INTEGER PRIMARY KEY, applied_at TEXT);
    INSERT INTO _migrations (version) VALUES (1), (2);
    CREATE TABLE memories (id INTEGER PRIMARY KEY AUTOINCREMENT, tool TEXT NOT NULL, key TEXT NOT NULL, value TEXT NOT NULL,
        created_at TEXT, updated_at TEXT, expires_at TEXT DEFAULT NULL, UNIQUE (tool, key));
    INSERT INTO memories (tool, key, value, expires_at) VALUES
        ('counter', 'count', '7', NULL),
        ('counter', 'name', '"x"', NULL),
        ('notes', 'all', '{"a":[1,2]}', datetime('now', '+1 hour')),
        ('notes', 'old', '1', datetime('now', '-1 hour')),
        ('notes', 'raw', 'not json', NULL),
        ('notes', '', '1', NULL);
"#;

#[tokio::test]
async fn the_last_layout_is_taken_over_once() {
    let folder = tempfile::tempdir().unwrap();
    let path = legacy(folder.path(), LAST_LAYOUT).await;
    let before = std::fs::read(&path).unwrap();
    let memory = memory(folder.path());
    memory.set("counter", "name", &json!("newer"), None).await.unwrap();
    let imported = memory.import_legacy(&path).await.unwrap();
    assert_eq!(imported, Some(LegacyImport { imported: 3, skipped: 3 }));
    assert_eq!(memory.get("counter", "count").await, Ok(Some(json!(7))));
    assert_eq!(memory.get("counter", "name").await, Ok(Some(json!("newer"))), "what is there already wins");
    assert_eq!(memory.get("notes", "all").await, Ok(Some(json!({"a": [1, 2]}))));
    assert_eq!(memory.get("notes", "raw").await, Ok(Some(json!("not json"))));
    assert_eq!(memory.get("notes", "old").await, Ok(None));

    memory.delete("counter", "count").await.unwrap();
    assert_eq!(memory.import_legacy(&path).await, Ok(None));
    assert_eq!(memory.get("counter", "count").await, Ok(None), "what was deleted since does not come back");
    assert_eq!(std::fs::read(&path).unwrap(), before, "the old file is as it was");
}

#[tokio::test]
async fn other_layouts_are_recognised_by_their_columns() {
    let folder = tempfile::tempdir().unwrap();
    let path = legacy(
        folder.path(),
        r#"CREATE TABLE memory (tool_name TEXT, key TEXT, value TEXT, expires_at REAL);
           INSERT INTO memory VALUES ('a', 'k', '[1]', NULL), ('a', 'far', '1', 99999999999000), ('a', 'gone', '1', 1000000000);
           CREATE TABLE unrelated (x);
           CREATE TABLE "odd ""name" (namespace TEXT, name TEXT, data);
           INSERT INTO "odd ""name" VALUES ('b', 'n', 5), ('b', 'blob', x'ff'), (NULL, 'z', 1);"#,
    )
    .await;
    let memory = memory(folder.path());
    assert_eq!(memory.import_legacy(&path).await, Ok(Some(LegacyImport { imported: 3, skipped: 3 })));
    assert_eq!(memory.get("a", "k").await, Ok(Some(json!([1]))));
    assert_eq!(memory.get("a", "far").await, Ok(Some(json!(1))));
    assert_eq!(memory.get("b", "n").await, Ok(Some(json!(5))));
}

#[tokio::test]
async fn what_cannot_be_understood_is_an_error_and_stays() {
    let folder = tempfile::tempdir().unwrap();
    let memory = memory(folder.path());
    assert_eq!(memory.import_legacy(&folder.path().join(".memory.db")).await, Ok(None), "there is none");

    let path = folder.path().join(".memory.db");
    std::fs::write(&path, "garbage ".repeat(1_000)).unwrap();
    let error = memory.import_legacy(&path).await.unwrap_err().to_string();
    assert!(error.contains(".memory.db") && error.contains("damaged"), "{error}");
    assert!(std::fs::read_to_string(&path).unwrap().starts_with("garbage"));
    std::fs::remove_file(&path).unwrap();

    let path = legacy(folder.path(), "CREATE TABLE x (a)").await;
    let error = memory.import_legacy(&path).await.unwrap_err().to_string();
    assert!(error.contains("no table with a tool, a key and a value"), "{error}");
    memory.set("t", "k", &json!(1), None).await.expect("the memory itself goes on");
}
