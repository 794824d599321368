//! The ways on which a value can go through Skillz and back.

use std::{
    io::Read,
    time::{Duration, Instant},
};

use serde_json::{Value, json};
use skillz_test_support::{DEADLINE, Era, Home, Run, TestServer};

use super::json::{Json, cut, quoted};
use crate::{bash_tool, echo_module, http::HttpServer, server, skillz};

/// One way.
pub(super) struct Way {
    pub(super) name: &'static str,
    route: Route,
    /// Its numbers are doubles.
    pub(super) is_javascript: bool,
    /// The tool is a program that reads JSON by itself, as programs usually do.
    pub(super) reads_as_usual: bool,
}

enum Route {
    /// A tool that gives its arguments back.
    Tool(&'static str),
    /// The same, asked for by a client without a session, and over HTTP.
    Stateless(&'static str),
    Http(&'static str),
    CommandLine(&'static str),
    /// `call_tool` of it.
    ByName(&'static str),
    Memory,
    /// A program that takes the value that is kept in a tool's memory to a tool: language, runtime.
    Code(&'static str, &'static str),
}

const fn exact(name: &'static str, route: Route) -> Way {
    Way { name, route, is_javascript: false, reads_as_usual: false }
}

const fn javascript(name: &'static str, route: Route) -> Way {
    Way { name, route, is_javascript: true, reads_as_usual: false }
}

const fn usual(name: &'static str, route: Route) -> Way {
    Way { name, route, is_javascript: false, reads_as_usual: true }
}

pub(super) const WAYS: &[Way] = &[
    exact("WebAssembly that copies its input", Route::Tool("copy")),
    exact("Rust with `skillz::Json`", Route::Tool("rust")),
    exact("a Python function", Route::Tool("python")),
    exact("a Python function with a worker of its own", Route::Tool("python_worker")),
    exact("a bash program", Route::Tool("bash")),
    usual("a Python program", Route::Tool("program")),
    usual("a Python program that speaks JSON-RPC", Route::Tool("rpc")),
    javascript("a JavaScript function", Route::Tool("javascript")),
    exact("a pipeline", Route::Tool("line")),
    exact("a tool of an imported server", Route::Tool("mirror_mirror")),
    exact("`call_tool`", Route::ByName("copy")),
    exact("the stateless protocol", Route::Stateless("copy")),
    exact("HTTP", Route::Http("copy")),
    exact("the command line", Route::CommandLine("copy")),
    exact("memory", Route::Memory),
    exact("Python code, embedded", Route::Code("python", "embedded")),
    exact("Python code in a process", Route::Code("python", "process")),
    javascript("JavaScript code, embedded", Route::Code("javascript", "embedded")),
    javascript("JavaScript code in a process", Route::Code("javascript", "process")),
];

const RUST: &str = "#[derive(serde::Serialize)]\nstruct Kept { value: skillz::Json }\n\
    #[skillz::tool]\nfn run(value: skillz::Json) -> Kept { Kept { value } }";
const PYTHON: &str = "def run(value):\n    return {'value': value}";
const PROGRAM: &str = "import json, sys\nprint(json.dumps(json.load(sys.stdin)))";
const RPC: &str = "import json, sys\nrequest = json.loads(sys.stdin.readline())\n\
    print(json.dumps({'jsonrpc': '2.0', 'id': request['id'], 'result': request['params']['arguments']}))";
/// Gives what memory holds, so that code gets a value that it does not hold itself.
const HOLDER: &str = "import skillz\ndef run():\n    return {'value': skillz.memory.get('value')}";
/// A server that takes the arguments of its one tool as text and gives back that text.
const MIRROR: &str = r#"import json, re, sys
whole = json.JSONDecoder(parse_int=str, parse_float=str)
tool = {"name": "mirror", "description": "Gives back its arguments.", "inputSchema": {"type": "object"}}
for line in sys.stdin:
    message = whole.decode(line)
    if "id" not in message or "method" not in message:
        continue
    method, params = message["method"], message.get("params", {})
    if method == "initialize":
        result = {"protocolVersion": params["protocolVersion"], "capabilities": {"tools": {}}, "serverInfo": {"name": "mirror", "version": "1"}}
    elif method == "tools/list":
        result = {"tools": [tool]}
    elif method == "tools/call":
        start = re.search(r'"arguments"\s*:\s*', line).end()
        result = {"content": [{"type": "text", "text": "mirrored"}], "structuredContent": "HERE"}
    else:
        result = {}
    text = json.dumps(result)
    if method == "tools/call":
        text = text.replace('"HERE"', line[start : whole.raw_decode(line, start)[1]])
    print('{"jsonrpc":"2.0","id":%s,"result":%s}' % (message["id"], text), flush=True)
"#;

/// Servers on one home, and the tools that give back what they get.
pub(super) struct World<'a> {
    home: &'a Home,
    client: TestServer,
    stateless: TestServer,
    http: HttpServer,
    next_id: u32,
    /// Why tools could not be made.
    pub(super) unmade: Vec<String>,
}

impl<'a> World<'a> {
    pub(super) fn new(home: &'a Home) -> Self {
        let mut client = server(home);
        let mut unmade = Vec::new();
        let mut make = |maker: &str, arguments: Value| {
            let answer = client.call(maker, arguments);
            if answer["isError"] == json!(true) {
                unmade.push(answer["content"][0]["text"].as_str().unwrap_or_default().to_owned());
            }
        };
        make("build_tool", echo_module("copy"));
        make("build_tool", json!({"name": "rust", "description": "Gives back its arguments.", "code": RUST}));
        let script = |name: &str, interpreter: &str, code: &str, more: Value| {
            let mut arguments = bash_tool(name, code);
            arguments["interpreter"] = json!(interpreter);
            for (key, value) in more.as_object().expect("an object") {
                arguments[key] = value.clone();
            }
            arguments
        };
        for arguments in [
            script("python", "python3", PYTHON, json!({})),
            script("python_worker", "python3", PYTHON, json!({"isolation": "worker"})),
            script("holder", "python3", HOLDER, json!({})),
            script("program", "python3", PROGRAM, json!({"protocol": "json"})),
            script("rpc", "python3", RPC, json!({"protocol": "jsonrpc"})),
            script("bash", "bash", "cat", json!({"protocol": "json"})),
            script("javascript", "node", "export function run({ value }) { return { value }; }", json!({})),
        ] {
            make("register_script", arguments);
        }
        let steps =
            json!([{"tool": "bash", "args": {"value": "$input.value"}}, {"tool": "copy", "args": {"value": "$prev.value"}}]);
        let schema = json!({"type": "object", "properties": {"value": {}}});
        make(
            "pipeline",
            json!({"action": "create", "name": "line", "description": "Two echoes.", "steps": steps, "input_schema": schema}),
        );
        let mirror = home.root().join("mirror.py");
        std::fs::write(&mirror, MIRROR).unwrap();
        make("import_mcp", json!({"name": "mirror", "command": "python3", "args": [mirror], "sandbox": false}));
        let mut world = Self {
            home,
            client,
            stateless: Run::new(skillz(), home).connect(Era::Stateless),
            http: HttpServer::start(home),
            next_id: 1_000_000,
            unmade,
        };
        world.wait_for_mirror();
        world
    }

    fn wait_for_mirror(&mut self) {
        let end = Instant::now() + DEADLINE;
        while self.client.call("mirror_mirror", json!({"value": 1}))["structuredContent"] != json!({"value": 1}) {
            assert!(Instant::now() < end, "the imported server never answers");
            std::thread::sleep(Duration::from_millis(20));
        }
    }

    /// Puts a value where code finds it; what memory refuses, code need not bring through.
    pub(super) fn keep(&mut self, value: &str) {
        let _ = self.store(value);
    }

    fn store(&mut self, value: &str) -> Result<Json, String> {
        let _ = self.call("memory", r#"{"action":"delete","tool_name":"holder","key":"value"}"#);
        self.call("memory", &format!(r#"{{"action":"store","tool_name":"holder","key":"value","value":{value}}}"#))
    }

    /// Sends a value one way: what came back, or why nothing did.
    pub(super) fn send(&mut self, way: &Way, value: &str) -> Result<Json, String> {
        let arguments = format!(r#"{{"value":{value}}}"#);
        match way.route {
            Route::Tool(name) => kept(&self.call(name, &arguments)?),
            Route::Stateless(name) => kept(&structured(&self.call_stateless(name, &arguments)?)?),
            Route::Http(name) => kept(&structured(&self.call_http(name, &arguments)?)?),
            Route::CommandLine(name) => kept(&structured(&self.call_from_shell(name, &arguments)?)?),
            Route::ByName(name) => {
                kept(&self.call("call_tool", &format!(r#"{{"tool_name":"{name}","arguments":{arguments}}}"#))?)
            }
            Route::Memory => {
                self.store(value)?;
                kept(&self.call("memory", r#"{"action":"get","tool_name":"holder","key":"value"}"#)?)
            }
            Route::Code(language, runtime) => {
                self.store(value)?;
                let code = if language == "python" {
                    "copy(value=holder()['value'])"
                } else {
                    "await copy({ value: (await holder()).value })"
                };
                let code = quoted(code);
                let arguments =
                    format!(r#"{{"code":{code},"language":"{language}","runtime":"{runtime}","tools":["copy","holder"]}}"#);
                let came = self.call("execute_code", &arguments)?;
                kept(came.get("result").ok_or("`execute_code` gave no result")?)
            }
        }
    }

    fn call(&mut self, name: &str, arguments: &str) -> Result<Json, String> {
        self.next_id += 1;
        let message = request(self.next_id, name, arguments, "{}");
        structured(&ask(&mut self.client, self.next_id, &message)?)
    }

    fn call_stateless(&mut self, name: &str, arguments: &str) -> Result<Json, String> {
        self.next_id += 1;
        let message = request(self.next_id, name, arguments, META);
        ask(&mut self.stateless, self.next_id, &message)
    }

    fn call_http(&mut self, name: &str, arguments: &str) -> Result<Json, String> {
        let body = request(1, name, arguments, META);
        let headers = [
            ("content-type", "application/json"),
            ("accept", "application/json, text/event-stream"),
            ("mcp-protocol-version", "2026-07-28"),
            ("mcp-method", "tools/call"),
            ("mcp-name", name),
        ];
        // The older version of HTTP knows no chunks, which would break lines.
        let head = self.http.head("POST", "/mcp", &headers, body.len()).replacen("HTTP/1.1", "HTTP/1.0", 1);
        let mut answer = String::new();
        self.http.raw((head + &body).as_bytes()).read_to_string(&mut answer).expect("an answer in UTF-8");
        let lines = answer.lines().map(|line| line.strip_prefix("data:").unwrap_or(line).trim());
        let message = lines.rev().find(|line| line.starts_with('{')).unwrap_or_else(|| panic!("no message: {}", cut(&answer)));
        result(&Json::read(message)?)
    }

    fn call_from_shell(&self, name: &str, arguments: &str) -> Result<Json, String> {
        let run = Run::new(skillz(), self.home).arguments(&["call", name, "--json", "-", "--output", "json"]);
        let (code, stdout, stderr) = run.output_with_input(arguments);
        if code == 0 { Json::read(&stdout) } else { Err(format!("exit code {code}: {stdout}{stderr}")) }
    }
}

const META: &str = r#"{"io.modelcontextprotocol/protocolVersion":"2026-07-28","io.modelcontextprotocol/clientInfo":{"name":"test","version":"1"},"io.modelcontextprotocol/clientCapabilities":{}}"#;

fn request(id: u32, name: &str, arguments: &str, meta: &str) -> String {
    format!(
        r#"{{"jsonrpc":"2.0","id":{id},"method":"tools/call","params":{{"_meta":{meta},"name":"{name}","arguments":{arguments}}}}}"#
    )
}

/// Sends a request and waits for its answer, which nothing of Rust's reads before [`Json`] does.
fn ask(server: &mut TestServer, id: u32, message: &str) -> Result<Json, String> {
    server.send_line(message.as_bytes());
    loop {
        let line = server.next_line(DEADLINE).unwrap_or_else(|| panic!("no answer to {}", cut(message)));
        let answer = Json::read(&line)?;
        if answer.get("id") == Some(&Json::Number(id.to_string())) && answer.get("method").is_none() {
            return result(&answer);
        }
    }
}

fn result(answer: &Json) -> Result<Json, String> {
    answer.get("result").cloned().ok_or_else(|| answer.get("error").unwrap_or(answer).write())
}

/// The structured value of a call's result, which its text must say again; a failure is the reason it gives.
fn structured(result: &Json) -> Result<Json, String> {
    let text = match result.get("content") {
        Some(Json::List(blocks)) => blocks.iter().find_map(|block| block.get("text")).and_then(Json::as_text).unwrap_or_default(),
        _ => return Err(format!("it has no content: {}", cut(&result.write()))),
    };
    if result.get("isError") == Some(&Json::Word("true".to_owned())) {
        return Err(text.to_owned());
    }
    let value = result.get("structuredContent").ok_or_else(|| format!("nothing structured came: {}", cut(text)))?;
    // The imported server has a text of its own.
    let difference = if text == "mirrored" { None } else { value.difference(&Json::read(text)?, true) };
    if let Some(difference) = difference {
        return Err(format!("structured value and text differ{difference}"));
    }
    Ok(value.clone())
}

/// What stands under `value`, alone.
fn kept(object: &Json) -> Result<Json, String> {
    object.get("value").cloned().ok_or_else(|| format!("the value is gone: {}", cut(&object.write())))
}
