//! References: `$input.a.b[0]`, `$prev`, `$step.x`, `$item`, `$index`, and `${...}` where they must be delimited.

use std::fmt;

use skillz_json::Value;

/// Longest path of a reference, in segments.
const LONGEST_PATH: usize = 64;
/// So many keys of an object are named where a path leads nowhere.
const KEYS_SHOWN: usize = 12;

/// A reference as it is written, not yet tied to a step.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(crate) struct Written {
    pub(crate) root: String,
    pub(crate) path: Vec<Segment>,
}

/// One step of a path.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(crate) enum Segment {
    Key(String),
    /// Negative ones count from the end.
    Index(i64),
}

/// What a reference starts from.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum Root {
    Input,
    Previous,
    Item,
    Index,
    /// The result of the step at this position.
    Step(usize),
}

/// A reference tied to its pipeline.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(crate) struct Reference {
    pub(crate) root: Root,
    pub(crate) written: Written,
}

impl Written {
    /// Reads a reference at the start of `text`, which begins with `$`. Gives it with the bytes it takes;
    /// `Ok(None)` where the dollar sign starts none.
    pub(crate) fn read(text: &str) -> Result<Option<(Self, usize)>, String> {
        let Some(rest) = text.strip_prefix('$') else { return Ok(None) };
        if let Some(inner) = rest.strip_prefix('{') {
            let end = closing_brace(inner).ok_or_else(|| format!("`{}` lacks its closing `}}`", shortened(text)))?;
            let inner = inner.get(..end).unwrap_or_default();
            let refused = || format!("`${{{}}}` is no reference; write for example `${{input.name}}`", shortened(inner));
            let (written, length) = read_path(inner.trim(), is_delimited_part).ok_or_else(refused)?;
            if length != inner.trim().len() {
                return Err(refused());
            }
            return Ok(Some((written, end + 3)));
        }
        if !rest.starts_with(|first: char| first.is_ascii_alphabetic() || first == '_') {
            return Ok(None);
        }
        Ok(read_path(rest, is_plain_part).map(|(written, length)| (written, length + 1)))
    }
}

/// Where the `}` that closes a `${` stands, quoted keys left alone.
fn closing_brace(inner: &str) -> Option<usize> {
    let mut quote = None;
    for (index, character) in inner.char_indices() {
        match (quote, character) {
            (None, '}') => return Some(index),
            (None, '"' | '\'') => quote = Some(character),
            (Some(open), _) if open == character => quote = None,
            _ => {}
        }
    }
    None
}

fn is_plain_part(character: char) -> bool {
    character.is_ascii_alphanumeric() || character == '_'
}

fn is_delimited_part(character: char) -> bool {
    !matches!(character, '.' | '[' | ']' | '{' | '}' | '$' | '"' | '\'') && !character.is_whitespace()
}

/// Reads root and path; gives them with the bytes they take.
fn read_path(text: &str, is_part: fn(char) -> bool) -> Option<(Written, usize)> {
    let root = leading(text, is_part)?;
    let mut length = root.len();
    let mut path = Vec::new();
    while let Some((segment, taken)) = text.get(length..).and_then(|rest| read_segment(rest, is_part)) {
        if path.len() == LONGEST_PATH {
            return None;
        }
        path.push(segment);
        length += taken;
    }
    Some((Written { root: root.to_owned(), path }, length))
}

fn read_segment(text: &str, is_part: fn(char) -> bool) -> Option<(Segment, usize)> {
    if let Some(rest) = text.strip_prefix('.') {
        let key = leading(rest, is_part)?;
        return Some((Segment::Key(key.to_owned()), key.len() + 1));
    }
    let rest = text.strip_prefix('[')?;
    let quote = rest.chars().next().filter(|first| matches!(first, '"' | '\''));
    if let Some(quote) = quote {
        let (key, after) = rest.get(1..)?.split_once(quote)?;
        after.strip_prefix(']')?;
        return Some((Segment::Key(key.to_owned()), key.len() + 4));
    }
    let (number, _) = rest.split_once(']')?;
    Some((Segment::Index(number.parse().ok()?), number.len() + 2))
}

/// The longest start of `text` made of such characters; `None` where it is empty.
fn leading(text: &str, is_part: fn(char) -> bool) -> Option<&str> {
    let end = text.find(|character| !is_part(character)).unwrap_or(text.len());
    text.get(..end).filter(|part| !part.is_empty())
}

impl Reference {
    /// Follows the path from `start`; where it leads nowhere the error names the place.
    pub(crate) fn follow<'a>(&self, start: &'a Value) -> Result<&'a Value, String> {
        let mut value = start;
        for (depth, segment) in self.written.path.iter().enumerate() {
            value = segment.of(value).ok_or_else(|| self.nowhere(depth, value))?;
        }
        Ok(value)
    }

    fn nowhere(&self, depth: usize, value: &Value) -> String {
        let parent = Written { root: self.written.root.clone(), path: self.written.path.iter().take(depth).cloned().collect() };
        format!("`{}` leads nowhere: `{parent}` is {}", self.written, describe(value))
    }
}

