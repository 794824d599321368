//! Tools and skills that others made: imported by a client and from the command line, exported, and imported again.

use std::{
    fs,
    path::{Path, PathBuf},
    process::Command,
};

use serde_json::{Value, json};
use skillz_test_support::{Era, Home, Run, run};

use crate::{server, skillz};

fn write(folder: &Path, name: &str, text: &str) {
    let path = folder.join(name);
    fs::create_dir_all(path.parent().expect("a folder")).expect("a folder");
    fs::write(path, text).expect("a file");
}

fn git(folder: &Path, arguments: &[&str]) -> String {
    let output = Command::new("git")
        .args(["-c", "user.name=a", "-c", "user.email=a@b"])
        .args(arguments)
        .current_dir(folder)
        .env("GIT_CONFIG_NOSYSTEM", "1")
        .env("GIT_CONFIG_GLOBAL", "/dev/null")
        .output()
        .expect("git starts");
    assert!(output.status.success(), "git {arguments:?}: {}", String::from_utf8_lossy(&output.stderr));
    String::from_utf8_lossy(&output.stdout).trim().to_owned()
}

fn bash_manifest(name: &str, more: &Value) -> String {
    let mut manifest = json!({
        "name": name, "description": format!("The tool {name}."), "tool_type": "script", "interpreter": "bash", "entry_file": "main.sh",
    });
    manifest.as_object_mut().expect("an object").extend(more.as_object().cloned().unwrap_or_default());
    manifest.to_string()
}

/// A repository as people make them: tools in a folder, one with extra files, one whose example fails, one that asks
/// for a lot, a pipeline, a script of Skillz 0.8, and a skill.
fn repository(home: &Home) -> PathBuf {
    let folder = home.workspace().join("repository");
    fs::create_dir_all(&folder).expect("a folder");
    git(&folder, &["init", "--quiet", "--initial-branch=main"]);
    let good = json!({"examples": [{"arguments": {}, "contains": "hello"}], "version": "2.1.0"});
    write(&folder, "tools/greet/manifest.json", &bash_manifest("greet", &good));
    write(&folder, "tools/greet/main.sh", "echo \"hello $(cat \"$(dirname \"$0\")/data/words.txt\")\"\n");
    write(&folder, "tools/greet/data/words.txt", "from a file");
    let wrong = json!({"examples": [{"arguments": {}, "result": "right"}]});
    write(&folder, "tools/wrong/manifest.json", &bash_manifest("wrong", &wrong));
    write(&folder, "tools/wrong/main.sh", "echo wrong\n");
    let asks = json!({
        "permissions": {"network": true, "env": ["API_KEY"], "fs": [{"path": "$ROOT/data"}]}, "requires_services": ["db"],
        "requires_skills": ["absent"],
    });
    write(&folder, "tools/asks/manifest.json", &bash_manifest("asks", &asks));
    write(&folder, "tools/asks/main.sh", "echo asks\n");
    let twice = json!({
        "name": "a_pipeline", "description": "Greets, and greets again.", "tool_type": "pipeline",
        "pipeline_steps": [{"tool": "greet", "args": {}}],
    });
    write(&folder, "a_pipeline/manifest.json", &twice.to_string());
    write(
        &folder,
        "old/SKILL.md",
        "---\nname: old_tool\ndescription: An old tool: still here\ntool_type: script\ninterpreter: bash\n---\n# Old\n\nIt says so.\n",
    );
    write(&folder, "old/main.sh", "echo old\n");
    write(
        &folder,
        "skills/pdf/SKILL.md",
        "\u{FEFF}---\r\nname: pdf\r\ndescription: Reads: PDFs\r\nlicense: MIT\r\n---\r\n# Reading\r\n\r\nUse a reader.\r\n",
    );
    write(&folder, "skills/pdf/forms/fields.md", "fields");
    write(&folder, "broken/manifest.json", "{\n\"name\": 1\n}");
    git(&folder, &["add", "--all"]);
    git(&folder, &["commit", "--quiet", "--message", "one"]);
    folder
}

