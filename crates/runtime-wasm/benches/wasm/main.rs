//! What calls and builds of WASM tools cost, each beside the thing it is compared with.
//!
//! `cargo bench --profile dev -p skillz-runtime-wasm --bench wasm [-- PART ...]`, with the parts `call`, `restart`,
//! `build`, `throughput`, `memory`, `compute` and `misbehave`; all of them without a part. A part that ends in `.wasm`
//! is a module to be timed.
#![expect(clippy::unwrap_used, clippy::indexing_slicing, clippy::print_stdout, reason = "a bench may stop at the first surprise")]

#[path = "../../tests/support/mod.rs"]
mod support;

mod bare;
mod compute;

use std::{
    sync::Arc,
    time::{Duration, Instant},
};

use skillz_json::json;
use skillz_tool::{Host, Tool, ToolRuntime};
use support::{Bench, call_of, timed};

skillz_process::helper_entry!();

pub(crate) const ECHO: &str = r"use std::io::{Read, Write};
fn main() {
    let mut text = String::new();
    std::io::stdin().read_to_string(&mut text).unwrap();
    std::io::stdout().write_all(text.as_bytes()).unwrap();
}";

const REGEX: &str = r#"use std::collections::BTreeMap;
fn main() {
    let input: serde_json::Value = serde_json::from_reader(std::io::stdin()).unwrap();
    let words = regex::Regex::new(r"\w+").unwrap();
    let mut counts: BTreeMap<&str, usize> = BTreeMap::new();
    for word in words.find_iter(input["text"].as_str().unwrap_or("")) { *counts.entry(word.as_str()).or_default() += 1; }
    println!("{}", serde_json::to_string(&counts).unwrap());
}"#;
const GUEST: &str = "#[skillz::tool]\nfn run(text: String) -> Vec<String> { text.split(' ').map(String::from).collect() }";

const REGEX_CRATES: [&str; 2] = ["serde_json", "regex"];

fn main() {
    let parts: Vec<String> = std::env::args().skip(1).filter(|argument| !argument.starts_with('-')).collect();
    let wanted = |part: &str| parts.is_empty() || parts.iter().any(|wanted| wanted == part);
    let runtime = tokio::runtime::Builder::new_multi_thread().worker_threads(2).enable_all().build().unwrap();
    runtime.block_on(async {
        // Spawned, so that a caller is woken as a server's task is.
        if wanted("call") {
            tokio::spawn(call()).await.unwrap();
        }
        if wanted("restart") {
            tokio::spawn(restart()).await.unwrap();
        }
        if wanted("build") {
            build().await;
        }
        if wanted("throughput") {
            throughput().await;
        }
        if wanted("memory") {
            memory().await;
        }
        if wanted("compute") {
            compute::run().await;
        }
        for path in parts.iter().filter(|part| std::path::Path::new(part).extension().is_some_and(|end| end == "wasm")) {
            compute::run_module(path).await;
        }
        if wanted("misbehave") {
            misbehave().await;
        }
    });
}

pub(crate) fn median(mut times: Vec<Duration>) -> Duration {
    times.sort();
    times[times.len() / 2]
}

fn row(what: &str, time: Duration, beside: Option<(&str, Duration)>) {
    match beside {
        Some((other, of_other)) => {
            let ratio = time.as_secs_f64() / of_other.as_secs_f64();
            println!("{what:<58} {time:>12.2?}   {other}: {of_other:.2?}, ratio {ratio:.2}");
        }
        None => println!("{what:<58} {time:>12.2?}"),
    }
}

/// Waits until calls run optimised code.
async fn optimised(bench: &Bench) {
    let folder = bench.home.path().join("cache/wasm/code");
    let files = || {
        std::fs::read_dir(&folder)
            .unwrap()
            .flatten()
            .filter(|entry| entry.path().extension().is_some_and(|end| end == "cwasm"))
            .count()
    };
    let deadline = Instant::now() + Duration::from_mins(1);
    while files() % 2 != 0 && Instant::now() < deadline {
        tokio::time::sleep(Duration::from_millis(20)).await;
    }
    tokio::time::sleep(Duration::from_millis(50)).await;
}

async fn repeat<F: Future>(count: usize, mut one: impl FnMut() -> F) -> Duration {
    let mut times = Vec::with_capacity(count);
    for _ in 0..count {
        let started = Instant::now();
        one().await;
        times.push(started.elapsed());
    }
    median(times)
}

