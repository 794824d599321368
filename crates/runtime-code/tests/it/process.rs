//! Programs in the machine's own python3 and node, asked for or fallen back to.

use skillz_json::{Value, json};
use skillz_runtime_code::{Language, Runtime};
use skillz_tool::{ErrorKind, ToolError};

use crate::support::{Bench, Options};

fn process(language: Language) -> Options {
    Options { language, runtime: Runtime::Process, ..Options::default() }
}

fn auto(language: Language) -> Options {
    Options { language, runtime: Runtime::Auto, ..Options::default() }
}

#[tokio::test]
async fn python_behaves_as_embedded() {
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
        ("call('my-tool', {'a': 1})", json!({"a": 1})),
        ("sum([1, 2])", json!(3)),
        ("skillz.memory.set('k', 1)\nskillz.memory.get('k')", json!(1)),
        ("import skillz\nskillz.search('x')[0]['name']", json!("word_count")),
        ("def g():\n    yield 1\n    yield 2\nlist(g())", json!([1, 2])),
        ("match 5:\n    case 5:\n        r = 'five'\nr", json!("five")),
        ("import statistics\nstatistics.mean([1, 2, 3])", json!(2)),
        ("{'t': (1, 2), 'n': float('inf'), 's': {1}}", json!({"t": [1, 2], "n": null, "s": [1]})),
        ("import os\nos.listdir('.')", json!([])),
    ];
    let bench = Bench::new();
    bench.check(&process(Language::Python), cases).await;
    let failure = bench
        .run_with("print('before')\nimport sys\ndef f():\n    raise ValueError('bad')\nf()", &process(Language::Python))
        .await
        .expect_err("raises");
    assert_eq!(failure.stdout, "before\n");
    let text = ToolError::from(failure).text();
    assert!(
        text.contains("The program failed: ValueError: bad (line 4)")
            && text.contains("line 4, in f\n    raise ValueError('bad')"),
        "{text}"
    );
}

#[tokio::test]
async fn node_behaves_as_embedded() {
    let cases: &[(&str, Value)] = &[
        ("1 + 1", json!(2)),
        ("return 7", json!(7)),
        ("await word_count({text: 'a b'})", json!({"words": 2})),
        ("await Promise.all([1, 2, 3].map(() => meet({count: 3})))", json!([3, 3, 3])),
        ("let r; try { await fail() } catch (e) { r = e.data }\nr", json!({"code": 3})),
        ("await skillz.memory.set('k', 1); await skillz.memory.get('k')", json!(1)),
        ("import path from 'node:path';\npath.join('a', 'b')", json!("a/b")),
        (
            "const { createHash } = await import('node:crypto');\ncreateHash('sha256').update('a').digest('hex').slice(0, 8)",
            json!("ca978112"),
        ),
        ("await new Promise((r) => setTimeout(() => r(1), 5))", json!(1)),
    ];
    let bench = Bench::new();
    bench.check(&process(Language::JavaScript), cases).await;
    bench
        .check(
            &process(Language::TypeScript),
            &[("import path from 'node:path';\nconst a: string = path.basename('/x/y');\na", json!("y"))],
        )
        .await;
    let failure = bench
        .run_with("console.log('before');\nfunction f() {\n  throw new Error('bad');\n}\nf();", &process(Language::JavaScript))
        .await
        .expect_err("throws");
    assert_eq!(failure.stdout, "before\n");
    let text = ToolError::from(failure).text();
    assert!(
        text.contains("The program failed: Error: bad (line 3)")
            && text.contains("at f (code.js:3)\n        throw new Error('bad');"),
        "{text}"
    );
}

