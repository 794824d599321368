//! The YAML front matter of `SKILL.md` files, as people really write it: with a byte order mark, Windows line
//! ends, tabs, and colons in plain values.

use skillz_json::{Map, Value};

/// Fields whose values are texts even where YAML sees a number.
const TEXT_FIELDS: [&str; 10] = [
    "name",
    "description",
    "version",
    "entry_file",
    "interpreter",
    "author",
    "license",
    "repository",
    "created_at",
    "updated_at",
];
/// Fields whose values are lists even where there is a single one.
const LIST_FIELDS: [&str; 5] = ["dependencies", "wasm_dependencies", "tags", "requires_services", "requires_skills"];
/// What stands above and below the front matter.
const FENCE: &str = "---";

/// The front matter cannot be read.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(crate) struct FrontMatterError {
    /// Line in the file, from 1.
    pub(crate) line: Option<usize>,
    pub(crate) reason: String,
}

/// A file split into front matter and body.
#[derive(Debug, PartialEq, Eq)]
struct Parts {
    yaml: String,
    /// Lines of the file before the YAML.
    offset: usize,
    body: String,
}

/// The fields of a file's front matter; `None` if it has none.
pub(crate) fn read(text: &str) -> Result<Option<Map<String, Value>>, FrontMatterError> {
    let Some(parts) = split(text) else { return Ok(None) };
    let value = parse(&parts)?;
    let Value::Object(mut fields) = value else {
        return match value {
            Value::Null => Ok(None),
            _ => Err(FrontMatterError {
                line: Some(parts.offset + 1),
                reason: "The front matter is no list of `key: value`".to_owned(),
            }),
        };
    };
    fields.retain(|_, value| !value.is_null());
    for name in TEXT_FIELDS {
        if let Some(value @ (Value::Number(_) | Value::Bool(_))) = fields.get_mut(name) {
            *value = Value::String(written(&parts.yaml, name).unwrap_or_else(|| value.to_string()));
        }
    }
    for name in LIST_FIELDS {
        if let Some(value @ Value::String(_)) = fields.get_mut(name) {
            let items = value.as_str().unwrap_or_default().split(',').map(str::trim).filter(|item| !item.is_empty());
            *value = items.map(Value::from).collect();
        }
    }
    Ok(Some(fields))
}

/// Plain top-level fields of front matter that is no valid YAML: better a name and a description as they are written
/// than none.
pub(crate) fn plain_fields(text: &str) -> Map<String, Value> {
    let Some(parts) = split(text) else { return Map::new() };
    let mut fields = Map::new();
    for field in ["name", "description", "license"] {
        if let Some(value) = written(&parts.yaml, field).filter(|value| !value.is_empty()) {
            fields.insert(field.to_owned(), Value::from(value));
        }
    }
    fields
}

/// What follows the front matter.
pub(crate) fn body(text: &str) -> String {
    split(text).map_or_else(|| text.to_owned(), |parts| parts.body)
}

/// Whether a file that cannot be read was meant to be a tool.
pub(crate) fn names_field(text: &str, field: &str) -> bool {
    split(text).is_some_and(|parts| written(&parts.yaml, field).is_some())
}

fn split(text: &str) -> Option<Parts> {
    let text = text.trim_start_matches('\u{FEFF}');
    let mut lines = text.lines().map(str::trim_end).enumerate().skip_while(|(_, line)| line.is_empty());
    let (start, first) = lines.next()?;
    if first != FENCE {
        return None;
    }
    let mut yaml = String::new();
    let mut closed = false;
    for (_, line) in lines.by_ref() {
        if line == FENCE || line == "..." {
            closed = true;
            break;
        }
        yaml.push_str(line);
        yaml.push('\n');
    }
    let mut body = String::new();
    for (_, line) in lines {
        body.push_str(line);
        body.push('\n');
    }
    closed.then_some(Parts { yaml, offset: start + 1, body })
}

/// Reads strictly, and where that fails once more with what people get wrong put right.
fn parse(parts: &Parts) -> Result<Value, FrontMatterError> {
    let error = match serde_yaml_ng::from_str::<serde_json::Value>(&parts.yaml) {
        Ok(value) => return Ok(value.into()),
        Err(error) => error,
    };
    if let Ok(value) = serde_yaml_ng::from_str::<serde_json::Value>(&mend(&parts.yaml)) {
        return Ok(value.into());
    }
    let line = error.location().map(|location| location.line() + parts.offset);
    Err(FrontMatterError { line, reason: format!("The front matter is no valid YAML: {error}") })
}