/// Everything in the data folder but the history, which notes each call.
fn everything(home: &Home) -> Vec<PathBuf> {
    let mut found = Vec::new();
    let mut folders = vec![home.path()];
    while let Some(folder) = folders.pop() {
        for entry in fs::read_dir(folder).expect("a folder").flatten() {
            if entry.file_name().to_string_lossy().starts_with("history.db") {
                continue;
            }
            if entry.file_type().expect("a type").is_dir() {
                folders.push(entry.path());
            }
            found.push(entry.path());
        }
    }
    found.sort();
    found
}

fn names(value: &Value) -> Vec<&str> {
    let mut names: Vec<&str> = value.as_array().into_iter().flatten().filter_map(|entry| entry["name"].as_str()).collect();
    names.sort_unstable();
    names
}

fn named<'a>(value: &'a Value, name: &str) -> &'a Value {
    value.as_array().and_then(|entries| entries.iter().find(|entry| entry["name"] == name)).unwrap_or(&Value::Null)
}

#[test]
fn a_dry_run_tells_everything_and_leaves_nothing() {
    let home = Home::new();
    let folder = repository(&home);
    let commit = git(&folder, &["rev-parse", "HEAD"]);
    let mut server = server(&home);
    server.value("list_tools", json!({}));
    let before = everything(&home);
    let source = format!("file://{}#main", folder.display());
    let told = server.value("import_tool", json!({"source": source, "dry_run": true}));
    assert_eq!(everything(&home), before);
    assert_eq!(told["source"]["commit"], json!(commit));
    assert_eq!(names(&told["tools"]), ["a_pipeline", "asks", "greet", "old_tool", "wrong"]);
    assert_eq!(names(&told["skills"]), ["pdf"]);
    let asks = named(&told["tools"], "asks");
    assert_eq!(asks["permissions"], json!({"network": true, "env": ["API_KEY"], "fs": [{"path": "$ROOT/data", "mode": "ro"}]}));
    assert_eq!((&asks["requires_services"], &asks["missing_skills"]), (&json!(["db"]), &json!(["absent"])));
    assert!(told["notes"].to_string().contains("`asks` ask for permissions"), "{told}");
    assert_eq!(named(&told["tools"], "greet")["permissions"], json!({}));
    assert!(told["refused"][0]["reason"].as_str().expect("a reason").contains("`broken/manifest.json`, line 2"), "{told}");
    assert_eq!(server.tool_names().len(), 13, "nothing was published");
}

#[test]
fn a_repository_of_tools_and_skills_is_imported_and_used() {
    let home = Home::new();
    let folder = repository(&home);
    let commit = git(&folder, &["rev-parse", "HEAD"]);
    let mut server = server(&home);
    server.tool_names();
    let told = server.value("import_tool", json!({"source": "repository", "ref": "main"}));
    assert_eq!(names(&told["tools"]), ["a_pipeline", "asks", "greet", "old_tool"], "{told}");
    assert_eq!(told["source"]["commit"], json!(commit));
    let wrong = named(&told["refused"], "wrong")["reason"].as_str().expect("a reason");
    assert!(wrong.contains("expected") && wrong.contains("actual"), "{wrong}");
    server.wait_for_method("notifications/tools/list_changed");
    server.wait_for_method("notifications/prompts/list_changed");

    assert_eq!(server.value("greet", json!({})), json!("hello from a file"), "all files of the folder came along");
    assert_eq!(server.value("a_pipeline", json!({})), json!("hello from a file"));
    assert_eq!(server.value("old_tool", json!({})), json!("old"));
    assert!(!server.tool_names().contains(&"wrong".to_owned()));
    let listed = server.value("version", json!({"action": "list", "tool_name": "greet"}));
    assert_eq!(
        (&listed["current"], &listed["versions"][0]["origin"]),
        (&json!("2.1.0"), &json!("import")),
        "an explicit version is kept"
    );
    let manifest: Value =
        serde_json::from_str(&fs::read_to_string(home.tools().join("greet/manifest.json")).expect("a manifest")).expect("JSON");
    assert_eq!((&manifest["source"]["commit"], &manifest["source"]["path"]), (&json!(commit), &json!("tools/greet")));

    let refused = server.failure("import_tool", json!({"source": "repository", "path": "tools/greet"}));
    assert!(refused.contains("There is a tool `greet` already") && refused.contains("overwrite"), "{refused}");
    write(&folder, "tools/greet/data/words.txt", "anew");
    let told = server.value("import_tool", json!({"source": "repository", "path": "tools/greet", "overwrite": true}));
    assert_eq!((&told["tools"][0]["replaces"], &told["tools"][0]["version"]), (&json!("2.1.0"), &json!("2.1.1")));
    assert_eq!(server.value("greet", json!({})), json!("hello anew"));
    assert_eq!(server.value("call_tool", json!({"tool_name": "greet", "version": "2.1.0"})), json!("hello from a file"));
}