#[tokio::test]
async fn auto_falls_back_where_it_must_and_runs_nothing_twice() {
    let bench = Bench::new();
    bench
        .check(
            &auto(Language::Python),
            &[
                ("word_count(text='a')", json!({"words": 1})),
                ("import statistics\nstatistics.median([1, 5, 9])", json!(5)),
                ("import csv, io\nlist(csv.reader(io.StringIO('a,b')))", json!([["a", "b"]])),
                ("def g():\n    yield word_count(text='a b')\nlist(g())", json!([{"words": 2}])),
                ("eval('1 + 1')", json!(2)),
                ("class A:\n    def __len__(self): return 3\nlen(A())", json!(3)),
                ("'%s-%d' % ('a', 3)", json!("a-3")),
                ("f = '%s-%d'\nf % ('a', 3)", json!("a-3")),
                ("a = {'x': 1}\na |= {'y': 2}\na", json!({"x": 1, "y": 2})),
                ("x = [1, 2, 3]\nx[1:] = [9]\nx", json!([1, 9])),
                ("import re\nre.sub('a', lambda m: m.group(0).upper(), 'banana')", json!("bAnAnA")),
                ("import sys\nprint('x', file=sys.stderr)\n1", json!(1)),
                ("[r['words'] for r in map(word_count, ['a', 'b c'])]", json!([1, 2])),
                ("print('once')\nf = [shout]\nsorted(['b', 'a'], key=f[0])", json!(["a", "b"])),
            ],
        )
        .await;
    bench
        .check(
            &auto(Language::JavaScript),
            &[
                ("new URL('http://a/b').pathname", json!("/b")),
                ("Buffer.from('a').toString('base64')", json!("YQ==")),
                ("require('path').join('a', 'b')", json!("a/b")),
            ],
        )
        .await;
    let result = bench.run_with("import statistics\nprint('once')\nadd(a=1, b=2)", &auto(Language::Python)).await.expect("runs");
    assert_eq!((result.stdout.as_str(), result.calls.len()), ("once\n", 1));
}

/// Programs that the embedded interpreter would run otherwise than a real one, or not at all.
#[tokio::test]
async fn auto_sees_before_the_start_what_would_differ() {
    let bench = Bench::new();
    bench
        .check(
            &auto(Language::Python),
            &[
                // Each calls a tool first: what showed only afterwards would be too late.
                ("shout(text='a')\nnext(c for c in [1, 2])", json!(1)),
                ("shout(text='a')\nnext((c for c in []), 'none')", json!("none")),
                ("shout(text='a')\nnext(iter([3]))", json!(3)),
                ("shout(text='a')\ng = (x for x in [1, 2])\n[list(g), list(g)]", json!([[1, 2], []])),
                ("shout(text='a')\ng = zip([1], [2])\n[list(g), list(g)]", json!([[[1, 2]], []])),
                ("shout(text='a')\ng = map(str, [1])\n[list(g), list(g)]", json!([["1"], []])),
                ("def f(g):\n    return [list(g), list(g)]\nshout(text='a')\nf(reversed([1]))", json!([[1], []])),
                ("seen = []\ndef f(x):\n    seen.append(x)\n    return True\nshout(text='a')\nany(f(x) for x in [1, 2, 3])\nseen", json!([1])),
                ("n = 0\nfor w in (word_count(text=t)['words'] for t in ['a', 'b']):\n    n += w\n    break\nn", json!(1)),
                ("any(int(x) for x in ['1', 'a'])", json!(true)),
                ("import json\nshout(text='a')\njson.dumps({'a': {1}}, default=list)", json!("{\"a\": [1]}")),
                ("import json\nshout(text='a')\njson.loads('1.5', parse_float=str)", json!("1.5")),
                ("a = [1, 2]\nshout(text='a')\na[0], a[1] = a[1], a[0]\na", json!([2, 1])),
                ("class A: pass\na = A()\nshout(text='a')\na.x, a.y = 1, 2\na.y", json!(2)),
                ("from datetime import datetime, timezone\nshout(text='a')\ndatetime.fromtimestamp(0, timezone.utc)", json!("1970-01-01T00:00:00+00:00")),
                ("import datetime\nshout(text='a')\ndatetime.datetime.today().year > 2000", json!(true)),
                ("shout(text='a')\n[str.isdigit('1'), str.casefold('A')]", json!([true, "a"])),
                ("shout(text='a')\nlist(map(str.upper, ['a']))", json!(["A"])),
                ("import datetime\nshout(text='a')\ndatetime.date(2024, 1, 2).isocalendar()[1]", json!(1)),
                ("from datetime import datetime\nshout(text='a')\ndatetime(2024, 1, 2).timetuple().tm_yday", json!(2)),
                ("from datetime import datetime, timedelta\nshout(text='a')\n[datetime(2024, 1, 2).utcoffset(), datetime(2024, 1, 2).ctime()]", json!([null, "Tue Jan  2 00:00:00 2024"])),
                ("from datetime import datetime\nshout(text='a')\ndatetime(2024, 1, 2, 3, 4, 5, 678).strftime('%f')", json!("000678")),
                ("def f(): pass\nshout(text='a')\nf.__name__", json!("f")),
                ("shout(text='a')\ntry:\n    try:\n        1 / 0\n    except Exception as e:\n        raise ValueError('b') from e\nexcept ValueError as e:\n    r = str(e.__cause__)\nr", json!("division by zero")),
                ("try:\n    fail()\nexcept ToolError as e:\n    r = e.data\nr", json!({"code": 3})),
                ("try:\n    fail()\nexcept Exception as e:\n    r = f'{e!r}'[:9]\nr", json!("ToolError")),
                ("import re\nshout(text='a')\nre.split('(,)', 'a,b')", json!(["a", ",", "b"])),
                ("import re\np = re.compile(r'([,;])')\nshout(text='a')\np.split('a,b')", json!(["a", ",", "b"])),
                ("shout(text='a')\n{1} <= {1, 2}", json!(true)),
                ("a, b = {1}, {1, 2}\nc = {1}\nshout(text='a')\nc < b", json!(true)),
                ("d = {'a': 1, 'b': 2}\nshout(text='a')\nmax(d, key=d.get)", json!("b")),
                ("shout(text='a')\n(5).bit_length()", json!(3)),
                ("shout(text='a')\nsum(x > 1 for x in [1, 2, 3])", json!(2)),
                ("import asyncio\n[str(r)[:6] for r in await asyncio.gather(fail(), shout(text='a'), return_exceptions=True)]", json!(["`fail`", "A"])),
                ("import asyncio\nasync with asyncio.TaskGroup() as group:\n    a = group.create_task(shout(text='a'))\n    b = group.create_task(meet(count=1))\n[a.result(), b.result()]", json!(["A", 1])),
                ("import asyncio\nt = asyncio.create_task(shout(text='a'))\nawait asyncio.sleep(0)\nawait t\n[t.done(), t.result()]", json!([true, "A"])),
                ("import asyncio\nasync def one():\n    return await meet(count=2)\na, b = asyncio.create_task(one()), asyncio.create_task(one())\n[await a, await b]", json!([2, 2])),
            ],
        )
        .await;
}