/// Replaces tabs in front of lines, and puts quotes around plain top-level values that YAML would take apart.
fn mend(yaml: &str) -> String {
    let mut mended = String::new();
    for line in yaml.lines() {
        let indentation = line.len() - line.trim_start().len();
        let (white, rest) = line.split_at(indentation);
        mended.push_str(&white.replace('\t', "  "));
        match rest.split_once(':') {
            Some((key, value)) if indentation == 0 && needs_quotes(key, value) => {
                let quoted = value.trim().replace('\\', "\\\\").replace('"', "\\\"");
                mended.extend([key, ": \"", quoted.as_str(), "\""]);
            }
            _ => mended.push_str(&rest.replace('\t', " ")),
        }
        mended.push('\n');
    }
    mended
}

fn needs_quotes(key: &str, value: &str) -> bool {
    let value = value.trim();
    let plain_key = !key.is_empty() && key.bytes().all(|byte| byte.is_ascii_alphanumeric() || matches!(byte, b'_' | b'-'));
    let structured = value.starts_with(['"', '\'', '[', '{', '|', '>']) && !value.contains(": ");
    plain_key && !value.is_empty() && !structured
}

/// A plain top-level value as it is written: `1.10` is a version, and as a number it would be `1.1`.
fn written(yaml: &str, field: &str) -> Option<String> {
    let value = yaml.lines().find_map(|line| line.strip_prefix(field)?.trim_start().strip_prefix(':'))?;
    let value = value.split(" #").next().unwrap_or_default().trim();
    Some(value.to_owned())
}

#[cfg(test)]
mod tests {
    use skillz_json::json;

    use super::*;

    fn fields(text: &str) -> Value {
        read(text).unwrap().map_or(Value::Null, Value::Object)
    }

    #[test]
    fn front_matter_reads_as_people_write_it() {
        for (text, expected) in [
            ("---\nname: a\n---\n# a\n", json!({"name": "a"})),
            ("\u{FEFF}---\r\nname: a\r\ntags:\r\n  - x\r\n---\r\nbody", json!({"name": "a", "tags": ["x"]})),
            ("\n\n---  \nname: a\n...\n", json!({"name": "a"})),
            ("---\nname: a\ndescription: Converts: a to b\n---\n", json!({"name": "a", "description": "Converts: a to b"})),
            ("---\ndescription: @handle, 50% #1 \"quoted\"\n---\n", json!({"description": "@handle, 50% #1 \"quoted\""})),
            (
                "---\ninput_schema:\n\ttype: object\n\tproperties: {}\n---\n",
                json!({"input_schema": {"type": "object", "properties": {}}}),
            ),
            ("---\nversion: 1.10\n---\n", json!({"version": "1.10"})),
            ("---\nversion: 2 # second\nname: 7\n---\n", json!({"version": "2", "name": "7"})),
            ("---\ndependencies: six, requests>=2\ntags:\n---\n", json!({"dependencies": ["six", "requests>=2"]})),
            ("---\ndescription: >\n  one\n  two\n---\n", json!({"description": "one two\n"})),
            ("---\n---\nbody", Value::Null),
            ("---\n# nothing\n---\n", Value::Null),
            ("# a heading\n", Value::Null),
            ("---\nname: never closed\n", Value::Null),
            ("", Value::Null),
        ] {
            assert_eq!(fields(text), expected, "{text:?}");
        }
    }

    #[test]
    fn faults_name_the_line_in_the_file() {
        let error = read("---\nname: a\ntags: [x\nother: 1\n---\n").unwrap_err();
        assert!(error.line.is_some_and(|line| (3..=5).contains(&line)), "{error:?}");
        assert!(error.reason.contains("no valid YAML"), "{error:?}");
        assert!(read("---\n- a\n- b\n---\n").is_err());
        assert!(names_field("---\ntool_type: script\ntags: [x\n---\n", "tool_type"));
        assert!(!names_field("---\ntags: [x\n---\ntool_type: x", "tool_type"));
    }

    #[test]
    fn a_large_file_and_a_nested_bomb_are_no_trouble() {
        let large = format!("---\nname: a\n---\n{}", "line of text\n".repeat(200_000));
        assert_eq!(fields(&large), json!({"name": "a"}));
        let deep = format!("---\na: {}{}\n---\n", "[".repeat(5_000), "]".repeat(5_000));
        assert!(read(&deep).is_err());
        let bomb = "---\na: &a [x,x,x,x,x,x,x,x,x,x]\nb: &b [*a,*a,*a,*a,*a,*a,*a,*a,*a,*a]\nc: &c [*b,*b,*b,*b,*b,*b,*b,*b,*b,*b]\n\
                    d: &d [*c,*c,*c,*c,*c,*c,*c,*c,*c,*c]\ne: &e [*d,*d,*d,*d,*d,*d,*d,*d,*d,*d]\nf: [*e,*e,*e,*e,*e,*e,*e,*e,*e,*e]\n---\n";
        assert!(read(bomb).is_err(), "references that multiply are refused");
    }

    #[test]
    fn the_body_is_what_follows() {
        assert_eq!(body("---\nname: a\n---\n\n# a\ntext\n"), "\n# a\ntext\n");
        assert_eq!(body("no front matter"), "no front matter");
    }
}
