//! The command line of a program: a list of texts with references to the arguments, and of pairs that are left out whole
//! where what they refer to is absent.

use skillz_json::{Map, Value};
use skillz_tool::ToolError;

/// Longest command line, all entries together, in bytes.
const LONGEST: usize = 128_000;

/// A part of a text.
#[derive(Debug, Clone, PartialEq, Eq)]
enum Part {
    Text(String),
    /// `$input` and a path from there; as it is written, and by its keys.
    Reference(String, Vec<String>),
}

/// One entry as it is declared: a text, or the texts of a pair.
#[derive(Debug, Clone, PartialEq, Eq)]
enum Entry {
    Single(Vec<Part>),
    Pair(Vec<Vec<Part>>),
}

/// Says what is wrong with a declaration.
pub(crate) fn check(name: &str, argv: &Value) -> Result<(), ToolError> {
    read(argv).map(drop).map_err(|fault| {
        ToolError::invalid(format!("The `argv` of `{name}` is none: {fault}")).with_hint(
            "Write it as `[\"$input.path\", [\"--limit\", \"$input.limit\"], \"--name=$input.name\"]`; `$$` is a dollar sign",
        )
    })
}

/// The command line of a call.
pub(crate) fn expand(name: &str, argv: &Value, arguments: &Map<String, Value>) -> Result<Vec<String>, ToolError> {
    let refused = |fault: String| ToolError::invalid(format!("`{name}` was not run: {fault}"));
    let mut line = Line { input: arguments, entries: Vec::new(), only_values: false };
    for entry in read(argv).map_err(refused)? {
        line.add(&entry).map_err(|fault| refused(fault.text).with_hint(fault.hint))?;
    }
    if line.entries.iter().any(|entry| entry.contains('\0')) {
        return Err(refused("a value on its command line holds a NUL character, which no program can be given".to_owned()));
    }
    if line.entries.iter().map(|entry| entry.len() + 1).sum::<usize>() > LONGEST {
        let error = refused(format!("its command line has more than {} kB", LONGEST / 1000));
        return Err(error.with_hint("Have the program read its arguments from stdin, where they come as one line of JSON"));
    }
    Ok(line.entries)
}

struct Line<'a> {
    input: &'a Map<String, Value>,
    entries: Vec<String>,
    /// `--` was there: nothing behind it is taken for an option.
    only_values: bool,
}

/// Why an entry cannot be made.
struct Fault {
    text: String,
    hint: &'static str,
}

impl Line<'_> {
    fn add(&mut self, entry: &Entry) -> Result<(), Fault> {
        match entry {
            Entry::Single(text) => match self.absent(text) {
                Some(reference) => Err(Fault {
                    text: format!("its command line needs `{reference}`, which is absent"),
                    hint: "Give the argument, or publish the tool with the entry in a list of its own, which is left out where it is absent",
                }),
                None => self.add_text(text),
            },
            Entry::Pair(texts) => {
                if texts.iter().any(|text| self.absent(text).is_some()) {
                    return Ok(());
                }
                // A boolean, or an empty list, stands for its flag.
                match texts.split_last() {
                    Some((last, flags)) if !flags.is_empty() => match self.whole(last) {
                        Some(Value::Bool(false)) => Ok(()),
                        Some(Value::Bool(true)) => flags.iter().try_for_each(|text| self.add_text(text)),
                        Some(Value::Array(items)) if items.is_empty() => Ok(()),
                        _ => texts.iter().try_for_each(|text| self.add_text(text)),
                    },
                    _ => texts.iter().try_for_each(|text| self.add_text(text)),
                }
            }
        }
    }

    /// Adds a text: one entry, or one for each item of a list.
    fn add_text(&mut self, text: &[Part]) -> Result<(), Fault> {
        if let Some(Value::Array(items)) = self.whole(text) {
            let items: Vec<String> = items.iter().map(as_text).collect();
            return items.into_iter().try_for_each(|item| self.add_value(item));
        }
        let mut entry = String::new();
        // Whether a value may begin with `-` here: inside `--x=...`, or behind other text that is no option.
        let mut is_free = false;
        for part in text {
            match part {
                Part::Text(literal) => entry.push_str(literal),
                Part::Reference(..) => {
                    let value = self.value(part).map(as_text).unwrap_or_default();
                    if !is_free && entry.is_empty() && text.len() == 1 {
                        return self.add_value(value);
                    }
                    if !is_free && value.starts_with('-') && !self.only_values {
                        return Err(like_an_option(&value));
                    }
                    entry.push_str(&value);
                }
            }
            is_free = if entry.starts_with('-') { entry.starts_with("--") && entry.contains('=') } else { !entry.is_empty() };
        }
        self.only_values |= entry == "--" && text.iter().all(|part| matches!(part, Part::Text(_)));
        self.entries.push(entry);
        Ok(())
    }

    fn add_value(&mut self, value: String) -> Result<(), Fault> {
        if value.starts_with('-') && !self.only_values {
            return Err(like_an_option(&value));
        }
        self.entries.push(value);
        Ok(())
    }

    /// The value of a text that is one reference.
    fn whole(&self, text: &[Part]) -> Option<&Value> {
        match text {
            [reference @ Part::Reference(..)] => self.value(reference),
            _ => None,
        }
    }

    fn absent<'text>(&self, text: &'text [Part]) -> Option<&'text str> {
        text.iter().find_map(|part| match part {
            Part::Reference(written, path) => {
                let is_there = path.is_empty() || self.value(part).is_some_and(|value| !value.is_null());
                (!is_there).then_some(written.as_str())
            }
            Part::Text(_) => None,
        })
    }

    fn value(&self, part: &Part) -> Option<&Value> {
        let Part::Reference(_, path) = part else { return None };
        let (first, rest) = path.split_first()?;
        rest.iter().try_fold(self.input.get(first)?, |value, key| match value {
            Value::Object(object) => object.get(key),
            Value::Array(items) => {
                let index: i64 = key.parse().ok()?;
                let index = if index < 0 { index.checked_add(i64::try_from(items.len()).ok()?)? } else { index };
                items.get(usize::try_from(index).ok()?)
            }
            _ => None,
        })
    }
}

