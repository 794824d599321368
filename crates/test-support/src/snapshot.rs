//! What changes from run to run, replaced by names, so that texts can be compared.

use serde_json::Value;

use crate::Home;

/// Patterns and replacements for insta: folders, times, hashes, durations.
pub fn filters(home: &Home) -> Vec<(String, &'static str)> {
    let mut filters = vec![
        (escaped(&home.path().display().to_string()), "[HOME]"),
        (escaped(&home.workspace().display().to_string()), "[WORKSPACE]"),
        (escaped(&home.root().display().to_string()), "[ROOT]"),
    ];
    let patterns = [
        (r"\d{4}-\d\d-\d\d[T ]\d\d:\d\d:\d\d(\.\d+)?Z", "[TIME]"),
        (r"\b[0-9a-f]{64}\b", "[HASH]"),
        (r#""(build_ms|ms|duration_ms)": ?\d+(\.\d+)?"#, "\"$1\":[MS]"),
        (r"\b\d+(\.\d+)? ms\b", "[MS] ms"),
    ];
    filters.extend(patterns.map(|(pattern, replacement)| (pattern.to_owned(), replacement)));
    filters
}

/// The value with the members of these names replaced by their name in brackets, at any depth.
pub fn redacted(mut value: Value, names: &[&str]) -> Value {
    redact(&mut value, names);
    value
}

fn redact(value: &mut Value, names: &[&str]) {
    match value {
        Value::Object(members) => {
            for (name, member) in members {
                if names.contains(&name.as_str()) {
                    *member = Value::String(format!("[{name}]"));
                } else {
                    redact(member, names);
                }
            }
        }
        Value::Array(items) => items.iter_mut().for_each(|item| redact(item, names)),
        _ => {}
    }
}

/// A text as a pattern that fits only itself.
fn escaped(text: &str) -> String {
    let mut pattern = String::new();
    for character in text.chars() {
        if !character.is_alphanumeric() && character != '/' && character != '_' {
            pattern.push('\\');
        }
        pattern.push(character);
    }
    pattern
}

#[cfg(test)]
mod tests {
    use serde_json::json;

    use super::*;

    #[test]
    fn members_are_redacted_at_any_depth() {
        let value = json!({"a": [{"hash": "x", "b": 1}], "hash": 2});
        assert_eq!(redacted(value, &["hash"]), json!({"a": [{"hash": "[hash]", "b": 1}], "hash": "[hash]"}));
    }
}
