//! Programs without end, without measure, without bottom: each ends with its message, and the next one runs.

use std::time::{Duration, Instant};

use skillz_json::json;
use skillz_runtime_code::Language;
use skillz_tool::{ErrorKind, ToolError};

use crate::support::{Bench, Options};

fn options(language: Language, timeout_ms: u64) -> Options {
    Options { language, timeout: Duration::from_millis(timeout_ms), ..Options::default() }
}

#[tokio::test]
async fn endless_programs_end_at_their_limit() {
    let bench = Bench::new();
    for (language, code) in [
        (Language::Python, "print('first')\nwhile True: pass"),
        (Language::Python, "print('first')\ndef f():\n    while True: pass\nf()"),
        (Language::Python, "print('first')\ntry:\n    while True: pass\nexcept BaseException:\n    pass\nwhile True: pass"),
        (Language::Python, "print('first')\nslow()"),
        (Language::Python, "print('first')\nimport asyncio\nawait asyncio.gather(slow(), slow())"),
        (Language::Python, "print('first')\nimport asyncio\nawait asyncio.sleep(3600)"),
        (Language::Python, "print('first')\nsum(range(10**12))"),
        (Language::JavaScript, "console.log('first'); while (true) {}"),
        (Language::JavaScript, "console.log('first'); try { while (true) {} } finally { while (true) {} }"),
        (
            Language::JavaScript,
            "console.log('first'); const f = () => Promise.resolve().then(f); await f(); await new Promise(() => f())",
        ),
        (Language::JavaScript, "console.log('first'); await slow()"),
        (Language::JavaScript, "console.log('first'); await new Promise((r) => setTimeout(r, 1e7))"),
        (Language::JavaScript, "console.log('first'); setInterval(() => {}, 1); await new Promise(() => {})"),
        (Language::JavaScript, "console.log('first'); /^(a+)+$/.test('a'.repeat(40) + 'b')"),
    ] {
        let started = Instant::now();
        let failure = bench.run_with(code, &options(language, 400)).await.expect_err(code);
        assert!(started.elapsed() < Duration::from_secs(20), "{code}");
        assert_eq!(failure.error.kind, ErrorKind::TimedOut, "{code}\n{}", failure.error);
        assert_eq!(failure.stdout, "first\n", "{code}");
        let text = failure.error.text();
        assert!(text.contains("stopped after its limit of 0.4 s"), "{code}\n{text}");
    }
    assert_eq!(bench.host.running(), 0, "calls that went on were given up");
    bench.check(&Options::default(), &[("1", json!(1))]).await;
}

#[tokio::test]
async fn memory_is_bounded() {
    let bench = Bench::new();
    for (language, code) in [
        (Language::Python, "x = []\nwhile True:\n    x.append('a' * 1000000 + str(len(x)))"),
        (Language::Python, "x = 'a' * (10 ** 11)"),
        (Language::Python, "x = [0] * (10 ** 10)"),
        (Language::Python, "x = 2 ** (10 ** 11)"),
        (Language::Python, "x = 'ab' * 10000000\nfor i in range(20):\n    x = x.replace('a', 'aaaaaaaa')"),
        (Language::JavaScript, "const x = []; while (true) x.push('a'.repeat(100000) + x.length)"),
        (Language::JavaScript, "'a'.repeat(2 ** 29).repeat(100)"),
        (Language::JavaScript, "new Uint8Array(8 * 1024 ** 3)"),
        (Language::JavaScript, "let s = 'x'; while (true) s += s"),
        (Language::JavaScript, "const a = new Array(1e6).fill(0).map(() => new Array(1e6).fill(1)); a"),
    ] {
        let options = Options { language, memory_mb: 64, ..Options::default() };
        let failure = bench.run_with(code, &options).await.expect_err(code);
        let text = ToolError::from(failure).text();
        let says_so = [
            "needed more than its 64 MiB of memory",
            "MemoryError",
            "invalid string length",
            "OverflowError",
            "RangeError",
            "invalid array",
            "string too long",
        ];
        assert!(says_so.iter().any(|part| text.contains(part)), "{code}\n{text}");
    }
    bench.check(&Options::default(), &[("len('a' * 1000000)", json!(1_000_000))]).await;
}