/// Whatever was not seen before shows as an exception; nothing of the program has been seen outside, so it moves.
#[tokio::test]
async fn a_program_that_failed_before_it_asked_for_anything_moves() {
    let bench = Bench::new();
    for (code, expected, stdout) in [
        ("print('once')\nf = [1].__reversed__\nlist(f())", json!([1]), "once\n"),
        ("print('once')\nd = {}\nd |= [('a', 1)]\nd", json!({"a": 1}), "once\n"),
        ("x = [1]\nx += (2,)\nx", json!([1, 2]), ""),
        ("def f(a):\n    return a < {1, 2}\nf({1})", json!(true), ""),
    ] {
        let result = bench.run_with(code, &auto(Language::Python)).await;
        let result = result.unwrap_or_else(|failure| panic!("{code}\n{}", ToolError::from(failure)));
        assert_eq!((result.result, result.stdout.as_str(), result.calls.len()), (expected, stdout, 0), "{code}");
    }
    // A fault of the program stays one, told by the real interpreter.
    let failure = bench.run_with("print('once')\n[].x", &auto(Language::Python)).await.expect_err("a fault");
    assert_eq!(failure.stdout, "once\n");
    assert!(failure.error.text().contains("AttributeError: 'list' object has no attribute 'x' (line 2)"), "{}", failure.error);
    // After a call it is too late, and said.
    for code in ["shout(text='a')\nx = [1]\nx += (2,)", "skillz.memory.get('k')\nx = [1]\nx += (2,)"] {
        let failure = bench.run_with(code, &auto(Language::Python)).await.expect_err(code);
        assert!(ToolError::from(failure).text().contains("set `runtime: \"process\"`"), "{code}");
    }
}

