//! Publishing: what it writes, what it refuses, how versions are numbered.

#![allow(clippy::unwrap_used, clippy::expect_used, clippy::panic, clippy::indexing_slicing, reason = "a test fails by them")]

mod workshop;

use std::{fs, sync::Arc};

use skillz_json::json;
use skillz_registry::{Expectation, Publication, RegistryError};
use skillz_tool::{Manifest, Origin, ToolError, ToolKind};
use workshop::{Workshop, contents, name, publish, schema, script, version};

#[tokio::test]
async fn a_tool_is_there_at_once_and_whole() {
    let workshop = Workshop::new().await;
    let before = workshop.catalog();
    let mut changes = workshop.registry.changes();
    changes.borrow_and_update();
    let tool = workshop.publish("greet", "print(1)").await.unwrap();
    assert_eq!(tool.version.to_string(), "1.0.0");
    assert!(changes.has_changed().unwrap());
    assert!(Arc::ptr_eq(&tool, workshop.catalog().get("greet").unwrap()));
    assert!(before.is_empty() && workshop.catalog().generation() > before.generation(), "a snapshot never changes");

    let files: Vec<String> = contents(&workshop.path("greet")).into_iter().map(|(path, _)| path).collect();
    assert_eq!(files, ["main.py", "manifest.json"], "no history yet, nothing else");
    let manifest: Manifest = serde_json::from_str(&workshop.read("greet/manifest.json")).unwrap();
    assert_eq!(manifest.version.as_deref(), Some("1.0.0"));
    assert_eq!(manifest.hash.as_deref(), Some(tool.hash.as_str()));
    assert_eq!(manifest.source, Some(json!({"origin": "register"})));
    assert_eq!(manifest, tool.manifest);
    assert_eq!(contents(&tool.directory), contents(&workshop.path("greet")), "calls run from a copy of exactly that");
    assert_eq!(fs::read_dir(workshop.path(".staging")).unwrap().count(), 0);
}

#[tokio::test]
async fn the_version_before_is_kept_whole() {
    let workshop = Workshop::new().await;
    let manifest = Manifest { tags: vec!["x".to_owned()], ..script("t") };
    let staging = workshop.registry.stage().await.unwrap();
    fs::write(staging.path().join("main.py"), "1").unwrap();
    fs::create_dir_all(staging.path().join("lib/deep")).unwrap();
    fs::write(staging.path().join("lib/deep/x.py"), "x").unwrap();
    fs::write(staging.path().join("lock"), "six==1").unwrap();
    fs::write(staging.path().join("main.py~"), "backup").unwrap();
    fs::create_dir(staging.path().join("__pycache__")).unwrap();
    fs::write(staging.path().join("__pycache__/main.pyc"), "cache").unwrap();
    let publication = Publication { name: name("t"), staging, manifest, origin: Origin::Import, expected: Expectation::Absent };
    workshop.registry.publish(publication).await.unwrap();
    let first = contents(&workshop.path("t"));
    assert_eq!(first.len(), 4, "scrap is left out: {first:?}");

    workshop.publish("t", "2").await.unwrap();
    assert_eq!(contents(&workshop.path("t/.versions/1.0.0")), first);
    workshop.publish("t", "3").await.unwrap();
    assert_eq!(contents(&workshop.path("t/.versions/1.0.0")), first);
    assert_eq!(workshop.read("t/.versions/1.0.1/main.py"), "2");
    assert_eq!(fs::read_dir(workshop.path("t/.versions")).unwrap().count(), 2, "the current version is not among them");
    let origins: Vec<_> = workshop.history("t").await.into_iter().map(|(version, origin, _)| (version, origin)).collect();
    let expected = [("1.0.2", Origin::Register), ("1.0.1", Origin::Register), ("1.0.0", Origin::Import)];
    assert_eq!(origins, expected.map(|(version, origin)| (version.to_owned(), origin)));
}

#[tokio::test]
async fn what_the_publisher_expects_must_be_there() {
    let workshop = Workshop::new().await;
    let publish = async |code: &str, expected| workshop.publish_manifest(script("t"), code, expected).await;
    let error = publish("0", Expectation::Current(version("1.0.0"))).await.unwrap_err();
    assert!(matches!(error, RegistryError::Conflict { .. }), "{error}");
    publish("1", Expectation::Absent).await.unwrap();
    let error = publish("2", Expectation::Absent).await.unwrap_err();
    assert!(matches!(error, RegistryError::Exists { .. }), "{error}");
    let text = ToolError::from(error).text();
    assert!(text.contains("`t` already, at version `1.0.0`") && text.contains("overwrite"), "{text}");
    publish("2", Expectation::Current(version("1.0.0"))).await.unwrap();
    let error = publish("3", Expectation::Current(version("1.0.0"))).await.unwrap_err();
    assert!(error.to_string().contains("version `1.0.1` is current, where version `1.0.0` was expected"), "{error}");
    publish("3", Expectation::Anything).await.unwrap();
    assert_eq!(workshop.read("t/main.py"), "3");
    assert_eq!(workshop.history("t").await.len(), 3, "refused publishes leave nothing");
    assert_eq!(fs::read_dir(workshop.path(".staging")).unwrap().count(), 0);
}

