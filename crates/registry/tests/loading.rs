//! Loading what is on disk: the folders of Skillz 0.8, broken ones, foreign ones, many.

#![allow(clippy::unwrap_used, clippy::expect_used, clippy::panic, clippy::indexing_slicing, reason = "a test fails by them")]

mod workshop;

use std::{fs, path::Path};

use skillz_registry::{Expectation, Publication};
use skillz_tool::{Manifest, Origin, ToolKind};
use workshop::{Workshop, contents, copy_all, name, script, version};

async fn with_old_tools() -> Workshop {
    let folder = tempfile::tempdir().unwrap();
    copy_all(&Path::new(env!("CARGO_MANIFEST_DIR")).join("tests/fixtures/tools-0.8"), &folder.path().join("tools"));
    Workshop::in_folder(folder, false).await
}

#[tokio::test]
async fn folders_of_the_last_release_load_unchanged() {
    let workshop = with_old_tools().await;
    let before = contents(&workshop.tools());
    let catalog = workshop.catalog();
    let tools: Vec<_> = catalog.tools().map(|tool| format!("{} {} {:?}", tool.name, tool.version, tool.kind())).collect();
    let expected = [
        "doubler 1.0.1 Wasm",
        "greet 1.0.1 Script",
        "needs_six 1.0.0 Script",
        "tally 1.0.0 Script",
        "tally_twice 1.0.0 Pipeline",
    ];
    assert_eq!(tools, expected);
    assert!(catalog.broken().is_empty() && catalog.edited().is_empty(), "{:?}", catalog.broken());
    let tally = catalog.get("tally").unwrap();
    assert!(tally.source_path().unwrap().ends_with("tally/tally.py"), "the entry file that is not named is found");
    assert_eq!(tally.manifest.description, "Counts: words");
    assert_eq!(catalog.get("needs_six").unwrap().manifest.dependencies, ["six"]);
    assert!(catalog.get("doubler").unwrap().module_path().is_file());
    let pipeline = &catalog.get("tally_twice").unwrap().manifest;
    assert_eq!(pipeline.extra.keys().collect::<Vec<_>>(), ["author", "core", "requires_skills"], "unknown fields are kept");
    assert_eq!(contents(&workshop.tools()), before, "loading writes nothing");
}

#[tokio::test]
async fn old_versions_are_listed_called_and_brought_back() {
    let workshop = with_old_tools().await;
    let list = workshop.versions("greet").await;
    let entries: Vec<_> = list.versions.iter().map(|entry| (entry.version.to_string(), entry.origin)).collect();
    assert_eq!(entries, [("1.0.1".to_owned(), Origin::Register), ("1.0.0".to_owned(), Origin::Register)]);
    let old = workshop.registry.tool_version(&name("greet"), version("1.0.0")).await.unwrap();
    assert_eq!(fs::read_to_string(old.source_path().unwrap()).unwrap(), "read line; echo \"hello\"\n");
    assert_eq!(old.manifest.interpreter.as_deref(), Some("bash"), "a version without a manifest has the current one's");
    let diff = workshop.registry.diff(&name("doubler"), version("1.0.0"), version("1.0.1")).await.unwrap();
    assert!(diff.contains("-fn main() { println!(\"2\"); }") && diff.contains("readOnlyHint"), "{diff}");

    let tool = workshop.rollback("greet", "1.0.0").await.unwrap();
    assert_eq!(tool.version, version("1.0.2"));
    assert_eq!(workshop.versions("greet").await.versions.len(), 3);
    assert_eq!(workshop.read("greet/.versions/1.0.1/SKILL.md"), include_str!("fixtures/tools-0.8/greet/SKILL.md"));
    assert!(!workshop.path("greet/versions").exists() && workshop.path("greet/.versions/1.0.0/greet.sh").exists());
    assert!(workshop.path("greet/manifest.json").exists());
    let again = workshop.registry.tool_version(&name("greet"), version("1.0.0")).await.unwrap();
    assert_eq!(again.manifest.entry_file.as_deref(), Some("greet.sh"));
}

