//! Building tools from source, and calling what was built.

#![allow(
    clippy::unwrap_used,
    clippy::expect_used,
    clippy::panic,
    clippy::indexing_slicing,
    reason = "helpers of tests may fail them"
)]

mod support;

use std::{fs, path::Path, sync::Arc};

use skillz_json::json;
use skillz_tool::{ErrorKind, Manifest, SourceCode, ToolKind};
use support::{Bench, printed, returned, tool_in};

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
    let tool = bench.build("plain", code, &[]).await.unwrap();
    assert_eq!(printed(bench.call(&tool, json!({"a": 1})).await.unwrap()), "got {\"a\":1}\n");
    assert_eq!(tool.manifest.entry_file.as_deref(), Some("src.rs"));
    assert_eq!(fs::read_to_string(tool.directory.join("src.rs")).unwrap(), code);
    assert!(!tool.directory.join("Cargo.lock").exists(), "nothing is locked where nothing is needed");
}

#[tokio::test]
async fn a_function_gets_its_arguments_and_returns_a_value() {
    let bench = Bench::new();
    let code = r#"
        use serde::{Deserialize, Serialize};

        #[derive(Deserialize)]
        struct Range { from: usize, to: Option<usize> }

        #[derive(Serialize)]
        struct Words { words: Vec<String>, all: usize }

        /// Cuts a text.
        #[skillz::tool]
        fn run(
            /// The text.
            text: &str,
            #[serde(default)] mut range: Vec<Range>,
            r#type: Option<String>,
        ) -> Result<Words, Box<dyn std::error::Error>> {
            println!("this goes to the log");
            let all: Vec<&str> = text.split_whitespace().collect();
            if all.is_empty() { return Err("there are no words".into()); }
            let Range { from, to } = range.pop().unwrap_or(Range { from: 0, to: None });
            let words = all.get(from..to.unwrap_or(all.len())).ok_or("the range is too long")?;
            let _ = r#type;
            Ok(Words { words: words.iter().map(|word| word.to_string()).collect(), all: all.len() })
        }"#;
    let tool = bench.build("words", code, &[]).await.unwrap();
    let input = tool.manifest.input_schema.clone().unwrap();
    assert_eq!(input["required"], json!(["text"]));
    assert_eq!(input["properties"]["text"], json!({"type": "string", "description": "The text."}));
    assert!(input["properties"]["type"].is_object() && input["additionalProperties"] == json!(false));
    assert_eq!(tool.manifest.output_schema.as_ref().unwrap()["required"], json!(["words", "all"]));

    let value = returned(bench.call(&tool, json!({"text": "a b c", "range": [{"from": 1}]})).await.unwrap());
    assert_eq!(value, json!({"words": ["b", "c"], "all": 3}));
    assert!(bench.host.logs.lock().unwrap().iter().any(|line| line == "this goes to the log"));
    let error = bench.call(&tool, json!({"text": ""})).await.unwrap_err();
    assert_eq!(error.message, "`words` failed: there are no words");
    let error = bench.call(&tool, json!({"text": "a", "range": [{"from": 5}]})).await.unwrap_err();
    assert_eq!(error.message, "`words` failed: the range is too long");
    let error = bench.call(&tool, json!({"text": 1})).await.unwrap_err();
    assert!(error.message.contains("do not fit the function"), "{error}");
    let mut call = support::call_of(&tool, json!({"text": "x".repeat(5_000)}));
    call.limits.max_output_bytes = 4_000;
    let error = bench.run(call).await.unwrap_err();
    assert!(error.message.contains("printed more than 4000 bytes"), "{error}");
}

