//! Script tools under load: right answers, bounded processes, and nothing that stays behind.

use std::{
    fs,
    time::{Duration, Instant},
};

use serde_json::{Value, json};
use skillz_test_support::{
    Era, Home, Run, TestServer, descendants, is_alive, open_files, resident_bytes, threads, until, with_argument, zombies,
};

use crate::{bash_tool, server, skillz};

/// Calls that are under way at once.
const AT_ONCE: u64 = 64;
/// Most processes that the server may have for [`AT_ONCE`] calls: its helpers, and a tree of three for each call.
const MOST_PROCESSES: usize = 220;

/// The server's memory once it has let go of what it does not need at rest, in bytes.
fn memory_at_rest(server: &TestServer) -> u64 {
    let mut least = u64::MAX;
    let mut since = Instant::now();
    until("memory at rest", || {
        let now = resident_bytes(server.pid());
        if now < least {
            (least, since) = (now, Instant::now());
        }
        since.elapsed() > Duration::from_secs(4)
    });
    least
}

/// Eight tools of all kinds of scripts; each gives `n` back.
fn register_eight_tools(server: &mut TestServer) -> Vec<String> {
    let scripts = [
        ("plain", "python3", "def run(n: int) -> int:\n    return n"),
        (
            "counts",
            "python3",
            "calls = 0\ndef run(n: int):\n    global calls\n    calls += 1\n    return n if calls == 1 else 'leaked'",
        ),
        ("sleeps", "python3", "import time\ndef run(n: int) -> int:\n    time.sleep(0.01)\n    return n"),
        ("waits", "python3", "import asyncio\nasync def run(n: int) -> int:\n    await asyncio.sleep(0.01)\n    return n"),
        ("node_plain", "node", "export function run({ n }) { return n }"),
        ("node_waits", "node", "export async function run({ n }) { await new Promise(r => setTimeout(r, 10)); return n }"),
        ("piped", "bash", "python3 -c 'import json,sys; print(json.load(sys.stdin)[\"n\"])'"),
        ("printed", "python3", "import json, sys\nprint(json.load(sys.stdin)['n'])"),
    ];
    for (name, interpreter, code) in scripts {
        let schema = json!({"type": "object", "properties": {"n": {"type": "integer"}}, "required": ["n"]});
        let arguments = json!({"name": name, "description": "Gives its number back.", "code": code, "interpreter": interpreter,
            "input_schema": schema});
        server.value("register_script", arguments);
    }
    scripts.iter().map(|(name, ..)| (*name).to_owned()).collect()
}

/// Sends all calls at once and checks each answer. Gives the highest number of processes seen.
fn call_all_at_once(server: &mut TestServer, tools: &[String], round: u64) -> usize {
    let calls: Vec<(u64, u64)> = (0..AT_ONCE)
        .map(|index| {
            let number = round * 1_000 + index;
            let tool = &tools[index as usize % tools.len()];
            (server.send("tools/call", json!({"name": tool, "arguments": {"n": number}})), number)
        })
        .collect();
    let mut processes = 0;
    for (id, number) in calls {
        let answer = server.answer(id);
        processes = processes.max(descendants(server.pid()).len());
        let text = answer["result"]["content"][0]["text"].as_str().unwrap_or_default().trim().to_owned();
        assert_eq!(text, number.to_string(), "{answer}");
    }
    processes
}

#[test]
fn eight_tools_answer_64_calls_at_once_under_load() {
    let home = Home::new().with_config("[workers]\nidle_seconds = 1\n");
    let mut server = server(&home);
    let tools = register_eight_tools(&mut server);
    // What is made once, such as threads and the helpers, is there after the first round.
    call_all_at_once(&mut server, &tools, 0);
    let is_idle = |server: &TestServer| descendants(server.pid()).len() <= 4;
    until("the end of idle workers", || is_idle(&server));
    let memory = memory_at_rest(&server);
    let descriptors = open_files(server.pid());
    for round in 1..4 {
        let processes = call_all_at_once(&mut server, &tools, round);
        assert!(processes <= MOST_PROCESSES, "{processes} processes for {AT_ONCE} calls");
    }
    until("the end of idle workers", || is_idle(&server));
    until("closed descriptors", || open_files(server.pid()) <= descriptors + 8);
    until("memory as before", || resident_bytes(server.pid()) <= memory + memory / 10);
    assert_eq!(zombies(server.pid()), [0_u32; 0]);
}

#[test]
fn two_hundred_cancelled_calls_leave_nothing_under_load() {
    let home = Home::new().with_config("[workers]\nidle_seconds = 1\n");
    let mut server = server(&home);
    let python = "import subprocess\ndef run():\n    subprocess.run(['sleep', '27182.91'])";
    let sleeps = json!({"name": "python_sleeps", "description": "Sleeps.", "code": python, "interpreter": "python3"});
    server.value("register_script", sleeps);
    server.value("register_script", bash_tool("bash_sleeps", "sleep 27182.91 & sleep 27182.91"));
    server.value("register_script", bash_tool("quick", "echo done"));
    let cancel = |server: &mut TestServer, count: u64| {
        for index in 0..count {
            let name = if index % 2 == 0 { "python_sleeps" } else { "bash_sleeps" };
            let id = server.send("tools/call", json!({"name": name, "arguments": {}}));
            // From before the call has begun to well within it, told by how much the server did meanwhile.
            for _ in 0..index % 7 * 20 {
                server.request("ping", json!({}));
            }
            server.notify("notifications/cancelled", json!({"requestId": id, "reason": "changed my mind"}));
        }
    };
    cancel(&mut server, 60);
    let nothing_is_left = |server: &TestServer| with_argument("27182.91").is_empty() && descendants(server.pid()).len() <= 4;
    until("the end of cancelled calls", || nothing_is_left(&server));
    let memory = memory_at_rest(&server);
    let (descriptors, started) = (open_files(server.pid()), threads(server.pid()));
    cancel(&mut server, 200);
    until("the end of cancelled calls", || nothing_is_left(&server));
    until("closed descriptors", || open_files(server.pid()) <= descriptors + 8);
    assert!(threads(server.pid()) <= started + 4);
    // The databases' caches fill up meanwhile; what 200 calls would keep is far more.
    until("memory as before", || resident_bytes(server.pid()) <= memory + memory / 10 + (256 << 10));
    assert_eq!(server.value("quick", json!({})), "done", "the next call works");
}

#[test]
fn five_hundred_short_sessions_leave_nothing_under_load() {
    let home = Home::new();
    server(&home).value("register_script", bash_tool("marked", "exec -a 27182.92 echo done"));
    let mut last = Value::Null;
    for _ in 0..500 {
        let mut session = Run::new(skillz(), &home).connect(Era::NEWEST_HANDSHAKE);
        last = session.value("marked", json!({}));
        let helpers = descendants(session.pid());
        session.close();
        until("the end of the helpers", || !helpers.iter().any(|pid| is_alive(*pid)));
    }
    assert_eq!(last, "done");
    assert_eq!(with_argument("27182.92"), [0_u32; 0]);
    assert!(fs::read_dir(home.path().join("cache").join("work")).map_or(0, Iterator::count) <= 1, "working folders stay");
}
