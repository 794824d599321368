//! JavaScript and TypeScript, embedded.

use std::{sync::atomic::Ordering, time::Duration};

use skillz_json::json;
use skillz_runtime_code::{Language, Runtime};
use skillz_tool::{ErrorKind, ToolError};

use crate::support::{Bench, Options};

fn javascript() -> Options {
    Options { language: Language::JavaScript, ..Options::default() }
}

fn typescript() -> Options {
    Options { language: Language::TypeScript, ..Options::default() }
}

#[tokio::test]
async fn the_last_expression_or_return_is_the_result() {
    Bench::new()
        .check(
            &javascript(),
            &[
                ("1 + 1", json!(2)),
                ("const x = 5;\nx * 2;", json!(10)),
                ("const x = 5", json!(null)),
                ("", json!(null)),
                ("// only a comment", json!(null)),
                ("'text'", json!("text")),
                ("return 7", json!(7)),
                ("if (true) { return {a: [1]} }\nreturn 2", json!({"a": [1]})),
                ("({a: 1, u: undefined, f: () => 1, n: null})", json!({"a": 1, "n": null})),
                ("[1, undefined, NaN]", json!([1, null, null])),
                ("new Map([['a', 1]])", json!({"a": 1})),
                ("new Set([1, 2])", json!([1, 2])),
                ("10n ** 3n", json!(1000)),
                ("2n ** 80n", json!("1208925819614629174706176")),
                ("new Date(0)", json!("1970-01-01T00:00:00.000Z")),
                ("'é名\\u0000'", json!("é名\u{0}")),
                ("'\\ud800'", json!("\u{fffd}")),
                ("Promise.resolve(3)", json!(3)),
                ("await Promise.resolve(4)", json!(4)),
                ("async function f() { return 5 }\nf()", json!(5)),
                ("class A { #v = 2; get() { return this.#v } }\nnew A().get()", json!(2)),
                ("await new Promise((r) => setTimeout(() => r('later'), 5))", json!("later")),
                ("let n = 0; const t = setInterval(() => n++, 1); await new Promise((r) => setTimeout(r, 20)); clearInterval(t); n > 1", json!(true)),
                ("export const a = 3;\na", json!(3)),
                ("'a1b22'.match(/\\d+/g)", json!(["1", "22"])),
            ],
        )
        .await;
}

#[tokio::test]
async fn tools_are_functions() {
    Bench::new()
        .check(
            &javascript(),
            &[
                ("await word_count({text: 'a b c'})", json!({"words": 3})),
                ("(await word_count({text: 'a b c'})).words", json!(3)),
                ("word_count({text: 'a b'})", json!({"words": 2})),
                ("await word_count('a b')", json!({"words": 2})),
                ("await add(1, 2)", json!(3)),
                ("await echo({x: null, y: [1, {z: 2.5}]})", json!({"x": null, "y": [1, {"z": 2.5}]})),
                ("await echo()", json!({})),
                ("await call('my-tool', {a: 1})", json!({"a": 1})),
                ("await my_tool({a: 1})", json!({"a": 1})),
                ("await call('class', {b: 2})", json!({"b": 2})),
                ("await Promise.all(['a', 'b'].map((text) => shout({text})))", json!(["A", "B"])),
                ("['a', 'b'].map((text) => shout({text}))", json!(["A", "B"])),
                ("const word_count = () => 'mine'; word_count()", json!("mine")),
                ("let s = ''; for (const text of ['a', 'b']) s += await shout({text}); s", json!("AB")),
                (
                    "try { await fail() } catch (e) { [e.name, e instanceof ToolError, e instanceof Error, e.data.code] }",
                    json!(null),
                ),
                (
                    "let r; try { await fail() } catch (e) { r = [e.name, e instanceof ToolError, e.data.code] }\nr",
                    json!(["ToolError", true, 3]),
                ),
                (
                    "(await Promise.allSettled([fail(), shout({text: 'a'})])).map((r) => r.status)",
                    json!(["rejected", "fulfilled"]),
                ),
                ("await Promise.race([shout({text: 'a'}), new Promise(() => {})])", json!("A")),
            ],
        )
        .await;
}

