//! JSON Schemas of arguments and results: checked, and arguments bent into them where that is safe.

use std::sync::OnceLock;

use serde::Serialize;
use serde_json::{Map, Value};

/// How deep local references are followed when arguments are bent.
const REFERENCE_DEPTH: usize = 16;
/// Longest text of one violation, in bytes: the checker quotes the offending value, which may be huge.
const VIOLATION_LENGTH: usize = 300;
/// Most violations that are listed: a long array may hold a million of one kind.
const MOST_VIOLATIONS: usize = 100;

/// A schema with its validator, which is made at the first use and then kept.
pub struct CompiledSchema {
    schema: Value,
    validator: OnceLock<Result<jsonschema::Validator, SchemaError>>,
}

/// The schema itself is broken.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
#[error("The schema is not valid JSON Schema: {0}")]
pub struct SchemaError(String);

/// One fault of a value.
#[derive(Debug, Clone, PartialEq, Eq, Serialize)]
pub struct Violation {
    /// Where it is, as a JSON Pointer; empty for the whole value.
    pub path: String,
    /// What is wrong.
    pub message: String,
}

impl CompiledSchema {
    /// Keeps a schema; it is compiled when it is first used.
    pub fn new(schema: Value) -> Self {
        Self { schema, validator: OnceLock::new() }
    }

    /// The schema as it was given.
    pub fn as_value(&self) -> &Value {
        &self.schema
    }

    /// Compiles the schema now, and tells what is wrong with it.
    pub fn check_schema(&self) -> Result<(), SchemaError> {
        self.validator().map(|_| ())
    }

    /// Lists every fault of `value`, up to a hundred; a broken schema is an error.
    pub fn violations(&self, value: &Value) -> Result<Vec<Violation>, SchemaError> {
        let validator = self.validator()?;
        if validator.is_valid(value) {
            return Ok(Vec::new());
        }
        Ok(validator
            .iter_errors(value)
            .take(MOST_VIOLATIONS)
            .map(|error| Violation { path: error.instance_path().to_string(), message: shorten(explain(&error)) })
            .collect())
    }

    /// Parses strings that hold JSON where this schema wants an object or array and would take no string.
    /// Models often send nested values as text.
    pub fn coerce(&self, arguments: &mut Map<String, Value>) {
        let Some(properties) = self.schema.get("properties").and_then(Value::as_object) else { return };
        for (name, property) in properties {
            if let Some(value) = arguments.get_mut(name) {
                self.coerce_value(property, value);
            }
        }
    }

    fn coerce_value(&self, schema: &Value, value: &mut Value) {
        let Value::String(text) = value else { return };
        let wanted = self.wanted_types(schema, 0);
        if wanted.string {
            return;
        }
        match serde_json::from_str::<Value>(text) {
            Ok(parsed) if (parsed.is_object() && wanted.object) || (parsed.is_array() && wanted.array) => *value = parsed,
            _ => {}
        }
    }

    /// Which of string, object and array a schema asks for by name.
    fn wanted_types(&self, schema: &Value, depth: usize) -> WantedTypes {
        let mut wanted = WantedTypes::default();
        if depth > REFERENCE_DEPTH {
            return wanted;
        }
        if let Some(target) = schema.get("$ref").and_then(Value::as_str).and_then(|reference| reference.strip_prefix('#'))
            && let Some(target) = self.schema.pointer(target)
        {
            wanted.add(&self.wanted_types(target, depth + 1));
        }
        match schema.get("type") {
            Some(Value::String(name)) => wanted.add_name(name),
            Some(Value::Array(names)) => names.iter().filter_map(Value::as_str).for_each(|name| wanted.add_name(name)),
            _ => {
                let branches = ["anyOf", "oneOf", "allOf"].into_iter().filter_map(|keyword| schema.get(keyword)?.as_array());
                for branch in branches.flatten() {
                    wanted.add(&self.wanted_types(branch, depth + 1));
                }
            }
        }
        wanted
    }