#[tokio::test]
async fn results_keep_their_types() {
    let bench = Bench::new();
    for (kind, expression, expected) in [
        ("String", "\"12\".to_string()", json!("12")),
        ("u64", "u64::MAX", json!(u64::MAX)),
        ("Option<bool>", "None", json!(null)),
        ("()", "()", json!(null)),
        ("Result<i8, String>", "Ok(-1)", json!(-1)),
        ("Result<(), skillz::Error>", "Ok(())", json!(null)),
        ("serde_json::Value", "serde_json::json!({\"a\": [1, 2.5]})", json!({"a": [1, 2.5]})),
    ] {
        let code = format!("#[skillz::tool]\nfn run() -> {kind} {{ {expression} }}");
        let tool = bench.build("typed", &code, &[]).await.unwrap();
        assert_eq!(returned(bench.call(&tool, json!({})).await.unwrap()), expected, "{kind}");
    }
}

#[tokio::test]
async fn whole_numbers_reach_their_types_or_fail_by_name() {
    let bench = Bench::new();
    let code = "use serde_json::Value;
        #[skillz::tool]
        fn run(n: Option<u32>, list: Option<Vec<i64>>, any: Option<Value>, json: Option<skillz::Json>, wide: Option<u128>)
            -> (Option<u32>, Option<Vec<i64>>, Option<Value>, Option<skillz::Json>, Option<u128>) { (n, list, any, json, wide) }";
    let tool = bench.build("exact", code, &[]).await.unwrap();
    for (arguments, expected) in [
        (json!({"n": 3.0, "list": [-0.0, 1e3]}), json!([3, [0, 1000], null, null, null])),
        (json!({"any": [1.5, u64::MAX], "json": {"a": [1, "b"]}}), json!([null, null, [1.5, u64::MAX], {"a": [1, "b"]}, null])),
        (json!({"wide": u64::MAX}), json!([null, null, null, null, u64::MAX])),
    ] {
        assert_eq!(returned(bench.call(&tool, arguments.clone()).await.unwrap()), expected, "{arguments}");
    }
    for (arguments, part) in [
        (json!({"n": u64::MAX}), "`n`: invalid value: integer `18446744073709551615`, expected u32"),
        (json!({"n": 3.5}), "`n`: invalid type: floating point `3.5`, expected u32"),
        (json!({"list": [1, u64::MAX]}), "`list[1]`"),
        (json!({"wide": -1}), "`wide`: invalid value: integer `-1`, expected u128"),
    ] {
        let error = bench.call(&tool, arguments).await.unwrap_err();
        assert!(error.message.contains(part), "{error}");
    }
}

#[tokio::test]
async fn results_that_nobody_can_read_fail_at_once() {
    let bench = Bench::new();
    let code =
        "#[skillz::tool]\nfn run() -> skillz::Json { format!(\"{}{}\", \"[\".repeat(200), \"]\".repeat(200)).parse().unwrap() }";
    let tool = bench.build("deep", code, &[]).await.unwrap();
    let error = bench.call(&tool, json!({})).await.unwrap_err();
    assert!(error.text().contains("The message is not valid"), "{error}");
}

