//! Running ready modules: results, limits, and a message for each way of failing.

mod support;

use std::time::{Duration, Instant};

use serde_json::json;
use skillz_tool::{CallClock, ErrorKind};
use support::{Bench, call_of, printed};

skillz_process::helper_entry!();

/// Copies stdin to stdout.
const ECHO: &str = r#"(module
  (import "wasi_snapshot_preview1" "fd_read" (func $read (param i32 i32 i32 i32) (result i32)))
  (import "wasi_snapshot_preview1" "fd_write" (func $write (param i32 i32 i32 i32) (result i32)))
  (memory (export "memory") 1)
  (func (export "_start")
    (loop $again
      (i32.store (i32.const 0) (i32.const 64)) (i32.store (i32.const 4) (i32.const 4096))
      (drop (call $read (i32.const 0) (i32.const 0) (i32.const 1) (i32.const 8)))
      (if (i32.load (i32.const 8)) (then
        (i32.store (i32.const 4) (i32.load (i32.const 8)))
        (drop (call $write (i32.const 1) (i32.const 0) (i32.const 1) (i32.const 12)))
        (br $again))))))"#;

const LOOP: &str = r#"(module (memory (export "memory") 1) (func (export "_start") (loop $l (br $l))))"#;

#[tokio::test]
async fn arguments_come_on_stdin_and_what_is_printed_comes_back() {
    let bench = Bench::new();
    let echo = bench.wat("echo", ECHO);
    for arguments in [json!({}), json!({"a": 9_007_199_254_740_993_i64, "b": ["重要 ★ 🎉 é\u{0}"]})] {
        let outcome = bench.call(&echo, arguments.clone()).await.unwrap();
        assert_eq!(printed(outcome), arguments.to_string());
    }
    let long = json!({"text": "x".repeat(3_000_000)});
    assert_eq!(printed(bench.call(&echo, long.clone()).await.unwrap()), long.to_string());
}

#[tokio::test]
async fn a_loop_ends_at_its_time_limit() {
    let bench = Bench::new();
    let tool = bench.wat("spin", LOOP);
    let mut call = call_of(&tool, json!({}));
    call.limits.timeout = Duration::from_millis(100);
    call.clock = CallClock::start(call.limits.timeout);
    let started = Instant::now();
    let error = bench.run(call).await.unwrap_err();
    assert_eq!(error.kind, ErrorKind::TimedOut);
    assert!(error.message.contains("`spin` did not finish within 100 ms"), "{error}");
    assert!(started.elapsed() < Duration::from_secs(5));
}
