//! Function scripts in warm workers, Python and JavaScript.

mod support;

use std::sync::Arc;

use serde_json::json;
use support::{Bench, FakeHost, script, value};

skillz_process::helper_entry!();

#[tokio::test]
async fn functions_are_called_by_name_in_both_languages() {
    let bench = Bench::new();
    let python = bench.register(script("count", "python3", "def run(text: str, limit: int = 10) -> dict:\n    print('log')\n    return {'words': len(text.split()[:limit])}")).await;
    let node = bench.register(script("count_js", "node", "export async function run({ text }) { console.log('log'); return { words: text.split(/\\s+/).length }; }")).await;
    for tool in [&python, &node] {
        let host = Arc::new(FakeHost::default());
        for _ in 0..3 {
            assert_eq!(value(bench.run_with(tool, json!({"text": "a b c"}), &host).await), json!({"words": 3}));
        }
        assert_eq!(host.log_text(), "log\nlog\nlog\n");
    }
    assert_eq!(bench.runtime.workers(), (2, 2), "one warm worker for each");
    assert_eq!(python.manifest.input_schema.as_ref().unwrap()["required"], json!(["text"]));
}
