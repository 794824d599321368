//! The helper `skillz` from function scripts and process scripts, in Python and JavaScript.

use std::sync::Arc;

use crate::support::{Bench, FakeHost, script, value};
use skillz_json::{Value, json};
use skillz_tool::ToolRuntime;

/// What every form gives back.
fn expected() -> Value {
    json!([
        true, [1, {"a": "ü"}], null, "fallback", ["k1"], true, false, {"x": 1}, "There is no tool `nothing`", [{"name": "echo", "query": "q"}],
        {"answer": "yes?"}, "Declined", "sampled \"hello\"", [{"uri": "skillz://guide", "name": "guide"}], "read", [{"uri": "file:///project"}], "api",
    ])
}

const PYTHON: &str = r#"
def work(skillz):
    out = [skillz.memory.set("k1", [1, {"a": "ü"}], ttl=60), skillz.memory.get("k1"), skillz.memory.get("none"), skillz.memory.get("none", "fallback"),
           skillz.memory.list("k"), skillz.memory.delete("k1"), skillz.memory.delete("k1"), skillz.call("echo", x=1)]
    try:
        skillz.call("nothing")
    except skillz.SkillzError as error:
        out.append(str(error))
    out += [skillz.tools.list("q"), skillz.ask("yes?", {"type": "object"})]
    try:
        skillz.ask("no", {})
    except skillz.Declined as error:
        out.append(type(error).__name__)
    out += [skillz.sample("hello"), skillz.resources.list()["resources"], skillz.resources.read("skillz://guide")["contents"][0]["text"],
            skillz.roots(), skillz.context.tool_name]
    skillz.log("plain")
    skillz.log("level first", level="warning")
    skillz.progress(1, 2, "half")
    return out
"#;

const PYTHON_COROUTINES: &str = r#"
async def work(skillz):
    aio = skillz.aio
    out = [await aio.memory.set("k1", [1, {"a": "ü"}]), await aio.memory.get("k1"), await aio.memory.get("none"), await aio.memory.get("none", "fallback"),
           await aio.memory.list("k"), await aio.memory.delete("k1"), await aio.memory.delete("k1"), await aio.call("echo", x=1)]
    try:
        await aio.call("nothing")
    except skillz.SkillzError as error:
        out.append(str(error))
    out += [await aio.tools.list("q"), await aio.ask("yes?", {"type": "object"})]
    try:
        await aio.ask("no", {})
    except skillz.Declined as error:
        out.append(type(error).__name__)
    out += [await aio.sample("hello"), (await aio.resources.list())["resources"], (await aio.resources.read("skillz://guide"))["contents"][0]["text"],
            await aio.roots(), skillz.context["tool_name"]]
    await aio.log("plain")
    await aio.log("level first", level="warning")
    await aio.progress(1, 2, "half")
    return out
"#;

const JAVASCRIPT: &str = r#"
async function work(skillz) {
  const out = [await skillz.memory.set("k1", [1, { a: "ü" }], { ttl: 60 }), await skillz.memory.get("k1"), await skillz.memory.get("none"), await skillz.memory.get("none", "fallback"),
    await skillz.memory.list("k"), await skillz.memory.delete("k1"), await skillz.memory.delete("k1"), await skillz.call("echo", { x: 1 })];
  try { await skillz.call("nothing"); } catch (error) { out.push(error.message); }
  out.push(await skillz.tools.list("q"), await skillz.ask("yes?", { type: "object" }));
  try { await skillz.ask("no", {}); } catch (error) { out.push(error.name); }
  out.push(await skillz.sample("hello"), (await skillz.resources.list()).resources, (await skillz.resources.read("skillz://guide")).contents[0].text,
    await skillz.roots(), skillz.context.tool_name);
  skillz.log("plain");
  skillz.log("level first", "warning");
  skillz.progress(1, 2, "half");
  return out;
}
"#;

