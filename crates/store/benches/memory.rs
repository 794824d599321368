//! What one operation of the memory costs, on a file as in service. `cargo bench -p skillz-store`.
#![allow(clippy::print_stdout, clippy::expect_used, reason = "a bench prints its table and stops where it cannot run")]

use std::time::{Duration, Instant};

use skillz_json::json;
use skillz_store::{LibsqlMemory, MemoryLocation};
use skillz_tool::MemoryStore;

const ROUNDS: usize = 2_000;

#[tokio::main]
async fn main() {
    let folder = tempfile::tempdir().expect("a temporary folder");
    let memory = LibsqlMemory::new(MemoryLocation::File(folder.path().join("memory.db")));
    let started = Instant::now();
    memory.get("bench", "absent").await.expect("get");
    println!("first use   {:8.3} ms", started.elapsed().as_secs_f64() * 1e3);
    let value = json!({"text": "x".repeat(200)});
    let mut times = Vec::new();
    for round in 0..ROUNDS {
        let started = Instant::now();
        memory.set("bench", &format!("key{}", round % 100), &value, None).await.expect("set");
        times.push(started.elapsed());
    }
    report("store", &mut times);
    for round in 0..ROUNDS {
        let started = Instant::now();
        memory.get("bench", &format!("key{}", round % 100)).await.expect("get");
        times.push(started.elapsed());
    }
    report("get", &mut times);
    let started = Instant::now();
    let writes = (0..ROUNDS).map(|round| {
        let (memory, value) = (&memory, &value);
        async move { memory.set("bench", &format!("key{}", round % 100), value, None).await }
    });
    for outcome in join_all(writes).await {
        outcome.expect("set");
    }
    println!("store, {ROUNDS} at once {:8.3} ms each", started.elapsed().as_secs_f64() * 1e3 / ROUNDS as f64);
}

fn report(name: &str, times: &mut Vec<Duration>) {
    times.sort_unstable();
    let at = |share: usize| times.get(times.len() * share / 100).copied().unwrap_or_default().as_secs_f64() * 1e3;
    println!("{name:<11} {:8.3} ms median {:8.3} ms p95", at(50), at(95));
    times.clear();
}

/// Drives all futures at once on this task.
async fn join_all<F: Future>(futures: impl Iterator<Item = F>) -> Vec<F::Output> {
    let mut futures: Vec<_> = futures.map(Box::pin).collect();
    let mut outputs = Vec::new();
    std::future::poll_fn(|context| {
        futures.retain_mut(|future| match future.as_mut().poll(context) {
            std::task::Poll::Ready(output) => {
                outputs.push(output);
                false
            }
            std::task::Poll::Pending => true,
        });
        if futures.is_empty() { std::task::Poll::Ready(()) } else { std::task::Poll::Pending }
    })
    .await;
    outputs
}