fn like_an_option(value: &str) -> Fault {
    Fault {
        text: format!(
            "the value `{}` begins with `-`, so that the program would take it for an option",
            value.chars().take(40).collect::<String>()
        ),
        hint: "Give another value, or publish the tool with an `argv` that has it inside `--name=$input.name` or behind `--`",
    }
}

fn as_text(value: &Value) -> String {
    value.as_str().map_or_else(|| value.to_string(), str::to_owned)
}

fn read(argv: &Value) -> Result<Vec<Entry>, String> {
    let entries = argv.as_array().ok_or("it must be a list")?;
    let text = |value: &Value| match value.as_str() {
        Some(text) => parts(text),
        None => Err(format!("`{value}` is no text")),
    };
    let entry = |value: &Value| match value.as_array() {
        Some(texts) => texts.iter().map(text).collect::<Result<_, _>>().map(Entry::Pair),
        None => text(value).map(Entry::Single),
    };
    entries.iter().map(entry).collect()
}

/// Splits a text at its references.
fn parts(text: &str) -> Result<Vec<Part>, String> {
    let mut parts = Vec::new();
    let mut literal = String::new();
    let mut rest = text;
    while let Some((before, after)) = rest.split_once('$') {
        literal.push_str(before);
        let (inner, is_delimited) = match after.strip_prefix('{') {
            Some(inner) => (inner.split_once('}').ok_or_else(|| format!("`{text}` lacks its closing `}}`"))?.0, true),
            None => (after, false),
        };
        if !is_delimited && !after.starts_with(|first: char| first.is_ascii_alphabetic() || first == '_') {
            // `$$` is a dollar sign, and so is one that starts nothing.
            literal.push('$');
            rest = after.strip_prefix('$').unwrap_or(after);
            continue;
        }
        let (path, taken) = path(inner, is_delimited);
        let written = format!("${}", inner.get(..taken).unwrap_or_default());
        if path.first().is_none_or(|root| root != "input") || (is_delimited && taken != inner.len()) {
            return Err(format!("`{written}` in `{text}` is no reference to an argument, such as `$input.path`"));
        }
        if !literal.is_empty() {
            parts.push(Part::Text(std::mem::take(&mut literal)));
        }
        parts.push(Part::Reference(written, path.into_iter().skip(1).collect()));
        rest = after.get(if is_delimited { inner.len() + 2 } else { taken }..).unwrap_or_default();
    }
    literal.push_str(rest);
    if !literal.is_empty() || parts.is_empty() {
        parts.push(Part::Text(literal));
    }
    Ok(parts)
}