#[tokio::test]
async fn every_request_is_there_in_every_form() {
    let bench = Bench::new();
    for (interpreter, code) in [
        ("python3", format!("import skillz\n{PYTHON}\ndef run(): return work(skillz)")),
        ("python3", format!("import skillz\n{PYTHON_COROUTINES}\nasync def run(): return await work(skillz)")),
        (
            "python3",
            format!(
                "import skillz, sys, json\n{PYTHON}\nif __name__ == '__main__':\n    request = json.loads(sys.stdin.readline())\n    assert request == {{}}\n    skillz.reply(work(skillz))"
            ),
        ),
        (
            "python3",
            format!(
                "import skillz\n{PYTHON}\nif __name__ == '__main__':\n    skillz.arguments()\n    skillz.reply(work(skillz))"
            ),
        ),
        (
            "python3",
            format!(
                "import skillz, asyncio\n{PYTHON_COROUTINES}\nif __name__ == '__main__':\n    skillz.reply(asyncio.run(work(skillz)))"
            ),
        ),
        ("node", format!("{JAVASCRIPT}\nexport async function run() {{ return work(skillz) }}")),
        ("node", format!("import helper from 'skillz';\n{JAVASCRIPT}\nexport default () => work(helper)")),
        ("node", format!("const helper = require('skillz');\n{JAVASCRIPT}\nmodule.exports = {{ run: () => work(helper) }}")),
        ("node", format!("{JAVASCRIPT}\nwork(skillz).then((out) => skillz.reply(out));")),
        (
            "node",
            format!(
                "import helper, {{ memory }} from 'skillz';\n{JAVASCRIPT}\nawait helper.arguments();\nhelper.reply(await work({{ ...helper, memory, context: helper.context }}));"
            ),
        ),
        (
            "node",
            format!(
                "{JAVASCRIPT}\nconst lines = require('readline').createInterface({{ input: process.stdin }});\nlines.once('line', async () => {{ skillz.reply(await work(skillz)); lines.close(); }});"
            ),
        ),
    ] {
        let tool = bench.register(script("api", interpreter, &code)).await;
        let host = Arc::new(FakeHost::default());
        assert_eq!(value(bench.run_with(&tool, json!({}), &host).await), expected(), "{code}");
        let logs = host.logs.lock().unwrap().clone();
        assert!(logs.iter().any(|(_, message)| message == "plain"), "{logs:?}");
        assert!(
            logs.iter().any(|(level, message)| message == "level first" && *level == skillz_tool::LogLevel::Warning),
            "{logs:?}"
        );
        assert_eq!(host.progress.lock().unwrap()[0].message.as_deref(), Some("half"));
        bench.runtime.retire(&tool);
    }
}

#[tokio::test]
async fn many_requests_are_under_way_at_once() {
    let bench = Bench::new();
    for (interpreter, code) in [
        (
            "python3",
            "import skillz\nfrom concurrent.futures import ThreadPoolExecutor\ndef run():\n    with ThreadPoolExecutor(20) as pool:\n        return [r['n'] for r in pool.map(lambda n: skillz.call('barrier', n=n), range(20))]",
        ),
        (
            "python3",
            "import skillz, asyncio\nasync def run():\n    return [r['n'] for r in await asyncio.gather(*[skillz.aio.call('barrier', n=n) for n in range(20)])]",
        ),
        (
            "python3",
            "import skillz, asyncio\nasync def run():\n    some = [asyncio.to_thread(skillz.call, 'barrier', n=n) for n in range(3)]\n    more = [skillz.aio.call('barrier', n=n) for n in range(3, 20)]\n    return [r['n'] for r in await asyncio.gather(*some, *more)]",
        ),
        (
            "node",
            "export async function run() { return (await Promise.all([...Array(20).keys()].map((n) => skillz.call('barrier', { n })))).map((r) => r.n) }",
        ),
        (
            "node",
            "Promise.all([...Array(20).keys()].map((n) => skillz.call('barrier', { n }))).then((all) => skillz.reply(all.map((r) => r.n)))",
        ),
    ] {
        let tool = bench.register(script("many", interpreter, code)).await;
        let host = Arc::new(FakeHost { barrier: Some(Arc::new(tokio::sync::Barrier::new(20))), ..FakeHost::default() });
        let numbers: Vec<usize> = (0..20).collect();
        assert_eq!(value(bench.run_with(&tool, json!({}), &host).await), json!(numbers), "{code}");
        bench.runtime.retire(&tool);
    }
}