#[test]
fn skills_are_prompts_and_resources() {
    let home = Home::new();
    let folder = repository(&home);
    let mut server = server(&home);
    let source = folder.join("skills/pdf").display().to_string();
    let told = server.value("import_tool", json!({"source": source}));
    assert_eq!((&told["skills"][0]["name"], &told["skills"][0]["files"]), (&json!("pdf"), &json!(2)));
    server.wait_for_method("notifications/prompts/list_changed");
    let kept = fs::read(home.path().join("skills/pdf/SKILL.md")).expect("the skill");
    assert_eq!(kept, fs::read(folder.join("skills/pdf/SKILL.md")).expect("the skill"), "byte for byte");

    let prompts = server.result("prompts/list", json!({}));
    assert_eq!(named(&prompts["prompts"], "pdf")["description"], json!("Reads: PDFs"));
    let prompt = server.result("prompts/get", json!({"name": "pdf"}));
    let text = prompt["messages"][0]["content"]["text"].as_str().expect("a text");
    assert!(text.starts_with("# Reading") && text.contains("skillz://skills/pdf/forms/fields.md"), "{text}");
    let resources = server.result("resources/list", json!({}));
    assert_eq!(named(&resources["resources"], "pdf")["uri"], json!("skillz://skills/pdf/SKILL.md"));
    for (uri, start) in [
        ("skillz://skills/pdf/SKILL.md", "\u{FEFF}---"),
        ("skillz://skills/pdf", "\u{FEFF}---"),
        ("skillz://skills/pdf/forms/fields.md", "fields"),
    ] {
        let read = server.result("resources/read", json!({"uri": uri}));
        assert!(read["contents"][0]["text"].as_str().expect("a text").starts_with(start), "{read}");
    }
    for uri in [
        "skillz://skills/pdf/../../config.toml",
        "skillz://skills/..%2f..%2fx/SKILL.md",
        "skillz://skills/pdf/.source.json",
        "skillz://skills/none",
    ] {
        assert!(server.request("resources/read", json!({"uri": uri})).get("error").is_some(), "{uri}");
    }
    let complete = |name: &str, value: &str, context: Value| {
        json!({
            "ref": {"type": "ref/resource", "uri": "skillz://skills/{name}/{path}"},
            "argument": {"name": name, "value": value}, "context": {"arguments": context},
        })
    };
    let names = server.result("completion/complete", complete("name", "p", json!({})));
    assert_eq!(names["completion"]["values"], json!(["pdf"]));
    let paths = server.result("completion/complete", complete("path", "forms", json!({"name": "pdf"})));
    assert_eq!(paths["completion"]["values"], json!(["forms/fields.md"]));

    let refused = server.failure("import_tool", json!({"source": source}));
    assert!(refused.contains("There is a skill `pdf` already"), "{refused}");
    write(&folder, "skills/pdf/SKILL.md", &format!("Short.\n\n{}", "A line of text.\n".repeat(140_000)));
    server.value("import_tool", json!({"source": source, "overwrite": true}));
    let prompt = server.result("prompts/get", json!({"name": "pdf"}));
    let text = prompt["messages"][0]["content"]["text"].as_str().expect("a text");
    assert!(text.len() < 210_000 && text.contains("The text goes on"), "{} bytes", text.len());
    let old = fs::read_dir(home.path().join("skills/.trash/pdf")).expect("the old one is kept").count();
    assert_eq!(old, 1);
}

