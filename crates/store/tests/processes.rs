//! Several processes on one file, and processes that die in the middle. The children are this very program,
//! told by their environment to run one of the tests below as a part.

#![allow(clippy::unwrap_used, clippy::expect_used, clippy::panic, clippy::indexing_slicing, reason = "a test fails by them")]
#![allow(
    clippy::disallowed_methods,
    clippy::print_stdout,
    reason = "the children are started, told their part and heard by hand"
)]

use std::{
    io::{BufRead, BufReader},
    path::{Path, PathBuf},
    process::{Child, Command, Stdio},
};

use skillz_json::{Map, Value, json};
use skillz_store::{LibsqlMemory, MemoryLocation};
use skillz_tool::MemoryStore;

const FOLDER: &str = "STORE_TEST_FOLDER";
const NUMBER: &str = "STORE_TEST_NUMBER";
const UPDATES: usize = 60;

/// Starts this program again to run `test` as child `number` in `folder`.
fn child(test: &str, folder: &Path, number: usize) -> Child {
    Command::new(std::env::current_exe().unwrap())
        .args(["--exact", test, "--nocapture"])
        .env(FOLDER, folder)
        .env(NUMBER, number.to_string())
        .stdout(Stdio::piped())
        .stderr(Stdio::inherit())
        .spawn()
        .unwrap()
}

/// The part this process has to play, if it is a child.
fn part() -> Option<(PathBuf, usize)> {
    let folder = std::env::var_os(FOLDER)?;
    Some((folder.into(), std::env::var(NUMBER).ok()?.parse().ok()?))
}

fn memory(folder: &Path) -> LibsqlMemory {
    LibsqlMemory::new(MemoryLocation::File(folder.join("memory.db")))
}

#[tokio::test]
async fn writers_of_several_processes_wait_for_each_other() {
    if let Some((folder, number)) = part() {
        let memory = memory(&folder);
        for update in 0..UPDATES {
            let patch = Map::from_iter([(format!("{number}-{update}"), Value::from(update))]);
            memory.update("t", "shared", &patch, None).await.unwrap();
            memory.set("t", &format!("own{number}-{update}"), &json!(update), None).await.unwrap();
            assert!(memory.get("t", "shared").await.unwrap().is_some());
        }
        return;
    }
    // No file yet: the children also race to make it.
    let folder = tempfile::tempdir().unwrap();
    let name = "writers_of_several_processes_wait_for_each_other";
    let children: Vec<Child> = (0..4).map(|number| child(name, folder.path(), number)).collect();
    for child in children {
        let output = child.wait_with_output().unwrap();
        assert!(output.status.success(), "{}", String::from_utf8_lossy(&output.stdout));
    }
    let memory = memory(folder.path());
    let shared = memory.get("t", "shared").await.unwrap().unwrap();
    assert_eq!(shared.as_object().unwrap().len(), 4 * UPDATES, "an update was lost");
    assert_eq!(memory.list("t", "own", None, 10_000).await.unwrap().len(), 4 * UPDATES);
}

#[tokio::test]
async fn acknowledged_writes_survive_a_kill() {
    if let Some((folder, number)) = part() {
        let memory = memory(&folder);
        for write in 0.. {
            memory.set("t", &format!("{number}-{write}"), &json!({"write": write}), None).await.unwrap();
            println!("acknowledged {write}");
        }
    }
    let folder = tempfile::tempdir().unwrap();
    for round in 0..12_usize {
        let mut child = child("acknowledged_writes_survive_a_kill", folder.path(), round);
        // A different number of writes each time, so that the kill falls into different moments.
        let wanted = 1 + round * 7 % 40;
        let mut lines = BufReader::new(child.stdout.take().unwrap()).lines();
        let mut seen = 0;
        while seen < wanted {
            let line = lines.next().expect("the child ended by itself").unwrap();
            seen += usize::from(line.starts_with("acknowledged"));
        }
        child.kill().unwrap();
        child.wait().unwrap();
        seen += lines.map_while(Result::ok).filter(|line| line.starts_with("acknowledged")).count();
        let memory = memory(folder.path());
        for write in 0..seen {
            let value = memory.get("t", &format!("{round}-{write}")).await.unwrap();
            assert_eq!(value, Some(json!({"write": write})), "write {write} of round {round} was acknowledged and is lost");
        }
    }
}