async fn call() {
    println!("\n== A warm call ==");
    let bench = Bench::new();
    for (name, code, crates, arguments) in [
        ("echo", ECHO, &[][..], json!({"text": "hello"})),
        ("words", REGEX, &REGEX_CRATES, json!({"text": "the quick brown fox jumps over the lazy dog"})),
    ] {
        let tool = bench.build(name, code, crates).await.unwrap();
        optimised(&bench).await;
        let module = std::fs::read(tool.module_path()).unwrap();
        let (host, runtime) = (Arc::clone(&bench.host) as Arc<dyn Host>, Arc::clone(&bench.runtime));
        let count = if name == "echo" { 20_000 } else { 1_000 };
        let bare = tokio::task::spawn_blocking({
            let input = arguments.to_string().into_bytes();
            move || bare::median_call(&module, &input, count)
        });
        let bare = bare.await.unwrap();
        let here =
            repeat(count, || async { runtime.call_here(call_of(&tool, arguments.clone()), Arc::clone(&host)).await.unwrap() })
                .await;
        row(&format!("{name}: on the guests' side"), here, Some(("bare wasmtime", bare)));
        let whole =
            repeat(count / 2, || async { runtime.call(call_of(&tool, arguments.clone()), Arc::clone(&host)).await.unwrap() })
                .await;
        row(&format!("{name}: with handing over between threads"), whole, Some(("without", here)));
        if name == "echo" {
            let python = python();
            let times = python.as_secs_f64() / whole.as_secs_f64();
            println!("echo: with handing over {whole:>46.2?}   python3 -c pass: {python:.2?}, {times:.0} times as long");
        }
    }
}

fn python() -> Duration {
    let program = if std::path::Path::new("/usr/bin/python3").exists() { "/usr/bin/python3" } else { "python3" };
    let times = (0..30).map(|_| {
        let started = Instant::now();
        std::process::Command::new(program).args(["-c", "pass"]).status().unwrap();
        started.elapsed()
    });
    median(times.collect())
}

async fn restart() {
    println!("\n== The first call after a restart, from a module in the cache ==");
    let bench = Bench::new();
    for (name, code, crates) in [("echo", ECHO, &[][..]), ("words", REGEX, &REGEX_CRATES)] {
        let tool = bench.build(name, code, crates).await.unwrap();
        optimised(&bench).await;
        let size = std::fs::metadata(tool.module_path()).unwrap().len();
        let arguments = json!({"text": "the quick brown fox"});
        let warm = repeat(200, || async { bench.call(&tool, arguments.clone()).await.unwrap() }).await;
        let mut first = Vec::new();
        for _ in 0..21 {
            let runtime = support::runtime_in(bench.home.path());
            let host = Arc::clone(&bench.host) as Arc<dyn Host>;
            let started = Instant::now();
            runtime.call(call_of(&tool, arguments.clone()), host).await.unwrap();
            first.push(started.elapsed());
        }
        let first = median(first);
        row(&format!("{name}, {size} bytes: first call"), first, Some(("warm", warm)));
        row(&format!("{name}: difference"), first.saturating_sub(warm), None);
    }
}

async fn build() {
    println!("\n== From source to published ==");
    let bench = Bench::new();
    let number = std::sync::atomic::AtomicUsize::new(0);
    let one = |code: &'static str, crates: &'static [&'static str]| {
        let number = number.fetch_add(1, std::sync::atomic::Ordering::Relaxed);
        let bench = &bench;
        async move {
            // A tool's code is new each time.
            let code = format!("{code}\n// {number}");
            bench.build(&format!("tool{number}"), &code, crates).await.unwrap()
        }
    };
    for (what, code, crates) in
        [("without dependencies", ECHO, &[][..]), ("#[skillz::tool]", GUEST, &[]), ("serde_json and regex", REGEX, &REGEX_CRATES)]
    {
        let started = Instant::now();
        one(code, crates).await;
        row(&format!("{what}: the first"), started.elapsed(), None);
        let single = repeat(7, || one(code, crates)).await;
        row(&format!("{what}: warm"), single, None);
        let mut together = Vec::new();
        for _ in 0..3 {
            let started = Instant::now();
            tokio::join!(one(code, crates), one(code, crates), one(code, crates), one(code, crates));
            together.push(started.elapsed());
        }
        row(&format!("{what}: four at once"), median(together), Some(("one", single)));
    }
}

async fn throughput() {
    println!("\n== Calls per second ==");
    let bench = Bench::new();
    for (name, code, crates, each) in [("echo", ECHO, &[][..], 40_000), ("words", REGEX, &REGEX_CRATES, 3_000)] {
        let tool = bench.build(name, code, crates).await.unwrap();
        optimised(&bench).await;
        let mut rates = Vec::new();
        for clients in [1, 2, 8, 64] {
            let rate = rate(&bench, &tool, clients, each).await;
            println!("{name}: {clients:>2} clients {rate:>44.0} calls/s");
            rates.push(rate);
        }
        println!("{name}: 64 clients to 2 {:>45.2}", rates[3] / rates[1]);
    }
}

