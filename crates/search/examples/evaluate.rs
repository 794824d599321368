//! Prints how well the search does on the project's own questions, beside plain BM25:
//! `cargo run -p skillz-search --example evaluate`, with `-- --misses` to see what was not found.

use std::{
    collections::BTreeMap,
    io::{self, Write},
};

use skillz_json::{Map, Value, json};
use skillz_search::{Document, Hit, Index};

const TOOLS: &str = include_str!("../evaluation/tools.tsv");
const QUESTIONS: &str = include_str!("../evaluation/questions.tsv");

/// Places of the right tools of all questions of one kind.
#[derive(Default)]
struct Tally {
    questions: usize,
    first: usize,
    first_five: usize,
    reciprocal_ranks: f64,
}

impl Tally {
    fn add(&mut self, rank: Option<usize>) {
        self.questions += 1;
        self.first += usize::from(rank == Some(1));
        self.first_five += usize::from(rank.is_some_and(|rank| rank <= 5));
        self.reciprocal_ranks += rank.map_or(0.0, |rank| 1.0 / rank as f64);
    }

    fn row(&self) -> String {
        let share = |count: usize| 100.0 * count as f64 / self.questions as f64;
        format!("{:5.1} {:5.1} {:5.3}", share(self.first), share(self.first_five), self.reciprocal_ranks / self.questions as f64)
    }
}

fn build_index() -> Index {
    let mut index = Index::new();
    for line in TOOLS.lines() {
        let mut fields = line.split('\t');
        let (name, description) = (fields.next().unwrap_or_default(), fields.next().unwrap_or_default());
        let properties: Map<String, Value> =
            fields.next().unwrap_or_default().split_whitespace().map(|name| (name.to_owned(), json!({}))).collect();
        let schema = json!({"type": "object", "properties": properties});
        index.insert(Document { name, revision: "1", description, tags: &[], input_schema: Some(&schema) });
    }
    index
}

fn rank(hits: &[Hit], right: &str) -> Option<usize> {
    let place = hits.iter().position(|hit| right.split(',').any(|name| name == hit.name));
    place.map(|place| place + 1)
}

fn main() -> io::Result<()> {
    let index = build_index();
    let show_misses = std::env::args().any(|argument| argument == "--misses");
    let mut out = io::stdout().lock();
    let mut tallies: BTreeMap<&str, (Tally, Tally)> = BTreeMap::new();
    for line in QUESTIONS.lines() {
        let mut fields = line.split('\t');
        let question = fields.next().unwrap_or_default();
        let right = fields.next().unwrap_or_default();
        let kind = fields.next().unwrap_or_default();
        let found = index.search(question, index.len());
        let by_meaning = rank(&found, right);
        let by_keywords = rank(&index.search_keywords(question, index.len()), right);
        for kind in [kind, "all"] {
            let (meaning, keywords) = tallies.entry(kind).or_default();
            meaning.add(by_meaning);
            keywords.add(by_keywords);
        }
        if show_misses && by_meaning.is_none_or(|rank| rank > 5) {
            let names: Vec<&str> = found.iter().take(5).map(|hit| hit.name.as_str()).collect();
            writeln!(out, "{question} -> {right} at {by_meaning:?}, found {names:?}")?;
        }
    }
    writeln!(out, "{} tools                      by meaning           plain BM25", index.len())?;
    writeln!(out, "kind   questions     top-1 top-5   MRR    top-1 top-5   MRR")?;
    for (kind, (meaning, keywords)) in &tallies {
        writeln!(out, "{kind:6} {:9}     {}    {}", meaning.questions, meaning.row(), keywords.row())?;
    }
    Ok(())
}
