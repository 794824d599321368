//! Whether a change of an input schema breaks callers: arguments that were accepted before may be refused now.
//!
//! Decided by the schemas' shapes. Where the change is beyond what can be followed here (combinations,
//! conditions, patterns), it counts as breaking as soon as those parts differ at all.

use skillz_json::{Map, Value};

/// How deep schemas and their local references are followed.
const DEPTH: usize = 12;

/// Keywords that say nothing about which values are accepted.
const REMARKS: [&str; 11] = [
    "title",
    "description",
    "default",
    "examples",
    "$comment",
    "$schema",
    "$id",
    "deprecated",
    "readOnly",
    "writeOnly",
    "format",
];
/// Keywords that this module compares by their meaning.
const UNDERSTOOD: [&str; 19] = [
    "type",
    "enum",
    "const",
    "properties",
    "required",
    "additionalProperties",
    "items",
    "$ref",
    "$defs",
    "definitions",
    "minimum",
    "exclusiveMinimum",
    "maximum",
    "exclusiveMaximum",
    "minLength",
    "maxLength",
    "minItems",
    "maxItems",
    "uniqueItems",
];

/// Whether somebody who called by `old` may fail under `new`. An absent schema accepts any object.
pub fn breaks_callers(old: Option<&Value>, new: Option<&Value>) -> bool {
    let any = Value::Object(Map::new());
    let (old, new) = (old.unwrap_or(&any), new.unwrap_or(&any));
    Comparison { old_root: old, new_root: new }.narrows(old, new, 0)
}

struct Comparison<'a> {
    old_root: &'a Value,
    new_root: &'a Value,
}

impl<'a> Comparison<'a> {
    /// Whether `new` refuses something that `old` accepts.
    fn narrows(&self, old: &'a Value, new: &'a Value, depth: usize) -> bool {
        let (old, new) = (resolve(self.old_root, old), resolve(self.new_root, new));
        if old == new && !mentions_references(old) {
            return false;
        }
        if depth > DEPTH {
            return false;
        }
        let (old, new) = match (old, new) {
            (_, Value::Bool(true)) | (Value::Bool(false), _) => return false,
            (_, Value::Bool(false)) => return true,
            (Value::Object(old), Value::Object(new)) => (old, new),
            (Value::Bool(true), Value::Object(new)) => return new.keys().any(|keyword| !REMARKS.contains(&keyword.as_str())),
            _ => return old != new,
        };
        narrows_type(old, new)
            || narrows_values(old, new)
            || narrows_bounds(old, new)
            || self.narrows_object(old, new, depth)
            || self.narrows_items(old, new, depth)
            || changes_the_rest(old, new)
    }

    fn narrows_object(&self, old: &'a Map<String, Value>, new: &'a Map<String, Value>, depth: usize) -> bool {
        let no_properties = Map::new();
        let properties_of = |schema: &'a Map<String, Value>| schema.get("properties").and_then(Value::as_object);
        let old_properties = properties_of(old);
        let new_properties = properties_of(new);
        let required_before = required(old);
        if required(new).iter().any(|name| !required_before.contains(name)) {
            return true;
        }
        let closed = new.get("additionalProperties") == Some(&Value::Bool(false));
        let closed_before = old.get("additionalProperties") == Some(&Value::Bool(false));
        if closed && !closed_before {
            return true;
        }
        for (name, schema) in old_properties.unwrap_or(&no_properties) {
            match new_properties.and_then(|properties| properties.get(name)) {
                Some(now) if self.narrows(schema, now, depth + 1) => return true,
                None if closed => return true,
                _ => {}
            }
        }
        match (old.get("additionalProperties"), new.get("additionalProperties")) {
            (Some(before @ Value::Object(_)), Some(now @ Value::Object(_))) => self.narrows(before, now, depth + 1),
            (None | Some(Value::Bool(true)), Some(now @ Value::Object(_))) => self.narrows(&Value::Bool(true), now, depth + 1),
            _ => false,
        }
    }

    fn narrows_items(&self, old: &'a Map<String, Value>, new: &'a Map<String, Value>, depth: usize) -> bool {
        match (old.get("items"), new.get("items")) {
            (Some(before), Some(now)) => self.narrows(before, now, depth + 1),
            (None, Some(now)) => self.narrows(&Value::Bool(true), now, depth + 1),
            _ => false,
        }
    }
}