    fn validator(&self) -> Result<&jsonschema::Validator, SchemaError> {
        let compiled = self.validator.get_or_init(|| {
            // Format is an annotation in 2020-12; a server that refused by it would surprise its clients.
            jsonschema::options().build(&self.schema).map_err(|error| SchemaError(shorten(error.to_string())))
        });
        compiled.as_ref().map_err(Clone::clone)
    }
}

/// The validator's words, but with all of a choice's values: whoever chose wrongly needs them to choose again.
fn explain(error: &jsonschema::ValidationError<'_>) -> String {
    let jsonschema::error::ValidationErrorKind::Enum { options } = error.kind() else { return error.to_string() };
    let options: Vec<String> = options.as_array().into_iter().flatten().map(Value::to_string).collect();
    format!("{} is not one of {}", error.instance(), options.join(", "))
}

#[derive(Default)]
struct WantedTypes {
    string: bool,
    object: bool,
    array: bool,
}

impl WantedTypes {
    fn add_name(&mut self, name: &str) {
        self.string |= name == "string";
        self.object |= name == "object";
        self.array |= name == "array";
    }

    fn add(&mut self, other: &Self) {
        self.string |= other.string;
        self.object |= other.object;
        self.array |= other.array;
    }
}

impl std::fmt::Debug for CompiledSchema {
    fn fmt(&self, formatter: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        formatter.debug_tuple("CompiledSchema").field(&self.schema).finish()
    }
}

fn shorten(mut text: String) -> String {
    if text.len() > VIOLATION_LENGTH {
        text.truncate(text.floor_char_boundary(VIOLATION_LENGTH));
        text.push_str(" ...");
    }
    text
}

#[cfg(test)]
mod tests {
    use serde_json::json;

    use super::*;

    fn coerced(schema: Value, arguments: Value) -> Value {
        let Value::Object(mut map) = arguments else { unreachable!("tests pass objects") };
        CompiledSchema::new(schema).coerce(&mut map);
        Value::Object(map)
    }

    #[test]
    fn text_becomes_json_only_where_a_container_is_wanted() {
        let schema = json!({
            "type": "object",
            "$defs": {"list": {"type": "array"}},
            "properties": {
                "xs": {"type": "array"}, "o": {"type": ["object", "null"]}, "s": {"type": "string"},
                "either": {"anyOf": [{"type": "string"}, {"type": "array"}]}, "r": {"$ref": "#/$defs/list"}, "any": {},
            },
        });
        let arguments = json!({
            "xs": "[1,2]", "o": "{\"a\":9007199254740993}", "s": "[1]", "either": "[1]", "r": "[3]", "any": "[4]", "more": "[5]",
        });
        assert_eq!(
            coerced(schema.clone(), arguments),
            json!({"xs": [1, 2], "o": {"a": 9_007_199_254_740_993_i64}, "s": "[1]", "either": "[1]", "r": [3], "any": "[4]", "more": "[5]"})
        );
        let kept = json!({"xs": "{\"a\":1}", "o": "[not json"});
        assert_eq!(coerced(schema, kept.clone()), kept);
    }

    #[test]
    fn every_fault_is_listed_with_its_path() {
        let schema = CompiledSchema::new(json!({
            "type": "object", "required": ["a"], "additionalProperties": false,
            "properties": {"a": {"type": "string"}, "n": {"type": "array", "items": {"type": "integer"}}},
        }));
        let faults = schema.violations(&json!({"n": [1, "x"], "z": 1})).expect("the schema is valid");
        let paths: Vec<&str> = faults.iter().map(|fault| fault.path.as_str()).collect();
        assert_eq!(faults.len(), 3, "{faults:?}");
        assert!(paths.contains(&"/n/1"));
        assert!(schema.violations(&json!({"a": "x"})).expect("the schema is valid").is_empty());
    }

    #[test]
    fn broken_schemas_and_foreign_references_are_errors() {
        assert!(CompiledSchema::new(json!({"type": "objekt"})).check_schema().is_err());
        assert!(CompiledSchema::new(json!({"$ref": "https://example.com/schema.json"})).check_schema().is_err());
        let recursive = json!({"$ref": "#/$defs/n", "$defs": {"n": {"properties": {"n": {"$ref": "#/$defs/n"}}}}});
        assert!(CompiledSchema::new(recursive).check_schema().is_ok());
    }
}
