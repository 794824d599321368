//! A small MCP client: starts the server as a process and speaks JSON-RPC with it, one request after the other.

#![allow(clippy::indexing_slicing, reason = "JSON values are indexed by name, which gives null where there is nothing")]

use std::{
    io::{BufRead, BufReader, Write},
    path::Path,
    process::{Child, ChildStdin, ChildStdout, Command, Stdio},
    time::{Duration, Instant},
};

use anyhow::{Context, bail};
use serde_json::{Value, json};

/// A server process and its pipes. Dropping it closes stdin, which ends the server, and waits for that.
pub(super) struct Client {
    process: Child,
    stdin: Option<ChildStdin>,
    stdout: BufReader<ChildStdout>,
    next_id: u64,
}

/// An answer and how long it took.
pub(super) struct Answer {
    pub(super) result: Result<Value, Value>,
    pub(super) took: Duration,
}

impl Client {
    /// Starts this very binary as a server with a data folder of its own.
    pub(super) fn start(home: &Path) -> anyhow::Result<Self> {
        let binary = std::env::current_exe().context("The path of this program is not known")?;
        let mut process = Command::new(binary)
            .env("SKILLZ_HOME", home)
            .env_remove("TOOLS_DIR")
            .current_dir(home)
            .stdin(Stdio::piped())
            .stdout(Stdio::piped())
            .spawn()
            .context("The server could not be started")?;
        let (stdin, stdout) = (process.stdin.take(), process.stdout.take().context("The server has no stdout")?);
        Ok(Self { process, stdin, stdout: BufReader::new(stdout), next_id: 1 })
    }

    pub(super) fn process_id(&self) -> u32 {
        self.process.id()
    }

    pub(super) fn notify(&mut self, method: &str) -> anyhow::Result<()> {
        self.send(&json!({"jsonrpc": "2.0", "method": method}))
    }

    /// Sends a request and waits for its answer; notifications in between are passed over.
    pub(super) fn request(&mut self, method: &str, params: Value) -> anyhow::Result<Answer> {
        let id = self.next_id;
        self.next_id += 1;
        let started = Instant::now();
        self.send(&json!({"jsonrpc": "2.0", "id": id, "method": method, "params": params}))?;
        loop {
            let mut line = String::new();
            if self.stdout.read_line(&mut line)? == 0 {
                bail!("The server ended before it answered `{method}`");
            }
            let mut message: Value = serde_json::from_str(&line).context("The server sent a line that is no JSON")?;
            if message["id"] != json!(id) {
                continue;
            }
            let took = started.elapsed();
            let result = match message.get_mut("error") {
                Some(error) => Err(error.take()),
                None => Ok(message["result"].take()),
            };
            return Ok(Answer { result, took });
        }
    }

    fn send(&mut self, message: &Value) -> anyhow::Result<()> {
        let stdin = self.stdin.as_mut().context("The server's stdin is closed")?;
        stdin.write_all(format!("{message}\n").as_bytes()).context("The server does not read its stdin")?;
        Ok(stdin.flush()?)
    }
}

impl Drop for Client {
    fn drop(&mut self) {
        self.stdin = None;
        let _ = self.process.wait();
    }
}