#[tokio::test]
async fn every_service_of_the_host_answers() {
    let bench = Bench::new();
    let code = r#"
        use serde_json::{json, Value};

        #[skillz::tool]
        fn run() -> Result<Value, skillz::Error> {
            use skillz::memory;
            memory::set("a", 1)?;
            memory::set_for("b", json!({"deep": true}), 60)?;
            memory::set_for("c", "text", std::time::Duration::from_secs(5))?;
            let missing = memory::get("zzz")?;
            let found = memory::get("b")?.unwrap();
            let keys = memory::list("")?;
            let deleted = (memory::delete("a")?, memory::delete("a")?);
            skillz::log("warn", "from the tool")?;
            skillz::log(skillz::Level::Info, format!("{} keys", keys.len()))?;
            skillz::progress(1, 2, "half")?;
            skillz::progress(1.5, Some(2.0), None)?;
            skillz::progress(2, None, String::from("done"))?;
            let shouted = skillz::call("shout", json!({"text": "hi"}))?;
            let refused = skillz::call("nothing", ()).unwrap_err().to_string();
            let page = skillz::resources::read("skillz://guide")?;
            let answer = skillz::ask("Who?", json!({"type": "object"}))?;
            let sampled = skillz::sample("Say something")?;
            Ok(json!([missing, found, keys, deleted, shouted, refused, page["contents"][0]["text"], answer, sampled]))
        }"#;
    let tool = bench.build("every_service", code, &[]).await.unwrap();
    let value = returned(bench.call(&tool, json!({})).await.unwrap());
    let expected = json!([
        null, {"deep": true}, ["a", "b", "c"], [true, false], "HI", "There is no tool `nothing`", "a resource",
        {"name": "Ada"}, "sampled",
    ]);
    assert_eq!(value, expected);
    assert_eq!(*bench.host.logs.lock().unwrap(), ["from the tool", "3 keys"]);
    let progress = bench.host.progress.lock().unwrap();
    let last: Vec<_> =
        progress.iter().rev().take(3).rev().map(|report| (report.current, report.total, report.message.as_deref())).collect();
    assert_eq!(last, [(1.0, Some(2.0), Some("half")), (1.5, Some(2.0), None), (2.0, None, Some("done"))]);
}

#[tokio::test]
async fn crates_come_with_features_and_are_locked() {
    let bench = Bench::new();
    let code = r#"
        use serde::Serialize;
        #[derive(Serialize)]
        struct Found { numbers: Vec<u32> }
        fn main() {
            let pattern = regex::Regex::new(r"\d+").unwrap();
            let numbers = pattern.find_iter("1 a 22").map(|found| found.as_str().parse().unwrap()).collect();
            println!("{}", serde_json::to_string(&Found { numbers }).unwrap());
        }"#;
    let dependencies = ["serde@1[derive]", "serde_json@1.0", "regex"];
    let tool = bench.build("numbers", code, &dependencies).await.unwrap();
    assert_eq!(printed(bench.call(&tool, json!({})).await.unwrap()), "{\"numbers\":[1,22]}\n");
    let lock = fs::read_to_string(tool.directory.join("Cargo.lock")).unwrap();
    assert!(lock.contains("name = \"regex\""));
    let messages: Vec<String> = bench.host.progress.lock().unwrap().iter().filter_map(|report| report.message.clone()).collect();
    assert!(
        messages.iter().any(|message| message.starts_with("Compiling regex v1.") && message.ends_with("crates so far)")),
        "{messages:?}"
    );

    assert!(bench.host.progress.lock().unwrap().windows(2).all(|pair| pair[0].current < pair[1].current));

    // Another tool with the same crates, in another order, finds them built.
    bench.host.progress.lock().unwrap().clear();
    let again = bench.build("numbers_again", code, &["regex", "serde_json@1.0", "serde@1[derive]"]).await.unwrap();
    assert_eq!(fs::read_to_string(again.directory.join("Cargo.lock")).unwrap(), lock);
    let messages: Vec<String> = bench.host.progress.lock().unwrap().iter().filter_map(|report| report.message.clone()).collect();
    assert_eq!(messages, ["Compiling numbers_again"]);

    // On another machine the lock that comes along decides.
    let other = Bench::new();
    let directory = other.home.path().join("tools/numbers");
    fs::create_dir_all(&directory).unwrap();
    fs::write(directory.join("Cargo.lock"), &lock).unwrap();
    let tool = other.build("numbers", code, &dependencies).await.unwrap();
    assert_eq!(fs::read_to_string(tool.directory.join("Cargo.lock")).unwrap(), lock);
}

