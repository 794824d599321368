//! Programs in the machine's own python3 and node, in the sandbox.

use std::time::{Duration, Instant};

use skillz_json::{Value, json};
use skillz_runtime_code::{Language, Runtime};
use skillz_tool::{ErrorKind, FolderGrant, FolderMode, Grants, ToolError};

use crate::support::{Bench, Options};

fn process(language: Language) -> Options {
    Options { language, runtime: Runtime::Process, ..Options::default() }
}

#[tokio::test]
async fn python_finds_its_tools_and_gives_its_value() {
    let cases: &[(&str, Value)] = &[
        ("1 + 1", json!(2)),
        ("return 7", json!(7)),
        ("x = 5", json!(null)),
        ("word_count(text='a b')", json!({"words": 2})),
        ("word_count('a b')['words']", json!(2)),
        ("await word_count(text='a b')", json!({"words": 2})),
        ("import asyncio\nawait asyncio.gather(*[shout(text=t) for t in 'ab'])", json!(["A", "B"])),
        (
            "import asyncio\nasync def main():\n    return await asyncio.gather(shout(text='a'), add(1, 2))\nasyncio.run(main())",
            json!(["A", 3]),
        ),
        ("import asyncio\ntasks = [meet(count=3) for _ in range(3)]\nawait asyncio.gather(*tasks)", json!([3, 3, 3])),
        ("try:\n    fail()\nexcept ToolError as e:\n    r = e.data\nr", json!({"code": 3})),
        ("try:\n    fail()\nexcept Exception as e:\n    r = f'{e!r}'[:9]\nr", json!("ToolError")),
        ("call('my-tool', {'a': 1})", json!({"a": 1})),
        ("[my_tool(a=1), class_(b=2)]", json!([{"a": 1}, {"b": 2}])),
        ("sum([1, 2])", json!(3)),
        ("skillz.memory.set('k', 1)\nskillz.memory.get('k')", json!(1)),
        ("import skillz\nskillz.search('x')[0]['name']", json!("word_count")),
        ("skillz.describe('add')['name']", json!("add")),
        ("{'t': (1, 2), 'n': float('inf'), 's': {1}}", json!({"t": [1, 2], "n": null, "s": [1]})),
        ("[r['words'] for r in map(word_count, ['a', 'b c'])]", json!([1, 2])),
        ("import sys\nprint('x', file=sys.stderr)\n1", json!(1)),
        ("def g():\n    yield word_count(text='a b')\nlist(g())", json!([{"words": 2}])),
    ];
    let bench = Bench::new();
    bench.check(&process(Language::Python), cases).await;
    let code = "print('before')\nimport sys\ndef f():\n    raise ValueError('bad')\nf()";
    let failure = bench.run_with(code, &process(Language::Python)).await.expect_err("raises");
    assert_eq!(failure.stdout, "before\n");
    let text = ToolError::from(failure).text();
    assert!(
        text.contains("The program failed: ValueError: bad (line 4)")
            && text.contains("line 4, in f\n    raise ValueError('bad')"),
        "{text}"
    );
}

