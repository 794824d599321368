//! What a program costs: `cargo bench -p skillz-runtime-code`. Beside it, the start of the machine's own interpreter.

#[path = "../tests/it/support.rs"]
#[allow(
    dead_code,
    clippy::expect_used,
    clippy::panic,
    clippy::indexing_slicing,
    reason = "helpers of the tests, which use the rest"
)]
mod support;

use criterion::Criterion;
use skillz_runtime_code::{Language, Runtime};
use support::{Bench, Options};

const PYTHON: &str = "a = word_count(text='a b')\nb = shout(text='c')\nadd(a=a['words'], b=len(b))";
const PYTHON_GATHER: &str = "import asyncio\nawait asyncio.gather(add(a=1, b=2), add(a=3, b=4), add(a=5, b=6))";
const JAVASCRIPT: &str =
    "const a = await word_count({text: 'a b'});\nconst b = await shout({text: 'c'});\nawait add({a: a.words, b: b.length})";
const TYPESCRIPT: &str = "const a: {words: number} = await word_count({text: 'a b'});\nconst b: string = await shout({text: 'c'});\nawait add({a: a.words, b: b.length})";

fn benchmark(criterion: &mut Criterion) {
    let Ok(runtime) = tokio::runtime::Builder::new_multi_thread().worker_threads(2).enable_all().build() else { return };
    let bench = Bench::new();
    for (label, language, code) in [
        ("python, three calls", Language::Python, PYTHON),
        ("python, three calls at once", Language::Python, PYTHON_GATHER),
        ("python, no call", Language::Python, "1 + 1"),
        ("javascript, three calls", Language::JavaScript, JAVASCRIPT),
        ("typescript, three calls", Language::TypeScript, TYPESCRIPT),
    ] {
        let options = Options { language, ..Options::default() };
        criterion.bench_function(label, |bencher| {
            bencher.iter(|| runtime.block_on(bench.run_with(code, &options)).map(|result| result.calls.len()).ok());
        });
    }
    let mut slow = criterion.benchmark_group("processes");
    slow.sample_size(20);
    slow.bench_function("a first run, worker start included", |bencher| {
        bencher.iter(|| {
            let bench = Bench::new();
            runtime.block_on(bench.run_with(PYTHON, &Options::default())).map(|result| result.calls.len()).ok()
        });
    });
    for (label, language, code) in
        [("python3, three calls", Language::Python, PYTHON), ("node, three calls", Language::JavaScript, JAVASCRIPT)]
    {
        let options = Options { language, runtime: Runtime::Process, ..Options::default() };
        slow.bench_function(label, |bencher| {
            bencher.iter(|| runtime.block_on(bench.run_with(code, &options)).map(|result| result.calls.len()).ok());
        });
    }
    slow.bench_function("bare python3 -c pass", |bencher| {
        bencher.iter(|| {
            std::process::Command::new("/usr/bin/python3").args(["-c", "pass"]).status().map(|status| status.success()).ok()
        });
    });
}

fn main() {
    skillz_process::run_helper_if_asked();
    skillz_runtime_code::run_worker_if_asked();
    let mut criterion = Criterion::default().configure_from_args();
    benchmark(&mut criterion);
    criterion.final_summary();
}