/// Follows local references.
fn resolve<'a>(root: &'a Value, mut schema: &'a Value) -> &'a Value {
    for _ in 0..DEPTH {
        let target = schema.get("$ref").and_then(Value::as_str).and_then(|reference| root.pointer(reference.strip_prefix('#')?));
        match target {
            Some(target) => schema = target,
            None => break,
        }
    }
    schema
}

/// Equal texts may mean different things where they refer to definitions that changed.
fn mentions_references(schema: &Value) -> bool {
    match schema {
        Value::Object(members) => members.iter().any(|(name, value)| name == "$ref" || mentions_references(value)),
        Value::Array(items) => items.iter().any(mentions_references),
        _ => false,
    }
}

fn narrows_type(old: &Map<String, Value>, new: &Map<String, Value>) -> bool {
    let Some(new) = types(new) else { return false };
    // Without a type, a list of values says which types there were.
    let Some(old) = types(old).or_else(|| Some(values(old)?.iter().map(type_of).collect())) else { return true };
    let is_taken = |name: &&str| new.contains(name) || (*name == "integer" && new.contains(&"number"));
    !old.iter().all(is_taken)
}

fn types(schema: &Map<String, Value>) -> Option<Vec<&str>> {
    match schema.get("type")? {
        Value::String(name) => Some(vec![name.as_str()]),
        Value::Array(names) => Some(names.iter().filter_map(Value::as_str).collect()),
        _ => None,
    }
}

fn type_of(value: &Value) -> &'static str {
    match value {
        Value::Null => "null",
        Value::Bool(_) => "boolean",
        Value::Number(number) if !number.is_whole() => "number",
        Value::Number(_) => "integer",
        Value::String(_) => "string",
        Value::Array(_) => "array",
        Value::Object(_) => "object",
    }
}

fn narrows_values(old: &Map<String, Value>, new: &Map<String, Value>) -> bool {
    match (values(old), values(new)) {
        (_, None) => false,
        (None, Some(_)) => true,
        (Some(old), Some(new)) => old.iter().any(|value| !new.contains(value)),
    }
}

/// The values that `enum` or `const` lists.
fn values(schema: &Map<String, Value>) -> Option<&[Value]> {
    match (schema.get("enum"), schema.get("const")) {
        (Some(Value::Array(values)), _) => Some(values),
        (_, Some(value)) => Some(std::slice::from_ref(value)),
        _ => None,
    }
}

fn narrows_bounds(old: &Map<String, Value>, new: &Map<String, Value>) -> bool {
    let number = |schema: &Map<String, Value>, keyword: &str| schema.get(keyword).and_then(Value::as_f64);
    let lower = ["minimum", "exclusiveMinimum", "minLength", "minItems"];
    let upper = ["maximum", "exclusiveMaximum", "maxLength", "maxItems"];
    lower.iter().any(|keyword| match (number(old, keyword), number(new, keyword)) {
        (_, None) => false,
        (None, Some(now)) => !(keyword.starts_with("min") && *keyword != "minimum" && now <= 0.0),
        (Some(before), Some(now)) => now > before,
    }) || upper.iter().any(|keyword| match (number(old, keyword), number(new, keyword)) {
        (_, None) => false,
        (None, Some(_)) => true,
        (Some(before), Some(now)) => now < before,
    }) || (new.get("uniqueItems") == Some(&Value::Bool(true)) && old.get("uniqueItems") != Some(&Value::Bool(true)))
}

/// Keywords that are not followed: any that is new or different counts; one that went away only accepts more.
fn changes_the_rest(old: &Map<String, Value>, new: &Map<String, Value>) -> bool {
    let is_rest = |keyword: &str| !REMARKS.contains(&keyword) && !UNDERSTOOD.contains(&keyword);
    new.iter().any(|(keyword, value)| is_rest(keyword) && old.get(keyword) != Some(value))
}

fn required(schema: &Map<String, Value>) -> Vec<&str> {
    schema
        .get("required")
        .and_then(Value::as_array)
        .map(|names| names.iter().filter_map(Value::as_str).collect())
        .unwrap_or_default()
}

#[cfg(test)]
mod tests {
    use skillz_json::json;

