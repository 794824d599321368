//! Processes that are killed while they publish, and processes that publish against each other. The children
//! are this very program, told by their environment to run one of the tests below as a part.

#![allow(clippy::unwrap_used, clippy::expect_used, clippy::panic, clippy::indexing_slicing, reason = "a test fails by them")]
#![allow(
    clippy::disallowed_methods,
    clippy::print_stdout,
    reason = "the children are started, told their part and heard by hand"
)]

mod workshop;

use std::{
    collections::BTreeMap,
    fs,
    io::{BufRead, BufReader},
    path::{Path, PathBuf},
    process::{Child, ChildStdout, Command, Stdio},
    time::Duration,
};

use skillz_registry::{Expectation, RegistryError};
use skillz_tool::ToolName;
use workshop::{Workshop, name, open, publish, script};

const FOLDER: &str = "REGISTRY_TEST_FOLDER";
const NUMBER: &str = "REGISTRY_TEST_NUMBER";
const ROUNDS: usize = 200;

fn child(test: &str, tools: &Path, number: usize) -> Child {
    Command::new(std::env::current_exe().unwrap())
        .args(["--exact", test, "--nocapture", "--test-threads=1"])
        .env(FOLDER, tools)
        .env(NUMBER, number.to_string())
        .stdout(Stdio::piped())
        .stderr(Stdio::inherit())
        .spawn()
        .unwrap()
}

/// The part this process has to play, if it is a child.
fn part() -> Option<(PathBuf, usize)> {
    Some((std::env::var_os(FOLDER)?.into(), std::env::var(NUMBER).ok()?.parse().ok()?))
}

/// Lines `done <tool> <version> <code>` of a child, as far as they came through whole.
fn acknowledged(lines: impl Iterator<Item = String>) -> Vec<(String, String, String)> {
    let parse = |line: String| {
        let mut words = line.split_once("done ")?.1.split(' ').map(str::to_owned);
        let (tool, version, code) = (words.next()?, words.next()?, words.next()?);
        // Without the space at its end, the line was cut off.
        words.next().map(|_| (tool, version, code))
    };
    lines.filter_map(parse).collect()
}

fn lines(stdout: ChildStdout) -> impl Iterator<Item = String> {
    BufReader::new(stdout).lines().map_while(Result::ok)
}

/// Publishes, rolls back, edits and deletes for ever, and says what is done.
async fn publish_for_ever(tools: &Path, number: usize) {
    let registry = open(tools, false).await;
    for step in 0.. {
        let tool = format!("t{}", step % 3);
        // Long enough that a half-written one would show.
        let code = format!("{number}-{step}-{}", "x".repeat(20_000));
        match step % 7 {
            3 if registry.snapshot().get(&tool).is_some() => {
                registry.delete(&name(&tool)).await.unwrap();
            }
            5 if registry.snapshot().get(&tool).is_some() => {
                fs::write(tools.join(&tool).join("main.py"), &code).unwrap();
                registry.reload().await;
                if let Some(edit) = registry.stage_edit(&name(&tool)).await.unwrap() {
                    let version = registry.record_edit(edit).await.unwrap().version;
                    println!("done {tool} {version} {code} ");
                }
            }
            _ => {
                let version = publish(&registry, script(&tool), &code, Expectation::Anything).await.unwrap().version;
                println!("done {tool} {version} {code} ");
            }
        }
    }
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn a_kill_at_any_moment_leaves_whole_tools_and_every_acknowledged_version() {
    const TEST: &str = "a_kill_at_any_moment_leaves_whole_tools_and_every_acknowledged_version";
    if let Some((tools, number)) = part() {
        return publish_for_ever(&tools, number).await;
    }
    let folder = tempfile::tempdir().unwrap();
    let tools = folder.path().join("tools");
    let mut known: BTreeMap<(String, String), String> = BTreeMap::new();
    for round in 0..ROUNDS {
        // A fresh folder now and then, so that histories stay short and first publishes are killed too.
        if round % 20 == 0 {
            known.clear();
            let _ = fs::remove_dir_all(&tools);
        }
        let mut child = child(TEST, &tools, round);
        let mut output = lines(child.stdout.take().unwrap());
        let first: Vec<String> = output.by_ref().take_while(|line| !line.contains("done ")).collect();
        assert!(first.len() < 20, "the child says something else: {first:?}");
        // The first line that is waited for is lost to `take_while`, which is one less to check.
        let moment = Duration::from_micros((round as u64 * 7_919) % 12_000);
        tokio::time::sleep(moment).await;
        child.kill().unwrap();
        child.wait().unwrap();
        for (tool, version, code) in acknowledged(output) {
            known.insert((tool, version), code);
        }
        check_all(&tools, &known).await;
    }
}

/// Every tool loads, and every version that was acknowledged is there as it was.
async fn check_all(tools: &Path, known: &BTreeMap<(String, String), String>) {
    let registry = open(tools, false).await;
    let catalog = registry.snapshot();
    assert!(catalog.broken().is_empty(), "{:?}", catalog.broken());
    for tool in catalog.tools() {
        let code = fs::read_to_string(tool.source_path().unwrap()).unwrap();
        assert!(code.len() > 20_000, "{} has a half source", tool.name);
    }
    for ((tool, version), code) in known {
        let found = registry.tool_version(&name(tool), version.parse().unwrap()).await;
        let found = found.unwrap_or_else(|error| panic!("version {version} of {tool} was acknowledged: {error}"));
        let kept = fs::read_to_string(found.source_path().unwrap()).unwrap();
        assert!(kept == *code, "version {version} of {tool} is {kept:.12}, not {code:.12}");
    }
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn processes_that_publish_one_name_never_mix() {
    const TEST: &str = "processes_that_publish_one_name_never_mix";
    if let Some((tools, number)) = part() {
        let registry = open(&tools, true).await;
        let mut won = 0;
        while won < 15 {
            let current = registry.snapshot().get("t").map(|tool| tool.version);
            let expected = current.map_or(Expectation::Absent, Expectation::Current);
            let code = format!("{number}-{won}");
            match publish(&registry, script("t"), &code, expected).await {
                Ok(tool) => {
                    won += 1;
                    println!("done t {} {code} ", tool.version);
                }
                Err(RegistryError::Conflict { .. } | RegistryError::Exists { .. }) => registry.reload().await,
                Err(error) => panic!("{error}"),
            }
        }
        return;
    }
    let workshop = Workshop::new().await;
    let children: Vec<Child> = (0..3).map(|number| child(TEST, &workshop.tools(), number)).collect();
    let mut known = Vec::new();
    for mut child in children {
        known.extend(acknowledged(lines(child.stdout.take().unwrap())));
        assert!(child.wait().unwrap().success());
    }
    assert_eq!(known.len(), 45);
    workshop.registry.reload().await;
    let history = workshop.history("t").await;
    assert_eq!(history.len(), 45, "each version number was given once");
    for (tool, version, code) in known {
        let tool =
            workshop.registry.tool_version(&ToolName::for_existing(&tool).unwrap(), version.parse().unwrap()).await.unwrap();
        assert_eq!(fs::read_to_string(tool.source_path().unwrap()).unwrap(), code);
    }
}
