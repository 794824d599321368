//! `skillz demo`: a real MCP session against the real server process, as a transcript with timings.

#![allow(clippy::indexing_slicing, reason = "JSON values are indexed by name, which gives null where there is nothing")]

mod client;
mod transcript;

use std::time::Instant;

use anyhow::Context as _;
use clap::Args;
use serde_json::{Value, json};

use self::{client::Client, transcript::Transcript};
use crate::{
    context::Context,
    report::{Failure, Status},
};

/// The newest protocol with a handshake; clients of this kind are the most common.
const PROTOCOL: &str = "2025-11-25";

const RUST_SOURCE: &str = include_str!("word_stats.rs.txt");
const PYTHON_SOURCE: &str = include_str!("reading_time.py.txt");
const SAMPLE: &str = "the quick brown fox jumps over the lazy dog and the dog sleeps";

#[derive(Debug, Args)]
pub(crate) struct DemoArguments {}

pub(crate) fn run(_arguments: &DemoArguments, context: &Context) -> anyhow::Result<()> {
    let home = tempfile::Builder::new().prefix("skillz-demo-").tempdir().context("No temporary folder could be made")?;
    let transcript = Transcript::new(context.printer);
    let started = Instant::now();

    let mut session = Session::open(home.path(), &transcript, "A client starts the server")?;
    session.list_tools("It sees the built-in tools")?;
    session.tool(
        "It builds a tool in Rust, tested by an example before it is published",
        "build_tool",
        &json!({
            "name": "word_stats",
            "description": "Counts the words of a text and finds the longest one.",
            "code": RUST_SOURCE,
            "examples": [{"arguments": {"text": "a bee sees"}, "result": {"words": 3, "unique": 3, "longest": "sees"}}],
        }),
    )?;
    session.tool(
        "It registers a tool in Python; the schema comes from the signature",
        "register_script",
        &json!({
            "name": "reading_time",
            "description": "Estimates how long it takes to read a number of words.",
            "code": PYTHON_SOURCE,
            "interpreter": "python3",
            "examples": [{"arguments": {"words": 400}, "contains": {"minutes": 2.0}}],
        }),
    )?;
    session.list_tools("Both are tools of the protocol at once")?;
    session.tool("It calls the Rust tool", "word_stats", &json!({"text": SAMPLE}))?;
    session.tool("It calls the Python tool", "reading_time", &json!({"words": 1250}))?;
    session.tool(
        "It chains them: a pipeline is a tool too",
        "pipeline",
        &json!({
            "action": "create",
            "name": "time_to_read",
            "description": "Estimates how long it takes to read a text.",
            "steps": [
                {"name": "count", "tool": "word_stats", "args": {"text": "$input.text"}},
                {"tool": "reading_time", "args": {"words": "$count.words"}},
            ],
        }),
    )?;
    session.tool("It calls the pipeline", "time_to_read", &json!({"text": SAMPLE}))?;
    session.failing_tool(
        "Wrong arguments come back as a failure that says what is wrong",
        "reading_time",
        &json!({"word": "many"}),
    )?;
    drop(session);

    let mut session = Session::open(home.path(), &transcript, "The server is stopped and started again")?;
    session.tool(
        "It looks for a tool in plain words",
        "list_tools",
        &json!({"query": "how many minutes do I need for this article", "limit": 2}),
    )?;
    session.tool("It calls what it found", "time_to_read", &json!({"text": SAMPLE}))?;
    drop(session);

    Ok(transcript.end(started.elapsed())?)
}

/// One connection to one server process.
struct Session<'a> {
    client: Client,
    transcript: &'a Transcript,
}

impl<'a> Session<'a> {
    fn open(home: &std::path::Path, transcript: &'a Transcript, title: &str) -> anyhow::Result<Self> {
        let started = Instant::now();
        let mut client = Client::start(home)?;
        let params = json!({
            "protocolVersion": PROTOCOL,
            "capabilities": {},
            "clientInfo": {"name": "skillz-demo", "version": env!("CARGO_PKG_VERSION")},
        });
        let answer = client.request("initialize", params.clone())?;
        let result = expect_result("initialize", answer.result)?;
        client.notify("notifications/initialized")?;
        let server = json!({"process": client.process_id(), "serverInfo": result["serverInfo"], "protocolVersion": result["protocolVersion"]});
        transcript.step(title, "initialize", &params, &server, started.elapsed())?;
        Ok(Self { client, transcript })
    }

    fn list_tools(&mut self, title: &str) -> anyhow::Result<()> {
        let answer = self.client.request("tools/list", json!({}))?;
        let result = expect_result("tools/list", answer.result)?;
        let names: Vec<&str> =
            result["tools"].as_array().into_iter().flatten().filter_map(|tool| tool["name"].as_str()).collect();
        Ok(self.transcript.step(title, "tools/list", &json!({}), &json!(names), answer.took)?)
    }

    fn tool(&mut self, title: &str, name: &str, arguments: &Value) -> anyhow::Result<()> {
        let failed = self.call(title, name, arguments)?;
        if failed {
            return Err(
                Failure::new(Status::ToolFailed, format!("The call of `{name}` failed; the transcript above says why")).into()
            );
        }
        Ok(())
    }

    fn failing_tool(&mut self, title: &str, name: &str, arguments: &Value) -> anyhow::Result<()> {
        let failed = self.call(title, name, arguments)?;
        if !failed {
            return Err(Failure::new(Status::Internal, format!("The call of `{name}` should have failed")).into());
        }
        Ok(())
    }

    /// Calls a tool; says whether it failed.
    fn call(&mut self, title: &str, name: &str, arguments: &Value) -> anyhow::Result<bool> {
        let answer = self.client.request("tools/call", json!({"name": name, "arguments": arguments}))?;
        let result = expect_result("tools/call", answer.result)?;
        self.transcript.step(title, &format!("tools/call {name}"), arguments, &shown(&result), answer.took)?;
        Ok(result["isError"] == json!(true))
    }
}

fn expect_result(method: &str, result: Result<Value, Value>) -> anyhow::Result<Value> {
    result
        .map_err(|error| Failure::new(Status::Internal, format!("The server answered `{method}` with an error: {error}")).into())
}

/// The part of a result that people read.
fn shown(result: &Value) -> Value {
    if let Some(structured) = result.get("structuredContent") {
        return structured.clone();
    }
    let texts: Vec<&str> =
        result["content"].as_array().into_iter().flatten().filter_map(|block| block["text"].as_str()).collect();
    let text = texts.join("\n");
    serde_json::from_str(&text).unwrap_or(Value::String(text))
}