#[tokio::test]
async fn recursion_is_bounded() {
    let bench = Bench::new();
    let python = Options::default();
    bench
        .check_failures(
            &python,
            &[
                ("def f(n):\n    return f(n + 1)\nf(0)", "RecursionError"),
                ("class A:\n    def __eq__(self, o):\n        return o == self\nA() == A()", "RecursionError"),
                ("x = []\nfor _ in range(100000):\n    x = [x]\nx", ""),
                ("x = []\nfor _ in range(100000):\n    x = [x]\necho(x=x)", ""),
            ],
        )
        .await;
    bench
        .check(
            &python,
            &[("def f(n):\n    return f(n + 1)\ntry:\n    f(0)\nexcept RecursionError:\n    r = 'caught'\nr", json!("caught"))],
        )
        .await;
    let deep =
        [format!("{}1{}", "(".repeat(100_000), ")".repeat(100_000)), format!("{}{}", "[".repeat(100_000), "]".repeat(100_000))];
    for code in &deep {
        assert!(bench.python(code).await.is_err());
    }
    let javascript = Options { language: Language::JavaScript, ..Options::default() };
    bench
        .check_failures(
            &javascript,
            &[
                ("const f = () => f(); f()", "RangeError"),
                ("JSON.parse('['.repeat(1e6))", ""),
                ("let x = []; for (let i = 0; i < 1e6; i++) x = [x]; x", ""),
                ("let x = []; for (let i = 0; i < 1e6; i++) x = [x]; await echo({x})", ""),
            ],
        )
        .await;
    for code in &deep {
        assert!(bench.javascript(code).await.is_err());
    }
    bench.check(&python, &[("1", json!(1))]).await;
    bench.check(&javascript, &[("1", json!(1))]).await;
}

#[tokio::test]
async fn output_is_bounded() {
    let bench = Bench::new();
    for (language, code) in [
        (Language::Python, "while True: print('x' * 10000)"),
        (Language::Python, "print('x' * 50000000)"),
        (Language::JavaScript, "while (true) console.log('x'.repeat(10000))"),
        (Language::JavaScript, "console.log('x'.repeat(50000000))"),
    ] {
        let failure = bench.run_with(code, &options(language, 60_000)).await.expect_err(code);
        assert_eq!(failure.error.kind, ErrorKind::LimitExceeded, "{code}\n{}", failure.error);
        assert!(failure.error.text().contains("printed more than 4194304 bytes"), "{code}\n{}", failure.error);
    }
    bench.check(&Options::default(), &[("1", json!(1))]).await;
}

#[tokio::test]
async fn dropping_a_run_stops_the_program_and_its_calls() {
    let bench = Bench::new();
    for (language, code) in [
        (Language::Python, "import asyncio\nawait asyncio.gather(slow(), slow())"),
        (Language::JavaScript, "await Promise.all([slow(), slow()])"),
    ] {
        let options = options(language, 60_000);
        let mut run = Box::pin(bench.run_with(code, &options));
        let deadline = Instant::now() + Duration::from_secs(30);
        while bench.host.running() < 2 {
            assert!(Instant::now() < deadline, "the calls never started");
            let _ = tokio::time::timeout(Duration::from_millis(5), &mut run).await;
        }
        drop(run);
        assert_eq!(bench.host.running(), 0, "{code}");
    }
    bench.check(&Options::default(), &[("1", json!(1))]).await;
}

/// Beside the interpreter stands the kernel: a worker that was broken out of could not open a file.
#[cfg(target_os = "linux")]
#[tokio::test]
async fn workers_have_given_their_system_calls_up() {
    let bench = Bench::new();
    bench.check(&Options::default(), &[("1", json!(1))]).await;
    let deadline = Instant::now() + Duration::from_secs(30);
    loop {
        let processes = std::fs::read_dir("/proc").expect("proc is there").flatten();
        let workers = processes.filter(|process| {
            std::fs::read(process.path().join("cmdline"))
                .is_ok_and(|line| String::from_utf8_lossy(&line).contains("__code_worker"))
        });
        let filtered = workers.filter(|worker| {
            std::fs::read_to_string(worker.path().join("status"))
                .is_ok_and(|status| status.lines().any(|line| line == "Seccomp:\t2"))
        });
        if filtered.count() > 0 {
            return;
        }
        assert!(Instant::now() < deadline, "no worker has a filter");
        tokio::time::sleep(Duration::from_millis(20)).await;
    }
}

#[tokio::test]
async fn runs_beside_each_other_do_not_meet() {
    let bench = Bench::new();
    let programs = (0..24).map(|number| {
        let bench = &bench;
        async move {
            let code = format!(
                "import asyncio\nx = {number}\nprint(x)\nr = await asyncio.gather(add(a=x, b=1), add(a=x, b=2))\nprint(x)\nr"
            );
            (number, bench.python(&code).await)
        }
    });
    for (number, result) in futures::future::join_all(programs).await {
        let result = result.unwrap_or_else(|failure| panic!("{}", ToolError::from(failure)));
        assert_eq!((result.result, result.stdout), (json!([number + 1, number + 2]), format!("{number}\n{number}\n")));
    }
}
