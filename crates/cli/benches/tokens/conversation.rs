//! What a model has to read and write to solve a task, in tokens of o200k_base. Everything counts once, when it enters
//! the context; a client that sends the whole context again with each step pays the same things several times.

use serde_json::{Value, json};
use skillz_test_support::TestServer;
use tiktoken_rs::CoreBPE;

use crate::tasks::Task;

/// Most tools that a search gives.
const FOUND: usize = 5;

/// How a model goes about a task.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum Way {
    /// It has read every tool's schema, and makes one call a step.
    AllTools,
    /// It knows the built-ins, searches, and makes one call a step.
    SearchThenCalls,
    /// It knows the built-ins, searches, and writes a program.
    SearchThenCode,
}

pub(crate) const WAYS: [Way; 3] = [Way::AllTools, Way::SearchThenCalls, Way::SearchThenCode];

/// A conversation that is counted while it goes on.
pub(crate) struct Conversation<'a> {
    server: &'a mut TestServer,
    encoder: &'a CoreBPE,
    tokens: usize,
}

impl<'a> Conversation<'a> {
    /// Solves a task in one way; gives the answer and the tokens. `surface` is what the model has read of tools before.
    pub(crate) fn solve(
        server: &'a mut TestServer,
        encoder: &'a CoreBPE,
        surface: usize,
        way: Way,
        task: &Task,
    ) -> (Value, usize) {
        let mut conversation = Self { server, encoder, tokens: surface };
        conversation.read(task.question);
        let answer = match way {
            Way::AllTools => (task.steps)(&mut |name, arguments| conversation.call(name, arguments)),
            Way::SearchThenCalls => {
                conversation.search(task);
                (task.steps)(&mut |name, arguments| {
                    conversation.call("call_tool", json!({"tool_name": name, "arguments": arguments}))
                })
            }
            Way::SearchThenCode => {
                conversation.search(task);
                conversation.call("execute_code", json!({"code": task.code}))["result"].take()
            }
        };
        conversation.read(&answer.to_string());
        (answer, conversation.tokens)
    }

    fn search(&mut self, task: &Task) {
        let mut found = String::new();
        for query in task.searches {
            let arguments = json!({"query": query, "detail": "signature", "limit": FOUND});
            found.push_str(&self.call("list_tools", arguments).to_string());
        }
        for tool in task.tools {
            assert!(found.contains(&format!("{tool}(")), "{:?} should find `{tool}`: {found}", task.searches);
        }
    }

    fn call(&mut self, name: &str, arguments: Value) -> Value {
        self.read(&json!({"name": name, "arguments": arguments}).to_string());
        let mut result = self.server.call(name, arguments);
        let text: String =
            result["content"].as_array().expect("content").iter().filter_map(|block| block["text"].as_str()).collect();
        assert_ne!(result["isError"], json!(true), "`{name}` failed: {text}");
        self.read(&text);
        match result.get_mut("structuredContent") {
            Some(value) => value.take(),
            None => serde_json::from_str(&text).unwrap_or(Value::String(text)),
        }
    }

    fn read(&mut self, text: &str) {
        self.tokens += count(self.encoder, text);
    }
}

/// Tokens of a text.
pub(crate) fn count(encoder: &CoreBPE, text: &str) -> usize {
    encoder.encode_ordinary(text).len()
}