/// Values that an interpreter of our own got wrong, in silence.
#[tokio::test]
async fn values_are_those_of_the_real_interpreters() {
    let bench = Bench::new();
    let auto = Options { runtime: Runtime::Auto, ..Options::default() };
    bench
        .check(
            &auto,
            &[
                ("[round(0.05,1), round(0.085,2), round(2.675,2), round(0.35,1)]", json!([0.1, 0.09, 2.67, 0.3])),
                ("[hasattr({'a':1},'items'), hasattr([], 'append')]", json!([true, true])),
                ("it=iter(['h','---','b1','b2'])\nany(l=='---' for l in it)\nlist(it)", json!(["b1", "b2"])),
                ("out=[]\nfor x in (y for y in [1,1,2] if y not in out): out.append(x)\nout", json!([1, 2])),
                (
                    "from datetime import datetime as d\na, b = (d.strptime('2024-01-01 12:00 '+z, '%Y-%m-%d %H:%M %z') for z in ('+0000', '-0700'))\n[a == b, str(d.strptime('9:05 AM','%I:%M %p').time())]",
                    json!([false, "09:05:00"]),
                ),
                (
                    "from datetime import timedelta\ntry:\n    r = timedelta(hours=12)/timedelta(days=1)\nexcept Exception:\n    r = None\n[r, sum(x['ok'] for x in [{'ok': True}, {'ok': False}, {'ok': True}])]",
                    json!([0.5, 2]),
                ),
                (
                    "from pathlib import Path\nimport subprocess, tempfile\nopen('x.txt', 'w').write('a')\nPath('y.txt').write_text('b')\nwith tempfile.TemporaryDirectory() as d:\n    n = Path(d).exists()\n[open('x.txt').read(), Path('y.txt').read_text(), subprocess.run(['echo','hi'], capture_output=True, text=True).stdout, n]",
                    json!(["a", "b", "hi\n", true]),
                ),
                ("import pickle\nclass A:\n    def __init__(self): self.x = 3\npickle.loads(pickle.dumps(A())).x", json!(3)),
                (
                    "from __future__ import annotations\nimport dataclasses, typing\n@dataclasses.dataclass\nclass A:\n    x: int\ntyping.get_type_hints(A)['x'].__name__",
                    json!("int"),
                ),
                ("import inspect\ndef f():\n    return 1\ninspect.getsource(f)", json!("def f():\n    return 1\n")),
            ],
        )
        .await;
    bench
        .check(
            &Options { language: Language::JavaScript, ..auto },
            &[
                (
                    "[(1234567.891).toLocaleString(), ['b','a','C','ä'].sort((x,y)=>x.localeCompare(y)), new Date(Date.UTC(2024, 0, 2)).toLocaleDateString('en-GB', {timeZone: 'UTC'})]",
                    json!(["1,234,567.891", ["a", "ä", "b", "C"], "02/01/2024"]),
                ),
                ("typeof undefined", json!("undefined")),
            ],
        )
        .await;
}