#[tokio::test]
async fn what_cannot_be_resolved_is_told_by_cargo() {
    let bench = Bench::new();
    for (dependency, parts) in [
        ("no_such_crate_of_anybody_at_all", &["could not be resolved", "no_such_crate_of_anybody_at_all", "crates.io"][..]),
        ("serde@1[no_such_feature]", &["no_such_feature"]),
        ("serde@999", &["999"]),
    ] {
        let error = bench.build("unresolved", "fn main() {}", &[dependency]).await.unwrap_err();
        let text = error.text();
        for part in parts {
            assert!(text.contains(part), "{part:?} is not in {text:?}");
        }
        assert!(!text.contains(&*bench.home.path().to_string_lossy()), "a folder that says nothing: {text}");
    }
    let error = bench.build("refused", "fn main() {}", &["serde", "../evil", "git+https://x"]).await.unwrap_err();
    assert_eq!(error.kind, ErrorKind::InvalidInput);
    assert!(error.message.contains("`../evil`") && error.message.contains("`git+https://x`"), "{error}");
}

#[tokio::test]
async fn compile_errors_come_as_rustc_renders_them() {
    let bench = Bench::new();
    let lines: Vec<String> = (0..11).map(|number| format!("    let _: u8 = \"{number}\";\n")).collect();
    let lines = lines.concat();
    let error = bench.build("wrong", &format!("fn main() {{\n{lines}}}\n"), &[]).await.unwrap_err();
    assert_eq!(error.kind, ErrorKind::Failed);
    let output = error.output.as_deref().unwrap();
    assert!(output.starts_with("error[E0308]: mismatched types\n --> src.rs:2:17"), "{output}");
    assert!(output.contains("src.rs:9:17") && !output.contains("src.rs:10:17"), "eight are shown: {output}");
    assert!(output.ends_with("... and 3 more errors"), "{output}");

    let error = bench.build("wrong", "use serde_json::Value;\nfn main() { regex::Regex::new(\"\"); }", &[]).await.unwrap_err();
    let hint = error.hint.as_deref().unwrap_or_default();
    assert!(hint.contains("\"serde_json\"") && hint.contains("\"regex\"") && hint.contains("skillz"), "{error}");

    let error =
        bench.build("wrong", "//! edition = \"2024\"\nfn main() { let gen = 1; println!(\"{gen}\"); }", &[]).await.unwrap_err();
    assert!(error.text().contains("gen"), "{error}");
    bench.build("right", "fn main() { let gen = 1; println!(\"{gen}\"); }", &[]).await.unwrap();
    let error = bench.build("wrong", "//! edition = \"2030\"\nfn main() {}", &[]).await.unwrap_err();
    assert!(error.message.contains("no edition `2030`"), "{error}");

    for (code, part) in [
        ("#[skillz::tool]\nasync fn run() {}", "cannot be async"),
        ("#[skillz::tool]\nfn run<T>(value: T) {}", "cannot be generic"),
        ("#[skillz::tool]\nfn main() {}", "call"),
        ("#[skillz::tool]\nfn run((a, b): (u8, u8)) {}", "plain names with a type"),
        ("#[skillz::tool]\nfn run(text: &'static str) {}", "cannot have a lifetime"),
        ("#[skillz::tool]\nfn run(value: Missing) {}", "Missing"),
    ] {
        let error = bench.build("wrong", code, &[]).await.unwrap_err();
        assert!(error.text().to_lowercase().contains(&part.to_lowercase()), "{part:?} is not in {error}");
    }
}

#[tokio::test]
async fn text_and_ready_modules_need_no_compiler() {
    let bench = Bench::new();
    let text = r#"(module (memory (export "memory") 1) (func (export "_start")))"#;
    let tool = bench.prepare(Manifest::new("text", "A test", ToolKind::Wasm), SourceCode::Wat(text.into())).await.unwrap();
    assert_eq!(printed(bench.call(&tool, json!({})).await.unwrap()), "");
    assert_eq!(fs::read_to_string(tool.directory.join("src.wat")).unwrap(), text);
    let module = wat::parse_str(text).unwrap();
    let tool = bench.prepare(Manifest::new("ready", "A test", ToolKind::Wasm), SourceCode::Module(module)).await.unwrap();
    assert_eq!(printed(bench.call(&tool, json!({})).await.unwrap()), "");
}

