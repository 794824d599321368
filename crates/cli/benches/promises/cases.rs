//! What is measured.

use std::{
    fs::File,
    hint::black_box,
    path::{Path, PathBuf},
    process::Command,
    time::{Duration, Instant},
};

use serde_json::{Value, json};
use skillz_test_support::{Home, Run};

use crate::{
    bare,
    peer::Peer,
    sample::{Row, median, milliseconds},
};

const ECHO: &str = include_str!("../../tests/sessions/echo.wat");
const BASH: &str = "read -r line; echo \"$line\"";
const PYTHON: &str =
    "import json\n\ndef run(text: str) -> dict:\n    return {'words': len(text.split()), 'json': json.dumps(text)}\n";

pub(crate) struct Bench {
    binary: PathBuf,
    rounds: usize,
}

impl Bench {
    pub(crate) fn new(binary: &Path, rounds: usize) -> Self {
        Self { binary: binary.to_owned(), rounds }
    }

    pub(crate) fn rows(&self) -> Vec<Row> {
        let mut rows = self.start();
        rows.extend(self.list());
        rows.extend(self.calls());
        rows.extend(self.scripts());
        rows.extend(self.memory());
        rows.extend(self.build());
        rows
    }

    fn command(&self, home: &Home, variables: &[(&str, &str)]) -> Command {
        let run = variables.iter().fold(Run::new(&self.binary, home), |run, (name, value)| run.variable(name, value));
        run.command()
    }

    fn server(&self, home: &Home) -> Peer {
        Peer::server(&mut self.command(home, &[]))
    }

    /// Few rounds where each takes long.
    fn few(&self) -> usize {
        self.rounds.div_ceil(3)
    }

    fn start(&self) -> Vec<Row> {
        let bare = median(self.few(), || bare::run("true", &[], ""));
        let start = |home: &Home| {
            let mut times: Vec<Duration> = (0..=self.few())
                .map(|_| {
                    let started = Instant::now();
                    let mut peer = Peer::start(&mut self.command(home, &[]));
                    peer.initialize();
                    started.elapsed()
                })
                .collect();
            times.sort();
            times[times.len() / 2]
        };
        let (empty, full) = (Home::new(), home_with_tools(1_000));
        let mut rows = vec![
            Row::new("start to initialize", start(&empty), bare, "starting `true`").within(15.0),
            Row::new("the same with 1,000 tools", start(&full), bare, "starting `true`").within(40.0),
        ];
        let mut peer = self.server(&empty);
        peer.request("tools/list", &json!({}));
        std::thread::sleep(Duration::from_secs(1));
        rows.push(memory_row("idle memory, MB", peer.pid(), 20.0));
        let mut peer = self.server(&full);
        peer.request("tools/list", &json!({}));
        std::thread::sleep(Duration::from_secs(1));
        rows.push(Row { limit: None, ..memory_row("the same with 1,000 tools", peer.pid(), 0.0) });
        rows
    }

    fn list(&self) -> Vec<Row> {
        let mut rows = Vec::new();
        for (name, count) in [("tools/list, 10 tools", 10), ("tools/list, 1,000 tools, all shown", 1_000)] {
            let home = home_with_tools(count);
            let mut peer = Peer::server(&mut self.command(&home, &[("SKILLZ_EXPOSE", "all")]));
            let answer = peer.request_text("tools/list", &json!({})).trim_end().to_owned();
            let took = median(self.rounds, || {
                black_box(peer.request_text("tools/list", &json!({})));
            });
            let mut cat = bare::cat();
            let bare = median(self.rounds, || bare::echo(&mut cat, &answer));
            rows.push(Row::new(name, took, bare, "the same bytes through a running `cat`"));
        }
        rows
    }

    fn calls(&self) -> Vec<Row> {
        let home = Home::new();
        let mut peer = self.server(&home);
        peer.call("build_tool", &json!({"name": "echo", "description": "Gives back.", "wat": ECHO}));
        let mut cat = bare::cat();
        let line = r#"{"jsonrpc":"2.0","id":1,"method":"ping","params":{}}"#;
        let echo = median(self.rounds * 10, || bare::echo(&mut cat, line));
        let ping = median(self.rounds * 10, || {
            black_box(peer.request_text("ping", &json!({})));
        });
        let call = json!({"name": "echo", "arguments": {"text": "hello", "n": 1}});
        // The quick compiler's code is in service first; the thorough one's replaces it.
        std::thread::sleep(Duration::from_secs(1));
        let wasm = median(self.rounds * 10, || {
            black_box(peer.request_text("tools/call", &call));
        });
        let python = median(self.few(), || bare::run(bare::python(), &["-c", "pass"], ""));

        let steps: Vec<Value> = (0..3).map(|_| json!({"tool": "echo", "args": {"text": "$input.text"}})).collect();
        peer.call("pipeline", &json!({"action": "create", "name": "chain", "description": "Three.", "steps": steps}));
        let call = json!({"name": "chain", "arguments": {"text": "hello"}});
        let pipeline = median(self.rounds * 5, || {
            black_box(peer.request_text("tools/call", &call));
        });
        let code =
            json!({"name": "execute_code", "arguments": {"code": "a = echo(n=1)\nb = echo(n=2)\nc = echo(n=3)\n[a, b, c]"}});
        peer.call("execute_code", &code["arguments"]);
        let executed = median(self.rounds, || {
            black_box(peer.request_text("tools/call", &code));
        });
        vec![
            Row::new("ping", ping, echo, "a line through a running `cat`"),
            Row::new("WASM call", wasm, ping, "a ping").within(milliseconds(ping) + 0.1),
            Row::new("WASM call", wasm, python, "`python3 -c pass`").within(milliseconds(python) / 50.0),
            Row::new("pipeline of 3 WASM calls", pipeline, wasm * 3, "three calls").within(milliseconds(wasm) * 3.0 + 0.3),
            Row::new("code with 3 WASM calls", executed, python, "`python3 -c pass`").within(5.0),
        ]
    }

