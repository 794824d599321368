//! Function scripts in warm workers, Python and JavaScript.

use std::sync::Arc;

use crate::support::{Bench, FakeHost, script, value, with_protocol, with_timeout};
use skillz_json::{Value, json};
use skillz_tool::{ErrorKind, Isolation, Protocol};

#[tokio::test]
async fn functions_are_called_by_name_in_both_languages() {
    let bench = Bench::new();
    let python = bench
        .register(script(
            "count",
            "python3",
            "def run(text: str, limit: int = 10) -> dict:\n    print('log')\n    return {'words': len(text.split()[:limit])}",
        ))
        .await;
    let node = bench
        .register(script(
            "count_js",
            "node",
            "export async function run({ text }) { console.log('log'); return { words: text.split(/\\s+/).length }; }",
        ))
        .await;
    for tool in [&python, &node] {
        let host = Arc::new(FakeHost::default());
        for _ in 0..3 {
            assert_eq!(value(bench.run_with(tool, json!({"text": "a b c"}), &host).await), json!({"words": 3}));
        }
        assert_eq!(host.log_text(), "log\nlog\nlog\n");
    }
    assert_eq!(bench.runtime.workers(), (2, 2), "one warm worker for each");
    assert_eq!(python.manifest.input_schema.as_ref().unwrap()["required"], json!(["text"]));
}

#[tokio::test]
async fn every_form_of_function_is_called() {
    let bench = Bench::new();
    for (interpreter, code, arguments, result) in [
        ("python3", "async def run(a):\n    import asyncio\n    await asyncio.sleep(0)\n    return a", json!({"a": 1}), json!(1)),
        ("python3", "def run(**rest): return rest", json!({"x": 1, "y": [2]}), json!({"x": 1, "y": [2]})),
        ("python3", "def run(a, /, b=2, *, c=3): return [a, b, c]", json!({"a": 1, "c": 5}), json!([1, 2, 5])),
        ("python3", "def run(): pass", json!({}), Value::Null),
        ("python3", "def run(): return '重要 ★ 🎉 é\\x00'", json!({}), json!("重要 ★ 🎉 é\u{0}")),
        (
            "python3",
            "import helper_of_tool as h\ndef run(n: int): return n + h.ONE",
            json!({"n": 9_007_199_254_740_993_i64}),
            json!(9_007_199_254_740_994_i64),
        ),
        ("node", "module.exports = { run: ({ a }) => a * 2 }", json!({"a": 4}), json!(8)),
        ("node", "module.exports = async function (args) { return Object.keys(args) }", json!({"a": 4}), json!(["a"])),
        (
            "node",
            "export default async ({ a }) => [a, typeof require('fs').readFileSync]",
            json!({"a": 4}),
            json!([4, "function"]),
        ),
        ("node", "import fs from 'node:fs';\nexport const run = () => fs.existsSync('.')", json!({}), json!(true)),
        (
            "node",
            "export function run() { return { big: 12n, map: new Map([['a', 1]]), set: new Set([1]), none: undefined } }",
            json!({}),
            json!({"big": 12, "map": {"a": 1}, "set": [1]}),
        ),
        (
            "node",
            "enum Color { Red = 'red' }\ntype A = { a?: number };\nexport function run({ a = 1 }: A): string { return Color.Red + a }",
            json!({"a": 2}),
            json!("red2"),
        ),
    ] {
        std::fs::create_dir_all(bench.home.path().join("tools/once")).unwrap();
        std::fs::write(bench.home.path().join("tools/once/helper_of_tool.py"), "ONE = 1").unwrap();
        assert_eq!(bench.once(interpreter, code, arguments).await, result, "{code}");
    }
}

