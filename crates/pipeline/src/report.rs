//! What a run tells of each step.

use serde::Serialize;
use skillz_json::{Map, Value};

/// Bounds of a shortened value: characters of a text, members of a container, depth.
const TEXT_LENGTH: usize = 200;
const MEMBERS: usize = 8;
const DEPTH: usize = 4;

/// How a step ended.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize)]
#[serde(rename_all = "lowercase")]
pub enum StepStatus {
    /// It has a result.
    Ok,
    /// Its call failed.
    Failed,
    /// It did not run: its condition did not hold, or the pipeline had stopped.
    Skipped,
}

/// One step of a run.
#[derive(Debug, Clone, PartialEq, Serialize)]
pub struct StepReport {
    /// The step's name.
    pub name: String,
    /// The tool it calls.
    pub tool: String,
    /// How it ended.
    pub status: StepStatus,
    /// How long it took, in milliseconds.
    pub ms: f64,
    /// Calls made, repetitions and items included.
    pub attempts: u32,
    /// Items worked on, with `for_each`.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub items: Option<usize>,
    /// Why it failed.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub error: Option<String>,
    /// The arguments of the call that failed, shortened.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub got: Option<Value>,
}

/// The value with long texts and large containers cut, to be read and not to be used.
pub(crate) fn shorten(value: &Value) -> Value {
    shorten_at(value, 0)
}

fn shorten_at(value: &Value, depth: usize) -> Value {
    match value {
        Value::String(text) => match text.char_indices().nth(TEXT_LENGTH) {
            Some((end, _)) => {
                Value::String(format!("{} ... ({} characters)", text.get(..end).unwrap_or_default(), text.chars().count()))
            }
            None => value.clone(),
        },
        Value::Array(items) if depth >= DEPTH && !items.is_empty() => Value::String(format!("[{} items]", items.len())),
        Value::Array(items) => {
            let mut shown: Vec<Value> = items.iter().take(MEMBERS).map(|item| shorten_at(item, depth + 1)).collect();
            if items.len() > MEMBERS {
                shown.push(Value::String(format!("... ({} items)", items.len())));
            }
            Value::Array(shown)
        }
        Value::Object(members) if depth >= DEPTH && !members.is_empty() => {
            Value::String(format!("{{{} members}}", members.len()))
        }
        Value::Object(members) => {
            let mut shown: Map<String, Value> =
                members.iter().take(MEMBERS).map(|(key, member)| (key.clone(), shorten_at(member, depth + 1))).collect();
            if members.len() > MEMBERS {
                shown.insert("...".to_owned(), Value::String(format!("{} members", members.len())));
            }
            Value::Object(shown)
        }
        other => other.clone(),
    }
}

#[cfg(test)]
mod tests {
    use skillz_json::json;

    use super::*;

    #[test]
    fn small_values_stay_and_large_ones_shrink() {
        let small = json!({"a": [1, 2, {"b": null}], "c": "text", "d": {}, "e": []});
        assert_eq!(shorten(&small), small);
        let large = json!({"text": "ü".repeat(100_000), "list": vec![1; 5_000], "deep": [[[[[[1]]]]]]});
        let short = shorten(&large);
        assert!(short.to_string().len() < 1_000, "{short}");
        assert_eq!(short["list"][MEMBERS], "... (5000 items)");
        assert!(short["text"].as_str().expect("a text").ends_with("(100000 characters)"));
        assert_eq!(short["deep"], json!([[["[1 items]"]]]));
    }
}
