//! Work for the processor, in a guest and natively: the same Rust, compiled twice.

use std::{
    process::Command,
    time::{Duration, Instant},
};

use sha2::{Digest, Sha256};
use skillz_json::json;

use crate::{median, optimised, row, support::Bench};

const SIEVE: &str = r#"
fn main() {
    let size = std::hint::black_box(20_000_000usize);
    let mut composite = vec![false; size + 1];
    let mut number = 2;
    while number * number <= size {
        if !composite[number] { let mut multiple = number * number; while multiple <= size { composite[multiple] = true; multiple += number; } }
        number += 1;
    }
    println!("{}", composite[2..].iter().filter(|composite| !**composite).count());
}"#;

const MATRIX: &str = r#"
fn main() {
    let size = std::hint::black_box(400usize);
    let left: Vec<f64> = (0..size * size).map(|number| (number % 7) as f64).collect();
    let right: Vec<f64> = (0..size * size).map(|number| (number % 11) as f64).collect();
    let mut product = vec![0.0; size * size];
    for row in 0..size {
        for middle in 0..size {
            let factor = left[row * size + middle];
            let (target, source) = (&mut product[row * size..][..size], &right[middle * size..][..size]);
            for (sum, value) in target.iter_mut().zip(source) { *sum += factor * value; }
        }
    }
    println!("{}", product.iter().sum::<f64>());
}"#;

const HASH: &str = r#"
use sha2::{Digest, Sha256};
fn main() {
    let block = vec![7u8; 1 << 20];
    let mut hasher = Sha256::new();
    for _ in 0..64 { hasher.update(&block); }
    println!("{:x}", hasher.finalize());
}"#;

pub(crate) async fn run() {
    println!("\n== Work for the processor ==");
    let bench = Bench::new();
    for (name, code, crates) in [("sieve", SIEVE, &[][..]), ("matrix", MATRIX, &[]), ("sha256_64mb", HASH, &["sha2@0.10"])] {
        let tool = bench.build(name, code, crates).await.unwrap();
        optimised(&bench).await;
        let mut times = Vec::new();
        for _ in 0..5 {
            let started = Instant::now();
            bench.call(&tool, json!({})).await.unwrap();
            times.push(started.elapsed());
        }
        let native = if crates.is_empty() { native(code) } else { native_hash() };
        row(name, median(times), Some(("native", native)));
    }
}

/// Times a ready module.
pub(crate) async fn run_module(path: &str) {
    let bench = Bench::new();
    let tool = bench.module("ready", &std::fs::read(path).unwrap());
    bench.call(&tool, json!({})).await.unwrap();
    optimised(&bench).await;
    let mut times = Vec::new();
    for _ in 0..7 {
        let started = Instant::now();
        bench.call(&tool, json!({})).await.unwrap();
        times.push(started.elapsed());
    }
    row(path, median(times), None);
}

/// The same program as a native one.
fn native(code: &str) -> Duration {
    let folder = tempfile::tempdir().unwrap();
    let (source, program) = (folder.path().join("main.rs"), folder.path().join("program"));
    std::fs::write(&source, code).unwrap();
    let built =
        Command::new("rustc").args(["--edition=2021", "-Copt-level=3", "-o"]).arg(&program).arg(&source).status().unwrap();
    assert!(built.success());
    let times = (0..5).map(|_| {
        let started = Instant::now();
        Command::new(&program).output().unwrap();
        started.elapsed()
    });
    median(times.collect())
}

fn native_hash() -> Duration {
    let block = vec![7u8; 1 << 20];
    let times = (0..5).map(|_| {
        let started = Instant::now();
        let mut hasher = Sha256::new();
        for _ in 0..64 {
            hasher.update(&block);
        }
        std::hint::black_box(hasher.finalize());
        started.elapsed()
    });
    median(times.collect())
}