/// A program that prints a word.
fn saying(word: &str) -> String {
    format!("fn main() {{ println!(\"{word}\"); }}")
}

fn write_tool(bench: &Bench, name: &str, code: &str) -> std::path::PathBuf {
    let directory = bench.home.path().join("tools").join(name);
    fs::create_dir_all(&directory).unwrap();
    fs::write(directory.join("src.rs"), code).unwrap();
    directory
}

#[tokio::test]
async fn a_folder_is_built_again_when_its_source_changed() {
    let bench = Bench::new();
    let manifest = || Manifest::new("folder", "A test", ToolKind::Wasm);
    let directory = write_tool(&bench, "folder", &saying("one"));
    let tool = bench.prepare(manifest(), SourceCode::Folder).await.unwrap();
    assert_eq!(printed(bench.call(&tool, json!({})).await.unwrap()), "one\n");
    let built = fs::read(tool.module_path()).unwrap();
    bench.prepare(manifest(), SourceCode::Folder).await.unwrap();
    assert_eq!(fs::read(tool.module_path()).unwrap(), built, "nothing had changed");
    fs::write(directory.join("src.rs"), saying("two")).unwrap();
    let tool = bench.prepare(manifest(), SourceCode::Folder).await.unwrap();
    assert_eq!(printed(bench.call(&tool, json!({})).await.unwrap()), "two\n");
}

#[tokio::test]
async fn folders_of_old_tools_run_as_they_are() {
    let bench = Bench::new();
    let built = bench.build("old", &saying("from the module"), &[]).await.unwrap();
    let directory = write_tool(&bench, "renamed", "this source is newer than the language");
    // A module that does not say what it was made from, as other compilers leave it.
    let mut module = fs::read(built.module_path()).unwrap();
    module.truncate(module.len() - 48);
    fs::write(directory.join("old.wasm"), module).unwrap();
    let tool = bench.prepare(Manifest::new("renamed", "A test", ToolKind::Wasm), SourceCode::Folder).await.unwrap();
    assert_eq!(printed(bench.call(&tool, json!({})).await.unwrap()), "from the module\n");

    fs::create_dir_all(bench.home.path().join("tools/empty")).unwrap();
    let error = bench.prepare(Manifest::new("empty", "A test", ToolKind::Wasm), SourceCode::Folder).await.unwrap_err();
    assert!(error.message.contains("neither a module `empty.wasm` nor a source `src.rs`"), "{error}");
}

#[tokio::test]
async fn a_tool_without_a_module_is_built_at_its_first_call() {
    let bench = Bench::new();
    let directory = write_tool(&bench, "late", &saying("late"));
    let tool = tool_in(directory.clone(), Manifest::new("late", "A test", ToolKind::Wasm));
    let calls = (0..4).map(|_| bench.call(&tool, json!({})));
    for outcome in futures::future::join_all(calls).await {
        assert_eq!(printed(outcome.unwrap()), "late\n");
    }
    let compiled =
        bench.host.progress.lock().unwrap().iter().filter(|report| report.message.as_deref() == Some("Compiling late")).count();
    assert_eq!(compiled, 1, "the others wait for the first");
    assert!(!directory.join("late.wasm").exists(), "a published folder stays as it is");
    fs::remove_file(directory.join("src.rs")).unwrap();
    let error = bench.call(&tool, json!({})).await.unwrap_err();
    assert!(error.message.contains("neither a module"), "{error}");
}

