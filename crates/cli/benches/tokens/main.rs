//! How many tokens a model reads and writes to solve tasks with a large catalogue of tools, in three ways.
//!
//! `cargo bench --profile dev --workspace --bench tokens` prints the table of `docs/tokens.md`. Every call is real, and the
//! answers of all ways must be the same. Fails where code saves less than is promised.
#![expect(
    clippy::expect_used,
    clippy::indexing_slicing,
    clippy::panic,
    clippy::print_stdout,
    reason = "a bench that cannot go on says so by panicking, and its table is what it is for"
)]

mod catalogue;
mod conversation;
mod tasks;

use std::path::Path;

use serde_json::{Value, json};
use skillz_test_support::{Era, Home, Run, TestServer};
use tiktoken_rs::CoreBPE;

use crate::{
    conversation::{Conversation, WAYS, count},
    tasks::TASKS,
};

/// Kinds of records in the catalogue, and the least share of tokens that code must save with it.
const CATALOGUES: [(usize, f64); 2] = [(4, 0.6), (40, 0.9)];
/// The protocol's last version with a handshake.
const ERA: Era = Era::Handshake("2025-11-25");

fn main() {
    let encoder = tiktoken_rs::o200k_base().expect("the table is part of the crate");
    let binary = Path::new(env!("CARGO_BIN_EXE_skillz"));
    let mut kept = true;
    for (kinds, promised) in CATALOGUES {
        let home = Home::new();
        let tools = catalogue::write(&home.tools(), kinds);
        let mut everything = Run::new(binary, &home).variable("SKILLZ_EXPOSE", "all").connect(ERA);
        let mut server = Run::new(binary, &home).connect(ERA);
        let built_in = server.tool_names();
        let all = surface(&mut everything, &encoder, |name| !built_in.iter().any(|known| known == name));
        let few = surface(&mut server, &encoder, |_| true);
        println!("\n{tools} tools: {all} tokens of schemas; {few} with search\n");
        println!(
            "| task | all tools, one call a step | search, then calls | search, then code | code saves |\n|---|---|---|---|---|"
        );
        let mut sums = [0; 3];
        for task in &TASKS {
            let mut row = [0; 3];
            let mut answers: Vec<Value> = Vec::new();
            for (index, way) in WAYS.into_iter().enumerate() {
                let read = if index == 0 { all } else { few };
                let server = if index == 0 { &mut everything } else { &mut server };
                let (answer, tokens) = Conversation::solve(server, &encoder, read, way, task);
                answers.push(answer);
                row[index] = tokens;
                sums[index] += tokens;
            }
            assert!(answers.iter().all(|answer| same(answer, &answers[0])), "{}: {answers:?}", task.question);
            print_row(task.question, row);
        }
        print_row("**all tasks**", sums);
        kept &= saved(sums) >= promised;
    }
    assert!(kept, "code saves less than is promised");
}

/// Tokens of all listed tools that `counts` names, as they are sent.
fn surface(server: &mut TestServer, encoder: &CoreBPE, mut counts: impl FnMut(&str) -> bool) -> usize {
    let mut tokens = 0;
    let mut cursor = json!(null);
    loop {
        let params = if cursor.is_null() { json!({}) } else { json!({"cursor": cursor}) };
        let mut page = server.result("tools/list", params);
        let tools = page["tools"].as_array().expect("a list of tools");
        let listed = tools.iter().filter(|tool| counts(tool["name"].as_str().expect("a name")));
        tokens += listed.map(|tool| count(encoder, &tool.to_string())).sum::<usize>();
        cursor = page["nextCursor"].take();
        if cursor.is_null() {
            return tokens;
        }
    }
}

/// Whether answers are the same, whichever way their numbers are written.
fn same(one: &Value, other: &Value) -> bool {
    match (one, other) {
        (Value::Number(one), Value::Number(other)) => one.as_f64() == other.as_f64(),
        (Value::Array(one), Value::Array(other)) => {
            one.len() == other.len() && one.iter().zip(other).all(|(one, other)| same(one, other))
        }
        (Value::Object(one), Value::Object(other)) => {
            one.len() == other.len() && one.iter().all(|(name, value)| other.get(name).is_some_and(|other| same(value, other)))
        }
        _ => one == other,
    }
}

fn saved(row: [usize; 3]) -> f64 {
    1.0 - row[2] as f64 / row[0] as f64
}

fn print_row(name: &str, row: [usize; 3]) {
    println!("| {name} | {} | {} | {} | {:.0} % |", row[0], row[1], row[2], saved(row) * 100.0);
}
