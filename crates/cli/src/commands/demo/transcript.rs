//! The session as people read it.

use std::{cell::RefCell, io, time::Duration};

use serde_json::{Value, json};

use crate::printer::Printer;

/// Longest text that is shown of one line, in characters.
const LINE: usize = 110;

pub(super) struct Transcript {
    printer: Printer,
    steps: RefCell<Vec<Value>>,
}

impl Transcript {
    pub(super) fn new(printer: Printer) -> Self {
        Self { printer, steps: RefCell::default() }
    }

    /// One request and its answer.
    pub(super) fn step(&self, title: &str, request: &str, params: &Value, answer: &Value, took: Duration) -> io::Result<()> {
        let milliseconds = took.as_secs_f64() * 1_000.0;
        let number = {
            let mut steps = self.steps.borrow_mut();
            steps.push(json!({"title": title, "request": request, "params": params, "answer": answer, "ms": milliseconds}));
            steps.len()
        };
        if self.printer.is_json() {
            return Ok(());
        }
        let mut text = format!("{number:2}. {title}\n    -> {request}\n");
        for line in lines(params) {
            text.push_str(&format!("       {line}\n"));
        }
        for (index, line) in lines(answer).into_iter().enumerate() {
            let prefix = if index == 0 { format!("    <- {milliseconds:.1} ms  ") } else { "       ".to_owned() };
            text.push_str(&format!("{prefix}{line}\n"));
        }
        text.push('\n');
        self.printer.text(&text)
    }

    pub(super) fn end(self, took: Duration) -> io::Result<()> {
        if self.printer.is_json() {
            return self
                .printer
                .print(&json!({"steps": self.steps.into_inner(), "seconds": took.as_secs_f64()}), |_| String::new());
        }
        self.printer.text(&format!("The session took {:.1} s.", took.as_secs_f64()))
    }
}

/// A value as lines: an object member by member, so that code shows as code.
fn lines(value: &Value) -> Vec<String> {
    match value {
        Value::Object(members) if members.values().any(is_long) => {
            members.iter().flat_map(|(name, value)| member(name, value)).collect()
        }
        Value::Object(members) if members.is_empty() => Vec::new(),
        Value::String(text) => text.lines().map(str::to_owned).collect(),
        Value::Array(items) if items.iter().all(Value::is_string) => {
            let words: Vec<&str> = items.iter().filter_map(Value::as_str).collect();
            wrap(&words)
        }
        _ => vec![cut(&value.to_string())],
    }
}

fn is_long(value: &Value) -> bool {
    value.is_object() || value.is_array() || value.as_str().is_some_and(|text| text.len() > 60)
}

fn member(name: &str, value: &Value) -> Vec<String> {
    match value {
        Value::String(text) if text.contains('\n') => {
            std::iter::once(format!("{name}:")).chain(text.lines().map(|line| format!("  | {line}"))).collect()
        }
        Value::Array(items) if items.iter().all(Value::is_object) => {
            std::iter::once(format!("{name}:")).chain(items.iter().map(|item| cut(&format!("  - {item}")))).collect()
        }
        Value::String(text) => vec![cut(&format!("{name}: {text}"))],
        _ => vec![cut(&format!("{name}: {value}"))],
    }
}

fn wrap(words: &[&str]) -> Vec<String> {
    let mut lines = vec![format!("{} in all: ", words.len())];
    for (index, word) in words.iter().enumerate() {
        let word = if index + 1 == words.len() { (*word).to_owned() } else { format!("{word}, ") };
        match lines.last_mut() {
            Some(line) if line.len() + word.len() <= LINE => line.push_str(&word),
            _ => lines.push(word),
        }
    }
    lines
}

fn cut(line: &str) -> String {
    if line.chars().count() <= LINE {
        return line.to_owned();
    }
    let kept: String = line.chars().take(LINE - 4).collect();
    format!("{kept} ...")
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn code_shows_as_code_and_long_lines_are_cut() {
        let shown = lines(&json!({"name": "x", "code": "a\nb", "steps": [{"tool": "t"}]}));
        assert_eq!(shown, ["name: x", "code:", "  | a", "  | b", "steps:", "  - {\"tool\":\"t\"}"]);
        assert_eq!(lines(&json!({"short": 1})), ["{\"short\":1}"]);
        assert_eq!(lines(&json!(["a", "b"])), ["2 in all: a, b"]);
        assert_eq!(cut(&"x".repeat(300)).len(), LINE);
    }
}
