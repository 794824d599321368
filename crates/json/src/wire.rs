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

/// A written message with numbers in place of the strings that stand for them. In the middle of a text, such as a library's
/// message about a value that it was not given as it wants it, they lose their mark, and quotes around them.
pub fn unmarked(message: Vec<u8>) -> Vec<u8> {
    let mark = MARK.as_bytes();
    let mut rest = message.as_slice();
    let mut unmarked = Vec::new();
    while let Some(start) = memmem::find(rest, mark) {
        let (before, marked) = rest.split_at(start);
        let quote: &[u8] = [b"\\\"".as_slice(), b"\""].into_iter().find(|quote| before.ends_with(quote)).unwrap_or_default();
        unmarked.extend_from_slice(before.strip_suffix(quote).unwrap_or(before));
        rest = marked.get(mark.len()..).unwrap_or_default();
        // A number has no escapes, so that the next quote ends it.
        if let Some(end) = memmem::find(rest, quote).filter(|_| !quote.is_empty()) {
            let (number, after) = rest.split_at(end);
            unmarked.extend_from_slice(number);
            rest = after.get(quote.len()..).unwrap_or_default();
        }
    }
    if rest.len() == message.len() {
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
        let number = || enter(Value::Number(Number::of_text("1e5")));
        assert_eq!(unmarked(number().to_string().into_bytes()), b"1e5");
        for (text, expected) in [
            (format!("string {}, expected", number()), r#"{"message":"string 1e5, expected"}"#),
            (format!("`{}`", number().as_str().expect("marked")), r#"{"message":"`1e5`"}"#),
            (format!("{:?}", number().to_string()), r#"{"message":"\"\\1e5\\\""}"#),
        ] {
            let written = unmarked(serde_json::json!({"message": text}).to_string().into_bytes());
            assert!(serde_json::from_slice::<Foreign>(&written).is_ok(), "{}", String::from_utf8_lossy(&written));
            assert_eq!(String::from_utf8_lossy(&written), expected);
        }
    }
}