/// Reads `input.a.b[0]["c"]`: its keys, and how many bytes it takes.
fn path(text: &str, is_delimited: bool) -> (Vec<String>, usize) {
    let is_part = |character: char| match is_delimited {
        true => !matches!(character, '.' | '[' | ']') && !character.is_whitespace(),
        false => character.is_ascii_alphanumeric() || character == '_',
    };
    let word = |from: usize| {
        let rest = text.get(from..).unwrap_or_default();
        rest.get(..rest.find(|character| !is_part(character)).unwrap_or(rest.len())).unwrap_or_default()
    };
    let root = word(0);
    let (mut path, mut taken) = (vec![root.to_owned()], root.len());
    loop {
        let rest = text.get(taken..).unwrap_or_default();
        if rest.starts_with('.') && !word(taken + 1).is_empty() {
            let key = word(taken + 1);
            path.push(key.to_owned());
            taken += key.len() + 1;
        } else if let Some((inner, _)) = rest.strip_prefix('[').and_then(|rest| rest.split_once(']')) {
            path.push(inner.trim_matches(['"', '\'']).to_owned());
            taken += inner.len() + 2;
        } else {
            return (path, taken);
        }
    }
}

#[cfg(test)]
mod tests {
    use skillz_json::json;

    use super::*;

    fn line(argv: &Value, arguments: &Value) -> Result<Vec<String>, String> {
        expand("t", argv, arguments.as_object().expect("an object")).map_err(|error| error.text())
    }

    #[test]
    fn texts_and_pairs_become_a_command_line() {
        let input = json!({"path": "a b", "n": 12_345_678_901_234_567_890_u64, "xs": ["x", 2, {"y": 1}], "o": {"a": [1, {"b": "deep"}]},
            "yes": true, "no": false, "none": null, "empty": [], "dash": "-rf", "odd key": "k"});
        for (argv, expected) in [
            (json!([]), vec![]),
            (json!(["plain", "$input.path", "${input.path}x", "$$5", "$5", ""]), vec!["plain", "a b", "a bx", "$5", "$5", ""]),
            (json!(["$input.n", "$input.xs", "$input.o.a[1].b"]), vec!["12345678901234567890", "x", "2", "{\"y\":1}", "deep"]),
            (json!(["$input.o", "--x=$input.xs"]), vec!["{\"a\":[1,{\"b\":\"deep\"}]}", "--x=[\"x\",2,{\"y\":1}]"]),
            (json!([["--in", "$input.path"], ["--out", "$input.gone"], ["--none", "$input.none"]]), vec!["--in", "a b"]),
            (json!([["-v", "$input.yes"], ["-q", "$input.no"], "$input.yes"]), vec!["-v", "true"]),
            (json!([["--xs", "$input.xs"], ["--empty", "$input.empty"], ["$input.gone"]]), vec!["--xs", "x", "2", "{\"y\":1}"]),
            (json!(["--x=$input.dash", "--", "$input.dash"]), vec!["--x=-rf", "--", "-rf"]),
            (json!(["${input[\"odd key\"]}", "$input.o.a[-1].b", "$input.path.txt"]), vec![]),
        ] {
            let made = line(&argv, &input);
            if argv[2] == "$input.path.txt" {
                assert!(made.unwrap_err().contains("`$input.path.txt`, which is absent"));
            } else {
                assert_eq!(
                    made.as_deref(),
                    Ok(expected.iter().map(|entry| (*entry).to_owned()).collect::<Vec<_>>().as_slice()),
                    "{argv}"
                );
            }
        }
    }

    #[test]
    fn values_that_would_be_something_else_are_refused() {
        let input =
            json!({"dash": "-rf", "minus": -5, "list": ["a", "-b"], "zero": "a\0b", "long": "x".repeat(128_001), "plain": "x"});
        for (argv, says) in [
            (json!(["$input.dash"]), "begins with `-`"),
            (json!([["--in", "$input.dash"]]), "begins with `-`"),
            (json!(["$input.minus"]), "begins with `-`"),
            (json!(["$input.list"]), "`-b`"),
            (json!(["$input.dash$input.plain"]), "begins with `-`"),
            (json!(["-n$input.dash"]), "begins with `-`"),
            (json!(["$input.zero"]), "NUL"),
            (json!(["$input.long"]), "128 kB"),
            (json!(["$input.gone"]), "`$input.gone`, which is absent"),
            (json!(["x-$input.gone.a[0]"]), "`$input.gone.a[0]`"),
        ] {
            let error = line(&argv, &input).unwrap_err();
            assert!(error.contains(says), "{argv}: {error}");
        }
        for argv in
            [json!({}), json!("x"), json!([1]), json!([["a", 1]]), json!(["$prev.x"]), json!(["${input"]), json!(["$HOME"])]
        {
            assert!(check("t", &argv).unwrap_err().text().contains("`argv` of `t`"), "{argv}");
        }
        assert!(check("t", &json!(["$input", ["--a", "$input.b"]])).is_ok());
    }
}
