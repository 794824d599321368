//! Python, embedded.

use std::sync::atomic::Ordering;

use skillz_json::json;
use skillz_runtime_code::{Language, Runtime};
use skillz_tool::{ErrorKind, ToolError};

use crate::support::{Bench, Options};

#[tokio::test]
async fn the_last_expression_or_return_is_the_result() {
    Bench::new()
        .check(
            &Options::default(),
            &[
                ("1 + 1", json!(2)),
                ("x = 5\nx * 2", json!(10)),
                ("x = 5", json!(null)),
                ("", json!(null)),
                ("# only a comment", json!(null)),
                ("print('a')", json!(null)),
                ("return 7", json!(7)),
                ("return 1, 2", json!([1, 2])),
                ("return", json!(null)),
                ("if True:\n    return {\n        'a': [1]\n    }\nreturn 2", json!({"a": [1]})),
                ("for i in range(10):\n    if i == 3:\n        return i", json!(3)),
                ("try:\n    return 1\nexcept Exception:\n    return 2", json!(1)),
                ("def f():\n    return 5\nf()", json!(5)),
                ("{'a': (1, 2), 3: None, 'f': 0.5, 'b': True}", json!({"a": [1, 2], "3": null, "f": 0.5, "b": true})),
                ("'é名\\u0000'", json!("é名\u{0}")),
                ("9007199254740993", json!(9_007_199_254_740_993_i64)),
                ("2 ** 80", json!(1_208_925_819_614_629_174_706_176_u128)),
                ("float('nan')", json!(null)),
                ("sorted({3, 1, 2})", json!([1, 2, 3])),
                ("import datetime\ndatetime.date(2026, 1, 2)", json!("2026-01-02")),
                ("import datetime\ndatetime.datetime(2026, 1, 2, 3, 4, 5)", json!("2026-01-02T03:04:05")),
                ("import datetime\ndatetime.datetime.now().year > 2020", json!(true)),
                ("from dataclasses import dataclass\n@dataclass\nclass P:\n    x: int\nP(3)", json!({"x": 3})),
                ("import json\njson.loads('{\"a\": [1, 2]}')", json!({"a": [1, 2]})),
                ("import re\nre.findall(r'\\d+', 'a1b22')", json!(["1", "22"])),
                ("if __name__ == '__main__':\n    x = 1\nx", json!(1)),
                ("class A:\n    def __init__(self): self.v = 2\n    def get(self): return self.v\nA().get()", json!(2)),
                ("[y for y in (x * 2 for x in range(3))]", json!([0, 2, 4])),
            ],
        )
        .await;
}

#[tokio::test]
async fn names_of_builtins_are_free_to_use() {
    Bench::new()
        .check(
            &Options::default(),
            &[
                ("[id for id in [1, 2]]", json!([1, 2])),
                ("[len(list) for list in [[1]]], list('ab')", json!([[1], ["a", "b"]])),
                ("{type: max for type, max in [('a', 1)]}", json!({"a": 1})),
                ("sorted(id for id in {3: 1}), f'{id(3) > 0}'", json!([[3], "True"])),
                ("def f(id):\n    return [sum for sum in [id]]\nf(3), sum([1, 2])", json!([[3], 3])),
                ("for input in [1]: pass\ninput", json!(1)),
                ("[word_count(text=str)['words'] for str in ['a b']]", json!([2])),
            ],
        )
        .await;
}