/// The frame of the caller decides, whatever the call looks like.
#[tokio::test]
async fn a_call_gives_its_value_or_something_to_await_by_its_frame() {
    let bench = Bench::new();
    bench
        .check(
            &process(Language::Python),
            &[
                ("import asyncio\nawait asyncio.gather(*[skillz.call('meet', count=3) for _ in range(3)])", json!([3, 3, 3])),
                ("import asyncio\nawait asyncio.gather(*map(lambda i: meet(count=3), range(3)))", json!([3, 3, 3])),
                ("import asyncio\nasync def one(i): return meet(count=3)\nawait asyncio.gather(*[one(i) for i in range(3)])", json!([3, 3, 3])),
                ("import asyncio\nasync with asyncio.TaskGroup() as group:\n    tasks = [group.create_task(meet(count=3)) for _ in range(3)]\n[t.result() for t in tasks]", json!([3, 3, 3])),
                ("import asyncio\nr = []\nfor done in asyncio.as_completed([shout(text=t) for t in 'ab']):\n    r.append(await done)\nsorted(r)", json!(["A", "B"])),
                ("import asyncio\ndone, _ = await asyncio.wait([shout(text=t) for t in 'ab'])\nsorted(t.result() for t in done)", json!(["A", "B"])),
                ("import asyncio\ndef s():\n    r = add(a=1, b=0)\n    return r + 1\nasync def main():\n    r = add(a=2, b=0)\n    return await r\n[s(), asyncio.run(main())]", json!([2, 2])),
                ("import asyncio\ndef s(t): return shout(text=t)\nawait asyncio.gather(s('a'), shout(text='b'))", json!(["A", "B"])),
                ("import asyncio\nasync def main(): return await asyncio.to_thread(lambda: (lambda: shout(text='a'))())\nasyncio.run(main())", json!("A")),
                ("import asyncio\ndef work(): return shout(text='a')\nawait asyncio.to_thread(work)", json!("A")),
                ("f = shout\nkept = {'f': f}\nkept['f'](text='a')", json!("A")),
                ("import asyncio\nf = shout\nasync def main(): return await f(text='a')\nasyncio.run(main())", json!("A")),
                ("import functools\nfunctools.partial(add, a=1)(b=2)", json!(3)),
                ("import asyncio\nt = asyncio.create_task(shout(text='a'))\nawait t\n[t.done(), t.result()]", json!([true, "A"])),
                ("import asyncio\nawait asyncio.wait_for(shout(text='a'), timeout=9)", json!("A")),
                ("import asyncio\ntry:\n    await asyncio.wait_for(slow(), 0.01)\nexcept asyncio.TimeoutError:\n    r = 'late'\nr", json!("late")),
                ("import asyncio\n[str(r)[:6] for r in await asyncio.gather(fail(), shout(text='a'), return_exceptions=True)]", json!(["`fail`", "A"])),
                ("import inspect, asyncio\nawait asyncio.sleep(0)\nc = shout(text='a')\n[inspect.iscoroutine(c), asyncio.iscoroutine(c), await c]", json!([true, true, "A"])),
                ("import concurrent.futures\nwith concurrent.futures.ThreadPoolExecutor() as pool:\n    r = list(pool.map(lambda t: shout(text=t), 'ab'))\nr", json!(["A", "B"])),
            ],
        )
        .await;
    let part = "write `await` in front of it";
    let beside = |code: &str| format!("import asyncio\nawait asyncio.sleep(0)\nc = shout(text='a')\n{code}");
    for code in
        ["c + 'b'", "c['a']", "c.upper()", "len(c)", "for x in c: pass", "f'{c}'", "c == 'A'", "if c: pass", "[c]", "print(c)"]
    {
        let code = beside(code);
        let failure = bench.run_with(&code, &process(Language::Python)).await.expect_err(&code);
        assert!(ToolError::from(failure).text().contains(part), "{code}");
    }
}

#[tokio::test]
async fn returns_work_wherever_a_program_has_them() {
    let bench = Bench::new();
    bench
        .check(
            &process(Language::Python),
            &[
                ("for i in range(5):\n    if i == 3:\n        return {'i': i}\nx: int = 1", json!({"i": 3})),
                ("from __future__ import annotations\nx: int = 2\nif x:\n    def f(): return x\n    return f()", json!(2)),
                ("import asyncio\nfor t in 'ab':\n    r = await shout(text=t)\n    if r == 'B':\n        return r", json!("B")),
                ("import asyncio\nasync with asyncio.TaskGroup() as g:\n    t = g.create_task(shout(text='a'))\nif True:\n    return t.result()", json!("A")),
                ("try:\n    if True:\n        return 1\nfinally:\n    print('x')", json!(1)),
                ("y = 1\nif y == 2:\n    return 1\n[y for y in [5]]", json!([5])),
                ("def f():\n    global z\n    z = 4\nf()\nif z:\n    return z", json!(4)),
                ("if False:\n    return 1", json!(null)),
                ("if True:\n    return", json!(null)),
            ],
        )
        .await;
}

