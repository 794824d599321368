//! A server process with a client's end of its pipes.

use std::{
    collections::VecDeque,
    io::{BufRead, BufReader, Read, Write},
    path::{Path, PathBuf},
    process::{Child, ChildStdin, Command, ExitStatus, Stdio},
    sync::mpsc::{self, Receiver},
    thread,
    time::{Duration, Instant},
};

use serde_json::{Value, json};

use crate::Home;

/// How long anything may take before a test gives up. Generous: machines are slow and tests run side by side.
pub const DEADLINE: Duration = Duration::from_secs(60);

/// Which way of speaking MCP a client uses.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Era {
    /// With a handshake, in the version given.
    Handshake(&'static str),
    /// Stateless: each request carries who asks (2026-07-28).
    Stateless,
}

impl Era {
    /// The newest version with a handshake.
    pub const NEWEST_HANDSHAKE: Self = Self::Handshake("2025-11-25");
}

/// How a server is started.
#[derive(Debug)]
pub struct Run<'a> {
    binary: &'a Path,
    home: &'a Home,
    arguments: Vec<String>,
    variables: Vec<(String, String)>,
}

impl<'a> Run<'a> {
    /// The server binary in a home, with an environment of nothing but what it needs.
    pub fn new(binary: &'a Path, home: &'a Home) -> Self {
        Self { binary, home, arguments: Vec::new(), variables: Vec::new() }
    }

    /// Adds arguments.
    #[must_use]
    pub fn arguments(mut self, arguments: &[&str]) -> Self {
        self.arguments.extend(arguments.iter().map(|argument| (*argument).to_owned()));
        self
    }

    /// Sets a variable.
    #[must_use]
    pub fn variable(mut self, name: &str, value: &str) -> Self {
        self.variables.push((name.to_owned(), value.to_owned()));
        self
    }

    /// The command, as it will be started.
    pub fn command(&self) -> Command {
        let mut command = Command::new(self.binary);
        command.args(&self.arguments).current_dir(self.home.workspace()).env_clear();
        for name in INHERITED {
            if let Some(value) = read_variable(name) {
                command.env(name, value);
            }
        }
        command.env("SKILLZ_HOME", self.home.path()).envs(self.variables.iter().map(|(name, value)| (name, value)));
        command
    }

    /// Runs the binary to its end with nothing on stdin: `(exit code, stdout, stderr)`.
    pub fn output(&self) -> (i32, String, String) {
        self.output_with_input("")
    }

    /// Runs the binary to its end with `input` on stdin: `(exit code, stdout, stderr)`.
    pub fn output_with_input(&self, input: &str) -> (i32, String, String) {
        let mut child = self
            .command()
            .stdin(Stdio::piped())
            .stdout(Stdio::piped())
            .stderr(Stdio::piped())
            .spawn()
            .expect("the binary starts");
        let mut stdin = child.stdin.take().expect("stdin is a pipe");
        let input = input.to_owned();
        let writer = thread::spawn(move || drop(stdin.write_all(input.as_bytes())));
        let output = child.wait_with_output().expect("the binary ends");
        writer.join().expect("stdin is written");
        let text = |bytes: &[u8]| String::from_utf8_lossy(bytes).into_owned();
        (output.status.code().unwrap_or(-1), text(&output.stdout), text(&output.stderr))
    }

    /// Starts a server and leaves it without a greeting.
    pub fn start(&self) -> TestServer {
        TestServer::spawn(self.command())
    }

    /// Starts a server and greets it.
    pub fn connect(&self, era: Era) -> TestServer {
        let mut server = self.start();
        server.greet(era);
        server
    }
}

/// Runs the binary once in a home, to its end: `(exit code, stdout, stderr)`.
pub fn run(binary: &Path, home: &Home, arguments: &[&str]) -> (i32, String, String) {
    Run::new(binary, home).arguments(arguments).output()
}

/// What a server needs of the tests' own environment: where programs and toolchains are, and how to download.
const INHERITED: &[&str] = &[
    "PATH",
    "HOME",
    "USER",
    "LANG",
    "TMPDIR",
    "CARGO_HOME",
    "RUSTUP_HOME",
    "RUSTUP_TOOLCHAIN",
    "HTTPS_PROXY",
    "HTTP_PROXY",
    "SSL_CERT_FILE",
    "PIP_INDEX_URL",
    "PIP_FIND_LINKS",
    "PIP_CERT",
    "LLVM_PROFILE_FILE",
];

#[expect(clippy::disallowed_methods, reason = "the tests hand their own environment on")]
fn read_variable(name: &str) -> Option<std::ffi::OsString> {
    std::env::var_os(name)
}