    use super::*;

    #[expect(clippy::needless_pass_by_value, reason = "literals read better by value")]
    fn object(properties: Value, required: Value) -> Value {
        json!({"type": "object", "properties": properties, "required": required})
    }

    #[test]
    fn harmless_changes_break_nobody() {
        let before = object(json!({"a": {"type": "integer", "minimum": 1}, "b": {"enum": ["x", "y"]}}), json!(["a"]));
        for after in [
            before.clone(),
            object(
                json!({"a": {"type": "integer", "minimum": 1}, "b": {"enum": ["x", "y"]}, "c": {"type": "string"}}),
                json!(["a"]),
            ),
            object(json!({"a": {"type": "integer", "minimum": 1}, "b": {"enum": ["x", "y", "z"]}}), json!([])),
            object(json!({"a": {"type": "number", "minimum": 0, "description": "new"}}), json!(["a"])),
            object(json!({"a": {"type": ["integer", "string"]}, "b": {"type": "string"}}), json!(["a"])),
            json!({}),
            json!({"type": "object"}),
        ] {
            assert!(!breaks_callers(Some(&before), Some(&after)), "{after}");
        }
        assert!(!breaks_callers(Some(&before), None));
        assert!(!breaks_callers(None, None));
    }

    #[test]
    fn narrowing_breaks() {
        let before = object(
            json!({"a": {"type": "integer"}, "b": {"enum": ["x", "y"]}, "l": {"type": "array", "items": {"type": "string"}}}),
            json!(["a"]),
        );
        let with = |pointer: &str, value: Value| {
            let mut after = before.clone();
            *after.pointer_mut(pointer).unwrap() = value;
            after
        };
        for after in [
            with("/required", json!(["a", "b"])),
            with("/properties/a", json!({"type": "string"})),
            with("/properties/a", json!({"type": "integer", "minimum": 0})),
            with("/properties/a", json!({"type": "integer", "maximum": 10})),
            with("/properties/a", json!({"type": "integer", "enum": [1]})),
            with("/properties/b", json!({"enum": ["x"]})),
            with("/properties/b", json!({"const": "x"})),
            with("/properties/l/items", json!({"type": "integer"})),
            with("/properties/l", json!({"type": "array", "items": {"type": "string"}, "minItems": 1})),
            with("/properties/l", json!({"type": "array", "items": {"type": "string"}, "uniqueItems": true})),
            with("/properties/a", json!({"type": "integer", "multipleOf": 2})),
            json!({"type": "object", "properties": before["properties"], "required": ["a"], "additionalProperties": false}),
            json!({"type": "object", "properties": {"a": {"type": "integer"}}, "required": ["a"], "additionalProperties": false}),
            json!({"anyOf": [{"required": ["a"]}, {"required": ["z"]}]}),
            json!(false),
        ] {
            assert!(breaks_callers(Some(&before), Some(&after)), "{after}");
        }
        assert!(breaks_callers(None, Some(&object(json!({}), json!(["a"])))));
    }

    #[test]
    fn closing_what_was_closed_breaks_only_where_a_property_went() {
        let closed = |properties: Value| json!({"type": "object", "properties": properties, "additionalProperties": false});
        let before = closed(json!({"a": {}, "b": {}}));
        assert!(!breaks_callers(Some(&before), Some(&closed(json!({"a": {}, "b": {}, "c": {}})))));
        assert!(breaks_callers(Some(&before), Some(&closed(json!({"a": {}})))));
        assert!(!breaks_callers(Some(&before), Some(&json!({"type": "object", "properties": {"a": {}}}))));
    }

    #[test]
    fn references_are_followed_without_end() {
        let tree = |leaf: &str| {
            json!({"$ref": "#/$defs/n", "$defs": {"n": {"type": "object",
                "properties": {"next": {"$ref": "#/$defs/n"}, "leaf": {"type": leaf}}}}})
        };
        assert!(!breaks_callers(Some(&tree("string")), Some(&tree("string"))));
        assert!(breaks_callers(Some(&tree("string")), Some(&tree("integer"))));
        assert!(!breaks_callers(Some(&tree("integer")), Some(&tree("number"))));
        let endless = json!({"$ref": "#"});
        assert!(!breaks_callers(Some(&endless), Some(&endless)));
    }
}