#[tokio::test]
async fn python_calls_share_nothing_and_javascript_keeps_its_module() {
    let bench = Bench::new();
    let code = "import os, random\ncalls = []\ndef run():\n    calls.append(1)\n    seen = os.environ.get('LEFT')\n    os.environ['LEFT'] = 'x'\n    open('junk', 'w').close()\n    os.makedirs('deep/er')\n    files = len(os.listdir('.'))\n    os.chdir('/')\n    return [len(calls), seen, files, random.random()]";
    let python = bench.register(script("apart", "python3", code)).await;
    let first = value(bench.run(&python, json!({})).await);
    let second = value(bench.run(&python, json!({})).await);
    assert_eq!((&first[0], &first[1], &first[2]), (&json!(1), &Value::Null, &json!(2)));
    assert_eq!((&second[0], &second[1], &second[2]), (&json!(1), &Value::Null, &json!(2)));
    assert_ne!(first[3], second[3], "random numbers do not repeat");

    let code = "import fs from 'fs';\nlet calls = 0;\nexport function run() { calls += 1; fs.writeFileSync('junk', ''); const files = fs.readdirSync('.').length; process.chdir('/'); return [calls, files]; }";
    let node = bench.register(script("kept", "node", code)).await;
    assert_eq!(value(bench.run(&node, json!({})).await), json!([1, 1]));
    assert_eq!(value(bench.run(&node, json!({})).await), json!([2, 1]));
}

#[tokio::test]
async fn exceptions_are_failures_with_their_own_traceback() {
    let bench = Bench::new();
    for (interpreter, code, parts, absent) in [
        (
            "python3",
            "def inner(x):\n    raise ValueError('bad ' + x)\ndef run():\n    print('before')\n    inner('y')",
            vec!["`fails` failed: ValueError: bad y", "before", "main.py\", line 2, in inner", "line 5, in run"],
            "_skillz",
        ),
        (
            "python3",
            "async def run():\n    try:\n        1 / 0\n    except ZeroDivisionError as e:\n        raise KeyError('k') from e",
            vec!["KeyError: 'k'", "Caused by ZeroDivisionError"],
            "asyncio",
        ),
        ("python3", "import sys\ndef run(): sys.exit('stop')", vec!["sys.exit('stop')"], "_skillz"),
        ("python3", "def run(): return object()", vec!["The result cannot be sent", "`object`"], "_skillz"),
        ("python3", "def run(): return {'rows': [1, {'x': print}]}", vec!["result[\"rows\"][1][\"x\"]", "builtin"], "_skillz"),
        ("python3", "def run():\n    a = []\n    a.append(a)\n    return a", vec!["holds itself"], "_skillz"),
        ("python3", "def run(): return run()", vec!["RecursionError"], "_skillz"),
        (
            "node",
            "function inner(x) { throw new TypeError('bad ' + x) }\nexport function run() { console.log('before'); inner('y') }",
            vec!["TypeError: bad y", "before", "at inner (main.mjs:1"],
            "worker.mjs",
        ),
        (
            "node",
            "export async function run() { await null; throw 'just text' }",
            vec!["`fails` failed: just text"],
            "worker.mjs",
        ),
        ("node", "export function run() { return () => 1 }", vec!["no form as JSON"], "worker.mjs"),
        ("node", "export function run() { const a = {}; a.a = a; return a }", vec!["holds itself"], "worker.mjs"),
        (
            "node",
            "interface A { a: string }\n\nexport function run(a: A) {\n  throw new Error('typed');\n}",
            vec!["Error: typed", "main.ts:4"],
            "worker.mjs",
        ),
        (
            "node",
            "export function run() { return new Promise((_, no) => setTimeout(() => { throw new Error('later') }, 1)) }",
            vec!["Error: later"],
            "worker.mjs",
        ),
    ] {
        let tool = bench.register(script("fails", interpreter, code)).await;
        let error = bench.run(&tool, json!({})).await.expect_err(code);
        let text = error.text();
        for part in parts {
            assert!(text.contains(part), "{part} is not in: {text}");
        }
        assert!(!text.contains(absent), "{absent} is in: {text}");
        assert_eq!(error.kind, ErrorKind::Failed);
    }
}

