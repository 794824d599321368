//! A process with which lines are exchanged on one thread: nothing of the client's own is measured along.

use std::{
    io::{BufRead, BufReader, Write},
    process::{Child, ChildStdin, ChildStdout, Command, Stdio},
};

use serde_json::{Value, json};

pub(crate) struct Peer {
    process: Child,
    stdin: Option<ChildStdin>,
    stdout: BufReader<ChildStdout>,
    line: String,
    next_id: u64,
}

impl Peer {
    pub(crate) fn start(command: &mut Command) -> Self {
        let mut process = command.stdin(Stdio::piped()).stdout(Stdio::piped()).spawn().expect("the process starts");
        let (stdin, stdout) = (process.stdin.take(), process.stdout.take().expect("stdout is a pipe"));
        Self { process, stdin, stdout: BufReader::new(stdout), line: String::new(), next_id: 1 }
    }

    /// Starts a server and greets it.
    pub(crate) fn server(command: &mut Command) -> Self {
        let mut peer = Self::start(command);
        peer.initialize();
        peer.send(&json!({"jsonrpc": "2.0", "method": "notifications/initialized"}).to_string());
        peer
    }

    pub(crate) fn initialize(&mut self) {
        let client =
            json!({"protocolVersion": "2025-11-25", "capabilities": {}, "clientInfo": {"name": "bench", "version": "1"}});
        self.request("initialize", &client);
    }

    pub(crate) fn pid(&self) -> u32 {
        self.process.id()
    }

    pub(crate) fn send(&mut self, line: &str) {
        let stdin = self.stdin.as_mut().expect("stdin is open");
        stdin.write_all(line.as_bytes()).and_then(|()| stdin.write_all(b"\n")).expect("the process reads");
    }

    /// Reads the next line.
    pub(crate) fn receive(&mut self) -> &str {
        self.line.clear();
        assert_ne!(self.stdout.read_line(&mut self.line).expect("the process writes"), 0, "the process ended");
        &self.line
    }

    /// Sends a request and waits for its answer, as text.
    pub(crate) fn request_text(&mut self, method: &str, params: &Value) -> &str {
        let id = self.next_id;
        self.next_id += 1;
        self.send(&format!(r#"{{"jsonrpc":"2.0","id":{id},"method":"{method}","params":{params}}}"#));
        let mark = format!(r#""id":{id}"#);
        while !self.receive().contains(&mark) {}
        &self.line
    }

    pub(crate) fn request(&mut self, method: &str, params: &Value) -> Value {
        let answer: Value = serde_json::from_str(self.request_text(method, params)).expect("JSON");
        assert!(answer.get("error").is_none(), "{method}: {answer}");
        answer["result"].clone()
    }

    /// Calls a tool that must work.
    pub(crate) fn call(&mut self, name: &str, arguments: &Value) -> Value {
        let result = self.request("tools/call", &json!({"name": name, "arguments": arguments}));
        assert_ne!(result["isError"], json!(true), "{name}: {result}");
        result
    }
}

impl Drop for Peer {
    fn drop(&mut self) {
        self.stdin = None;
        let _ = self.process.wait();
    }
}