#[tokio::test]
async fn calls_run_at_once_but_at_most_eight() {
    let bench = Bench::new();
    let result = bench.javascript("await Promise.all([1, 2, 3].map(() => meet({count: 3})))").await.expect("they meet");
    assert_eq!(result.result, json!([3, 3, 3]));
    bench.host.most_running.store(0, Ordering::SeqCst);
    bench.javascript("await Promise.all(Array.from({length: 30}, () => meet({count: 8})))").await.expect("they meet");
    assert_eq!(bench.host.most_running.load(Ordering::SeqCst), 8);
}

#[tokio::test]
async fn typescript_is_stripped_of_its_types() {
    let bench = Bench::new();
    bench
        .check(
            &typescript(),
            &[
                ("interface R { words: number }\nconst r: R = await word_count({text: 'a b'});\nr.words as number", json!(2)),
                ("enum C { Red = 1, Blue }\nC.Blue", json!(2)),
                ("type A = string | number;\nconst f = <T extends A>(x: T): T => x;\nf<number>(3)!", json!(3)),
                ("class P { constructor(public x: number, private y = 2) {} sum(): number { return this.x + this.y } }\nnew P(1).sum()", json!(3)),
                ("import type { X } from './x';\nlet a: X = 1 as any;\na", json!(1)),
                ("const a = { b: 1 } satisfies Record<string, number>;\nreturn a.b", json!(1)),
                ("1 + 1", json!(2)),
            ],
        )
        .await;
    let text = ToolError::from(
        bench
            .run_with(
                "interface A {\n  x: number\n}\n\nfunction f(a: A): never {\n  throw new Error('bad');\n}\nf({x: 1});",
                &typescript(),
            )
            .await
            .expect_err("throws"),
    )
    .text();
    assert!(text.contains("Error: bad (line 6)") && text.contains("at f (code.js:6)\n        throw new Error('bad');"), "{text}");
    bench.check_failures(&typescript(), &[("const a: = 1", "SyntaxError"), ("let x: number = ;", "SyntaxError")]).await;
}

#[tokio::test]
async fn failures_say_where() {
    let bench = Bench::new();
    let failure = bench
        .javascript("console.log('before');\nasync function f() {\n  await fail();\n}\nawait f();")
        .await
        .expect_err("nobody catches it");
    assert_eq!((failure.stdout.as_str(), failure.calls.len()), ("before\n", 1));
    let text = ToolError::from(failure).text();
    assert!(
        text.contains("The program failed: ToolError: `fail` ended with exit code 3") && text.contains("code.js:3"),
        "{text}"
    );
    bench
        .check_failures(
            &javascript(),
            &[
                ("let a = ;", "The program does not compile: SyntaxError"),
                ("const a = 1; const a = 2;", "SyntaxError"),
                ("throw new TypeError('x')", "TypeError: x (line 1)"),
                ("const o = {};\n\no.x.y", "(line 3)"),
                ("throw 'text'", "Uncaught text"),
                ("throw {a: 1}", "Uncaught {\"a\":1}"),
                ("word_cont({})", "Tools with such a name: `word_count`"),
                ("await Promise.reject(new Error('no'))", "Error: no"),
                ("await new Promise(() => {})", "waits for something that never comes"),
                ("const a = {}; a.a = a; a", "circular"),
                ("call(5)", "call() takes a tool's name"),
                ("await call('nobody')", "There is no tool `nobody`"),
            ],
        )
        .await;
}

#[tokio::test]
async fn what_is_printed_comes_back() {
    let bench = Bench::new();
    let result = bench.javascript("console.log('a', 1, [2], {b: 3}, undefined, null);\nconsole.error(new Error('e'));\nawait shout({text: 'x'});\nconsole.log('c')").await.expect("runs");
    assert_eq!(result.stdout, "a 1 [2] {\"b\":3} undefined null\nError: e\nc\n");
    let many = bench.javascript("for (let i = 0; i < 20000; i++) console.log(i)").await.expect("runs");
    assert_eq!(many.stdout.lines().count(), 20_000);
}

