//! What script calls and installs cost, each next to the bare thing. Run with `cargo bench -p skillz-runtime-script`.
//!
//! Installs use the public package indexes, or whatever the environment (`PIP_INDEX_URL` and so on) names.
#![allow(
    clippy::unwrap_used,
    clippy::expect_used,
    clippy::panic,
    clippy::indexing_slicing,
    clippy::print_stdout,
    clippy::disallowed_methods,
    reason = "a bench that cannot go on should say so, prints its table, and starts the bare programs it is measured against"
)]

#[path = "../tests/scripts/support.rs"]
mod support;

use std::{
    process::{Command, Stdio},
    time::{Duration, Instant},
};

use skillz_json::{Value, json};
use skillz_runtime_script::ScriptBounds;
use skillz_sandbox::SandboxKind;
use support::{Bench, script};

fn main() {
    skillz_process::run_helper_if_asked();
    let runtime = tokio::runtime::Builder::new_multi_thread().worker_threads(2).enable_all().build().unwrap();
    runtime.block_on(async {
        calls().await;
        installs().await;
    });
}

/// A tool, and the bare command that does the same.
struct Case {
    name: &'static str,
    interpreter: &'static str,
    code: &'static str,
    dependencies: &'static [&'static str],
    bare: &'static [&'static str],
    runs: usize,
}

const CASES: [Case; 7] = [
    Case {
        name: "Python function",
        interpreter: "python3",
        code: "def run(text=''): return {'words': len(text.split())}",
        dependencies: &[],
        bare: &["/usr/bin/python3", "-c", "pass"],
        runs: 200,
    },
    Case {
        name: "Python function, imports",
        interpreter: "python3",
        code: "import json, asyncio, http.client, decimal, sqlite3\ndef run(text=''): return {'words': len(text.split())}",
        dependencies: &[],
        bare: &["/usr/bin/python3", "-c", "import json, asyncio, http.client, decimal, sqlite3"],
        runs: 200,
    },
    Case {
        name: "Python function, numpy",
        interpreter: "python3",
        code: "import numpy\ndef run(text=''): return float(numpy.arange(10).sum())",
        dependencies: &["numpy"],
        bare: &[],
        runs: 50,
    },
    Case {
        name: "Python function, pandas",
        interpreter: "python3",
        code: "import pandas\ndef run(text=''): return pandas.DataFrame({'a': [1, 2]}).sum().to_dict()",
        dependencies: &["pandas"],
        bare: &[],
        runs: 50,
    },
    Case {
        name: "JavaScript function",
        interpreter: "node",
        code: "export function run({ text }) { return { words: (text ?? '').split(' ').length } }",
        dependencies: &[],
        bare: &["node", "-e", ""],
        runs: 200,
    },
    Case {
        name: "bash process",
        interpreter: "bash",
        code: "read -r line; echo hello",
        dependencies: &[],
        bare: &["bash", "-c", "read -r line; echo hello"],
        runs: 200,
    },
    Case {
        name: "Python process",
        interpreter: "python3",
        code: "import json, sys\nr = json.loads(sys.stdin.readline())\nprint(json.dumps({'jsonrpc': '2.0', 'id': 1, 'result': 1}))",
        dependencies: &[],
        bare: &["/usr/bin/python3", "-c", "import json, sys; r = json.loads(sys.stdin.readline()); print(1)"],
        runs: 50,
    },
];

async fn calls() {
    println!("{:<28} {:>12} {:>12} {:>12} {:>12} {:>8}", "call", "first ms", "median ms", "p95 ms", "bare ms", "ratio");
    for sandbox in [SandboxKind::None, SandboxKind::Auto] {
        println!("sandbox {}", sandbox.name());
        let bench = Bench::with(ScriptBounds::default(), sandbox);
        for case in &CASES {
            let mut tool = script("bench", case.interpreter, case.code);
            tool.manifest.dependencies = case.dependencies.iter().map(|name| (*name).to_owned()).collect();
            let tool = bench.register(tool).await;
            let first = timed(&bench, &tool).await;
            let mut times = Vec::new();
            for _ in 0..case.runs {
                times.push(timed(&bench, &tool).await);
            }
            let bare_command: Vec<String> = match (case.bare, case.dependencies) {
                ([], _) => bare_import(&bench, case),
                (bare, _) => bare.iter().map(|word| (*word).to_owned()).collect(),
            };
            let bare = median(&mut (0..case.runs.min(40)).map(|_| run_bare(&bare_command)).collect::<Vec<_>>());
            let p95 = percentile(&mut times, 95);
            let middle = median(&mut times);
            println!(
                "  {:<26} {:>12.2} {:>12.2} {:>12.2} {:>12.2} {:>8.2}",
                case.name,
                milliseconds(first),
                milliseconds(middle),
                milliseconds(p95),
                milliseconds(bare),
                middle.as_secs_f64() / bare.as_secs_f64()
            );
            bench.runtime_retire(&tool);
        }
    }
}

