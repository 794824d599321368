//! Arguments of built-ins: bent where that is safe, read into their struct, and every fault told at once.

use serde::de::DeserializeOwned;
use skillz_json::{Map, Value};
use skillz_tool::{ErrorKind, ToolError};

use super::{Builtin, BuiltinCall};

/// Faults that one failure lists at most.
const FAULTS: usize = 20;

/// Checks names, drops arguments that are null (models send those for "not given"), and parses JSON text
/// where an object or array is wanted.
pub(super) fn prepare(builtin: &Builtin, mut arguments: Map<String, Value>) -> Result<Value, ToolError> {
    // `null` is a value like any other where something is stored.
    arguments.retain(|name, value| !value.is_null() || name == "value");
    let schema = builtin.schema();
    let known = schema.as_value().get("properties").and_then(Value::as_object);
    let are_known = arguments.keys().all(|name| known.is_some_and(|known| known.contains_key(name)));
    let mut arguments = Value::Object(arguments);
    schema.coerce(&mut arguments);
    if are_known { Ok(arguments) } else { Err(faulty(builtin, &arguments, None)) }
}

impl BuiltinCall {
    /// Reads the arguments into the built-in's own struct.
    pub(super) fn read<T: DeserializeOwned>(&self, builtin: &Builtin) -> Result<T, ToolError> {
        skillz_json::read(&self.arguments).map_err(|error| faulty(builtin, &self.arguments, Some(&error)))
    }
}

/// The failure that lists what is wrong with the arguments, and what they may be.
fn faulty(builtin: &Builtin, arguments: &Value, error: Option<&serde_json::Error>) -> ToolError {
    let schema = builtin.schema();
    let empty = Map::new();
    let known = schema.as_value().get("properties").and_then(Value::as_object).unwrap_or(&empty);
    let names = arguments.as_object().into_iter().flat_map(Map::keys);
    let mut faults: Vec<String> =
        names.filter(|name| !known.contains_key(*name)).map(|name| format!("there is no argument `{}`", shown(name))).collect();
    let violations = schema.violations(arguments).unwrap_or_default();
    faults.extend(violations.into_iter().map(|violation| match violation.path.as_str() {
        "" => violation.message,
        path => format!("`{}`: {}", path.trim_start_matches('/'), violation.message),
    }));
    if let (true, Some(error)) = (faults.is_empty(), error) {
        faults.push(error.to_string());
    }
    faults.truncate(FAULTS);
    let required: Vec<&str> =
        schema.as_value().get("required").and_then(Value::as_array).into_iter().flatten().filter_map(Value::as_str).collect();
    let allowed: Vec<String> = known
        .keys()
        .map(|name| if required.contains(&name.as_str()) { format!("`{name}`*") } else { format!("`{name}`") })
        .collect();
    ToolError::new(ErrorKind::InvalidInput, format!("The arguments of `{}` are wrong: {}", builtin.name, faults.join("; ")))
        .with_hint(format!("Arguments (* required): {}", allowed.join(", ")))
}

fn shown(name: &str) -> String {
    name.chars().take(80).collect()
}

#[cfg(test)]
mod tests {
    use skillz_json::json;

    use super::{super::find, *};

    fn prepared(name: &str, arguments: Value) -> Result<Value, String> {
        let Value::Object(arguments) = arguments else { unreachable!("tests pass objects") };
        prepare(find(name).expect("a built-in"), arguments).map_err(|error| error.text())
    }

    #[test]
    fn unknown_names_are_refused_with_those_there_are() {
        let error = prepared("delete_tool", json!({"name": "x"})).expect_err("unknown");
        assert_eq!(
            error,
            "The arguments of `delete_tool` are wrong: there is no argument `name`; \"tool_name\" is a required property\n\n\
             Arguments (* required): `tool_name`*"
        );
    }

    #[test]
    fn nulls_are_not_given_and_text_becomes_containers() {
        let arguments =
            json!({"name": "x", "examples": "[{\"arguments\":{}}]", "input_schema": "{}", "tags": null, "code": "[1]"});
        let expected = json!({"name": "x", "examples": [{"arguments": {}}], "input_schema": {}, "code": "[1]"});
        assert_eq!(prepared("build_tool", arguments), Ok(expected));
        let stored = json!({"action": "store", "key": "k", "value": null});
        assert_eq!(prepared("memory", stored.clone()), Ok(stored));
        let text = json!({"action": "store", "key": "k", "value": "[1]"});
        assert_eq!(prepared("memory", text.clone()), Ok(text), "a stored text stays a text");
    }
}