#[tokio::test]
async fn what_a_program_prints_comes_back_whoever_printed_it() {
    let bench = Bench::new();
    for (language, code, expected) in [
        (
            Language::Python,
            "import os, subprocess, sys\nprint('a')\nsys.stdout.flush()\nsubprocess.run(['echo', 'b'])\nos.write(1, b'c\\n')\nprint('d', end='')",
            "a\nb\nc\nd",
        ),
        (
            Language::Python,
            "import threading, time\nthreading.Thread(target=lambda: (time.sleep(0.05), print('late'))).start()\nprint('first')",
            "first\nlate\n",
        ),
        (Language::Python, "import atexit\natexit.register(print, 'end')\nprint('begin')", "begin\nend\n"),
        (Language::Python, "import os\nprint('a', flush=True)\nos.close(1)", "a\n"),
        (
            Language::JavaScript,
            "import { execSync } from 'node:child_process';\nconsole.log('a', [1, { b: 2 }]);\nexecSync('echo b', { stdio: 'inherit' });\nprocess.stdout.write('c');",
            "a [ 1, { b: 2 } ]\nb\nc",
        ),
        (Language::JavaScript, "setTimeout(() => console.log('late'), 5);\nconsole.log('first');", "first\nlate\n"),
    ] {
        let result = bench.run_with(code, &process(language)).await.unwrap_or_else(|failure| panic!("{code}\n{}", failure.error));
        assert_eq!(result.stdout, expected, "{code}");
    }
    let code = "print('x' * 1000000)\nprint('end')";
    let result = bench.run_with(code, &process(Language::Python)).await.expect("runs");
    assert_eq!(result.stdout.len(), 1_000_005);
}

#[tokio::test]
async fn node_finds_its_tools_and_gives_its_value() {
    let bench = Bench::new();
    bench
        .check(
            &process(Language::JavaScript),
            &[
                ("1 + 1", json!(2)),
                ("return 7", json!(7)),
                ("await word_count({text: 'a b'})", json!({"words": 2})),
                ("await word_count('a b')", json!({"words": 2})),
                ("await Promise.all([1, 2, 3].map(() => meet({count: 3})))", json!([3, 3, 3])),
                ("[shout({text: 'a'}), shout({text: 'b'})]", json!(["A", "B"])),
                ("let r; try { await fail() } catch (e) { r = [e.data, e instanceof ToolError] }\nr", json!([{"code": 3}, true])),
                ("await skillz.memory.set('k', 1); await skillz.memory.get('k')", json!(1)),
                ("(await skillz.search('x'))[0].name", json!("word_count")),
                ("import path from 'node:path';\npath.join('a', 'b')", json!("a/b")),
                ("require('path').join('a', 'b')", json!("a/b")),
                (
                    "const { createHash } = await import('node:crypto');\ncreateHash('sha256').update('a').digest('hex').slice(0, 8)",
                    json!("ca978112"),
                ),
                ("await new Promise((r) => setTimeout(() => r(1), 5))", json!(1)),
                ("import fs from 'node:fs';\nfs.writeFileSync('a', 'b');\nfs.readdirSync('.')", json!(["a"])),
                ("process.exit(0)", json!(null)),
                ("10n ** 20n", skillz_json::parse("100000000000000000000").expect("a number")),
            ],
        )
        .await;
    bench
        .check(
            &process(Language::TypeScript),
            &[
                ("import path from 'node:path';\nconst a: string = path.basename('/x/y');\na", json!("y")),
                (
                    "enum C { A = 1, B }\nnamespace N { export const x = 1 }\nclass P { constructor(public readonly a: number) {} }\nconst v = { q: 1 } satisfies Record<string, number>;\n[C.B, N.x, new P(3).a, v.q]",
                    json!([2, 1, 3, 1]),
                ),
                ("for (const x of [1, 2] as number[]) {\n  if (x > 1) return { x }\n}", json!({"x": 2})),
            ],
        )
        .await;
    bench.check_failures(&process(Language::TypeScript), &[("function d(t: any) {}\nclass A { @d m() {} }", "(line 2)")]).await;
    let code = "console.log('before');\nfunction f() {\n  throw new Error('bad');\n}\nf();";
    let failure = bench.run_with(code, &process(Language::JavaScript)).await.expect_err("throws");
    assert_eq!(failure.stdout, "before\n");
    let text = ToolError::from(failure).text();
    assert!(
        text.contains("The program failed: Error: bad (line 3)")
            && text.contains("at f (code.js:3)\n        throw new Error('bad');"),
        "{text}"
    );
    bench
        .check_failures(
            &process(Language::JavaScript),
            &[
                ("process.exit(3)", "ended with exit code 3"),
                ("await new Promise(() => {})", "will never come"),
                ("await fail()", "The program failed: ToolError: `fail` ended with exit code 3"),
                ("Promise.reject(new Error('nobody')); await new Promise((r) => setTimeout(r, 50))", "Error: nobody"),
                ("call(5)", "call() takes a tool's name"),
                ("() => 1", "a function, which has no form as JSON"),
            ],
        )
        .await;
}