#[tokio::test]
async fn a_crash_costs_only_its_own_call() {
    let bench = Bench::new();
    let code = "import os, time, ctypes\nLOADED = time.time()\ndef run(how=''):\n    if how == 'exit': os._exit(3)\n    if how == 'crash': ctypes.string_at(0)\n    if how == 'kill': os.kill(os.getpid(), 9)\n    if how == 'parent': os.kill(os.getppid(), 9); time.sleep(60)\n    return LOADED";
    let tool = bench.register(script("crashes", "python3", code)).await;
    let loaded = value(bench.run(&tool, json!({})).await);
    for (how, part) in [("exit", "exit code 3"), ("crash", "signal 11"), ("kill", "signal 9")] {
        let error = bench.run(&tool, json!({"how": how})).await.expect_err(how);
        assert!(error.text().contains(part), "{error}");
        assert_eq!(value(bench.run(&tool, json!({})).await), loaded, "the module is still warm after {how}");
    }
    assert!(bench.run(&tool, json!({"how": "parent"})).await.is_err());
    value(bench.run(&tool, json!({})).await);

    let tool =
        bench.register(script("leaves", "node", "export function run({ how }) { if (how) process.exit(4); return 1 }")).await;
    let error = bench.run(&tool, json!({"how": 1})).await.expect_err("exits");
    assert!(error.text().contains("exit code 4"), "{error}");
    assert_eq!(value(bench.run(&tool, json!({})).await), json!(1));
}

#[tokio::test]
async fn a_module_with_threads_of_its_own_runs_where_calls_share_it() {
    let bench = Bench::new();
    let code = "import queue, threading, time\ntodo, done = queue.Queue(), queue.Queue()\ndef work():\n    while True: done.put(todo.get() * 2)\n\
                threading.Thread(target=work, daemon=True).start()\ncalls = []\ndef run(n: int):\n    calls.append(n)\n    todo.put(n)\n    return [done.get(timeout=10), len(calls)]";
    let refused = bench.prepare(script("threads", "python3", code)).await.expect_err("forks have no threads");
    assert!(refused.text().contains("isolation: \"worker\""), "{refused}");
    let mut shared = script("threads", "python3", code);
    shared.manifest.isolation = Some(Isolation::Worker);
    let tool = bench.register(shared).await;
    for n in [1, 2, 3] {
        assert_eq!(value(bench.run(&tool, json!({"n": n})).await), json!([n * 2, n]));
    }
    assert_eq!(bench.runtime.workers(), (1, 1));
}

#[tokio::test]
async fn time_is_up_for_spinning_and_sleeping_calls_alike() {
    let bench = Bench::new();
    for (interpreter, code) in [
        (
            "python3",
            "import time\ndef run(spin=True):\n    print('begun')\n    while spin: pass\n    time.sleep(60 if spin is None else 0)\n    return 1",
        ),
        (
            "node",
            "export async function run({ spin }) { console.log('begun'); while (spin) {} if (spin === null) await new Promise(() => {}); return 1 }",
        ),
    ] {
        let tool = bench.register(with_timeout(script("spins", interpreter, code), 2_000)).await;
        assert_eq!(value(bench.run(&tool, json!({"spin": false})).await), json!(1));
        for spin in [json!(true), Value::Null] {
            let begun = std::time::Instant::now();
            let error = bench.run(&tool, json!({"spin": spin})).await.expect_err("never ends");
            assert_eq!(error.kind, ErrorKind::TimedOut, "{error}");
            assert!(error.text().contains("2 s") && error.text().contains("begun"), "{error}");
            assert!(begun.elapsed() < std::time::Duration::from_secs(15));
        }
        assert_eq!(value(bench.run(&tool, json!({"spin": false})).await), json!(1), "the next call gets a new worker");
    }
}

