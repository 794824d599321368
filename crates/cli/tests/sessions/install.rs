//! `skillz install CLIENT` with the configs that clients really have.

use std::{fs, path::Path};

use serde_json::Value;
use skillz_test_support::{Home, Run};

use crate::skillz;

fn install(home: &Home, arguments: &[&str]) -> (i32, String, String) {
    let user = home.root().display().to_string();
    Run::new(skillz(), home).arguments(&["install"]).arguments(arguments).variable("HOME", &user).output()
}

fn backups(file: &Path) -> usize {
    let name = file.file_name().expect("a name").to_string_lossy().into_owned();
    let entries = fs::read_dir(file.parent().expect("a folder")).expect("a folder");
    entries.flatten().filter(|entry| entry.file_name().to_string_lossy().starts_with(&name) && entry.path() != file).count()
}

#[test]
fn every_client_gets_its_entry_and_a_second_time_changes_nothing() {
    let home = Home::new();
    for client in ["claude-desktop", "claude-code", "cursor", "vscode", "windsurf", "zed", "codex", "gemini"] {
        let (code, stdout, stderr) = install(&home, &[client, "--output", "json"]);
        assert_eq!(code, 0, "{client}: {stderr}");
        let report: Value = serde_json::from_str(&stdout).expect("JSON");
        let file = fs::read_to_string(report["config"].as_str().expect("a path")).expect("the config");
        assert!(file.contains(&skillz().display().to_string()), "{client}: {file}");
        assert!(file.contains(&home.path().display().to_string()), "{client} does not know the home: {file}");
        let (_, stdout, _) = install(&home, &[client]);
        assert!(stdout.contains("knows this server already"), "{client}: {stdout}");
    }
}

#[test]
fn comments_stay_and_a_backup_is_kept() {
    let home = Home::new();
    let file = home.root().join(".config/zed/settings.json");
    fs::create_dir_all(file.parent().expect("a folder")).expect("a folder");
    let before = "// Zed settings\n{\n  \"theme\": \"One Dark\", // at night\n  \"context_servers\": {},\n}\n";
    fs::write(&file, before).expect("a config");
    let (code, stdout, _) = install(&home, &["zed", "--print"]);
    assert_eq!((code, fs::read_to_string(&file).expect("there").as_str()), (0, before), "--print changes nothing");
    assert!(stdout.contains('+'), "the change is shown: {stdout}");
    assert_eq!(install(&home, &["zed"]).0, 0);
    let after = fs::read_to_string(&file).expect("there");
    assert!(after.contains("// Zed settings") && after.contains("// at night") && after.contains("\"skillz\""), "{after}");
    assert_eq!(backups(&file), 1);
}

#[test]
fn a_config_that_is_not_understood_is_left_alone() {
    let home = Home::new();
    let file = home.root().join(".cursor/mcp.json");
    fs::create_dir_all(file.parent().expect("a folder")).expect("a folder");
    fs::write(&file, "{\"mcpServers\": [").expect("a config");
    let (code, _, stderr) = install(&home, &["cursor"]);
    assert_eq!(code, 2);
    assert!(stderr.contains("left as it is"), "{stderr}");
    assert_eq!(fs::read_to_string(&file).expect("there"), "{\"mcpServers\": [");
    assert_eq!(backups(&file), 0);
}