#[tokio::test]
async fn the_console_formats_and_timers_end_before_the_program() {
    let bench = Bench::new();
    for (code, expected) in [
        ("console.log('%s=%d', 'x', 3)", "x=3\n"),
        ("console.log('%i %f %j %% %s', '4.5', '1.5', {a: 1})", "4 1.5 {\"a\":1} % %s\n"),
        ("console.log('%s', 'a', 'b'); console.log('100%', 1); console.log('%s')", "a b\n100% 1\n%s\n"),
        ("console.log(NaN, Infinity, -0, 1.5)", "NaN Infinity -0 1.5\n"),
        ("console.info('a'); console.debug('b'); console.dir({c: 1})", "a\nb\n{\"c\":1}\n"),
        ("console.table([{a: 1, b: 'x'}, {a: 2}])", "(index) | a | b\n0 | 1 | x\n1 | 2 | \n"),
        ("console.table([1, 2])", "(index) | Values\n0 | 1\n1 | 2\n"),
        ("console.group('g'); console.log('in'); console.groupEnd(); console.log('out')", "g\n  in\nout\n"),
        (
            "console.assert(true, 'no'); console.assert(false, 'yes'); console.count(); console.count()",
            "Assertion failed: yes\ndefault: 1\ndefault: 2\n",
        ),
        ("setTimeout(() => console.log('late'), 20);\nconsole.log('first')", "first\nlate\n"),
        ("let n = 0;\nconst t = setInterval(() => { console.log(++n); if (n === 3) clearInterval(t) }, 2)", "1\n2\n3\n"),
    ] {
        let result = bench.run_with(code, &javascript()).await;
        let result = result.unwrap_or_else(|failure| panic!("{code}\n{}", ToolError::from(failure)));
        assert_eq!(result.stdout, expected, "{code}");
    }
    for runtime in [Runtime::Embedded, Runtime::Process] {
        let options = || Options { runtime, ..javascript() };
        bench.check_failures(&options(), &[("setTimeout(() => { throw new Error('late') }, 5);\n1", "Error: late")]).await;
        let short = Options { timeout: Duration::from_secs(2), ..options() };
        let endless = bench.run_with("setInterval(() => {}, 10);\n7", &short).await;
        match runtime {
            Runtime::Embedded => assert_eq!(endless.expect("it has ended").result, json!(7)),
            // As by hand: it goes on for as long as anything is left to do.
            _ => assert_eq!(endless.expect_err("it never ends").error.kind, ErrorKind::TimedOut),
        }
    }
}

#[tokio::test]
async fn the_kit_reaches_the_host() {
    let bench = Bench::new();
    bench
        .check(
            &javascript(),
            &[
                ("(await skillz.search('count'))[0].name", json!("word_count")),
                ("(await skillz.describe('word_count')).name", json!("word_count")),
                ("await skillz.memory.set('k', {a: 1}); await skillz.memory.get('k')", json!({"a": 1})),
                ("await skillz.memory.get('k')", json!({"a": 1})),
                (
                    "[await skillz.memory.list(), await skillz.memory.delete('k'), await skillz.memory.get('k')]",
                    json!([["k"], true, null]),
                ),
                ("await skillz.ask('name?', {})", json!({"answer": "name?"})),
                ("await skillz.sample('hi')", json!("hi")),
                ("await skillz.log('one'); await skillz.progress(1, 2); await skillz.call('add', {a: 1, b: 2})", json!(3)),
                ("import skillz from 'skillz';\nawait skillz.memory.get('k')", json!(null)),
            ],
        )
        .await;
}

#[tokio::test]
async fn nothing_is_left_for_the_next_run() {
    let bench = Bench::new();
    bench.javascript("globalThis.x = 5; Array.prototype.leak = 1; Object.prototype.leak = 2; call = null").await.ok();
    bench
        .check(&javascript(), &[("[typeof x, [].leak, ({}).leak, typeof call]", json!(["undefined", null, null, "function"]))])
        .await;
}

#[tokio::test]
async fn what_the_embedded_interpreter_lacks_is_an_error() {
    let bench = Bench::new();
    for (code, part) in [
        ("require('fs')", "require is not defined"),
        ("import fs from 'fs';\nconsole.log('ran')", "imports `fs`"),
        ("await fetch('http://localhost')", "fetch is not defined"),
    ] {
        let failure = bench.javascript(code).await.expect_err(code);
        assert!(failure.error.text().contains(part), "{}", failure.error.text());
    }
}