/// A way to damage a file, with its name.
type Damage = (&'static str, fn(&[u8]) -> Vec<u8>);

#[tokio::test]
async fn damaged_machine_code_is_made_again() {
    let bench = Bench::new();
    let tool = bench.build("code", &saying("whole"), &[]).await.unwrap();
    let folder = bench.home.path().join("cache/wasm/code");
    // Both compilers have written theirs.
    support::eventually("the optimised code", || code_files(&folder).len() == 2).await;
    let whole: Vec<_> = code_files(&folder).into_iter().map(|path| (fs::read(&path).unwrap(), path)).collect();
    let foreign = Bench::new();
    foreign.build("code", &saying("whole"), &[]).await.unwrap();
    let foreign_folder = foreign.home.path().join("cache/wasm/code");
    support::eventually("the optimised code", || code_files(&foreign_folder).len() == 2).await;

    let damages: [Damage; 5] = [
        ("truncated", |bytes| bytes[..bytes.len() / 2].to_vec()),
        ("empty", |_| Vec::new()),
        ("one bit flipped", |bytes| {
            let mut bytes = bytes.to_vec();
            let middle = bytes.len() / 2;
            bytes[middle] ^= 1;
            bytes
        }),
        ("text", |_| b"not machine code at all".repeat(100)),
        ("longer", |bytes| [bytes, b"x"].concat()),
    ];
    for (what, damage) in damages {
        for (bytes, path) in &whole {
            fs::write(path, damage(bytes)).unwrap();
        }
        let restarted = support::runtime_in(bench.home.path());
        let again = Bench { runtime: restarted, host: Arc::default(), home: tempfile::tempdir().unwrap() };
        assert_eq!(printed(again.call(&tool, json!({})).await.expect(what)), "whole\n", "{what}");
        support::eventually("the repair", || {
            whole.iter().all(|(_, path)| fs::read(path).is_ok_and(|bytes| bytes.len() > 10_000))
        })
        .await;
    }
    // Code that another home's server wrote is right, but cannot be known to be.
    for (_, path) in &whole {
        let name = path.file_name().unwrap();
        fs::copy(foreign_folder.join(name), path).unwrap();
    }
    let foreign_bytes: Vec<_> = whole.iter().map(|(_, path)| fs::read(path).unwrap()).collect();
    let again =
        Bench { runtime: support::runtime_in(bench.home.path()), host: Arc::default(), home: tempfile::tempdir().unwrap() };
    assert_eq!(printed(again.call(&tool, json!({})).await.unwrap()), "whole\n");
    support::eventually("new code", || {
        whole.iter().zip(&foreign_bytes).all(|((_, path), old)| fs::read(path).is_ok_and(|bytes| bytes != *old))
    })
    .await;
}

fn code_files(folder: &Path) -> Vec<std::path::PathBuf> {
    let entries = fs::read_dir(folder).into_iter().flatten().flatten();
    entries.map(|entry| entry.path()).filter(|path| path.extension().is_some_and(|extension| extension == "cwasm")).collect()
}

#[tokio::test]
async fn sources_outside_of_the_folder_are_not_read() {
    let bench = Bench::new();
    let outside = bench.home.path().join("outside.rs");
    fs::write(&outside, "a secret").unwrap();
    let directory = write_tool(&bench, "linked", "replaced by a link");
    fs::remove_file(directory.join("src.rs")).unwrap();
    std::os::unix::fs::symlink(&outside, directory.join("src.rs")).unwrap();
    for entry in [None, Some("../../outside.rs"), Some("/etc/passwd"), Some("")] {
        let mut manifest = Manifest::new("linked", "A test", ToolKind::Wasm);
        manifest.entry_file = entry.map(str::to_owned);
        let error = bench.prepare(manifest.clone(), SourceCode::Folder).await.unwrap_err();
        assert_eq!(error.kind, ErrorKind::Denied, "{entry:?}: {error}");
        assert!(!error.text().contains("secret"), "{error}");
        let error = bench.call(&tool_in(directory.clone(), manifest), json!({})).await.unwrap_err();
        assert_eq!(error.kind, ErrorKind::Denied, "{entry:?}: {error}");
    }
}