#[tokio::test]
async fn a_skill_file_becomes_a_manifest_at_the_first_change() {
    let workshop = with_old_tools().await;
    workshop.write("greet/extra.txt", "kept");
    workshop.registry.reload().await;
    let staged = workshop.registry.stage_version(&name("greet"), version("1.0.1")).await.unwrap();
    let manifest = Manifest { description: "Greets better".to_owned(), ..staged.manifest };
    let publication = Publication {
        name: name("greet"),
        staging: staged.staging,
        manifest,
        origin: Origin::Register,
        expected: staged.expected,
    };
    workshop.registry.publish(publication).await.unwrap();
    let files: Vec<_> =
        contents(&workshop.path("greet")).into_iter().map(|(path, _)| path).filter(|path| !path.starts_with('.')).collect();
    assert_eq!(files, ["README.md", "extra.txt", "greet.sh", "manifest.json"]);
    assert_eq!(workshop.read("greet/README.md"), "# greet\n\nSays hello to whoever calls.\n");
    assert_eq!(workshop.catalog().get("greet").unwrap().manifest.description, "Greets better");
}

#[tokio::test]
async fn broken_tools_are_reported_and_hide_nobody() {
    let workshop = Workshop::new().await;
    workshop.publish("good", "1").await.unwrap();
    let script = |fields: &str| format!("{{\"name\": \"x\", \"description\": \"d\", \"tool_type\": \"script\"{fields}}}");
    let cases = [
        ("a_half", "{\n\"name\": \"a\",\n".to_owned(), Some(3), "EOF"),
        ("b_type", "{\n\n\"name\": 3}".to_owned(), Some(3), "expected a string"),
        ("c_field", "{\"name\": \"c\"}".to_owned(), Some(1), "Missing field `description`"),
        ("d_huge", " ".repeat(4_000_001), None, "larger than 4000000 bytes"),
        ("e_source", script(", \"entry_file\": \"x.py\""), None, "The source `x.py` is missing"),
        ("f_escape", script(", \"entry_file\": \"../good/main.py\""), None, "does not stay in the tool's folder"),
        ("g_absolute", script(", \"entry_file\": \"/etc/passwd\""), None, "does not stay in the tool's folder"),
        ("h_guess", script(""), None, "cannot be told"),
        (
            "i_wasm",
            "{\"name\": \"i\", \"description\": \"d\"}".to_owned(),
            None,
            "Neither the module `i_wasm.wasm` nor the source `src.rs`",
        ),
        ("j.dot", script(", \"entry_file\": \"main.py\""), None, "Rename the folder"),
        ("list_tools", script(", \"entry_file\": \"main.py\""), None, "belongs to a built-in tool"),
    ];
    for (tool, manifest, ..) in &cases {
        workshop.write(&format!("{tool}/manifest.json"), manifest);
    }
    workshop.write("j.dot/main.py", "1");
    workshop.write("list_tools/main.py", "1");
    workshop.write("k_link/manifest.json", &script(", \"entry_file\": \"main.py\""));
    std::os::unix::fs::symlink("/etc/passwd", workshop.path("k_link/main.py")).unwrap();
    std::os::unix::fs::symlink("/etc", workshop.path("l_folder_link")).unwrap();
    workshop.write("a skill/SKILL.md", "---\nname: a skill\n---\n");
    workshop.write("notes/todo.txt", "no tool");
    workshop.write("a file", "no tool");
    workshop.write(".hidden/manifest.json", "{}");
    let before = contents(&workshop.tools());
    let workshop = workshop.restarted(false).await;
    let catalog = workshop.catalog();
    assert_eq!(catalog.tools().map(|tool| tool.name.to_string()).collect::<Vec<_>>(), ["good"]);
    assert_eq!(catalog.skills(), [workshop.path("a skill")]);
    let broken = catalog.broken();
    let find = |tool: &str| broken.iter().find(|broken| broken.name == tool).unwrap_or_else(|| panic!("{tool} is not reported"));
    for (tool, _, line, reason) in &cases {
        let broken = find(tool);
        assert_eq!(broken.line, *line, "{broken}");
        assert!(broken.reason.contains(reason), "{broken}");
        assert!(broken.file.starts_with(workshop.path(tool)), "{broken}");
    }
    assert!(find("k_link").reason.contains("behind a symbolic link"));
    assert!(find("l_folder_link").reason.contains("symbolic link"));
    assert_eq!(broken.len(), cases.len() + 2);
    assert_eq!(contents(&workshop.tools()), before, "nothing was touched");
}