#[tokio::test]
async fn requests_that_nobody_waits_for_are_carried_out() {
    let bench = Bench::new();
    let print = r#"{"jsonrpc":"2.0","id":5,"method":"memory/set","params":{"key":"k","value":1}}"#;
    for (interpreter, code) in [
        ("bash", format!("echo '{print}'")),
        ("bash", format!("echo '{print}'; echo '{{\"jsonrpc\":\"2.0\",\"id\":1,\"result\":1}}'")),
        ("node", "export function run() { skillz.memory.set('k', 1); return 1 }".to_owned()),
    ] {
        let tool = bench.register(script("forgets", interpreter, &code)).await;
        let host = Arc::new(FakeHost::default());
        bench.run_with(&tool, json!({}), &host).await.unwrap();
        assert_eq!(host.memory.lock().unwrap().get("k"), Some(&json!(1)), "{code}");
    }
}

#[tokio::test]
async fn reading_to_the_end_of_stdin_hangs_nobody() {
    let bench = Bench::new();
    for (interpreter, code) in [
        ("bash", "# method\ncat > /dev/null; echo end"),
        ("bash", "# method\nx=$(cat | grep -c jsonrpc); echo end"),
        ("python3", "import sys, json\nr = json.load(sys.stdin)\nassert r == {}\nprint('end')"),
        (
            "node",
            "let s = ''; process.stdin.on('data', (d) => s += d); process.stdin.on('end', () => { if (JSON.parse(s)) console.log('end') })",
        ),
        ("node", "const s = require('fs').readFileSync(0, 'utf8'); if (JSON.parse(s)) console.log('end')"),
        ("ruby", "s = $stdin.read # method\nputs 'end'"),
        ("perl", "# method\nmy @lines = <STDIN>; print \"end\\n\";"),
        ("php", "<?php // method\nstream_get_contents(STDIN); echo \"end\\n\";"),
        ("lua", "-- method\nio.read('a') print('end')"),
    ] {
        let tool = bench.register(crate::support::with_timeout(script("reads", interpreter, code), 20_000)).await;
        assert_eq!(value(bench.run(&tool, json!({})).await), json!("end\n"), "{interpreter}: {code}");
    }
}

#[tokio::test]
async fn a_long_silence_does_not_close_stdin() {
    let bench = Bench::new();
    for (interpreter, code) in [
        (
            "python3",
            "import skillz, time\nif __name__ == '__main__':\n    skillz.arguments()\n    time.sleep(1.5)\n    skillz.reply(skillz.call('echo', x=1))",
        ),
        (
            "python3",
            "import skillz, time\nif __name__ == '__main__':\n    end = time.time() + 1.5\n    while time.time() < end: pass\n    skillz.reply(skillz.call('echo', x=1))",
        ),
        (
            "python3",
            "import skillz, threading, sys, queue, json, time\nif __name__ == '__main__':\n    lines = queue.Queue()\n    threading.Thread(target=lambda: [lines.put(l) for l in sys.stdin], daemon=True).start()\n    lines.get()\n    time.sleep(1.5)\n    print(json.dumps({'jsonrpc': '2.0', 'id': 3, 'method': 'tools/call', 'params': {'name': 'echo', 'arguments': {'x': 1}}}))\n    print(json.dumps({'jsonrpc': '2.0', 'id': 1, 'result': json.loads(lines.get())['result']['output']}))",
        ),
        (
            "node",
            "process.stdin.on('data', () => {}); setTimeout(async () => { skillz.reply(await skillz.call('echo', { x: 1 })); process.exit() }, 1500)",
        ),
        (
            "bash",
            "read line; sleep 1.5; echo '{\"jsonrpc\":\"2.0\",\"id\":3,\"method\":\"tools/call\",\"params\":{\"name\":\"echo\",\"arguments\":{\"x\":1}}}'; read reply; echo '{\"jsonrpc\":\"2.0\",\"id\":1,\"result\":{\"x\":'$(grep -o '\"x\":1' <<<\"$reply\" | cut -d: -f2)'}}'",
        ),
    ] {
        let tool = bench.register(script("thinks", interpreter, code)).await;
        assert_eq!(value(bench.run(&tool, json!({})).await), json!({"x": 1}), "{interpreter}: {code}");
    }
}