/// Imports the same packages with the environment's own Python.
fn bare_import(bench: &Bench, case: &Case) -> Vec<String> {
    let environments = std::fs::read_dir(bench.environments.directory()).unwrap().flatten().map(|entry| entry.path());
    let holds = |path: &std::path::PathBuf| {
        let packages = std::fs::read_dir(path.join("lib")).into_iter().flatten().flatten();
        packages.into_iter().any(|folder| folder.path().join("site-packages").join(case.dependencies[0]).exists())
    };
    let python = environments.into_iter().find(holds).unwrap().join("bin/python3");
    vec![python.display().to_string(), "-c".to_owned(), format!("import {}", case.dependencies[0])]
}

async fn timed(bench: &Bench, tool: &std::sync::Arc<skillz_tool::Tool>) -> Duration {
    let begun = Instant::now();
    bench.run(tool, json!({"text": "a b c"})).await.unwrap();
    begun.elapsed()
}

fn run_bare(command: &[String]) -> Duration {
    let begun = Instant::now();
    let mut child = Command::new(&command[0]).args(&command[1..]).stdin(Stdio::piped()).stdout(Stdio::piped()).spawn().unwrap();
    std::io::Write::write_all(&mut child.stdin.take().unwrap(), b"{}\n").ok();
    child.wait_with_output().unwrap();
    begun.elapsed()
}

async fn installs() {
    println!("{:<28} {:>12} {:>12} {:>12}", "install", "cold ms", "warm ms", "shared ms");
    for (name, interpreter, code, dependency, hides_uv) in [
        ("requests, uv", "python3", "import requests\ndef run(): return 1", "requests", false),
        ("requests, pip", "python3", "import requests\ndef run(): return 1", "requests", true),
        ("left-pad, npm", "node", "import pad from 'left-pad';\nexport function run() { return pad('a', 2) }", "left-pad", false),
    ] {
        let bench = Bench::new_hiding(if hides_uv { &["uv"] } else { &[] });
        if !hides_uv && interpreter == "python3" && bench.runtime.interpreters().locate("uv").is_none() {
            println!("  {name:<26} there is no uv on this machine");
            continue;
        }
        let cold = install(&bench, interpreter, code, dependency).await;
        std::fs::remove_dir_all(bench.environments.directory()).unwrap();
        let warm = install(&bench, interpreter, code, dependency).await;
        let shared = install(&bench, interpreter, code, dependency).await;
        println!("  {:<26} {:>12.0} {:>12.0} {:>12.0}", name, milliseconds(cold), milliseconds(warm), milliseconds(shared));
    }
}

/// A whole registration: install, load, report.
async fn install(bench: &Bench, interpreter: &str, code: &str, dependency: &str) -> Duration {
    let mut tool = script("installs", interpreter, code);
    tool.manifest.dependencies = vec![dependency.to_owned()];
    let begun = Instant::now();
    let tool = bench.register(tool).await;
    let elapsed = begun.elapsed();
    let value: Value = support::value(bench.run(&tool, json!({})).await);
    assert!(!value.is_null());
    std::fs::remove_file(tool.directory.join("lock")).ok();
    elapsed
}

fn milliseconds(duration: Duration) -> f64 {
    duration.as_secs_f64() * 1000.0
}

fn median(times: &mut [Duration]) -> Duration {
    percentile(times, 50)
}

fn percentile(times: &mut [Duration], percent: usize) -> Duration {
    times.sort();
    times[(times.len() - 1) * percent / 100]
}