#[cfg(target_os = "linux")]
#[tokio::test]
async fn a_program_is_confined_and_alone() {
    let bench = Bench::new();
    bench
        .check(
            &process(Language::Python),
            &[
                ("open('kept.txt', 'w').write('a')\nimport os\nos.listdir('.')", json!(["kept.txt"])),
                ("import os\nos.listdir('.')", json!([])),
                ("import builtins\nbuiltins.kept = 1", json!(null)),
                ("import builtins\nhasattr(builtins, 'kept')", json!(false)),
                ("import os\n[k for k in os.environ if 'SKILLZ' in k]", json!([])),
                ("import os\n[p for p in ('/root', '/home', '/etc/shadow') if os.path.exists(p) and os.access(p, os.R_OK) and (os.path.isfile(p) or os.listdir(p))]", json!([])),
                ("import os\ntry:\n    open('/usr/x', 'w')\n    r = 'written'\nexcept OSError:\n    r = 'refused'\nr", json!("refused")),
                ("import socket\ntry:\n    socket.create_connection(('127.0.0.1', 22), 1)\n    r = 'connected'\nexcept OSError:\n    r = 'refused'\nr", json!("refused")),
                ("import os\nlen([p for p in os.listdir('/proc') if p.isdigit()]) < 10", json!(true)),
            ],
        )
        .await;
    bench
        .check(
            &process(Language::JavaScript),
            &[
                ("import fs from 'node:fs';\nlet r; try { fs.writeFileSync('/usr/x', 'a'); r = 'written' } catch { r = 'refused' }\nr", json!("refused")),
                ("Object.keys(process.env).filter((k) => k.includes('SKILLZ'))", json!([])),
            ],
        )
        .await;
}

#[cfg(target_os = "linux")]
#[tokio::test]
async fn a_program_has_the_folders_that_were_granted() {
    let bench = Bench::new();
    let folder = tempfile::tempdir().expect("a folder");
    std::fs::write(folder.path().join("a.txt"), "granted").expect("written");
    let path = folder.path().canonicalize().expect("real");
    let grants = Grants { folders: vec![FolderGrant { path: path.clone(), mode: FolderMode::Ro }], ..Grants::default() };
    for (language, code) in [
        (Language::Python, format!("open('{}/a.txt').read()", path.display())),
        (Language::JavaScript, format!("require('fs').readFileSync('{}/a.txt', 'utf8')", path.display())),
    ] {
        let options = Options { grants: grants.clone(), ..process(language) };
        bench.check(&options, &[(&code, json!("granted"))]).await;
        bench.run_with(&code, &process(language)).await.expect_err("not granted");
        let embedded = Options { runtime: Runtime::Embedded, ..options };
        let failure = bench.run_with(&code, &embedded).await.expect_err("no permissions there");
        assert!(failure.error.text().contains("no permissions"), "{}", failure.error);
    }
}