#[tokio::test]
async fn versions_are_numbered_by_what_they_do_to_callers() {
    let workshop = Workshop::new().await;
    let publish = async |required: &[&str], asked: Option<&str>| {
        let manifest = Manifest { input_schema: schema(required), version: asked.map(str::to_owned), ..script("t") };
        workshop.publish_manifest(manifest, "1", Expectation::Anything).await.unwrap().version.to_string()
    };
    assert_eq!(publish(&[], None).await, "1.0.0");
    assert_eq!(publish(&[], None).await, "1.0.1");
    assert_eq!(publish(&["a"], None).await, "1.1.0");
    assert_eq!(publish(&["a"], Some("1.0.5")).await, "1.1.1", "an older number is not kept");
    assert_eq!(publish(&["a"], Some("2.5")).await, "2.5.0", "a newer one is");
    assert_eq!(publish(&[], Some("nonsense")).await, "2.5.1");
    let workshop = Workshop::new().await;
    let manifest = Manifest { version: Some("0.3.1".to_owned()), ..script("t") };
    let tool = workshop.publish_manifest(manifest, "1", Expectation::Absent).await.unwrap();
    assert_eq!(tool.version.to_string(), "0.3.1");
}

#[tokio::test]
async fn hashes_tell_contents_apart_and_bring_equals_together() {
    let workshop = Workshop::new().await;
    let one = workshop.publish("t", "1").await.unwrap().hash.clone();
    let two = workshop.publish("t", "2").await.unwrap().hash.clone();
    let again = workshop.publish("t", "1").await.unwrap().hash.clone();
    assert_eq!(one.len(), 64);
    assert_ne!(one, two);
    assert_eq!(one, again);
    let listed: Vec<String> = workshop.versions("t").await.versions.into_iter().map(|entry| entry.hash).collect();
    assert_eq!(listed, [again, two, one]);
    let reloaded = workshop.second(false).await;
    assert_eq!(reloaded.snapshot().get("t").unwrap().hash, workshop.catalog().get("t").unwrap().hash);
    assert!(reloaded.snapshot().edited().is_empty());
}

#[tokio::test]
async fn numbers_that_do_not_survive_text_do_not_look_like_edits() {
    let workshop = Workshop::new().await;
    let manifest = Manifest {
        input_schema: Some(
            json!({"type": "object", "properties": {"a": {"minimum": 0.1, "maximum": 1e300, "multipleOf": 2.225_073_858_507_201_4e-308}}}),
        ),
        output_schema: Some(json!(null)),
        ..script("t")
    };
    workshop.publish_manifest(manifest, "1", Expectation::Absent).await.unwrap();
    // Without the files' times, everything is read and hashed.
    let copy = tempfile::tempdir().unwrap();
    workshop::copy_all(&workshop.path("t"), &copy.path().join("tools/t"));
    let elsewhere = Workshop::in_folder(copy, false).await;
    assert_eq!(elsewhere.catalog().get("t").unwrap().hash, workshop.catalog().get("t").unwrap().hash);
    assert!(elsewhere.catalog().edited().is_empty());
}

#[tokio::test]
async fn what_is_no_tool_is_refused_and_nothing_is_left() {
    let workshop = Workshop::new().await;
    let refuse = async |manifest: Manifest, prepare: &dyn Fn(&std::path::Path), word: &str| {
        let staging = workshop.registry.stage().await.unwrap();
        prepare(staging.path());
        let publication =
            Publication { name: name("t"), staging, manifest, origin: Origin::Register, expected: Expectation::Absent };
        let error = workshop.registry.publish(publication).await.unwrap_err();
        assert!(error.to_string().contains(word), "{error}");
        assert!(!workshop.path("t").exists());
    };
    let main = |folder: &std::path::Path| fs::write(folder.join("main.py"), "1").unwrap();
    refuse(script("t"), &|_| {}, "The source `main.py` is missing").await;
    let escaping = Manifest { entry_file: Some("../x.py".to_owned()), ..script("t") };
    refuse(escaping, &main, "does not stay in the tool's folder").await;
    let absolute = Manifest { entry_file: Some("/etc/passwd".to_owned()), ..script("t") };
    refuse(absolute, &main, "does not stay in the tool's folder").await;
    let link = |folder: &std::path::Path| {
        main(folder);
        std::os::unix::fs::symlink("/etc/passwd", folder.join("secrets")).unwrap();
    };
    refuse(script("t"), &link, "`secrets` is a symbolic link").await;
    let source = |folder: &std::path::Path| fs::write(folder.join("src.rs"), "fn main() {}").unwrap();
    refuse(Manifest::new("t", "d", ToolKind::Wasm), &source, "`t.wasm` was not built").await;
    assert_eq!(fs::read_dir(workshop.path(".staging")).unwrap().count(), 0);
}

