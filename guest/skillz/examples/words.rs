//! A tool with every sort of parameter.

use serde::{Deserialize, Serialize};

#[derive(Deserialize)]
struct Options {
    #[serde(default)]
    upper: bool,
}

#[derive(Serialize)]
struct Words {
    words: Vec<String>,
    more: usize,
}

#[skillz::tool]
fn run(
    /// The text to take words from.
    text: &str,
    limit: Option<u32>,
    #[serde(default)] mut options: Vec<Options>,
    skip: &[String],
) -> Result<Words, String> {
    let upper = options.pop().is_some_and(|options| options.upper);
    let all: Vec<&str> = text.split_whitespace().filter(|word| !skip.iter().any(|skipped| skipped == word)).collect();
    let limit = limit.map_or(all.len(), |limit| limit as usize);
    let _ = skillz::log("info", format!("{} words", all.len()));
    let words: Vec<String> = all.iter().take(limit).map(|word| word.to_string()).collect();
    let words = if upper { words.iter().map(|word| word.to_uppercase()).collect() } else { words };
    Ok(Words { more: all.len() - words.len(), words })
}