#[test]
fn skills_by_the_protocols_extension() {
    let home = Home::new();
    let folder = repository(&home);
    let (code, _, stderr) = run(skillz(), &home, &["import", &folder.join("skills").display().to_string()]);
    assert_eq!(code, 0, "{stderr}");
    let mut server = Run::new(skillz(), &home).connect(Era::Stateless);
    let listed = server.result("skills/list", json!({}));
    assert_eq!(listed["skills"][0]["frontmatter"], json!({"name": "pdf", "description": "Reads: PDFs", "license": "MIT"}));
    let got = server.result("skills/get", json!({"uri": "skillz://skills/pdf/SKILL.md"}));
    assert_eq!(got["skill"], listed["skills"][0]);
    assert_eq!(got["skill"]["resources"].as_array().expect("files").len(), 2);
    assert!(server.request("skills/get", json!({"uri": "skillz://skills/none/SKILL.md"})).get("error").is_some());
}

#[test]
fn names_that_are_paths_are_refused_and_nothing_outside_is_touched() {
    let home = Home::new();
    let mut server = server(&home);
    for (place, name) in ["../../x", "/etc/x", "a/b", "list_tools", ""].into_iter().enumerate() {
        let folder = home.workspace().join(format!("evil{place}"));
        write(&folder, "manifest.json", &bash_manifest(name, &json!({})));
        write(&folder, "main.sh", "echo evil\n");
        let before = everything(&home);
        let told = server.failure("import_tool", json!({"source": format!("evil{place}")}));
        assert!(told.contains("Nothing was imported"), "{told}");
        assert_eq!(everything(&home), before, "{name}");
        let skill = home.workspace().join(format!("skill{place}"));
        write(&skill, "SKILL.md", &format!("---\nname: \"{name}\"\n---\n"));
        if name.contains('/') {
            assert!(server.failure("import_tool", json!({"source": format!("skill{place}")})).contains("looks like a path"));
            assert_eq!(everything(&home), before, "{name}");
        }
    }
    for source in ["ext::sh -c 'touch ran'", "--upload-pack=touch ran", "gist:../y"] {
        let told = server.failure("import_tool", json!({"source": source}));
        assert!(!home.workspace().join("ran").exists(), "{told}");
    }
    let told = server.failure("import_tool", json!({"source": "file:///nothing/here"}));
    assert!(told.contains("/nothing/here"), "{told}");
}

#[test]
fn what_is_exported_and_imported_is_the_same_tool() {
    let (here, there) = (Home::new(), Home::new());
    let folder = here.workspace().join("mine");
    write(
        &folder,
        "manifest.json",
        &bash_manifest("mine", &json!({"examples": [{"arguments": {}, "contains": "word"}], "custom": {"kept": true}})),
    );
    write(&folder, "main.sh", "cat \"$(dirname \"$0\")/.data/words.txt\"\n");
    write(&folder, ".data/words.txt", "word");
    write(&folder, "notes.txt", "six==1.17.0\n");
    let (code, stdout, stderr) = run(skillz(), &here, &["build", "mine"]);
    assert_eq!(code, 0, "{stdout}{stderr}");
    assert_eq!(run(skillz(), &here, &["call", "mine"]).1, "word\n", "the whole folder is published");

    let hash = |home: &Home| {
        let (_, stdout, _) = run(skillz(), home, &["versions", "mine", "--output", "json"]);
        let listed: Value = serde_json::from_str(&stdout).expect("JSON");
        listed["versions"][0]["hash"].clone()
    };
    let archive = there.workspace().join("mine.tar.gz").display().to_string();
    assert_eq!(run(skillz(), &here, &["export", "mine", "--to", &archive]).0, 0);
    let first = fs::read(&archive).expect("an archive");
    assert_eq!(run(skillz(), &here, &["export", "mine", "--to", &archive]).0, 4, "the archive is there already");
    assert_eq!(run(skillz(), &here, &["export", "mine", "--to", &archive, "--overwrite"]).0, 0);
    assert_eq!(fs::read(&archive).expect("an archive"), first, "equal tools give equal archives");

    let (code, stdout, stderr) = run(skillz(), &there, &["import", "mine.tar.gz"]);
    assert_eq!(code, 0, "{stderr}");
    assert!(stdout.contains("mine (script) is imported as version 1.0.0") && stdout.contains("sha256:"), "{stdout}");
    assert_eq!(hash(&there), hash(&here));
    assert_eq!(fs::read_to_string(there.tools().join("mine/notes.txt")).expect("the notes"), "six==1.17.0\n");
    assert_eq!(run(skillz(), &there, &["call", "mine"]).1, "word\n");

    let exported = there.workspace().join("exported");
    assert_eq!(run(skillz(), &there, &["export", "mine", "--to", &exported.display().to_string()]).0, 0);
    let again = Home::new();
    let (code, _, stderr) = run(skillz(), &again, &["import", &exported.display().to_string()]);
    assert_eq!(code, 0, "{stderr}");
    assert_eq!(hash(&again), hash(&here));
}