#[tokio::test]
async fn real_asyncio_takes_calls_of_tools() {
    let bench = Bench::new();
    bench
        .check(
            &process(Language::Python),
            &[
                ("import asyncio\nasync with asyncio.TaskGroup() as group:\n    tasks = [group.create_task(meet(count=3)) for _ in range(3)]\n[t.result() for t in tasks]", json!([3, 3, 3])),
                ("import asyncio\nawait asyncio.wait_for(shout(text='a'), timeout=9)", json!("A")),
                ("import asyncio\ntry:\n    await asyncio.wait_for(slow(), 0.01)\nexcept asyncio.TimeoutError:\n    r = 'late'\nr", json!("late")),
                ("import asyncio\nsorted([await done for done in asyncio.as_completed([shout(text='a'), shout(text='b')])])", json!(["A", "B"])),
                ("import asyncio\nr = []\nfor done in asyncio.as_completed([shout(text=t) for t in 'ab']):\n    r.append(await done)\nsorted(r)", json!(["A", "B"])),
                ("import asyncio\ndone, _ = await asyncio.wait([asyncio.create_task(shout(text=t)) for t in 'ab'])\nsorted(t.result() for t in done)", json!(["A", "B"])),
                ("import asyncio\ndef f(t):\n    return shout(text=t)\nawait asyncio.wait_for(f('a'), 9)", json!("A")),
            ],
        )
        .await;
}

#[tokio::test]
async fn a_fallback_has_no_more_than_the_embedded_interpreter() {
    let bench = Bench::new();
    bench
        .check_failures(
            &auto(Language::Python),
            &[
                ("import subprocess\nsubprocess.run(['id'])", "PermissionError"),
                ("import socket\nsocket.create_connection(('127.0.0.1', 1))", "PermissionError"),
                ("import statistics\nopen('/etc/passwd').read()", "PermissionError"),
                ("import os\nos.system('id')", "PermissionError"),
                ("import os\nos.fork()", "PermissionError"),
                ("import os\nos.listdir('/etc')", "PermissionError"),
            ],
        )
        .await;
    bench
        .check_failures(
            &auto(Language::JavaScript),
            &[
                ("const cp = require('child_process');\ncp.execSync('id')", "programs have no files"),
                ("import cp from 'node:child_process';\ncp.execSync('id')", "programs have no files"),
                ("import { execSync } from 'node:child_process';\nexecSync('id')", "programs have no files"),
                ("import fs from 'node:fs';\nfs.readFileSync('/etc/passwd')", "programs have no files"),
                ("await fetch('http://127.0.0.1:1')", "programs have no files"),
            ],
        )
        .await;
}

#[cfg(target_os = "linux")]
#[tokio::test]
async fn a_process_is_confined() {
    let bench = Bench::confined_by(skillz_sandbox::SandboxKind::Auto);
    bench
        .check(
            &process(Language::Python),
            &[
                ("word_count(text='a b')", json!({"words": 2})),
                ("open('kept.txt', 'w').write('a')\nimport os\nos.listdir('.')", json!(["kept.txt"])),
                ("import os\nos.listdir('.')", json!([])),
                ("import os\nsorted(k for k in os.environ if k not in ('PATH', 'LANG', 'LC_ALL', 'HOME', 'TMPDIR', 'LC_CTYPE'))", json!([])),
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
                ("await word_count({text: 'a b'})", json!({"words": 2})),
                ("import fs from 'node:fs';\nlet r; try { fs.writeFileSync('/usr/x', 'a'); r = 'written' } catch { r = 'refused' }\nr", json!("refused")),
            ],
        )
        .await;
    bench.check(&auto(Language::Python), &[("import statistics\nstatistics.mean([1, 3])", json!(2)), ("1 + 1", json!(2))]).await;
}

#[tokio::test]
async fn limits_hold_in_a_process_too() {
    let bench = Bench::new();
    for (language, code) in [
        (Language::Python, "print('first')\nwhile True: pass"),
        (Language::Python, "print('first')\nslow()"),
        (Language::JavaScript, "console.log('first');\nwhile (true) {}"),
        (Language::JavaScript, "console.log('first');\nawait slow()"),
    ] {
        let options = Options { timeout: std::time::Duration::from_secs(4), ..process(language) };
        let failure = bench.run_with(code, &options).await.expect_err(code);
        assert_eq!((failure.error.kind, failure.stdout.as_str()), (ErrorKind::TimedOut, "first\n"), "{code}\n{}", failure.error);
    }
    bench
        .check_failures(
            &process(Language::Python),
            &[
                ("while True: print('x' * 100000)", "printed more than"),
                ("import os\nos._exit(7)", "exit code 7"),
                ("import os, signal\nos.kill(os.getpid(), signal.SIGKILL)", "signal 9"),
                ("def f(:", "does not compile"),
                ("import sys\nsys.exit('stopped')", "stopped"),
                ("import nosuchmodule", "ModuleNotFoundError"),
            ],
        )
        .await;
}