async fn rate(bench: &Bench, tool: &Arc<Tool>, clients: usize, calls: usize) -> f64 {
    let started = Instant::now();
    let tasks: Vec<_> = (0..clients)
        .map(|_| {
            let (runtime, host, tool) = (Arc::clone(&bench.runtime), Arc::clone(&bench.host) as Arc<dyn Host>, Arc::clone(tool));
            tokio::spawn(async move {
                for _ in 0..calls / clients {
                    runtime.call(call_of(&tool, json!({"text": "the quick brown fox"})), Arc::clone(&host)).await.unwrap();
                }
            })
        })
        .collect();
    for task in tasks {
        task.await.unwrap();
    }
    calls as f64 / started.elapsed().as_secs_f64()
}

/// Memory that is the process's own, in MB.
fn anonymous_mb() -> f64 {
    let status = std::fs::read_to_string("/proc/self/status").unwrap_or_default();
    let line = status.lines().find_map(|line| line.strip_prefix("RssAnon:")).unwrap_or("0");
    line.trim().trim_end_matches(" kB").parse::<f64>().unwrap_or(0.0) / 1024.0
}

async fn memory() {
    println!("\n== 1,000 tools, each called once ==");
    let bench = Bench::new();
    let small = std::fs::read(bench.build("echo", ECHO, &[]).await.unwrap().module_path()).unwrap();
    let large = std::fs::read(bench.build("words", REGEX, &REGEX_CRATES).await.unwrap().module_path()).unwrap();
    let distinct = |module: &[u8], number: usize| {
        // A custom section makes each module another one.
        let text = format!("{number:04}");
        [module, &[0, 6, 1, b'n'], text.as_bytes()].concat()
    };
    println!("before {:>57.1} MB", anonymous_mb());
    for (what, module, count) in [("small", &small, 950), ("with regex", &large, 50)] {
        for number in 0..count {
            let tool = bench.module(&format!("{}_{number}", &what[..4]), &distinct(module, number));
            bench.call(&tool, json!({"text": "a b"})).await.unwrap();
        }
        println!("after {count} {what} {:>50.1} MB", anonymous_mb());
    }
}

async fn misbehave() {
    println!("\n== Ten of each misbehaving guest at once, one second each, 64 MB ==");
    let code = r#"use std::io::{Read, Write};
fn deep(number: u64) -> u64 { let block = std::hint::black_box([number; 64]); deep(number + 1) + block[7] }
fn main() {
    let mut text = String::new();
    std::io::stdin().read_to_string(&mut text).unwrap();
    let has = |word: &str| text.contains(word);
    if has("spin") { loop { std::hint::black_box(1); } }
    if has("sleep") { std::thread::sleep(std::time::Duration::from_secs(3600)); }
    if has("hoard") { let mut all = Vec::new(); for _ in 0..8192 { all.push(vec![1u8; 1 << 20]); } println!("{}", all.len()); }
    if has("deep") { println!("{}", deep(0)); }
    if has("flood") { let line = vec![b'x'; 1 << 20]; for _ in 0..100 { std::io::stdout().write_all(&line).unwrap(); } }
}"#;
    let bench = Bench::new();
    let tool = bench.build("bad", code, &[]).await.unwrap();
    optimised(&bench).await;
    let kinds = ["spin", "sleep", "hoard", "deep", "flood"];
    let calls: Vec<_> = kinds
        .iter()
        .flat_map(|kind| std::iter::repeat_n(*kind, 10))
        .map(|kind| {
            let mut call = timed(&tool, json!({"do": kind}), Duration::from_secs(1));
            call.limits.memory_bytes = 64 << 20;
            let (runtime, host) = (Arc::clone(&bench.runtime), Arc::clone(&bench.host) as Arc<dyn Host>);
            tokio::spawn(async move {
                let started = Instant::now();
                let error = runtime.call(call, host).await.unwrap_err();
                (kind, started.elapsed(), error.message)
            })
        })
        .collect();
    let mut quick = Vec::new();
    while calls.iter().any(|call| !call.is_finished()) {
        let started = Instant::now();
        bench.call(&tool, json!({})).await.unwrap();
        quick.push(started.elapsed());
        tokio::time::sleep(Duration::from_millis(1)).await;
    }
    let mut ends: Vec<(&str, Duration, String)> = Vec::new();
    for call in calls {
        ends.push(call.await.unwrap());
    }
    for kind in kinds {
        let of_kind = ends.iter().filter(|(other, ..)| *other == kind);
        let longest = of_kind.clone().map(|(_, time, _)| *time).max().unwrap();
        let message = of_kind.map(|(.., message)| message.as_str()).next().unwrap();
        println!("{kind:<8} longest {longest:>10.1?}   {message}");
    }
    quick.sort();
    println!(
        "{} quick calls beside them: median {:.2?}, p95 {:.2?}, longest {:.2?}",
        quick.len(),
        quick[quick.len() / 2],
        quick[quick.len() * 95 / 100],
        quick[quick.len() - 1]
    );
}