#[tokio::test]
async fn what_others_keep_in_the_place_is_not_overwritten() {
    let workshop = Workshop::new().await;
    let check = async |tool: &str, word: &str| {
        let before = contents(&workshop.path(tool));
        for expected in [Expectation::Absent, Expectation::Anything] {
            let error = workshop.publish_manifest(script(tool), "1", expected).await.unwrap_err();
            assert!(error.to_string().contains(word), "{error}");
        }
        assert_eq!(contents(&workshop.path(tool)), before);
    };
    workshop.write("broken/manifest.json", "{\n\"name\": \n");
    workshop.write("broken/main.py", "precious");
    check("broken", "manifest.json` line 3").await;
    workshop.write("skill/SKILL.md", "---\nname: skill\ndescription: d\n---\nKnowledge");
    check("skill", "holds a knowledge skill").await;
    workshop.write("notes/todo.txt", "precious");
    check("notes", "without a manifest").await;
    let outside = tempfile::tempdir().unwrap();
    fs::write(outside.path().join("manifest.json"), "{}").unwrap();
    std::os::unix::fs::symlink(outside.path(), workshop.path("linked")).unwrap();
    check("linked", "symbolic link").await;
    fs::create_dir(workshop.path("empty")).unwrap();
    workshop.publish("empty", "1").await.unwrap();
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn of_publishers_at_once_one_wins() {
    let workshop = Workshop::new().await;
    let other = workshop.second(false).await;
    for round in 0..10 {
        let tool = format!("t{round}");
        let registries = [&workshop.registry, &other, &workshop.registry, &other];
        let attempts = registries.iter().enumerate().map(|(number, registry)| {
            let (registry, manifest) = ((*registry).clone(), script(&tool));
            tokio::spawn(async move { publish(&registry, manifest, &number.to_string(), Expectation::Absent).await })
        });
        let mut winners = Vec::new();
        for attempt in attempts.collect::<Vec<_>>() {
            match attempt.await.unwrap() {
                Ok(tool) => winners.push(fs::read_to_string(tool.source_path().unwrap()).unwrap()),
                Err(error) => assert!(matches!(error, RegistryError::Exists { .. }), "{error}"),
            }
        }
        assert_eq!(winners, [workshop.read(&format!("{tool}/main.py"))]);
    }
}

#[tokio::test]
async fn copies_to_run_from_linger_and_go() {
    let workshop = Workshop::new().await;
    let first = workshop.publish("t", "1").await.unwrap();
    workshop.publish("t", "2").await.unwrap();
    assert!(first.directory.is_dir(), "calls that began before may still read from it");
    let old = std::time::SystemTime::now() - std::time::Duration::from_mins(11);
    fs::File::open(&first.directory).unwrap().set_modified(old).unwrap();
    let third = workshop.publish("t", "3").await.unwrap();
    assert!(!first.directory.exists() && third.directory.is_dir());
    assert_eq!(fs::read_dir(workshop.path(".live")).unwrap().count(), 2);
}

#[tokio::test]
async fn an_unwritable_place_is_a_sentence() {
    let folder = tempfile::tempdir().unwrap();
    fs::write(folder.path().join("tools"), "a file where the folder should be").unwrap();
    let workshop = Workshop::in_folder(folder, false).await;
    let error = workshop.publish("t", "1").await.unwrap_err();
    assert!(matches!(error, RegistryError::Io { .. }), "{error}");
    assert!(error.to_string().contains("tools"), "{error}");
}

#[tokio::test]
async fn dropping_the_caller_leaves_the_old_or_the_new() {
    let workshop = Workshop::new().await;
    workshop.publish("t", "1").await.unwrap();
    for number in 2..12 {
        let code = number.to_string();
        let attempt = workshop.publish("t", &code);
        // Polled a few times only, then dropped.
        let _ = tokio::time::timeout(std::time::Duration::from_micros(number * 150), attempt).await;
    }
    // Those that have begun are in place by now or will be before the next; the others never will be.
    let current: u64 = workshop.read("t/main.py").parse().unwrap();
    assert!((1..12).contains(&current));
    workshop.publish("t", "last").await.unwrap();
    // Those that nobody waits for any more may still come after it.
    let history = workshop.history("t").await;
    let newest: skillz_tool::Version = history[0].0.parse().unwrap();
    assert!(history.iter().any(|(_, _, code)| code == "last"));
    assert_eq!(history.len() as u32, newest.patch + 1, "no number is left out");
}