    fn scripts(&self) -> Vec<Row> {
        let home = Home::new();
        let mut peer = self.server(&home);
        peer.call("register_script", &json!({"name": "bash", "description": "Gives back.", "code": BASH, "interpreter": "bash"}));
        peer.call(
            "register_script",
            &json!({"name": "python", "description": "Counts.", "code": PYTHON, "interpreter": "python3"}),
        );
        let arguments = json!({"name": "bash", "arguments": {"text": "hello"}});
        let mut loose = Peer::server(&mut self.command(&home, &[("SKILLZ_SANDBOX", "none")]));
        loose.request("tools/list", &json!({}));
        let bare = median(self.rounds, || bare::run("bash", &["-c", BASH], "{\"text\": \"hello\"}\n"));
        let script = |peer: &mut Peer| {
            peer.request("tools/call", &arguments);
            median(self.rounds, || {
                black_box(peer.request_text("tools/call", &arguments));
            })
        };
        let (unconfined, confined) = (script(&mut loose), script(&mut peer));

        let arguments = json!({"text": "one two three"});
        peer.call("python", &arguments);
        let call = json!({"name": "python", "arguments": arguments});
        let warm = median(self.rounds, || {
            black_box(peer.request_text("tools/call", &call));
        });
        let python = median(self.few(), || bare::run(bare::python(), &["-c", "import json"], ""));
        vec![
            Row::new("bash script, no sandbox", unconfined, bare, "starting bash").within(milliseconds(bare) * 1.5 + 1.0),
            Row::new("bash script, confined", confined, bare, "starting bash").within(milliseconds(unconfined) + 6.0),
            Row::new("warm Python call", warm, python, "`python3 -c 'import json'`").within(milliseconds(python) / 10.0),
        ]
    }

    fn memory(&self) -> Vec<Row> {
        let home = Home::new();
        let mut peer = self.server(&home);
        let store = json!({"name": "memory", "arguments": {"action": "store", "tool_name": "t", "key": "k", "value": {"a": 1}}});
        let get = json!({"name": "memory", "arguments": {"action": "get", "tool_name": "t", "key": "k"}});
        peer.call("memory", &store["arguments"]);
        let stored = median(self.rounds, || {
            black_box(peer.request_text("tools/call", &store));
        });
        let got = median(self.rounds * 10, || {
            black_box(peer.request_text("tools/call", &get));
        });
        let mut file = File::create(home.root().join("bare")).expect("a file");
        let written = median(self.rounds, || bare::durable_write(&mut file));
        let mut cat = bare::cat();
        let echo = median(self.rounds * 10, || bare::echo(&mut cat, &get.to_string()));
        vec![
            Row::new("memory store", stored, written, "a durable write to a file"),
            Row::new("memory get", got, echo, "a line through a running `cat`"),
        ]
    }

    fn build(&self) -> Vec<Row> {
        let home = Home::new();
        let mut peer = self.server(&home);
        let code = "fn main() { println!(\"{}\", std::io::read_to_string(std::io::stdin()).unwrap().len()); }";
        let source = home.root().join("main.rs");
        std::fs::write(&source, code).expect("a source");
        let (source, module) = (source.display().to_string(), home.root().join("main.wasm").display().to_string());
        let rounds = self.rounds.div_ceil(20);
        let bare =
            median(rounds, || bare::run("rustc", &["--target", "wasm32-wasip1", "-Copt-level=3", "-o", &module, &source], ""));
        let mut number = 0;
        let built = median(rounds, || {
            number += 1;
            let code = format!("{code}\n// {number}");
            peer.call("build_tool", &json!({"name": format!("built_{number}"), "description": "Counts bytes.", "code": code}));
        });
        vec![Row::new("build_tool, confined", built, bare, "rustc by itself").within(500.0)]
    }
}

fn memory_row(name: &'static str, pid: u32, limit: f64) -> Row {
    let megabytes = |field: &str| {
        let status = std::fs::read_to_string(format!("/proc/{pid}/status")).expect("the server runs");
        let line = status.lines().find_map(|line| line.strip_prefix(field)).expect("the field is there");
        line.trim().trim_end_matches(" kB").parse::<f64>().expect("a number") / 1_024.0
    };
    let (all, anonymous) = (megabytes("VmRSS:"), megabytes("RssAnon:"));
    Row { name, skillz: all, bare: anonymous, beside: "without pages of files", limit: Some(limit), unit: " MB" }
}

fn home_with_tools(count: usize) -> Home {
    let home = Home::new();
    for number in 0..count {
        let manifest = json!({
            "name": format!("tool_{number:04}"),
            "description": format!("Converts amounts of kind {number} from one unit into another."),
            "tool_type": "script",
            "interpreter": "bash",
            "entry_file": "main.sh",
            "input_schema": {"type": "object", "properties": {"amount": {"type": "number"}, "unit": {"type": "string"}}, "required": ["amount"]},
        });
        home.write_tool(&manifest, "echo hello");
    }
    home
}
