//! What a process costs: started bare, through the launcher, and confined. `cargo bench -p skillz-process`.
//!
//! Rounds of all are interleaved, so that a machine with other work treats them alike. Everything is measured twice: with
//! a pause before each start, as calls come from a model, and without, when nothing can be made ready between two starts.
#![allow(clippy::expect_used, clippy::print_stdout, reason = "a bench that cannot go on should say so, and prints its table")]

use std::{
    path::Path,
    time::{Duration, Instant},
};

use skillz_process::{Command, Keep, Launcher, ProcessLimits, drain, run_helper_if_asked};
use skillz_sandbox::{Policy, SandboxKind};

const ROUNDS: usize = 150;

/// Rounds that are not counted.
const WARM_UP: usize = 10;

/// The pause before each start.
const PAUSE: Duration = Duration::from_millis(10);

/// One way to run a program.
struct Way {
    name: &'static str,
    launcher: Option<Launcher>,
    limits: ProcessLimits,
}

fn main() {
    run_helper_if_asked();
    let runtime = tokio::runtime::Builder::new_multi_thread().worker_threads(2).enable_all().build().expect("a runtime");
    runtime.block_on(measure());
}

async fn measure() {
    let folder = tempfile::tempdir().expect("a folder");
    let own = std::env::current_exe().expect("it runs");
    let limits = ProcessLimits { memory_bytes: Some(1 << 30), max_processes: Some(64), max_file_bytes: None };
    let launcher = |kind| Some(Launcher::new(own.clone(), kind));
    let ways = [
        Way { name: "bare", launcher: None, limits: ProcessLimits::default() },
        Way { name: "none", launcher: launcher(SandboxKind::None), limits: ProcessLimits::default() },
        Way { name: "none, limited", launcher: launcher(SandboxKind::None), limits: limits.clone() },
        Way { name: "builtin", launcher: launcher(SandboxKind::Builtin), limits: ProcessLimits::default() },
        Way { name: "builtin, limited", launcher: launcher(SandboxKind::Builtin), limits },
    ];
    for pause in [Some(PAUSE), None] {
        println!("\n{}", if pause.is_some() { "With a pause before each start" } else { "Without a pause" });
        for (program, arguments) in
            [("/bin/true", vec![]), ("/bin/bash", vec!["-c", ":"]), ("/usr/bin/python3", vec!["-c", "pass"])]
        {
            compare(&ways, program, &arguments, folder.path(), pause).await;
        }
    }
}

async fn compare(ways: &[Way], program: &str, arguments: &[&str], folder: &Path, pause: Option<Duration>) {
    let mut times: Vec<Vec<Duration>> = ways.iter().map(|_| Vec::new()).collect();
    for round in 0..ROUNDS + WARM_UP {
        for (way, times) in ways.iter().zip(&mut times) {
            if let Some(pause) = pause {
                tokio::time::sleep(pause).await;
            }
            let started = Instant::now();
            run(way, program, arguments, folder).await;
            if round >= WARM_UP {
                times.push(started.elapsed());
            }
        }
    }
    println!("{program} {}", arguments.join(" "));
    for (way, times) in ways.iter().zip(&mut times) {
        times.sort();
        let at = |share: usize| times.get(times.len() * share / 100).copied().unwrap_or_default().as_secs_f64() * 1000.0;
        println!("  {:<18} median {:6.2} ms   fastest {:6.2} ms   p95 {:6.2} ms", way.name, at(50), at(0), at(95));
    }
}

async fn run(way: &Way, program: &str, arguments: &[&str], folder: &Path) {
    let Some(launcher) = &way.launcher else {
        let output =
            std::process::Command::new(program).args(arguments).env_clear().current_dir(folder).output().expect("it runs");
        assert!(output.status.success());
        return;
    };
    let command = Command {
        program: program.into(),
        arguments: arguments.iter().map(Into::into).collect(),
        environment: vec![("PATH".into(), "/usr/bin:/bin".into())],
        directory: folder.to_owned(),
        policy: Some(Policy { read_write: vec![folder.to_owned()], ..Policy::default() }),
        limits: way.limits.clone(),
    };
    let mut child = launcher.spawn(command).await.expect("it starts");
    child.stdin = None;
    let stdout = child.stdout.take().expect("it has one");
    let stderr = child.stderr.take().expect("it has one");
    let (_, _, exit) = tokio::join!(drain(stdout, Keep::Head(100), None), drain(stderr, Keep::Head(100), None), child.wait());
    assert!(exit.expect("it ends").success());
}