/// A running server. Dropping it closes its stdin, and kills it if it does not end by itself.
pub struct TestServer {
    process: Child,
    stdin: Option<ChildStdin>,
    incoming: Receiver<String>,
    /// Messages that came while another one was waited for.
    waiting: VecDeque<Value>,
    stderr: Receiver<String>,
    era: Option<Era>,
    next_id: u64,
}

impl TestServer {
    fn spawn(mut command: Command) -> Self {
        let mut process =
            command.stdin(Stdio::piped()).stdout(Stdio::piped()).stderr(Stdio::piped()).spawn().expect("the server starts");
        let stdin = process.stdin.take();
        let stdout = process.stdout.take().expect("stdout is a pipe");
        let mut stderr_pipe = process.stderr.take().expect("stderr is a pipe");
        let (lines, incoming) = mpsc::channel();
        thread::spawn(move || {
            for line in BufReader::new(stdout).lines() {
                let Ok(line) = line else { break };
                if lines.send(line).is_err() {
                    break;
                }
            }
        });
        let (said, stderr) = mpsc::channel();
        thread::spawn(move || {
            let mut bytes = Vec::new();
            let _ = stderr_pipe.read_to_end(&mut bytes);
            let _ = said.send(String::from_utf8_lossy(&bytes).into_owned());
        });
        Self { process, stdin, incoming, waiting: VecDeque::new(), stderr, era: None, next_id: 1 }
    }

    /// The process number.
    pub fn pid(&self) -> u32 {
        self.process.id()
    }

    /// Greets the server as a client of that era does; gives what it said about itself.
    pub fn greet(&mut self, era: Era) -> Value {
        self.era = Some(era);
        match era {
            Era::Handshake(version) => {
                let capabilities = json!({"elicitation": {}, "sampling": {}, "roots": {"listChanged": true}});
                let answer = self.result(
                    "initialize",
                    json!({"protocolVersion": version, "capabilities": capabilities, "clientInfo": {"name": "test", "version": "1"}}),
                );
                self.notify("notifications/initialized", json!({}));
                answer
            }
            Era::Stateless => self.result("server/discover", json!({})),
        }
    }

    /// Sends one line as it is.
    pub fn send_line(&mut self, line: &[u8]) {
        let stdin = self.stdin.as_mut().expect("stdin is open");
        stdin
            .write_all(line)
            .and_then(|()| stdin.write_all(b"\n"))
            .and_then(|()| stdin.flush())
            .expect("the server reads its stdin");
    }

    /// Sends a request and gives its id.
    pub fn send(&mut self, method: &str, params: Value) -> u64 {
        let id = self.next_id;
        self.next_id += 1;
        let params = self.with_meta(params);
        self.send_line(json!({"jsonrpc": "2.0", "id": id, "method": method, "params": params}).to_string().as_bytes());
        id
    }

    /// Sends a notification.
    pub fn notify(&mut self, method: &str, params: Value) {
        let params = self.with_meta(params);
        self.send_line(json!({"jsonrpc": "2.0", "method": method, "params": params}).to_string().as_bytes());
    }

    /// What each request of the stateless era carries.
    fn with_meta(&self, mut params: Value) -> Value {
        if self.era == Some(Era::Stateless) {
            let meta = &mut params["_meta"];
            meta["io.modelcontextprotocol/protocolVersion"] = json!("2026-07-28");
            meta["io.modelcontextprotocol/clientInfo"] = json!({"name": "test", "version": "1"});
            meta["io.modelcontextprotocol/clientCapabilities"] = json!({"elicitation": {}, "sampling": {}});
        }
        params
    }

    /// Sends a request and waits for the whole answer, error or result.
    pub fn request(&mut self, method: &str, params: Value) -> Value {
        let id = self.send(method, params);
        self.answer(id)
    }

    /// Sends a request and waits for its result; an error fails the test.
    pub fn result(&mut self, method: &str, params: Value) -> Value {
        let mut answer = self.request(method, params);
        assert!(answer.get("error").is_none(), "`{method}` was answered with an error: {answer}");
        answer["result"].take()
    }

    /// Calls a tool and gives the result as it is, failures included.
    pub fn call(&mut self, name: &str, arguments: Value) -> Value {
        self.result("tools/call", json!({"name": name, "arguments": arguments}))
    }

    /// Calls a tool that must work, and gives its structured value, or its text.
    pub fn value(&mut self, name: &str, arguments: Value) -> Value {
        let mut result = self.call(name, arguments);
        assert_ne!(result["isError"], json!(true), "`{name}` failed: {}", text_of(&result));
        match result.get_mut("structuredContent") {
            Some(structured) => structured.take(),
            None => Value::String(text_of(&result)),
        }
    }

