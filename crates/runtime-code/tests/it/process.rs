//! Programs in the machine's own python3 and node, asked for or fallen back to.

use serde_json::{Value, json};
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
