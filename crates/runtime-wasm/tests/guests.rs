//! Running ready modules: results, time, cancelling, and guests that do not get in each other's way.

#![allow(
    clippy::unwrap_used,
    clippy::expect_used,
    clippy::panic,
    clippy::indexing_slicing,
    reason = "helpers of tests may fail them"
)]

mod support;

use std::{
    sync::Arc,
    time::{Duration, Instant},
};

use skillz_json::{Value, json};
use skillz_tool::{ErrorKind, Host, ToolRuntime};
use support::{Bench, TestHost, call_of, eventually, printed, timed};

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

/// Loops before `_start`, while it is instantiated.
const LOOP_AT_START: &str =
    r#"(module (memory (export "memory") 1) (func $f (loop $l (br $l))) (start $f) (func (export "_start")))"#;

/// Sleeps for an hour.
const SLEEP: &str = r#"(module
  (import "wasi_snapshot_preview1" "poll_oneoff" (func $poll (param i32 i32 i32 i32) (result i32)))
  (memory (export "memory") 1)
  (func (export "_start")
    (i32.store (i32.const 16) (i32.const 1))
    (i64.store (i32.const 24) (i64.const 3600000000000))
    (drop (call $poll (i32.const 0) (i32.const 256) (i32.const 1) (i32.const 512)))))"#;

