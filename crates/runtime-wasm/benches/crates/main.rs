//! Whether the crates that people use most build as they come, and how long that takes beside cargo itself.
//!
//! `cargo bench --profile dev -p skillz-runtime-wasm --bench crates -- [--all] [--compare] [NAME ...]`: those of the quick
//! list, all, or those named; with `--compare` each is also built by plain cargo, one after another. Needs a network for
//! crates that are not there yet, and fails where one does not build or prints something else.
#![expect(clippy::unwrap_used, clippy::indexing_slicing, clippy::print_stdout, reason = "a bench may stop at the first surprise")]

#[path = "../../tests/support/mod.rs"]
mod support;

mod list;

use std::{
    path::Path,
    process::Command,
    time::{Duration, Instant},
};

use futures::StreamExt;
use list::{CASES, Case, QUICK};
use skillz_json::json;
use support::{Bench, printed};

skillz_process::helper_entry!();

fn main() {
    let arguments: Vec<String> = std::env::args().skip(1).collect();
    let has = |option: &str| arguments.iter().any(|argument| argument == option);
    let named: Vec<&String> = arguments.iter().filter(|argument| !argument.starts_with('-')).collect();
    let cases: Vec<&Case> = match (has("--all"), named.is_empty()) {
        (true, _) => CASES.iter().collect(),
        (_, true) => CASES[..QUICK].iter().collect(),
        _ => CASES.iter().filter(|case| named.iter().any(|name| **name == case.name())).collect(),
    };
    let at_once = if has("--compare") { 1 } else { 2 };
    let runtime = tokio::runtime::Builder::new_multi_thread().worker_threads(2).enable_all().build().unwrap();
    let failed = runtime.block_on(async {
        let results = futures::stream::iter(&cases).map(|case| one(case, has("--compare"))).buffer_unordered(at_once);
        results.filter(|is_right| futures::future::ready(!is_right)).count().await
    });
    println!("{} crates, {failed} failed", cases.len());
    std::process::exit(i32::from(failed > 0));
}

/// Builds one in a home of its own, so that nothing of the others is there.
async fn one(case: &Case, compare: bool) -> bool {
    let bench = Bench::new();
    // What is fetched counts for neither side.
    let folder = compare.then(|| fetched(case));
    let started = Instant::now();
    let built = bench.build(&case.name(), &case.program(), case.dependencies).await;
    let took = started.elapsed();
    let result = match built {
        Ok(tool) => bench.call(&tool, json!({})).await.map(printed),
        Err(error) => Err(error),
    };
    let beside = folder.map(|folder| {
        let plain = cargo(folder.path());
        format!("   cargo: {plain:.1?}, ratio {:.2}", took.as_secs_f64() / plain.as_secs_f64())
    });
    let beside = beside.unwrap_or_default();
    let fault = match result {
        Ok(text) if text == case.prints => None,
        Ok(text) => Some(format!("printed {text:?}, not {:?}", case.prints)),
        Err(error) => Some(error.text()),
    };
    match &fault {
        None => println!("{:<24} {took:>8.1?}{beside}", case.name()),
        Some(fault) => println!("{:<24} FAILED: {fault}", case.name()),
    }
    fault.is_none()
}

/// A project as anybody would write it, with its crates fetched.
fn fetched(case: &Case) -> tempfile::TempDir {
    let folder = tempfile::tempdir().unwrap();
    std::fs::create_dir(folder.path().join("src")).unwrap();
    std::fs::write(folder.path().join("src/main.rs"), case.program()).unwrap();
    let mut manifest =
        "[workspace]\n[package]\nname = \"plain\"\nversion = \"0.0.0\"\nedition = \"2021\"\n[dependencies]\n".to_owned();
    for dependency in case.dependencies {
        let (rest, features) = dependency.trim_end_matches(']').split_once('[').unwrap_or((dependency, ""));
        let (name, version) = rest.split_once('@').unwrap_or((rest, "*"));
        let no_defaults = features.split(',').any(|feature| feature == "default-features=false");
        let features: Vec<_> = features.split(',').filter(|feature| !feature.is_empty() && !feature.contains('=')).collect();
        let line =
            format!("{name} = {{ version = \"{version}\", default-features = {}, features = {features:?} }}\n", !no_defaults);
        manifest.push_str(&line);
    }
    std::fs::write(folder.path().join("Cargo.toml"), manifest).unwrap();
    assert!(run(folder.path(), &["fetch"]), "{:?} cannot be fetched", case.dependencies);
    folder
}

fn cargo(folder: &Path) -> Duration {
    let started = Instant::now();
    assert!(run(folder, &["build", "--release", "--offline", "--target", "wasm32-wasip1"]), "cargo does not build it");
    started.elapsed()
}

fn run(folder: &Path, arguments: &[&str]) -> bool {
    let target = folder.join("target");
    let mut cargo = Command::new("cargo");
    cargo.arg("--quiet").args(arguments).current_dir(folder).env("CARGO_TARGET_DIR", target).status().unwrap().success()
}