#[tokio::test]
async fn tools_are_functions() {
    Bench::new()
        .check(
            &Options::default(),
            &[
                ("word_count(text='a b c')", json!({"words": 3})),
                ("word_count('a b c')['words']", json!(3)),
                ("shout(text='a') + '!'", json!("A!")),
                ("add(1, b=2)", json!(3)),
                ("echo(x=None, y=[1, {'z': 2.5}], t=(1, 2))", json!({"x": null, "y": [1, {"z": 2.5}], "t": [1, 2]})),
                ("echo(n=9007199254740993)['n']", json!(9_007_199_254_740_993_i64)),
                ("echo(**{'odd-name': 1})", json!({"odd-name": 1})),
                ("call('word_count', {'text': 'a b'})", json!({"words": 2})),
                ("call('word_count', text='a b')", json!({"words": 2})),
                ("call('my-tool', {'a': 1})", json!({"a": 1})),
                ("my_tool(a=1)", json!({"a": 1})),
                ("class_(a=1)", json!({"a": 1})),
                ("call('class', {'b': 2})", json!({"b": 2})),
                ("sum([1, 2])", json!(3)),
                ("call('sum', {'a': 1})", json!({"a": 1})),
                ("total = 0\nfor t in ['a', 'b c']:\n    total += word_count(text=t)['words']\ntotal", json!(3)),
                ("[word_count(text=t)['words'] for t in ['a', 'b c']]", json!([1, 2])),
                ("f = word_count\nf(text='x')", json!({"words": 1})),
                ("def helper(t):\n    return shout(text=t)\nhelper('a')", json!("A")),
                ("class A:\n    def m(self):\n        return shout(text='m')\nA().m()", json!("M")),
                ("def word_count(text):\n    return 'mine'\nword_count('x')", json!("mine")),
                ("shout(text=shout(text='a') + 'b')", json!("AB")),
                (
                    "class B:\n    def create_task(self, t):\n        return t + '!'\nimport asyncio\nB().create_task('x')",
                    json!("x!"),
                ),
            ],
        )
        .await;
}

#[tokio::test]
async fn awaited_calls_give_the_same_values() {
    Bench::new()
        .check(
            &Options::default(),
            &[
                ("await word_count(text='a b')", json!({"words": 2})),
                ("x = await shout(text='a')\nx", json!("A")),
                ("import asyncio\nawait asyncio.gather(shout(text='a'), shout(text='b'))", json!(["A", "B"])),
                ("import asyncio\na, b = await asyncio.gather(shout(text='a'), add(a=1, b=2))\n[a, b]", json!(["A", 3])),
                ("import asyncio\nawait asyncio.gather(*[shout(text=t) for t in 'abc'])", json!(["A", "B", "C"])),
                ("import asyncio\ntasks = [shout(text=t) for t in 'ab']\nawait asyncio.gather(*tasks)", json!(["A", "B"])),
                ("import asyncio\ntasks = []\nfor t in 'ab':\n    tasks.append(shout(text=t))\nawait asyncio.gather(*tasks)", json!(["A", "B"])),
                ("from asyncio import gather\nawait gather(shout(text='a'))", json!(["A"])),
                ("import asyncio as a\nawait a.gather(shout(text='a'))", json!(["A"])),
                ("import asyncio\nasync def main():\n    return await shout(text='m')\nasyncio.run(main())", json!("M")),
                ("import asyncio\nasync def main():\n    r = await asyncio.gather(shout(text='a'), shout(text='b'))\n    return r\nawait main()", json!(["A", "B"])),
                ("import asyncio\nasync def one(t):\n    return await shout(text=t)\nawait asyncio.gather(one('a'), one('b'))", json!(["A", "B"])),
                ("import asyncio\nasync def one(t):\n    return await shout(text=t)\nawait asyncio.gather(*(one(t) for t in 'ab'))", json!(["A", "B"])),
                ("import asyncio\nt = asyncio.create_task(shout(text='a'))\nawait t", json!("A")),
                ("import asyncio\nawait asyncio.sleep(0.001)\n1", json!(1)),
                ("x = shout(text='a')\nawait x", json!("A")),
                ("import asyncio\nfs = [shout, shout]\nawait asyncio.gather(*[f(text='a') for f in fs])", json!(["A", "A"])),
                ("import asyncio\nd = {t: shout(text=t) for t in 'ab'}\nr = await asyncio.gather(*d.values())\ndict(zip(d, r))", json!({"a": "A", "b": "B"})),
                ("return await shout(text='a')", json!("A")),
                ("await call('shout', {'text': 'a'})", json!("A")),
            ],
        )
        .await;
}