#[tokio::test]
async fn a_folder_is_the_tool_wherever_it_is_copied_and_whatever_it_is_called() {
    let workshop = Workshop::new().await;
    workshop.publish("one", "1").await.unwrap();
    workshop.publish("one", "2").await.unwrap();
    let folder = tempfile::tempdir().unwrap();
    copy_all(&workshop.path("one"), &folder.path().join("tools/Other-Name"));
    let elsewhere = Workshop::in_folder(folder, false).await;
    let tool = elsewhere.catalog().get("Other-Name").cloned().unwrap();
    assert_eq!((tool.name.as_str(), tool.manifest.name.as_str(), tool.version), ("Other-Name", "Other-Name", version("1.0.1")));
    assert!(elsewhere.catalog().edited().is_empty(), "a copy is no edit");
    assert_eq!(elsewhere.versions("Other-Name").await.versions.len(), 2);
    elsewhere.rollback("Other-Name", "1.0.0").await.unwrap();
    assert_eq!(elsewhere.served("Other-Name").as_deref(), Some("1"));
}

#[tokio::test]
async fn a_missing_folder_is_an_empty_one() {
    let folder = tempfile::tempdir().unwrap();
    let workshop = Workshop::in_folder(folder, false).await;
    assert!(workshop.catalog().is_empty() && !workshop.tools().exists(), "looking makes nothing");
    workshop.publish("t", "1").await.unwrap();
    assert_eq!(workshop.catalog().len(), 1);
}

#[tokio::test]
async fn a_module_that_was_never_built_waits_for_its_build() {
    let workshop = Workshop::new().await;
    workshop.write("w/manifest.json", r#"{"name": "w", "description": "d", "tool_type": "wasm"}"#);
    workshop.write("w/src.rs", "fn main() {}");
    workshop.registry.reload().await;
    assert!(workshop.catalog().get("w").is_none());
    assert_eq!(workshop.catalog().edited(), [name("w")]);
    let edit = workshop.registry.stage_edit(&name("w")).await.unwrap().unwrap();
    assert_eq!((edit.previous, edit.manifest.tool_type), (None, ToolKind::Wasm));
    assert_eq!(edit.changed_files, ["manifest.json", "src.rs"]);
    fs::write(edit.staging.path().join("w.wasm"), b"\0asm\x01\0\0\0").unwrap();
    let tool = workshop.registry.record_edit(edit).await.unwrap();
    assert_eq!(tool.version, version("1.0.0"));
    assert!(tool.module_path().is_file() && workshop.path("w/w.wasm").is_file());
    assert!(workshop.catalog().edited().is_empty());
    assert!(!workshop.path("w/.versions").exists(), "what could not be called is no earlier version");
}

#[tokio::test]
async fn leftovers_of_a_cut_off_replacement_are_put_right() {
    let workshop = Workshop::new().await;
    workshop.publish("t", "1").await.unwrap();
    fs::rename(workshop.path("t"), workshop.path(".aside-t")).unwrap();
    let workshop = workshop.restarted(false).await;
    assert_eq!(workshop.served("t").as_deref(), Some("1"));
    assert!(!workshop.path(".aside-t").exists());
}

#[tokio::test]
async fn a_thousand_tools_load() {
    let workshop = Workshop::new().await;
    let template = serde_json::to_string(&Manifest { description: "One of many".to_owned(), ..script("x") }).unwrap();
    for number in 0..1_000 {
        workshop.write(&format!("tool{number:04}/manifest.json"), &template.replace("\"x\"", &format!("\"tool{number:04}\"")));
        workshop.write(&format!("tool{number:04}/main.py"), "print(1)");
    }
    workshop.write("tool0500/manifest.json", "{");
    let workshop = workshop.restarted(false).await;
    let catalog = workshop.catalog();
    assert_eq!((catalog.len(), catalog.broken().len()), (999, 1));
    let names: Vec<_> = catalog.tools().map(|tool| tool.name.clone()).collect();
    assert!(names.is_sorted());
    workshop.publish_manifest(script("tool0499"), "print(2)", Expectation::Current(version("1.0.0"))).await.unwrap();
    assert_eq!(workshop.catalog().len(), 999);
}
