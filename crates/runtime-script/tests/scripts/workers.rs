//! How many workers there are, when they end, and who gets which.

use std::{sync::Arc, time::Duration};

use crate::support::{Bench, FakeHost, eventually, script, value};
use skillz_json::json;
use skillz_runtime_script::ScriptBounds;
use skillz_sandbox::SandboxKind;
use skillz_tool::{EnvironmentVariable, Host, Isolation, Tool, ToolRuntime};

fn bounds(workers_per_tool: usize, workers: usize) -> ScriptBounds {
    ScriptBounds { workers_per_tool, workers, ..ScriptBounds::default() }
}

async fn doubler(bench: &Bench, name: &str) -> Arc<Tool> {
    bench.register(script(name, "python3", "import os\ndef run(n): return [n * 2, os.getppid()]")).await
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn sixty_four_calls_of_eight_tools_are_answered_within_the_bounds() {
    let bench = Arc::new(Bench::with(bounds(2, 6), SandboxKind::None));
    let mut tools = Vec::new();
    for index in 0..8 {
        tools.push(if index % 2 == 0 {
            doubler(&bench, &format!("tool_{index}")).await
        } else {
            bench
                .register(script(&format!("tool_{index}"), "node", "export function run({ n }) { return [n * 2, process.pid] }"))
                .await
        });
    }
    let mut calls = tokio::task::JoinSet::new();
    for n in 0..64_usize {
        let (bench, tool) = (Arc::clone(&bench), Arc::clone(&tools[n % 8]));
        calls.spawn(async move {
            let answer = value(bench.run(&tool, json!({"n": n})).await);
            assert!(bench.runtime.workers().1 <= 6, "{:?}", bench.runtime.workers());
            (n, answer[0].clone())
        });
    }
    for (n, answer) in calls.join_all().await {
        assert_eq!(answer, json!(n * 2));
    }
    let (idle, all) = bench.runtime.workers();
    assert!(idle == all && all <= 6, "{idle} of {all}");
}

#[tokio::test]
async fn idle_workers_end_and_so_do_retired_ones() {
    let bench =
        Bench::with(ScriptBounds { worker_idle: Duration::from_millis(200), ..ScriptBounds::default() }, SandboxKind::None);
    let tool = doubler(&bench, "idle").await;
    let pid = value(bench.run(&tool, json!({"n": 1})).await)[1].clone();
    let is_gone = move || !std::path::Path::new(&format!("/proc/{pid}")).exists();
    eventually("the idle worker has ended", is_gone).await;
    eventually("it is counted no more", || bench.runtime.workers() == (0, 0)).await;

    let bench = Bench::new();
    let tool = doubler(&bench, "old").await;
    let pid = value(bench.run(&tool, json!({"n": 1})).await)[1].clone();
    assert_eq!(bench.runtime.workers(), (1, 1));
    bench.runtime.retire(&tool);
    assert_eq!(bench.runtime.workers(), (0, 0));
    eventually("the retired worker has ended", move || !std::path::Path::new(&format!("/proc/{pid}")).exists()).await;
}

#[tokio::test]
async fn a_worker_that_died_while_idle_is_replaced_unseen() {
    let bench = Bench::new();
    let tool = doubler(&bench, "dies").await;
    let first = value(bench.run(&tool, json!({"n": 1})).await)[1].as_i64().unwrap();
    let mut killer = script("killer", "python3", "import os\ndef run(pid: int):\n    os.kill(pid, 9)");
    killer.manifest.isolation = Some(Isolation::Worker);
    let killer = bench.register(killer).await;
    bench.run(&killer, json!({"pid": first})).await.unwrap();
    eventually("it is dead", || !std::path::Path::new(&format!("/proc/{first}")).exists()).await;
    let second = value(bench.run(&tool, json!({"n": 1})).await)[1].as_i64().unwrap();
    assert_ne!(first, second);
}

#[tokio::test]
async fn calls_with_other_grants_never_share_a_worker() {
    let bench = Bench::new();
    let tool = bench
        .register(script("secret", "python3", "import os\ndef run(): return [os.environ.get('SECRET'), os.getppid()]"))
        .await;
    let host = || Arc::new(FakeHost::default()) as Arc<dyn Host>;
    let plain = value(bench.run(&tool, json!({})).await);
    let mut call = bench.call(&tool, json!({}));
    call.grants.environment = vec![EnvironmentVariable { name: "SECRET".into(), value: "s3cret".into() }];
    let granted = value(bench.runtime.call(call, host()).await);
    assert_eq!((&plain[0], &granted[0]), (&json!(null), &json!("s3cret")));
    assert_ne!(plain[1], granted[1]);
    assert_eq!(value(bench.run(&tool, json!({})).await), plain, "the first worker serves the next plain call");
}

#[tokio::test]
async fn inner_calls_never_wait_for_their_caller() {
    let bench = Bench::with(bounds(1, 1), SandboxKind::None);
    let tool = doubler(&bench, "inner").await;
    let blocker = bench.register(script("outer", "python3", "import skillz\ndef run(): return skillz.call('slow')")).await;
    let outer = bench.run(&blocker, json!({}));
    tokio::pin!(outer);
    // The outer call takes the only place and waits.
    tokio::select! {
        _ = &mut outer => panic!("the outer call does not end"),
        () = eventually("the only place is taken", || bench.runtime.workers() == (0, 1)) => {}
    }
    let mut call = bench.call(&tool, json!({"n": 21}));
    call.context.depth = 2;
    let inner = bench.runtime.call(call, Arc::new(FakeHost::default()) as Arc<dyn Host>);
    let answer = tokio::select! {
        _ = &mut outer => panic!("the outer call does not end"),
        answer = inner => value(answer),
    };
    assert_eq!(answer[0], json!(42));
}

#[tokio::test]
async fn a_cancelled_call_ends_its_worker() {
    let bench = Bench::new();
    let code =
        "import os, time\ndef run():\n    open(os.environ['DATA'] + '/pid', 'w').write(str(os.getpid()))\n    time.sleep(300)";
    let tool = bench.register(script("cancelled", "python3", code)).await;
    let mut call = bench.call(&tool, json!({}));
    let data = call.context.data_directory.clone();
    call.grants.environment = vec![EnvironmentVariable { name: "DATA".into(), value: data.display().to_string() }];
    let running = bench.runtime.call(call, Arc::new(FakeHost::default()) as Arc<dyn Host>);
    let pid = || std::fs::read_to_string(data.join("pid")).unwrap_or_default();
    tokio::select! {
        _ = running => panic!("it sleeps"),
        () = eventually("it runs", || !pid().is_empty()) => {}
    }
    eventually("it is gone", || !std::path::Path::new(&format!("/proc/{}", pid())).exists()).await;
    assert_eq!(bench.runtime.workers(), (0, 0));
    let left = std::fs::read_dir(bench.home.path().join("cache/work")).unwrap().count();
    eventually("its folder is gone", || {
        left == 0 || std::fs::read_dir(bench.home.path().join("cache/work")).unwrap().count() == 0
    })
    .await;
}