    /// Calls a tool that must fail, and gives the failure's text.
    pub fn failure(&mut self, name: &str, arguments: Value) -> String {
        let result = self.call(name, arguments);
        assert_eq!(result["isError"], json!(true), "`{name}` should have failed: {result}");
        text_of(&result)
    }

    /// The names in `tools/list`.
    pub fn tool_names(&mut self) -> Vec<String> {
        let result = self.result("tools/list", json!({}));
        let tools = result["tools"].as_array().expect("a list of tools");
        tools.iter().map(|tool| tool["name"].as_str().expect("a tool has a name").to_owned()).collect()
    }

    /// Waits for the answer to a request.
    pub fn answer(&mut self, id: u64) -> Value {
        self.wait_for(&format!("the answer to request {id}"), |message| {
            message["id"] == json!(id) && message.get("method").is_none()
        })
    }

    /// Waits for a notification or a request of the server.
    pub fn wait_for_method(&mut self, method: &str) -> Value {
        self.wait_for(method, |message| message["method"] == json!(method))
    }

    /// Waits for the first message that fits; others are kept for later.
    pub fn wait_for(&mut self, what: &str, fits: impl Fn(&Value) -> bool) -> Value {
        if let Some(index) = self.waiting.iter().position(&fits) {
            return self.waiting.remove(index).expect("it is there");
        }
        let end = Instant::now() + DEADLINE;
        loop {
            let Some(message) = self.next_message(end.saturating_duration_since(Instant::now())) else {
                let status = self.process.try_wait();
                panic!("{what} did not come; the server: {status:?}; messages that came instead: {:?}", self.waiting);
            };
            if fits(&message) {
                return message;
            }
            self.waiting.push_back(message);
        }
    }

    /// The next message that comes; `None` after `patience`, or once the server has closed its stdout.
    pub fn next_message(&mut self, patience: Duration) -> Option<Value> {
        let line = self.next_line(patience)?;
        Some(serde_json::from_str(&line).unwrap_or_else(|error| panic!("stdout carried what is no JSON ({error}): {line}")))
    }

    /// The same as the text that came.
    pub fn next_line(&mut self, patience: Duration) -> Option<String> {
        self.incoming.recv_timeout(patience).ok()
    }

    /// Messages that came and that nobody waited for, as of now.
    pub fn unasked(&mut self) -> Vec<Value> {
        while let Some(message) = self.next_message(Duration::ZERO) {
            self.waiting.push_back(message);
        }
        self.waiting.drain(..).collect()
    }

    /// Kills the server at once, as `kill -9` does.
    pub fn kill(mut self) {
        self.process.kill().expect("the server can be killed");
        self.process.wait().expect("the server is gone");
    }

    /// Closes stdin and waits for the end: the exit status and all of stderr.
    pub fn close(mut self) -> (ExitStatus, String) {
        self.stdin = None;
        let status = self.wait_for_exit().unwrap_or_else(|| panic!("the server does not end though its stdin is closed"));
        let stderr = self.stderr.recv_timeout(DEADLINE).expect("stderr is closed");
        (status, stderr)
    }

    fn wait_for_exit(&mut self) -> Option<ExitStatus> {
        let end = Instant::now() + DEADLINE;
        while Instant::now() < end {
            if let Some(status) = self.process.try_wait().expect("the server can be waited for") {
                return Some(status);
            }
            thread::sleep(Duration::from_millis(5));
        }
        None
    }
}

impl Drop for TestServer {
    fn drop(&mut self) {
        self.stdin = None;
        if !thread::panicking() && self.wait_for_exit().is_some() {
            return;
        }
        let _ = self.process.kill();
        let _ = self.process.wait();
    }
}

/// The text blocks of a result, joined.
fn text_of(result: &Value) -> String {
    let blocks = result["content"].as_array().cloned().unwrap_or_default();
    let texts: Vec<&str> = blocks.iter().filter_map(|block| block["text"].as_str()).collect();
    texts.join("\n")
}

/// An MCP server over stdio in Python that behaves as its arguments say; what it knows stands at its top.
pub fn upstream() -> PathBuf {
    Path::new(env!("CARGO_MANIFEST_DIR")).join("fixtures/upstream.py")
}

/// The same over HTTP; its first argument is a file in which it writes its port.
pub fn http_upstream() -> PathBuf {
    Path::new(env!("CARGO_MANIFEST_DIR")).join("fixtures/http_upstream.py")
}

/// The path of a fixture beside the tests of the crate whose manifest folder is given.
pub fn fixture(manifest_folder: &str, name: &str) -> PathBuf {
    Path::new(manifest_folder).join("tests/fixtures").join(name)
}