#[tokio::test]
async fn gathered_calls_run_at_once_but_at_most_eight() {
    let bench = Bench::new();
    for code in [
        "import asyncio\nawait asyncio.gather(meet(count=3), meet(count=3), meet(count=3))",
        "import asyncio\ntasks = [meet(count=3) for _ in range(3)]\nawait asyncio.gather(*tasks)",
        "import asyncio\nasync def one():\n    return await meet(count=3)\nasyncio.run(one())\n[3, 3, 3]",
    ]
    .iter()
    .take(2)
    {
        bench.host.most_running.store(0, Ordering::SeqCst);
        let result = bench.python(code).await.unwrap_or_else(|failure| panic!("{code}\n{}", ToolError::from(failure)));
        assert_eq!(result.result, json!([3, 3, 3]));
        assert_eq!(result.calls.len(), 3);
    }
    bench.host.most_running.store(0, Ordering::SeqCst);
    let code = "import asyncio\nawait asyncio.gather(*[meet(count=8) for _ in range(30)])\n1";
    bench.python(code).await.unwrap_or_else(|failure| panic!("{}", ToolError::from(failure)));
    assert_eq!(bench.host.most_running.load(Ordering::SeqCst), 8);
}

#[tokio::test]
async fn failures_of_tools_are_exceptions() {
    let bench = Bench::new();
    bench
        .check(
            &Options::default(),
            &[
                ("try:\n    fail()\nexcept Exception as e:\n    r = str(e)\n'exit code 3' in r and 'boom' in r", json!(true)),
                ("try:\n    fail()\nexcept ToolError:\n    r = 'caught'\nr", json!("caught")),
                ("import asyncio\ntry:\n    await asyncio.gather(fail(), shout(text='a'))\nexcept Exception:\n    r = 'caught'\nr", json!("caught")),
                ("try:\n    await fail()\nexcept Exception:\n    r = 'caught'\nr", json!("caught")),
                ("try:\n    call('nobody', {})\nexcept Exception as e:\n    r = str(e)\nr", json!("There is no tool `nobody`")),
                ("try:\n    add(1, 2, 3)\nexcept Exception as e:\n    r = str(e)\nr", json!("`add` takes its arguments by name (a, b), and got 3 without one")),
            ],
        )
        .await;
    let failure = bench.python("print('before')\ndef f():\n    return fail()\nf()").await.expect_err("nobody catches it");
    assert_eq!(failure.stdout, "before\n");
    assert_eq!((failure.calls.len(), failure.calls[0].ok), (1, false));
    let error = ToolError::from(failure);
    assert_eq!(error.kind, ErrorKind::Failed);
    let text = error.text();
    for part in [
        "The program failed: ToolError: `fail` ended with exit code 3 (line 3)\n",
        "Printed before:\nbefore",
        "File \"code.py\", line 3, in f\n    return fail()",
        "line 4, in <module>\n    f()",
    ] {
        assert!(text.contains(part), "{part}\n{text}");
    }
}

#[tokio::test]
async fn failures_are_caught_where_several_coroutines_run() {
    let each = "import asyncio\nasync def t(name):\n    try:\n        return await call(name, {'text': 'a'})\n    except Exception:\n        return 'err'\n";
    let deep = "import asyncio\nasync def t(name):\n    return await call(name, {'text': 'a'})\nasync def u(name):\n    try:\n        return await t(name)\n    except ToolError as e:\n        return 'err' + str(e)[:6]\n";
    let cases = [
        (format!("{each}await asyncio.gather(t('shout'), t('fail'), t('shout'))"), json!(["A", "err", "A"])),
        (format!("{each}await asyncio.gather(*[t(n) for n in ['fail', 'fail', 'shout']])"), json!(["err", "err", "A"])),
        (format!("{each}async def main():\n    return await asyncio.gather(t('fail'), t('shout'))\nasyncio.run(main())"), json!(["err", "A"])),
        (format!("{deep}await asyncio.gather(u('shout'), u('fail'))"), json!(["A", "err`fail`"])),
        (format!("{each}asyncio.run(t('fail'))"), json!("err")),
        (
            "import asyncio\nasync def t():\n    r = []\n    try:\n        await asyncio.gather(shout(text='a'), fail())\n    except Exception:\n        r.append('err')\n    finally:\n        r.append('end')\n    return r\nawait asyncio.gather(t(), t())".to_owned(),
            json!([["err", "end"], ["err", "end"]]),
        ),
    ];
    let bench = Bench::new();
    let cases: Vec<_> = cases.iter().map(|(code, value)| (code.as_str(), value.clone())).collect();
    for runtime in [Runtime::Embedded, Runtime::Auto, Runtime::Process] {
        bench.check(&Options { runtime, ..Options::default() }, &cases).await;
    }
}

