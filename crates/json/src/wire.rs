//! Values through libraries that know `serde_json`'s values only, and would round numbers.
//!
//! On the way in a number that `serde_json` would write otherwise becomes a string that begins with a mark; [`leave`] takes
//! it back, and [`unmarked`] turns such strings of a written message into the numbers that they stand for. The mark is drawn
//! at random when the process starts, so that no text from outside can begin with it.

use std::sync::LazyLock;

use memchr::memmem;
use serde_json::{Map as ForeignMap, value::Value as Foreign};

use crate::{Map, Number, Value};

/// What no text from outside begins with; has no character that JSON escapes.
static MARK: LazyLock<String> = LazyLock::new(|| format!("skillz:exact:{}:", uuid::Uuid::new_v4().simple()));

/// A value for such a library.
pub fn enter(value: Value) -> Foreign {
    match value {
        Value::Null => Foreign::Null,
        Value::Bool(value) => Foreign::Bool(value),
        Value::Number(number) => enter_number(&number),
        Value::String(text) => Foreign::String(text),
        Value::Array(elements) => Foreign::Array(elements.into_iter().map(enter).collect()),
        Value::Object(members) => Foreign::Object(enter_members(members)),
    }
}

/// The members of an object for such a library.
pub fn enter_members(members: Map<String, Value>) -> ForeignMap<String, Foreign> {
    members.into_iter().map(|(key, value)| (key, enter(value))).collect()
}

fn enter_number(number: &Number) -> Foreign {
    let text = number.as_str();
    match serde_json::from_str::<serde_json::Number>(&text) {
        Ok(read) if read.to_string() == text => Foreign::Number(read),
        _ => Foreign::String(format!("{}{text}", *MARK)),
    }
}

/// A value that has come through such a library.
pub fn leave(value: Foreign) -> Value {
    match value {
        Foreign::String(text) => match text.strip_prefix(MARK.as_str()) {
            Some(number) => Value::Number(Number::of_text(number)),
            None => Value::String(text),
        },
        Foreign::Array(elements) => Value::Array(elements.into_iter().map(leave).collect()),
        Foreign::Object(members) => Value::Object(leave_members(members)),
        other => Value::from(other),
    }
}

/// The members of an object that has come through such a library.
pub fn leave_members(members: ForeignMap<String, Foreign>) -> Map<String, Value> {
    members.into_iter().map(|(key, value)| (key, leave(value))).collect()
}

/// An object in the place of another one, which a message about it came in with: nothing from outside looks like it.
pub fn enter_refusal(reason: String) -> Foreign {
    Foreign::Object(ForeignMap::from_iter([(MARK.clone(), Foreign::String(reason))]))
}

/// The message of [`enter_refusal`], if the members are such.
pub fn refusal(members: &ForeignMap<String, Foreign>) -> Option<&str> {
    members.get(MARK.as_str())?.as_str()
}

/// A written message with numbers in place of the strings that stand for them.
pub fn unmarked(message: Vec<u8>) -> Vec<u8> {
    let quoted = format!("\"{}", *MARK);
    let mut rest = message.as_slice();
    let mut unmarked = Vec::new();
    let mut has_marks = false;
    while let Some(start) = memmem::find(rest, quoted.as_bytes()) {
        let (before, marked) = rest.split_at(start);
        let number = marked.get(quoted.len()..).unwrap_or_default();
        // A number has no escapes, so that the next quote ends the string.
        let end = memchr::memchr(b'"', number).unwrap_or(number.len());
        has_marks = true;
        unmarked.extend_from_slice(before);
        unmarked.extend_from_slice(number.get(..end).unwrap_or_default());
        rest = number.get(end + 1..).unwrap_or_default();
    }
    if !has_marks {
        return message;
    }
    unmarked.extend_from_slice(rest);
    unmarked
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn numbers_pass_through_a_library_that_would_round_them() {
        let text = r#"{"n":18446744073709551616,"f":1.10,"e":1e400,"z":-0.0,"plain":[1,2.5,"a\"\\\u0001é"],"":"","o":{}}"#;
        let foreign = enter(crate::parse(text).expect("is JSON"));
        assert_eq!(foreign["plain"], serde_json::json!([1, 2.5, "a\"\\\u{1}é"]));
        assert_eq!(String::from_utf8(unmarked(foreign.to_string().into_bytes())).expect("is text"), text);
        assert_eq!(leave(foreign).to_string(), text);
        assert_eq!(unmarked(enter(Value::Number(Number::of_text("1e5"))).to_string().into_bytes()), b"1e5");
    }
}
