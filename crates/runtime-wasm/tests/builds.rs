//! Building tools from source, and calling what was built.

mod support;

use serde_json::json;
use skillz_tool::SourceCode;
use support::{Bench, printed, returned};

skillz_process::helper_entry!();

#[tokio::test]
async fn a_plain_program_is_built_and_called() {
    let bench = Bench::new();
    let code = r#"
        use std::io::Read;
        fn main() {
            let mut text = String::new();
            std::io::stdin().read_to_string(&mut text).unwrap();
            println!("got {text}");
        }"#;
    let started = std::time::Instant::now();
    let tool = bench.build("plain", code, &[]).await.unwrap();
    println!("plain: {:?}", started.elapsed());
    let started = std::time::Instant::now();
    let tool2 = bench.build("plain2", code, &[]).await.unwrap();
    println!("plain again: {:?}", started.elapsed());
    assert_eq!(printed(bench.call(&tool, json!({"a": 1})).await.unwrap()), "got {\"a\":1}\n");
    assert_eq!(printed(bench.call(&tool2, json!({"a": 1})).await.unwrap()), "got {\"a\":1}\n");
    let _ = SourceCode::Folder;
}

#[tokio::test]
async fn a_function_gets_its_arguments_and_returns_a_value() {
    let bench = Bench::new();
    let code = r#"
        #[skillz::tool]
        fn run(text: String, limit: Option<u32>) -> Result<Vec<String>, String> {
            if text.is_empty() { return Err("nothing to do".into()); }
            Ok(text.split(' ').take(limit.unwrap_or(10) as usize).map(String::from).collect())
        }"#;
    let started = std::time::Instant::now();
    let tool = bench.build("words", code, &[]).await.unwrap();
    println!("skillz: {:?}", started.elapsed());
    let started = std::time::Instant::now();
    bench.build("words2", code, &[]).await.unwrap();
    println!("skillz again: {:?}", started.elapsed());
    assert_eq!(returned(bench.call(&tool, json!({"text": "a b c", "limit": 2})).await.unwrap()), json!(["a", "b"]));
    let error = bench.call(&tool, json!({"text": ""})).await.unwrap_err();
    assert!(error.message.contains("nothing to do"), "{error}");
}