#[tokio::test]
async fn a_tools_failure_is_told_once_and_alike_everywhere() {
    let bench = Bench::new();
    for (language, code) in [
        (Language::Python, "def f():\n    return fail()\nf()"),
        (Language::Python, "import asyncio\nawait asyncio.gather(fail(), shout(text='a'))"),
        (Language::JavaScript, "await fail()"),
    ] {
        for runtime in [Runtime::Embedded, Runtime::Process] {
            let failure = bench.run_with(code, &Options { language, runtime, ..Options::default() }).await.expect_err(code);
            let text = ToolError::from(failure).text();
            for once in ["boom", "exit code 3", "The program failed: ToolError: `fail`"] {
                assert_eq!(text.matches(once).count(), 1, "{runtime:?} {code}: {once}\n{text}");
            }
            assert!(!text.contains("RuntimeError"), "{text}");
        }
    }
}

#[tokio::test]
async fn unknown_names_get_the_help_that_fits() {
    let bench = Bench::new();
    for runtime in [Runtime::Embedded, Runtime::Auto] {
        bench
            .check_failures(
                &Options { runtime, ..Options::default() },
                &[
                    ("json.dumps(1)", "Put `import json` in front"),
                    ("x = Counter('a')", "Put `from collections import Counter` in front"),
                    ("hidden(a=1)", "The tool `hidden` exists, but this run's `tools` leave it out"),
                    ("hidden_too(a=1)", "The tool `hidden-too` exists"),
                    ("wordcount(text='a')", "Tools with such a name: `word_count`"),
                ],
            )
            .await;
    }
}

#[tokio::test]
async fn of_many_calls_the_first_are_listed() {
    let bench = Bench::new();
    let result = bench
        .python("for i in range(60):\n    add(a=i, b=1)\ntry:\n    fail()\nexcept Exception:\n    pass")
        .await
        .expect("runs");
    let answer = skillz_json::Value::from(result);
    assert_eq!((answer["calls"].as_array().map(Vec::len), &answer["calls_omitted"]), (Some(50), &json!(11)));
    let few = skillz_json::Value::from(bench.python("add(a=1, b=1)").await.expect("runs"));
    assert_eq!((few["calls"].as_array().map(Vec::len), few.get("calls_omitted")), (Some(1), None));
    let failure = bench.python("for i in range(60):\n    add(a=i, b=1)\n1 / 0").await.expect_err("fails");
    let data = ToolError::from(failure).data.expect("data");
    assert_eq!((data["calls"].as_array().map(Vec::len), &data["calls_omitted"]), (Some(50), &json!(10)));
}

#[tokio::test]
async fn tracebacks_show_the_programs_own_lines() {
    let bench = Bench::new();
    for (code, part) in [
        (
            "import asyncio\n\nasync def f():\n    x = await shout(text='a')\n    raise ValueError('bad')\nawait f()",
            "line 5, in f\n    raise ValueError('bad')\nValueError: bad",
        ),
        ("import skillz\nskillz.search('x')\n1 / 0", "line 3, in <module>\n    1 / 0\nZeroDivisionError"),
        ("x = {\n  'a': 1,\n}\nx['b']", "line 4, in <module>\n    x['b']\nKeyError"),
        ("return (1 /\n  0)", "ZeroDivisionError"),
    ] {
        let text = ToolError::from(bench.python(code).await.expect_err(code)).text();
        assert!(text.contains(part), "{code}\n{text}");
    }
    bench
        .check_failures(
            &Options::default(),
            &[
                ("def f(:\n  pass", "The program does not compile: SyntaxError: "),
                ("x = (1", "SyntaxError"),
                ("  x = 1", "SyntaxError"),
                ("word_cont(text='a')", "NameError: name 'word_cont' is not defined"),
                ("word_cont(text='a')", "Tools with such a name: `word_count`"),
                ("undefined_thing", "`skillz.search(\"...\")` finds tools"),
                ("raise KeyError('k')", "KeyError"),
                ("assert 1 == 2, 'no'", "AssertionError"),
                ("[].x", "AttributeError"),
                ("a = []\na.append(a)\na", "the value contains itself"),
            ],
        )
        .await;
}

