//! What loading, publishing and reading cost. `cargo bench -p skillz-registry`.
#![allow(clippy::print_stdout, clippy::expect_used, reason = "a bench prints its table and stops where it cannot run")]

use std::{
    fs, hint,
    path::Path,
    time::{Duration, Instant},
};

use skillz_registry::{Expectation, Publication, Registry, RegistrySettings};
use skillz_tool::{Manifest, Origin, ToolKind, ToolName};

#[tokio::main]
async fn main() {
    let folder = tempfile::tempdir().expect("a temporary folder");
    let tools = folder.path().join("tools");
    let registry = open(&tools).await;
    let mut times = Vec::new();
    for number in 0..1_000 {
        let started = Instant::now();
        publish(&registry, &format!("tool{number:04}"), "print(1)\n").await;
        times.push(started.elapsed());
    }
    report("publish, new", &mut times);
    for round in 0..50 {
        let started = Instant::now();
        publish(&registry, "tool0500", &format!("print({round})\n")).await;
        times.push(started.elapsed());
    }
    report("publish, 0 to 50 versions", &mut times);
    for round in 50..350 {
        let started = Instant::now();
        publish(&registry, "tool0500", &format!("print({round})\n")).await;
        if round >= 300 {
            times.push(started.elapsed());
        }
    }
    report("publish, 300 to 350 versions", &mut times);
    drop(registry);
    for _ in 0..15 {
        let started = Instant::now();
        let registry = open(&tools).await;
        times.push(started.elapsed());
        assert_eq!(registry.snapshot().len(), 1_000);
    }
    report("load 1,000 tools", &mut times);
    for number in 0..1_000 {
        // As if copied here: the files' times say nothing, so everything is read and hashed.
        let file = fs::File::open(tools.join(format!("tool{number:04}/main.py"))).expect("a source");
        file.set_modified(std::time::SystemTime::now()).expect("a time");
    }
    for _ in 0..5 {
        let started = Instant::now();
        hint::black_box(open(&tools).await.snapshot().len());
        times.push(started.elapsed());
    }
    report("load 1,000 copied tools", &mut times);
    let registry = open(&tools).await;
    let started = Instant::now();
    for _ in 0..1_000_000 {
        hint::black_box(registry.snapshot().get("tool0500"));
    }
    println!("{:<28} {:9.1} ns", "snapshot and get", started.elapsed().as_secs_f64() * 1e3);
    for _ in 0..15 {
        let started = Instant::now();
        registry.reload().await;
        times.push(started.elapsed());
    }
    report("look at all, nothing changed", &mut times);
}

async fn open(tools: &Path) -> Registry {
    let registry = Registry::open(RegistrySettings { tools_directory: tools.to_owned(), watch: false });
    registry.ready().await;
    registry
}

async fn publish(registry: &Registry, name: &str, code: &str) {
    let staging = registry.stage().await.expect("a staging folder");
    fs::write(staging.path().join("main.py"), code).expect("a source");
    let manifest = Manifest { entry_file: Some("main.py".to_owned()), ..Manifest::new(name, "A tool", ToolKind::Script) };
    let name = ToolName::for_new(name).expect("a name");
    let publication = Publication { name, staging, manifest, origin: Origin::Register, expected: Expectation::Anything };
    registry.publish(publication).await.expect("a publish");
}

fn report(name: &str, times: &mut Vec<Duration>) {
    times.sort_unstable();
    let at = |share: usize| times.get(times.len() * share / 100).copied().unwrap_or_default().as_secs_f64() * 1e3;
    println!("{name:<28} {:9.3} ms median {:9.3} ms p95", at(50), at(95));
    times.clear();
}
