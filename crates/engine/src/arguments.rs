//! Arguments as they arrive, made into what the tool takes, or refused with every fault.

use std::fmt::Write;

use skillz_json::{Map, Value, json};
use skillz_tool::{ErrorKind, Tool, ToolError, Violation};

/// Most faults that one reply lists.
const MOST_FAULTS: usize = 50;

/// Checks arguments against the tool's input schema. Missing ones count as `{}`; text that holds JSON is taken
/// as such only where the schema wants an object or an array.
pub(crate) fn check(tool: &Tool, arguments: Value) -> Result<Map<String, Value>, ToolError> {
    let mut arguments = Value::Object(as_object(tool, arguments)?);
    tool.input_schema.coerce(&mut arguments);
    let violations = tool.input_schema.violations(&arguments).map_err(|error| {
        let message = format!("The `input_schema` in the manifest of `{}` cannot be used: {error}", tool.name);
        ToolError::new(ErrorKind::Config, message).with_hint("Publish the tool again with a valid schema, and `overwrite: true`")
    })?;
    match arguments {
        Value::Object(arguments) if violations.is_empty() => Ok(arguments),
        _ => Err(refusal(tool, violations)),
    }
}

fn as_object(tool: &Tool, arguments: Value) -> Result<Map<String, Value>, ToolError> {
    let what = match arguments {
        Value::Object(arguments) => return Ok(arguments),
        Value::Null => return Ok(Map::new()),
        Value::String(text) if text.trim().is_empty() => return Ok(Map::new()),
        Value::String(_) => "a string",
        Value::Array(_) => "an array",
        Value::Bool(_) | Value::Number(_) => "a single value",
    };
    let message = format!("The arguments of `{}` must be a JSON object, and {what} was given", tool.name);
    let required = tool.input_schema.as_value().get("required").and_then(Value::as_array);
    let example: Map<String, Value> =
        required.into_iter().flatten().filter_map(Value::as_str).map(|name| (name.to_owned(), json!("..."))).collect();
    Err(ToolError::invalid(message).with_hint(format!("Pass an object by parameter name, such as {}", Value::Object(example))))
}

fn refusal(tool: &Tool, mut violations: Vec<Violation>) -> ToolError {
    let more = violations.len() > MOST_FAULTS;
    violations.truncate(MOST_FAULTS);
    let mut message = format!("The arguments of `{}` do not fit its input schema:", tool.name);
    message.push_str(&list_faults(&violations));
    if more {
        message.push_str("\n- and more faults");
    }
    ToolError::invalid(message).with_hint(expected(tool)).with_data(json!({"faults": violations}))
}

/// One line for each fault: where it is, and what.
pub(crate) fn list_faults(violations: &[Violation]) -> String {
    let mut list = String::new();
    for fault in violations {
        let place = if fault.path.is_empty() { "/" } else { &fault.path };
        let _ = write!(list, "\n- `{place}`: {}", fault.message);
    }
    list
}

/// What the tool takes, in a sentence.
fn expected(tool: &Tool) -> String {
    let schema = tool.input_schema.as_value();
    let names: Vec<&str> =
        schema.get("properties").and_then(Value::as_object).into_iter().flat_map(Map::keys).map(String::as_str).collect();
    let required: Vec<&str> =
        schema.get("required").and_then(Value::as_array).into_iter().flatten().filter_map(Value::as_str).collect();
    if names.is_empty() {
        return "Correct the arguments and call again".to_owned();
    }
    let required = if required.is_empty() { "nothing".to_owned() } else { quoted(&required) };
    format!("Correct the arguments and call again: it takes {}, and requires {required}", quoted(&names))
}

fn quoted(names: &[&str]) -> String {
    names.iter().take(30).map(|name| format!("`{name}`")).collect::<Vec<_>>().join(", ")
}

#[cfg(test)]
mod tests {
    use skillz_tool::{Manifest, ToolKind, ToolName, Version};

    use super::*;

    fn tool(schema: Value) -> Tool {
        let mut manifest = Manifest::new("probe", "Probes", ToolKind::Script);
        manifest.input_schema = Some(schema);
        let name = ToolName::for_new("probe").expect("valid");
        Tool::new(name, Version::FIRST, "/nowhere".into(), manifest, "hash".into())
    }

    fn taken(schema: Value, arguments: Value) -> Value {
        Value::Object(check(&tool(schema), arguments).expect("the arguments fit"))
    }

    #[test]
    fn nothing_counts_as_an_empty_object() {
        for nothing in [Value::Null, json!({}), json!(""), json!("  ")] {
            assert_eq!(taken(json!({"type": "object"}), nothing), json!({}));
        }
        let required = tool(json!({"type": "object", "required": ["a"]}));
        let error = check(&required, Value::Null).expect_err("`a` is missing");
        assert_eq!(error.kind, ErrorKind::InvalidInput);
        assert!(error.text().contains("\"a\" is a required property"), "{error}");
    }

    #[test]
    fn anything_but_an_object_is_refused_with_an_example() {
        for (arguments, what) in [(json!([1]), "an array"), (json!("{\"a\":1}"), "a string"), (json!(5), "a single value")] {
            let error = check(&tool(json!({"type": "object", "required": ["a"]})), arguments).expect_err(what);
            assert!(error.message.contains(what) && error.text().contains("{\"a\":\"...\"}"), "{error}");
        }
    }

    #[test]
    fn text_is_read_as_json_only_where_the_schema_wants_a_container() {
        let schema = json!({"type": "object", "properties": {"xs": {"type": "array"}, "s": {"type": "string"}}});
        assert_eq!(taken(schema, json!({"xs": "[1,2]", "s": "[1]"})), json!({"xs": [1, 2], "s": "[1]"}));
    }

    #[test]
    fn whole_numbers_keep_their_digits() {
        let arguments: Value = serde_json::from_str(r#"{"n":9007199254740993,"m":"18446744073709551615"}"#).expect("valid");
        assert_eq!(taken(json!({"type": "object"}), arguments.clone()), arguments);
    }

    #[test]
    fn every_fault_is_listed_and_the_first_line_quotes_no_value() {
        let schema = json!({
            "type": "object", "required": ["a"], "additionalProperties": false,
            "properties": {"a": {"type": "string"}, "n": {"type": "array", "items": {"type": "integer"}}},
        });
        let error = check(&tool(schema), json!({"n": [1, "secret"], "z": 1})).expect_err("three faults");
        assert_eq!(error.message.lines().count(), 4, "{error}");
        assert!(error.message.contains("\n- `/n/1`: "), "{error}");
        assert!(!error.message.lines().next().expect("a line").contains("secret"));
        assert!(error.text().contains("it takes `a`, `n`, and requires `a`"), "{error}");
    }

    #[test]
    fn many_faults_stay_a_short_text() {
        let schema = json!({"type": "object", "properties": {"n": {"items": {"type": "integer"}}}});
        let error = check(&tool(schema), json!({"n": vec!["x"; 500]})).expect_err("500 faults");
        assert!(error.text().len() <= 4_000);
    }

    #[test]
    fn a_broken_schema_is_the_tools_fault() {
        let error = check(&tool(json!({"type": "objekt"})), json!({})).expect_err("no such type");
        assert_eq!(error.kind, ErrorKind::Config);
    }
}