#[tokio::test]
async fn limits_hold() {
    let bench = Bench::new();
    for (language, code, waited) in [
        (Language::Python, "print('first')\nwhile True: pass", ""),
        (Language::Python, "print('first')\nslow()", " while it waited for `slow`"),
        (Language::JavaScript, "console.log('first');\nwhile (true) {}", ""),
        (Language::JavaScript, "console.log('first');\nawait slow()", " while it waited for `slow`"),
    ] {
        let options = Options { timeout: Duration::from_secs(4), ..process(language) };
        let failure = bench.run_with(code, &options).await.expect_err(code);
        assert_eq!((failure.error.kind, failure.stdout.as_str()), (ErrorKind::TimedOut, "first\n"), "{code}\n{}", failure.error);
        let message = format!("The program was stopped after its limit of 4 s{waited}");
        assert_eq!(failure.error.message, message, "{code}");
        assert_eq!(failure.calls.len(), usize::from(!waited.is_empty()), "a call that was given up is listed");
    }
    bench
        .check_failures(
            &process(Language::Python),
            &[
                ("while True: print('x' * 100000)", "printed more than"),
                ("x = []\nwhile True: x.append('x' * 1000000)", "more than its 256 MiB of memory"),
                ("import os\nos._exit(7)", "exit code 7"),
                ("import os, signal\nos.kill(os.getpid(), signal.SIGKILL)", "signal 9"),
                ("def f(:", "does not compile: SyntaxError"),
                ("x = 1\nx = = 2", "(line 2)"),
                ("import sys\nsys.exit('stopped')", "stopped"),
                ("import nosuchmodule", "Name the package in `dependencies`"),
                ("call(None)", "call() takes a tool's name"),
                ("call(5)", "call() takes a tool's name"),
                ("call('add', [1])", "takes the arguments of `add` as a dictionary"),
                ("add(1, 2, 3)", "takes its arguments by name (a, b)"),
                ("add(1, a=2)", "got the argument `a` twice"),
                ("hidden()", "this run's `tools` leave it out"),
                ("Counter('a')", "from collections import Counter"),
                ("class A: pass\nA()", "a `A`, which has no form as JSON"),
            ],
        )
        .await;
}

/// Programs at once have a process each, and none waits for another's tools.
#[tokio::test]
async fn programs_at_once_do_not_wait_for_each_other() {
    let bench = Bench::new();
    let options = process(Language::Python);
    let started = Instant::now();
    let runs = (0..6).map(|_| bench.run_with("meet(count=6)", &options));
    for result in futures::future::join_all(runs).await {
        assert_eq!(result.expect("runs").result, json!(6));
    }
    assert!(started.elapsed() < Duration::from_secs(20));
}

/// Whatever becomes of a program, each call that its tools saw is one that it lists.
#[tokio::test]
async fn no_call_is_made_twice_or_left_out() {
    let bench = Bench::new();
    let programs = [
        "add(1, 2)\nadd(3, 4)",
        "import asyncio\nawait asyncio.gather(*[add(i, i) for i in range(9)], return_exceptions=True)",
        "add(1, 2)\n1 / 0",
        "import asyncio\nadd(1, 2)\nawait asyncio.sleep(0)",
        "import asyncio\ntry:\n    await asyncio.wait_for(asyncio.gather(add(1, 2), slow()), 0.05)\nexcept asyncio.TimeoutError:\n    pass\nadd(1, 2)",
        "import threading\n[threading.Thread(target=add, args=(1, i)).start() for i in range(5)]",
        "import os\nadd(1, 2)\nos._exit(3)",
        "add(1, 2)\nslow()",
        "add(1, 2)\nwhile True: pass",
        "fail()",
    ];
    let options = Options { timeout: Duration::from_millis(1_500), ..process(Language::Python) };
    for code in programs {
        let before = bench.host.calls();
        let listed = match bench.run_with(code, &options).await {
            Ok(result) => result.calls,
            Err(failure) => failure.calls,
        };
        assert_eq!(listed.len(), bench.host.calls() - before, "{code}\n{listed:?}");
        assert_eq!(bench.host.running(), 0, "{code}");
    }
}