#[test]
fn links_in_a_folder_are_left_out_and_told() {
    let home = Home::new();
    let folder = home.workspace().join("linked");
    write(&folder, "manifest.json", &bash_manifest("linked", &json!({})));
    write(&folder, "main.sh", "echo linked\n");
    for (link, target) in [("passwd", "/etc/passwd"), ("lib", "/etc")] {
        std::os::unix::fs::symlink(target, folder.join(link)).expect("a link");
    }
    let (code, stdout, stderr) = run(skillz(), &home, &["import", "linked"]);
    assert!(code == 0 && stdout.contains("`passwd` is a symbolic link, and was left out"), "{stdout}{stderr}");
    assert!(!home.tools().join("linked/passwd").exists() && !home.tools().join("linked/lib").exists());
    fs::remove_file(folder.join("main.sh")).expect("a file");
    std::os::unix::fs::symlink("/etc/passwd", folder.join("main.sh")).expect("a link");
    let (code, stdout, stderr) = run(skillz(), &home, &["import", "linked", "--overwrite"]);
    assert!(code == 2 && stderr.contains("behind a symbolic link"), "{stdout}{stderr}");
}

#[test]
fn the_command_says_what_became_of_it() {
    let home = Home::new();
    let folder = repository(&home);
    let import = |arguments: &[&str]| run(skillz(), &home, &[&["import"], arguments].concat());
    let (code, stdout, _) = import(&["repository", "--dry-run"]);
    assert!(
        code == 0 && stdout.contains("asks (script) would be imported") && stdout.contains("asks for: {\"network\":true"),
        "{stdout}"
    );
    let (code, stdout, stderr) = import(&["repository", "--path", "tools", "--output", "json"]);
    let told: Value = serde_json::from_str(&stdout).unwrap_or_else(|error| panic!("{error}: {stdout}{stderr}"));
    assert_eq!((code, names(&told["tools"])), (0, vec!["asks", "greet"]));
    assert_eq!(import(&["repository", "--path", "tools/greet"]).0, 2, "it is there already");
    assert_eq!(import(&["repository", "--path", "tools/greet", "--overwrite"]).0, 0);
    assert_eq!(import(&["repository", "--path", "none"]).0, 3);
    assert_eq!(import(&["nowhere"]).0, 3);
    assert_eq!(import(&["ext::sh -c x"]).0, 4);
    assert_eq!(import(&["repository", "--ref", "--foo"]).0, 4);
    assert_eq!(import(&[&folder.join("tools/wrong").display().to_string()]).0, 1, "its example fails");
    let empty = home.workspace().join("empty");
    fs::create_dir(empty).expect("a folder");
    assert_eq!(import(&["empty"]).0, 3, "there is nothing to import");
}