#[tokio::test]
async fn what_is_printed_comes_back() {
    let bench = Bench::new();
    let result = bench.python("print('a', 1, [2])\nprint('b', end='')\nshout(text='x')\nprint('c')\n5").await.expect("runs");
    assert_eq!((result.stdout.as_str(), result.result), ("a 1 [2]\nbc\n", json!(5)));
    assert_eq!(result.calls[0].tool, "shout");
    assert!(result.calls[0].ok && result.calls[0].ms >= 0.0);
    let many = bench.python("for i in range(20000):\n    print(i)").await.expect("runs");
    assert_eq!(many.stdout.lines().count(), 20_000);
    assert_eq!(many.stdout.lines().last(), Some("19999"));
}

#[tokio::test]
async fn the_kit_reaches_the_host() {
    let bench = Bench::new();
    bench
        .check(
            &Options::default(),
            &[
                ("skillz.search('count words')[0]['name']", json!("word_count")),
                ("skillz.describe('word_count')['name']", json!("word_count")),
                ("import skillz\nskillz.memory.set('k', {'a': 1})\nskillz.memory.get('k')", json!({"a": 1})),
                ("skillz.memory.get('k')", json!({"a": 1})),
                ("skillz.memory.list('')", json!(["k"])),
                ("[skillz.memory.delete('k'), skillz.memory.delete('k'), skillz.memory.get('k')]", json!([true, false, null])),
                ("from skillz import memory, call\nmemory.set('x', 1)\ncall('add', {'a': memory.get('x'), 'b': 1})", json!(2)),
                ("import skillz as s\ns.call('add', a=1, b=2)", json!(3)),
                ("skillz.ask('name?', {'type': 'object'})", json!({"answer": "name?"})),
                (
                    "try:\n    skillz.ask('no', {})\nexcept Exception as e:\n    r = str(e)\nr",
                    json!("The user did not answer: decline"),
                ),
                ("skillz.sample('hi')", json!("hi")),
                ("skillz.log('one')\nskillz.progress(1, 2, 'half')\n1", json!(1)),
                ("await skillz.memory.get('x')", json!(1)),
                (
                    "try:\n    skillz.resources.read('skillz://x')\nexcept Exception as e:\n    r = str(e)\nr",
                    json!("There is no resource `skillz://x`"),
                ),
            ],
        )
        .await;
    assert_eq!(*bench.host.logged.lock().expect("not poisoned"), ["one"]);
}

#[tokio::test]
async fn nothing_is_left_for_the_next_run() {
    let bench = Bench::new();
    bench.python("x = 5\nimport json\njson.leak = 1\nclass A: pass\nA.y = 2").await.ok();
    bench.check_failures(&Options::default(), &[("x", "name 'x' is not defined"), ("A", "name 'A' is not defined")]).await;
    bench.check(&Options::default(), &[("import json\nhasattr(json, 'leak')", json!(false))]).await;
}

#[tokio::test]
async fn what_the_embedded_interpreter_lacks_is_an_error_that_says_so() {
    let bench = Bench::new();
    for code in
        ["import numpy", "f = '%s'\nshout(text='a')\nf % 1", "match 1:\n    case 1: pass", "class A: pass\nA.__mro__", "[shout]"]
    {
        let failure = bench.python(code).await.expect_err(code);
        let text = failure.error.text();
        assert!(
            text.contains("`runtime: \"process\"` runs programs in a real one") || text.contains("no form as JSON"),
            "{code}\n{text}"
        );
    }
}