/// Makes one request of the host, and prints the reply.
fn request(message: &str) -> String {
    let length = message.len();
    let message = message.replace('"', "\\22");
    format!(
        r#"(module
  (import "skillz" "call" (func $call (param i32 i32) (result i32)))
  (import "skillz" "take" (func $take (param i32 i32) (result i32)))
  (import "wasi_snapshot_preview1" "fd_write" (func $write (param i32 i32 i32 i32) (result i32)))
  (memory (export "memory") 8)
  (data (i32.const 16) "{message}")
  (func (export "_start")
    (i32.store (i32.const 0) (i32.const 4096))
    (i32.store (i32.const 4) (call $take (i32.const 4096) (call $call (i32.const 16) (i32.const {length}))))
    (drop (call $write (i32.const 1) (i32.const 0) (i32.const 1) (i32.const 8)))))"#
    )
}

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
async fn host_requests_are_answered() {
    let bench = Bench::new();
    for (message, reply) in [
        (r#"{"method":"memory/get","params":{"key":"k"}}"#, json!({"result": {"found": false, "value": null}})),
        (r#"{"method":"tools/call","params":{"name":"shout","arguments":{"text":"hi"}}}"#, json!({"result": {"output": "HI"}})),
        (r#"{"method":"nope"}"#, json!({"error": {"code": -32601, "message": "There is no host request `nope`", "data": null}})),
        (
            r#"{"method":"memory/get","params":{}}"#,
            json!({"error": {"code": -32602, "message": "The params of `memory/get` are wrong: missing field `key`", "data": null}}),
        ),
    ] {
        let tool = bench.wat("ask", &request(message));
        let text = printed(bench.call(&tool, json!({})).await.unwrap());
        assert_eq!(serde_json::from_str::<Value>(&text).unwrap(), reply, "{message}");
    }
    let tool = bench.wat("ask", &request("not json"));
    assert!(printed(bench.call(&tool, json!({})).await.unwrap()).contains("-32700"));
    for message in [
        r#"{"method":"log","params":{"level":"info","message":"noted"}}"#,
        r#"{"method":"progress","params":{"current":1,"total":2}}"#,
    ] {
        let tool = bench.wat("tell", &request(message));
        assert_eq!(printed(bench.call(&tool, json!({})).await.unwrap()), "", "a notification has no reply");
    }
    assert_eq!(*bench.host.logs.lock().unwrap(), ["noted"]);
    assert_eq!(bench.host.progress.lock().unwrap().len(), 1);
}

#[tokio::test]
async fn a_pointer_outside_of_the_memory_ends_the_guest_alone() {
    let bench = Bench::new();
    let text = r#"(module (import "skillz" "call" (func $call (param i32 i32) (result i32))) (memory (export "memory") 1)
        (func (export "_start") (drop (call $call (i32.const -8) (i32.const 100)))))"#;
    let error = bench.call(&bench.wat("bad", text), json!({})).await.unwrap_err();
    assert!(error.message.contains("outside of the memory"), "{error}");
    assert_eq!(printed(bench.call(&bench.wat("echo", ECHO), json!({})).await.unwrap()), "{}");
}

#[tokio::test]
async fn loops_and_sleeps_end_at_their_limit() {
    let bench = Bench::new();
    for (name, text) in [("spin", LOOP), ("spin_early", LOOP_AT_START), ("sleeper", SLEEP)] {
        let tool = bench.wat(name, text);
        let started = Instant::now();
        let error = bench.run(timed(&tool, json!({}), Duration::from_millis(100))).await.unwrap_err();
        assert_eq!(error.kind, ErrorKind::TimedOut, "{name}: {error}");
        assert!(error.message.contains(&format!("`{name}` did not finish within 100 ms")), "{error}");
        assert!(started.elapsed() < Duration::from_secs(5), "{name}: {:?}", started.elapsed());
    }
    eventually("the end of all guests", || bench.runtime.running_guests() == 0).await;
}

#[tokio::test]
async fn dropping_a_call_ends_its_guest() {
    let bench = Bench::new();
    for (name, text) in [("spin", LOOP.to_owned()), ("sleeper", SLEEP.to_owned())] {
        let tool = bench.wat(name, &text);
        let call = tokio::spawn({
            let (runtime, host) = (Arc::clone(&bench.runtime), Arc::clone(&bench.host) as Arc<dyn Host>);
            let call = call_of(&tool, json!({}));
            async move { runtime.call(call, host).await }
        });
        eventually("a running guest", || bench.runtime.running_guests() == 1).await;
        call.abort();
        eventually("the end of the guest", || bench.runtime.running_guests() == 0).await;
    }
}

#[tokio::test]
async fn dropping_a_call_drops_its_request() {
    let bench = Bench::new();
    let tool = bench.wat("waiter", &request(r#"{"method":"tools/call","params":{"name":"wait"}}"#));
    {
        let call = bench.call(&tool, json!({}));
        tokio::select! {
            outcome = call => panic!("the request is never answered, but {outcome:?}"),
            () = bench.host.waiting.notified() => {}
        }
    }
    eventually("the end of the guest", || bench.runtime.running_guests() == 0).await;
    // Nobody waits any more: the release is kept for the next one.
    bench.host.released.notify_one();
    assert!(printed(bench.call(&tool, json!({})).await.unwrap()).contains("output"));
}

#[tokio::test]
async fn the_clock_stands_still_while_it_is_paused() {
    let bench = Bench::new();
    let tool = bench.wat("waiter", &request(r#"{"method":"tools/call","params":{"name":"wait"}}"#));
    // The module is compiled first, which is not what is timed here.
    bench.host.released.notify_one();
    bench.call(&tool, json!({})).await.unwrap();
    let call = timed(&tool, json!({}), Duration::from_millis(50));
    let pause = call.clock.pause();
    let clock = call.clock.clone();
    let running = bench.run(call);
    tokio::pin!(running);
    let early = tokio::time::timeout(Duration::from_millis(200), &mut running).await;
    assert!(early.is_err(), "it ended though its clock stood still: {early:?}");
    drop(pause);
    let error = running.await.unwrap_err();
    assert_eq!(error.kind, ErrorKind::TimedOut);
    assert!(clock.remaining().is_zero());
}

/// Guests that wait for each other's calls, many more than threads, and several deep.
#[tokio::test(flavor = "multi_thread")]
async fn nested_calls_never_wait_for_a_place() {
    let bench = Bench::new();
    let tool = bench.wat("nest", &request(r#"{"method":"tools/call","params":{"name":"again"}}"#));
    let echo = bench.wat("echo", ECHO);
    let (runtime, inner_tool) = (Arc::clone(&bench.runtime), Arc::clone(&tool));
    let host = Arc::new(TestHost::default());
    let weak = Arc::downgrade(&host);
    let depth = Arc::new(std::sync::atomic::AtomicUsize::new(0));
    let again = move |_| {
        let (runtime, host) = (Arc::clone(&runtime), weak.upgrade().unwrap() as Arc<dyn Host>);
        let deeper = depth.fetch_add(1, std::sync::atomic::Ordering::SeqCst) % 4 != 3;
        let tool = if deeper { &inner_tool } else { &echo };
        let call = call_of(tool, json!({}));
        Box::pin(async move { runtime.call(call, host).await.map(|outcome| json!(!printed(outcome).is_empty())) }) as _
    };
    assert!(host.again.set(Box::new(again)).is_ok());
    let calls = (0..64).map(|_| bench.runtime.call(call_of(&tool, json!({})), Arc::clone(&host) as Arc<dyn Host>));
    let outcomes = tokio::time::timeout(Duration::from_mins(1), futures::future::join_all(calls)).await.expect("a deadlock");
    for outcome in outcomes {
        assert!(printed(outcome.unwrap()).contains("output"));
    }
}

#[tokio::test(flavor = "multi_thread")]
async fn a_quick_call_is_not_held_up_by_loops() {
    let bench = Bench::new();
    let (echo, spin) = (bench.wat("echo", ECHO), bench.wat("spin", LOOP));
    bench.call(&echo, json!({})).await.unwrap();
    let spinning: Vec<_> = (0..12)
        .map(|_| {
            let (runtime, host) = (Arc::clone(&bench.runtime), Arc::clone(&bench.host) as Arc<dyn Host>);
            let call = call_of(&spin, json!({}));
            tokio::spawn(async move { runtime.call(call, host).await })
        })
        .collect();
    eventually("running loops", || bench.runtime.running_guests() == 12).await;
    let mut times = Vec::new();
    for _ in 0..50 {
        let started = Instant::now();
        bench.call(&echo, json!({})).await.unwrap();
        times.push(started.elapsed());
    }
    times.sort();
    spinning.iter().for_each(tokio::task::JoinHandle::abort);
    // Measured alone it is about 1 ms; here other tests share the cores.
    assert!(times[25] < Duration::from_millis(100), "median {:?}", times[25]);
}

#[tokio::test]
async fn more_guests_than_the_pool_has_places() {
    let bench = Bench::new();
    let sleep = bench.wat("sleeper", SLEEP);
    let sleeping: Vec<_> = (0..600)
        .map(|_| {
            let (runtime, host) = (Arc::clone(&bench.runtime), Arc::clone(&bench.host) as Arc<dyn Host>);
            let call = call_of(&sleep, json!({}));
            tokio::spawn(async move { runtime.call(call, host).await })
        })
        .collect();
    eventually("600 guests", || bench.runtime.running_guests() == 600).await;
    assert!(sleeping.iter().all(|call| !call.is_finished()));
    sleeping.iter().for_each(tokio::task::JoinHandle::abort);
    eventually("the end of all guests", || bench.runtime.running_guests() == 0).await;
}
