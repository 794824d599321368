//! JSON Schemas of arguments and results: checked, and arguments bent into them where that is safe.

mod exact;
mod explain;
mod fit;
mod loosen;

use std::sync::{Arc, OnceLock};

use jsonschema::{Retrieve, ValidationError, ValidationOptions, Validator, ValidatorMap};
use serde::Serialize;
use serde_json::Value as Foreign;
use skillz_json::Value;

use self::{exact::Exact, fit::Fitting, loosen::Loosened};

/// Most violations that are listed: a long array may hold a million of one kind.
const MOST_VIOLATIONS: usize = 100;
/// Longest text of what is wrong with a schema, in bytes.
const REASON_LENGTH: usize = 300;

/// A schema with its checker, which is made at the first use and then kept.
pub struct CompiledSchema {
    schema: Value,
    checker: OnceLock<Result<Checker, SchemaError>>,
    /// Checkers of all parts, which few values need.
    parts: OnceLock<Option<ValidatorMap<Exact>>>,
}

struct Checker {
    validator: Validator<Exact>,
    loosened: Loosened,
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
        Self { schema, checker: OnceLock::new(), parts: OnceLock::new() }
    }

    /// The schema as it was given.
    pub fn as_value(&self) -> &Value {
        &self.schema
    }

    /// Compiles the schema now, and tells which of its parts cannot be checked, in a sentence each.
    ///
    /// # Errors
    ///
    /// What is wrong with the schema, where it is not valid.
    pub fn unchecked_parts(&self) -> Result<&[String], SchemaError> {
        self.checker().map(|checker| checker.loosened.unchecked.as_slice())
    }

    /// Lists every fault of `value`, up to a hundred; a broken schema is an error.
    pub fn violations(&self, value: &Value) -> Result<Vec<Violation>, SchemaError> {
        let validator = &self.checker()?.validator;
        if validator.is_valid(value) {
            return Ok(Vec::new());
        }
        let violations = validator.iter_errors(value).flat_map(|error| explain::violations(&error, value));
        Ok(violations.take(MOST_VIOLATIONS).collect())
    }

    /// Bends arguments into this schema where nothing is lost: strings that hold JSON where an object or array is
    /// wanted and no string, and numbers of whole value where integers are.
    pub fn coerce(&self, arguments: &mut Value) {
        let fitting = Fitting { root: &self.schema, checkers: &|| self.parts() };
        if let Some(arguments) = arguments.as_object_mut() {
            fitting.read_texts(arguments);
        }
        fitting.write_whole(arguments);
    }

    fn checker(&self) -> Result<&Checker, SchemaError> {
        let compiled = self.checker.get_or_init(|| {
            let compiled = loosen::compile(&self.schema, |schema| options().build(schema));
            compiled.map(|(validator, loosened)| Checker { validator, loosened }).map_err(|error| broken(&error))
        });
        compiled.as_ref().map_err(Clone::clone)
    }

    fn parts(&self) -> Option<&ValidatorMap<Exact>> {
        let checker = self.checker().ok()?;
        self.parts.get_or_init(|| options().build_map(&checker.loosened.schema).ok()).as_ref()
    }
}

/// Format is an annotation in 2020-12; a server that refused by it would surprise its clients.
fn options() -> ValidationOptions<'static, Arc<dyn Retrieve>, Exact> {
    ValidationOptions::default()
}

fn broken(error: &ValidationError<'_>) -> SchemaError {
    // The part at fault is shown as it was written.
    let shown = skillz_json::wire::leave(Foreign::clone(error.instance())).to_string();
    SchemaError(explain::shorten(error.masked_with(shown).to_string(), REASON_LENGTH))
}

impl std::fmt::Debug for CompiledSchema {
    fn fmt(&self, formatter: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        formatter.debug_tuple("CompiledSchema").field(&self.schema).finish()
    }
}

#[cfg(test)]
mod tests {
    use skillz_json::json;

    use super::*;

    fn coerced(schema: Value, arguments: Value) -> Value {
        let mut arguments = arguments;
        CompiledSchema::new(schema).coerce(&mut arguments);
        arguments
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
    fn broken_schemas_are_errors() {
        for broken in
            [json!({"type": "objekt"}), json!({"properties": {"a": {"minimum": "x"}}}), json!({"$ref": "#/nowhere"}), json!(7)]
        {
            assert!(CompiledSchema::new(broken.clone()).unchecked_parts().is_err(), "{broken}");
        }
        let recursive = json!({"$ref": "#/$defs/n", "$defs": {"n": {"properties": {"n": {"$ref": "#/$defs/n"}}}}});
        assert_eq!(CompiledSchema::new(recursive).unchecked_parts(), Ok(&[][..]));
    }
}
