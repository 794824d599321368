//! Values through libraries that know `serde_json`'s values only, and would round numbers.
//!
//! On the way in a number that `serde_json` would write otherwise becomes a string that begins with a mark; [`leave`] takes
//! it back, and [`write`] writes the text behind the mark in place of the string. The mark is drawn at random when the
//! process starts, so that no text from outside can begin with it.

use std::{io, sync::LazyLock};

use serde::Serialize;
use serde_json::{
    ser::{CharEscape, CompactFormatter, Formatter},
    value::Value as Foreign,
};

use crate::{Map, Number, Value};

/// What no text from outside begins with; has no character that JSON escapes.
static MARK: LazyLock<String> = LazyLock::new(|| format!("skillz:exact:{}:", uuid::Uuid::new_v4().simple()));

/// A value for such a library.
pub fn enter(value: &Value) -> Foreign {
    match value {
        Value::Null => Foreign::Null,
        Value::Bool(value) => Foreign::Bool(*value),
        Value::Number(number) => enter_number(number),
        Value::String(text) => Foreign::String(text.clone()),
        Value::Array(elements) => Foreign::Array(elements.iter().map(enter).collect()),
        Value::Object(members) => Foreign::Object(enter_members(members)),
    }
}

/// The members of an object for such a library.
pub fn enter_members(members: &Map<String, Value>) -> serde_json::Map<String, Foreign> {
    members.iter().map(|(key, value)| (key.clone(), enter(value))).collect()
}

/// A value that only [`write`] looks into, as the text that it has already.
pub fn enter_text(json: &str) -> Foreign {
    Foreign::String(format!("{}{json}", *MARK))
}

fn enter_number(number: &Number) -> Foreign {
    let text = number.as_str();
    match serde_json::from_str::<serde_json::Number>(&text) {
        Ok(read) if read.to_string() == text => Foreign::Number(read),
        _ => enter_text(&text),
    }
}

/// A value that has come through such a library.
pub fn leave(value: Foreign) -> Value {
    match value {
        Foreign::String(text) => match text.strip_prefix(MARK.as_str()) {
            Some(json) => crate::parse(json).unwrap_or_default(),
            None => Value::String(text),
        },
        Foreign::Array(elements) => Value::Array(elements.into_iter().map(leave).collect()),
        Foreign::Object(members) => Value::Object(leave_members(members)),
        other => Value::from(other),
    }
}

/// The members of an object that has come through such a library.
pub fn leave_members(members: serde_json::Map<String, Foreign>) -> Map<String, Value> {
    members.into_iter().map(|(key, value)| (key, leave(value))).collect()
}

/// Writes what holds such values, as compact JSON.
///
/// # Errors
///
/// What the type itself refuses.
pub fn write<T: Serialize + ?Sized>(message: &T) -> Result<Vec<u8>, serde_json::Error> {
    let mut text = Vec::with_capacity(256);
    message.serialize(&mut serde_json::Serializer::with_formatter(&mut text, Unmarking::default()))?;
    Ok(text)
}

/// Writes strings that begin with the mark without quotes, mark and escapes.
#[derive(Default)]
struct Unmarking {
    state: State,
}

#[derive(Default, PartialEq, Clone, Copy)]
enum State {
    #[default]
    Outside,
    /// The opening quote is owed: the first piece of the string tells whether it comes.
    Begun,
    Plain,
    Marked,
}

impl Unmarking {
    fn open<W: io::Write + ?Sized>(&mut self, writer: &mut W) -> io::Result<()> {
        if self.state == State::Begun {
            self.state = State::Plain;
            writer.write_all(b"\"")?;
        }
        Ok(())
    }
}

impl Formatter for Unmarking {
    fn begin_string<W: io::Write + ?Sized>(&mut self, _: &mut W) -> io::Result<()> {
        self.state = State::Begun;
        Ok(())
    }

    fn write_string_fragment<W: io::Write + ?Sized>(&mut self, writer: &mut W, fragment: &str) -> io::Result<()> {
        if self.state == State::Begun
            && let Some(json) = fragment.strip_prefix(MARK.as_str())
        {
            self.state = State::Marked;
            return writer.write_all(json.as_bytes());
        }
        self.open(writer)?;
        writer.write_all(fragment.as_bytes())
    }

    fn write_char_escape<W: io::Write + ?Sized>(&mut self, writer: &mut W, escape: CharEscape) -> io::Result<()> {
        self.open(writer)?;
        match (self.state, escape) {
            (State::Marked, CharEscape::Quote) => writer.write_all(b"\""),
            (State::Marked, CharEscape::ReverseSolidus) => writer.write_all(b"\\"),
            // Compact JSON holds no other character that would be escaped.
            (_, escape) => CompactFormatter.write_char_escape(writer, escape),
        }
    }

    fn end_string<W: io::Write + ?Sized>(&mut self, writer: &mut W) -> io::Result<()> {
        self.open(writer)?;
        let is_marked = std::mem::take(&mut self.state) == State::Marked;
        if is_marked { Ok(()) } else { writer.write_all(b"\"") }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn numbers_pass_through_a_library_that_would_round_them() {
        let text = r#"{"n":18446744073709551616,"f":1.10,"e":1e400,"z":-0.0,"plain":[1,2.5,"a\"\\\u0001é"],"":"","o":{}}"#;
        let value = crate::parse(text).expect("is JSON");
        let foreign = enter(&value);
        assert_eq!(foreign["plain"], serde_json::json!([1, 2.5, "a\"\\\u{1}é"]));
        assert_eq!(String::from_utf8(write(&foreign).expect("writes")).expect("is text"), text);
        assert_eq!(leave(foreign).to_string(), text);
        let whole = serde_json::json!({"a": enter_text(text), "b": "x"});
        assert_eq!(String::from_utf8(write(&whole).expect("writes")).expect("is text"), format!(r#"{{"a":{text},"b":"x"}}"#));
    }
}