impl Segment {
    fn of<'a>(&self, value: &'a Value) -> Option<&'a Value> {
        match (self, value) {
            (Self::Key(key), Value::Object(object)) => object.get(key),
            (Self::Key(key), Value::Array(items)) => items.get(key.parse::<usize>().ok()?),
            (Self::Index(index), Value::Array(items)) => {
                let index = if *index < 0 { index.checked_add(i64::try_from(items.len()).ok()?)? } else { *index };
                items.get(usize::try_from(index).ok()?)
            }
            (Self::Index(index), Value::Object(object)) => object.get(&index.to_string()),
            _ => None,
        }
    }
}

/// What a value is, for an error's reader.
pub(crate) fn describe(value: &Value) -> String {
    match value {
        Value::Null => "null".to_owned(),
        Value::Bool(_) => "a boolean".to_owned(),
        Value::Number(_) => "a number".to_owned(),
        Value::String(_) => "a text".to_owned(),
        Value::Array(items) => format!("an array of {} items", items.len()),
        Value::Object(object) if object.is_empty() => "an empty object".to_owned(),
        Value::Object(object) => {
            let keys: Vec<String> = object.keys().take(KEYS_SHOWN).map(|key| format!("`{}`", shortened(key))).collect();
            let more = if object.len() > KEYS_SHOWN { " and more" } else { "" };
            format!("an object with {}{more}", keys.join(", "))
        }
    }
}

/// The first 60 characters.
pub(crate) fn shortened(text: &str) -> String {
    text.chars().take(60).collect()
}

impl fmt::Display for Written {
    fn fmt(&self, formatter: &mut fmt::Formatter<'_>) -> fmt::Result {
        let plain = |part: &str| part.chars().all(is_plain_part);
        let delimited = !plain(&self.root);
        write!(formatter, "{}{}", if delimited { "${" } else { "$" }, shortened(&self.root))?;
        for segment in &self.path {
            match segment {
                Segment::Key(key) if plain(key) => write!(formatter, ".{}", shortened(key))?,
                Segment::Key(key) => write!(formatter, "[\"{}\"]", shortened(key))?,
                Segment::Index(index) => write!(formatter, "[{index}]")?,
            }
        }
        formatter.write_str(if delimited { "}" } else { "" })
    }
}

#[cfg(test)]
mod tests {
    use skillz_json::json;

    use super::*;

    fn read(text: &str) -> Option<(String, usize)> {
        Written::read(text).expect(text).map(|(written, length)| (written.to_string(), length))
    }

    #[test]
    fn references_end_where_text_goes_on() {
        for (text, written, length) in [
            ("$input", "$input", 6),
            ("$input.a.b[0]", "$input.a.b[0]", 13),
            ("$input.name.", "$input.name", 11),
            ("$input.name, hello", "$input.name", 11),
            ("$input-x", "$input", 6),
            ("$a[x]", "$a", 2),
            ("$a[0][1].b c", "$a[0][1].b", 10),
            ("$a[-1]", "$a[-1]", 6),
            ("$a.0", "$a.0", 4),
            ("$a[\"b c\"].d", "$a[\"b c\"].d", 11),
            ("$a['b']", "$a.b", 7),
            ("${input.name}x", "$input.name", 13),
            ("${ input.name }x", "$input.name", 15),
            ("${my-step.content-type}", "${my-step[\"content-type\"]}", 23),
            ("${a[\"}\"]}", "$a[\"}\"]", 9),
            ("$input.名", "$input", 6),
            ("${input.名}", "$input[\"名\"]", 12),
        ] {
            assert_eq!(read(text), Some((written.to_owned(), length)), "{text}");
        }
        for text in ["$", "$5", "$ a", "$.a", "$-", "$(x)", "a$b"] {
            assert_eq!(read(text), None, "{text}");
        }
        for text in ["${", "${}", "${a", "${a b}", "${a.}", "${a[}", "${$a}", "${a[x]}"] {
            assert!(Written::read(text).is_err(), "{text}");
        }
        assert!(Written::read(&format!("$a{}", ".b".repeat(1_000))).expect("no fault").is_none());
    }

    #[test]
    fn paths_lead_to_values_or_say_where_they_end() {
        let value = json!({"a": {"b": [10, {"c": null}]}, "7": "seven", "x y": 1});
        let follow = |text: &str| {
            let (written, _) = Written::read(text).expect("valid").expect("a reference");
            Reference { root: Root::Input, written }.follow(&value).cloned()
        };
        for (text, expected) in [
            ("$v", value.clone()),
            ("$v.a.b[0]", json!(10)),
            ("$v.a.b.0", json!(10)),
            ("$v.a.b[-1].c", json!(null)),
            ("$v[7]", json!("seven")),
            ("$v['x y']", json!(1)),
        ] {
            assert_eq!(follow(text), Ok(expected), "{text}");
        }
        for (text, expected) in [
            ("$v.z.y", "`$v.z.y` leads nowhere: `$v` is an object with `a`, `7`, `x y`"),
            ("$v.a.b[2]", "`$v.a.b[2]` leads nowhere: `$v.a.b` is an array of 2 items"),
            ("$v.a.b[-3]", "`$v.a.b[-3]` leads nowhere: `$v.a.b` is an array of 2 items"),
            ("$v.a.b[1].c.d", "`$v.a.b[1].c.d` leads nowhere: `$v.a.b[1].c` is null"),
            ("$v.a.b.c", "`$v.a.b.c` leads nowhere: `$v.a.b` is an array of 2 items"),
        ] {
            assert_eq!(follow(text), Err(expected.to_owned()), "{text}");
        }
    }
}
