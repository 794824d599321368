//! What a pipeline costs beside the calls of its steps: `cargo bench -p skillz-pipeline`.

#[path = "../tests/it/support.rs"]
#[allow(
    dead_code,
    clippy::expect_used,
    clippy::panic,
    clippy::indexing_slicing,
    reason = "helpers of the tests, which use the rest"
)]
mod support;

use criterion::{Criterion, criterion_group, criterion_main};
use skillz_json::json;
use skillz_pipeline::{Pipeline, run};
use skillz_tool::Host;
use support::TestHost;

fn benchmark(criterion: &mut Criterion) {
    let runtime = tokio::runtime::Builder::new_current_thread().enable_all().build();
    let Ok(runtime) = runtime else { return };
    let steps = json!([
        {"name": "a", "tool": "upper", "args": {"text": "$input.text"}},
        {"name": "b", "tool": "count_words", "args": {"text": "$prev"}, "condition": "\"a\" in $input.text"},
        {"tool": "echo", "args": {"text": "$a has ${b.words} words", "all": "$prev"}},
    ]);
    let Ok(pipeline) = Pipeline::read(&steps) else { return };
    let input = json!({"text": "a b c"}).as_object().cloned().unwrap_or_default();
    let host = TestHost::default();
    criterion.bench_function("three steps", |bencher| bencher.iter(|| runtime.block_on(run(&pipeline, input.clone(), &host))));
    criterion.bench_function("three bare calls", |bencher| {
        bencher.iter(|| {
            runtime.block_on(async {
                for tool in ["upper", "count_words", "echo"] {
                    let _ = host.call_tool(tool, input.clone()).await;
                }
            });
        });
    });
    criterion.bench_function("reading three steps", |bencher| bencher.iter(|| Pipeline::read(&steps)));
}

criterion_group!(benches, benchmark);
criterion_main!(benches);