#[tokio::test]
async fn processes_that_a_call_leaves_behind_end_with_it() {
    let bench = Bench::new();
    let python = "import os, subprocess\ndef run():\n    p = subprocess.Popen(['sleep', '300'])\n    os.system('setsid sleep 301 & echo $! > daemon')\n    return [p.pid, int(open('daemon').read())]";
    let node = "import { spawn, execSync } from 'node:child_process';\nexport function run() { const p = spawn('sleep', ['300'], { detached: true }); const daemon = execSync('setsid sleep 301 > /dev/null 2>&1 & echo $!'); return [p.pid, Number(String(daemon))]; }";
    for (interpreter, code) in [("python3", python), ("node", node)] {
        let tool = bench.register(script("leaves", interpreter, code)).await;
        let pids = value(bench.run(&tool, json!({})).await);
        for pid in pids.as_array().unwrap() {
            let path = format!("/proc/{pid}/stat");
            let is_gone = || std::fs::read_to_string(&path).map_or(true, |stat| stat.contains(") Z "));
            crate::support::eventually(&format!("{interpreter}: {pid} is gone"), is_gone).await;
        }
        assert!(bench.run(&tool, json!({})).await.is_ok());
    }
}

#[tokio::test]
async fn large_values_and_floods_pass() {
    let bench = Bench::new();
    let text = "ü".repeat(2_000_000);
    for (interpreter, code) in [
        ("python3", "import sys\ndef run(text):\n    sys.stderr.write('e' * 1_000_000)\n    return text"),
        ("node", "export function run({ text }) { process.stderr.write('e'.repeat(1000000)); return text }"),
    ] {
        assert_eq!(bench.once(interpreter, code, json!({"text": text})).await, json!(text), "{interpreter}");
    }
    let mut noisy = script("noisy", "python3", "def run():\n    while True: print('x' * 1000)");
    noisy.manifest.limits.max_output_bytes = Some(1_000_000);
    let tool = bench.register(noisy).await;
    assert_eq!(bench.run(&tool, json!({})).await.expect_err("prints for ever").kind, ErrorKind::LimitExceeded);
}

#[tokio::test]
async fn what_cannot_be_loaded_is_refused_at_registration() {
    let bench = Bench::new();
    for (interpreter, code, part) in [
        ("python3", "def run(:\n    pass", "SyntaxError"),
        ("python3", "import no_such_module_here\ndef run(): pass", "no_such_module_here"),
        ("python3", "def run(): pass\nraise RuntimeError('at import')", "RuntimeError: at import"),
        ("python3", "print('x')", "no function `run`"),
        ("node", "import x from 'no-such-package-here';\nexport function run() {}", "no-such-package-here"),
        ("node", "export function run( {", "not valid JavaScript"),
        ("node", "export const x = 1", "exports neither"),
        ("node", "throw new Error('at load');\nexport function run() {}", "at load"),
    ] {
        let error = bench.prepare(with_protocol(script("broken", interpreter, code), Protocol::Function)).await.expect_err(code);
        assert!(error.text().contains(part), "{part} is not in: {error}");
    }
}

#[tokio::test]
async fn a_module_that_needs_its_permissions_is_read_without_running_it() {
    let bench = Bench::new();
    let code = "import os\nfrom dataclasses import dataclass\nKEY = os.environ['SKILLZ_API_KEY']\n@dataclass\nclass Point:\n    x: int\ndef run(p: Point, n: int = 2) -> dict:\n    return {}";
    let mut asks = script("asks", "python3", code);
    asks.manifest.permissions.env = vec!["SKILLZ_API_KEY".into()];
    let (prepared, _) = bench.prepare(asks).await.expect("may need its variable");
    assert!(prepared.notes.iter().any(|note| note.contains("KeyError")), "{:?}", prepared.notes);
    let schema = prepared.manifest.input_schema.unwrap();
    assert_eq!(
        (&schema["required"], &schema["properties"]["p"]["properties"]["x"]),
        (&json!(["p"]), &json!({"type": "integer"}))
    );
    assert!(bench.prepare(script("asks_not", "python3", code)).await.is_err());
}
