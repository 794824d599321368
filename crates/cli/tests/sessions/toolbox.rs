//! A toolbox that grows: 300 random operations through the real binary, against a model that remembers everything.
//! Every version that was ever acknowledged can be brought back, byte for byte.

use std::{
    collections::BTreeMap,
    fs,
    time::{Duration, Instant},
};

use serde_json::{Value, json};
use skillz_test_support::{Home, TestServer};

use crate::{bash_tool, server};

const OPERATIONS: u64 = 300;
const NAMES: [&str; 4] = ["one", "two", "three", "four"];
/// Operations between two looks at everything.
const LOOK: u64 = 30;

/// A small generator of numbers that look random, the same in every run.
struct Numbers(u64);

impl Numbers {
    fn below(&mut self, bound: u64) -> u64 {
        self.0 = self.0.wrapping_mul(6_364_136_223_846_793_005).wrapping_add(1_442_695_040_888_963_407);
        (self.0 >> 33) % bound
    }
}

/// What was acknowledged.
#[derive(Default)]
struct Model {
    /// The code of each version of each tool.
    versions: BTreeMap<(&'static str, String), String>,
    counter: u64,
}

struct Toolbox {
    home: Home,
    server: TestServer,
    model: Model,
    numbers: Numbers,
}

impl Toolbox {
    fn new() -> Self {
        let home = Home::new();
        let server = server(&home);
        Self { home, server, model: Model::default(), numbers: Numbers(7) }
    }

    fn code(&mut self) -> String {
        self.model.counter += 1;
        format!("echo {}\n", self.model.counter)
    }

    /// The request of a change, and the code that the new version has if it is known.
    fn change(&mut self, name: &'static str) -> (Value, Option<String>) {
        let code = self.code();
        match self.numbers.below(5) {
            0 | 1 => {
                let mut arguments = bash_tool(name, &code);
                arguments["overwrite"] = json!(true);
                (json!({"name": "register_script", "arguments": arguments}), Some(code))
            }
            2 => {
                let folder = self.home.workspace().join("elsewhere").join(name);
                fs::create_dir_all(folder.join("data")).expect("a folder");
                let manifest = json!({
                    "name": name, "description": "Imported.", "tool_type": "script", "interpreter": "bash", "entry_file": "main.sh",
                });
                fs::write(folder.join("manifest.json"), manifest.to_string()).expect("a manifest");
                fs::write(folder.join("main.sh"), &code).expect("a source");
                fs::write(folder.join("data/words.txt"), &code).expect("a file");
                let arguments = json!({"source": format!("elsewhere/{name}"), "overwrite": true});
                (json!({"name": "import_tool", "arguments": arguments}), Some(code))
            }
            _ => {
                let known: Vec<(String, String)> = self
                    .model
                    .versions
                    .iter()
                    .filter(|((tool, _), _)| *tool == name)
                    .map(|((_, version), code)| (version.clone(), code.clone()))
                    .collect();
                if known.is_empty() {
                    return self.change(name);
                }
                let (version, code) = known[self.numbers.below(known.len() as u64) as usize].clone();
                let arguments = json!({"action": "rollback", "tool_name": name, "version": version});
                (json!({"name": "version", "arguments": arguments}), Some(code))
            }
        }
    }

    /// The version that an answer acknowledges.
    fn acknowledged(answer: &Value) -> Option<String> {
        let result = answer.get("result").filter(|result| result["isError"] != json!(true))?;
        let content = &result["structuredContent"];
        let version = content["version"].as_str().or_else(|| content["tools"][0]["version"].as_str())?;
        Some(version.to_owned())
    }

    fn note(&mut self, name: &'static str, version: String, code: String) {
        let before = self.model.versions.insert((name, version.clone()), code.clone());
        assert!(before.is_none_or(|before| before == code), "version {version} of {name} was given twice");
    }

    fn play(&mut self) {
        let name = NAMES[self.numbers.below(NAMES.len() as u64) as usize];
        match self.numbers.below(10) {
            0 => self.edit(name),
            1 => {
                self.server.call("delete_tool", json!({"tool_name": name}));
            }
            2 => {
                let home = &self.home;
                self.server = server(home);
            }
            3 | 4 => self.kill_during_a_change(name),
            _ => {
                let (request, code) = self.change(name);
                let answer = self.server.request("tools/call", request.clone());
                if let (Some(version), Some(code)) = (Self::acknowledged(&answer), code) {
                    self.note(name, version, code);
                } else {
                    // Going back to the version that is current changes nothing, and says so. What a server published in
                    // the moment before it was killed may not be known to the next one yet, which then refuses.
                    let text = answer["result"]["content"][0]["text"].as_str().unwrap_or_default();
                    let expected = ["is the current one already", "was changed by somebody else meanwhile", "There is a tool `"];
                    assert!(expected.iter().any(|part| text.contains(part)), "{request}: {answer}");
                }
            }
        }
    }

    /// By hand, and noticed by the server.
    fn edit(&mut self, name: &'static str) {
        let file = self.home.tools().join(name).join("main.sh");
        if !file.exists() {
            return;
        }
        let code = self.code();
        fs::write(&file, &code).expect("an edit");
        loop {
            let info = self.server.value("version", json!({"action": "info", "tool_name": name}));
            if info["source_code"] == json!(code) && info["current"] == json!(true) {
                return self.note(name, info["version"].as_str().expect("a version").to_owned(), code);
            }
            self.server.wait_for_method("notifications/tools/list_changed");
        }
    }

    fn kill_during_a_change(&mut self, name: &'static str) {
        let (request, code) = self.change(name);
        let id = self.server.send("tools/call", request);
        let end = Instant::now() + Duration::from_micros(self.numbers.below(25_000));
        let mut answers = Vec::new();
        while let Some(message) = self.server.next_message(end.saturating_duration_since(Instant::now())) {
            answers.push(message);
        }
        let fresh = server(&self.home);
        std::mem::replace(&mut self.server, fresh).kill();
        let answer = answers.iter().find(|answer| answer["id"] == json!(id) && answer.get("method").is_none());
        if let (Some(version), Some(code)) = (answer.and_then(Self::acknowledged), code) {
            self.note(name, version, code);
        }
    }

    /// Everything that was acknowledged is there, as it was.
    fn look(&mut self) {
        let listed = self.server.value("list_tools", json!({}));
        assert_eq!(listed.get("broken"), None, "{listed}");
        for ((name, version), code) in &self.model.versions {
            let info = self.server.value("version", json!({"action": "info", "tool_name": name, "version": version}));
            assert_eq!(info["source_code"], json!(code), "{name} {version}");
        }
    }
}

#[test]
fn every_version_ever_acknowledged_can_be_brought_back() {
    let mut toolbox = Toolbox::new();
    for operation in 1..=OPERATIONS {
        toolbox.play();
        if operation % LOOK == 0 {
            toolbox.look();
        }
    }
    toolbox.look();
    assert!(toolbox.model.versions.len() > 60, "{} versions", toolbox.model.versions.len());
    let all: Vec<((&str, String), String)> = toolbox.model.versions.clone().into_iter().collect();
    for ((name, version), code) in all.iter().step_by(3) {
        toolbox.server.call("version", json!({"action": "rollback", "tool_name": name, "version": version}));
        let printed = toolbox.server.value(name, json!({}));
        let expected = code.trim_start_matches("echo ").trim();
        assert_eq!(printed, json!(expected), "{name} {version} was brought back");
    }
}
