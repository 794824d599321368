//! The form in which clients are sent a schema: one that every client of an era takes.
//!
//! Clients drop all tools of a server over one schema they cannot read. So the root is always an object with
//! `type: object`, local references are put in where they end, and arrays have `items`. Clients of the older
//! protocols get no `anyOf`, `oneOf` or `allOf` at the root either. Arguments are checked against the original.

use skillz_json::{Map, Value, json};

/// Most values that putting references in may add; definitions that use each other twice double with each level.
const EXPANSION: usize = 2_000;
/// Deepest nesting that is walked into; deeper parts are passed on as they are.
const DEPTH: usize = 64;

/// Which protocols a form is for.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum Form {
    /// 2024-11-05 to 2025-11-25.
    Legacy,
    /// Since 2026-07-28.
    Modern,
}

/// What a schema describes; decides which way a simplification may err.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum Describes {
    /// Arguments, which the server checks itself.
    Input,
    /// A result, which clients check: nothing valid may be refused.
    Output,
}

/// The form of `schema` for clients of an era.
pub(crate) fn client_form(schema: &Value, form: Form, describes: Describes) -> Map<String, Value> {
    let mut expander = Expander { root: schema, room: EXPANSION };
    let expanded = expander.expand(schema, &mut Vec::new(), 0);
    // Half a form with some references in and some out would puzzle readers more than references do.
    let expanded = if expander.room == 0 { schema.clone() } else { expanded };
    let Value::Object(mut object) = expanded else { return object_schema() };
    if describes == Describes::Output && form == Form::Modern {
        return object;
    }
    if form == Form::Legacy {
        flatten_root(&mut object, describes);
        make_members_objects(&mut object);
    }
    set_object_type(&mut object);
    object
}

fn object_schema() -> Map<String, Value> {
    Map::from_iter([("type".to_owned(), json!("object"))])
}

/// Puts `type: object` at the root, first where it was absent.
fn set_object_type(object: &mut Map<String, Value>) {
    if object.contains_key("type") {
        object.insert("type".to_owned(), json!("object"));
        return;
    }
    let rest = std::mem::replace(object, object_schema());
    object.extend(rest);
}

/// Walks a schema, puts local references in, and gives arrays their `items`.
struct Expander<'a> {
    root: &'a Value,
    room: usize,
}

impl Expander<'_> {
    /// `path` holds the references that are being put in around `schema`: one of those again is recursion.
    fn expand(&mut self, schema: &Value, path: &mut Vec<String>, depth: usize) -> Value {
        if depth > DEPTH || self.room == 0 {
            return schema.clone();
        }
        match schema {
            Value::Object(object) => self.expand_object(object, path, depth),
            Value::Array(items) => Value::Array(items.iter().map(|item| self.expand(item, path, depth + 1)).collect()),
            other => other.clone(),
        }
    }

    fn expand_object(&mut self, object: &Map<String, Value>, path: &mut Vec<String>, depth: usize) -> Value {
        if let Some(target) = self.target(object, path) {
            let Some(Value::String(reference)) = object.get("$ref") else { return Value::Object(object.clone()) };
            path.push(reference.clone());
            let put_in = self.expand(&target, path, depth + 1);
            path.pop();
            let Value::Object(mut merged) = put_in else { return put_in };
            // What stands beside a reference holds too, and is about this place.
            let beside = object.iter().filter(|(keyword, _)| *keyword != "$ref");
            for (keyword, value) in beside {
                let value = self.expand_keyword(keyword, value, path, depth);
                merged.insert(keyword.clone(), value);
            }
            return Value::Object(merged);
        }
        let mut expanded = Map::new();
        for (keyword, value) in object {
            expanded.insert(keyword.clone(), self.expand_keyword(keyword, value, path, depth));
        }
        if is_array(object) && !object.contains_key("items") && !object.contains_key("prefixItems") {
            expanded.insert("items".to_owned(), json!({}));
        }
        Value::Object(expanded)
    }

    fn expand_keyword(&mut self, keyword: &str, value: &Value, path: &mut Vec<String>, depth: usize) -> Value {
        match keyword {
            // Plain values, which only look like schemas. Definitions stay as they were written.
            "default" | "const" | "enum" | "examples" | "example" | "$defs" | "definitions" | "required" => value.clone(),
            "properties" | "patternProperties" | "dependentSchemas" => match value {
                Value::Object(members) => {
                    let expand = |(name, member): (&String, &Value)| (name.clone(), self.expand(member, path, depth + 1));
                    Value::Object(members.iter().map(expand).collect())
                }
                other => other.clone(),
            },
            _ if value.is_object() || value.is_array() => self.expand(value, path, depth + 1),
            _ => value.clone(),
        }
    }

    /// What the reference in `object` stands for, if there is one that can be put in.
    fn target(&mut self, object: &Map<String, Value>, path: &[String]) -> Option<Value> {
        let reference = object.get("$ref")?.as_str()?;
        let pointer = reference.strip_prefix('#')?;
        if pointer.is_empty() || !pointer.starts_with('/') || path.iter().any(|outer| outer == reference) {
            return None;
        }
        let target = self.root.pointer(&crate::uri::decoded(pointer)?)?.as_object()?;
        // Another base would change the meaning of references below it.
        if target.contains_key("$id") {
            return None;
        }
        self.room = self.room.saturating_sub(count(target));
        let mut copy = target.clone();
        // An anchor names one place.
        copy.shift_remove("$anchor");
        copy.shift_remove("$dynamicAnchor");
        Some(Value::Object(copy))
    }
}

fn is_array(object: &Map<String, Value>) -> bool {
    match object.get("type") {
        Some(Value::String(name)) => name == "array",
        Some(Value::Array(names)) => names.iter().any(|name| name == "array"),
        _ => false,
    }
}

/// How many values an object holds, itself included.
fn count(object: &Map<String, Value>) -> usize {
    let mut values: Vec<&Value> = object.values().collect();
    let mut total = 1;
    while let Some(value) = values.pop() {
        total += 1;
        match value {
            Value::Object(object) => values.extend(object.values()),
            Value::Array(items) => values.extend(items),
            _ => {}
        }
    }
    total
}

/// Replaces alternatives at the root by an object that has the properties of all of them.
fn flatten_root(object: &mut Map<String, Value>, describes: Describes) {
    let mut flattened = false;
    if let Some(Value::Array(branches)) = object.shift_remove("allOf") {
        flattened = true;
        for branch in branches.iter().filter_map(Value::as_object) {
            // A branch may itself be a choice, of which nothing is certain.
            let mut branch = branch.clone();
            flatten_root(&mut branch, describes);
            add_properties(object, &branch);
            add_required(object, required_of(&branch));
        }
    }
    for keyword in ["anyOf", "oneOf"] {
        let Some(Value::Array(branches)) = object.shift_remove(keyword) else { continue };
        flattened = true;
        let mut common: Option<Vec<Value>> = None;
        for branch in branches.iter().filter_map(Value::as_object) {
            let mut branch = branch.clone();
            flatten_root(&mut branch, describes);
            if describes == Describes::Output {
                open_properties(&mut branch);
            }
            add_properties(object, &branch);
            let required = required_of(&branch);
            common = Some(match common {
                Some(common) => common.into_iter().filter(|name| required.contains(name)).collect(),
                None => required,
            });
        }
        add_required(object, common.unwrap_or_default());
    }
    if flattened && describes == Describes::Output {
        object.shift_remove("additionalProperties");
        object.shift_remove("unevaluatedProperties");
    }
}

/// Where only one alternative knows a property, another allows anything there.
fn open_properties(branch: &mut Map<String, Value>) {
    let properties = branch.get_mut("properties").and_then(Value::as_object_mut);
    for property in properties.into_iter().flat_map(Map::values_mut) {
        *property = json!({});
    }
}

fn required_of(branch: &Map<String, Value>) -> Vec<Value> {
    branch.get("required").and_then(Value::as_array).cloned().unwrap_or_default()
}

/// Adds the properties of a branch; where both know one, either may hold.
fn add_properties(object: &mut Map<String, Value>, branch: &Map<String, Value>) {
    let Some(added) = branch.get("properties").and_then(Value::as_object) else { return };
    let known = object.entry("properties".to_owned()).or_insert_with(|| Value::Object(Map::new()));
    let Some(known) = known.as_object_mut() else { return };
    for (name, schema) in added {
        match known.get_mut(name) {
            None => {
                known.insert(name.clone(), schema.clone());
            }
            Some(first) if first == schema => {}
            Some(first) => {
                match first.as_object_mut().filter(|first| first.len() == 1).and_then(|first| first.get_mut("anyOf")) {
                    Some(Value::Array(choices)) => {
                        if !choices.contains(schema) {
                            choices.push(schema.clone());
                        }
                    }
                    _ => *first = json!({"anyOf": [first.take(), schema]}),
                }
            }
        }
    }
}

fn add_required(object: &mut Map<String, Value>, names: Vec<Value>) {
    if names.is_empty() {
        return;
    }
    let required = object.entry("required".to_owned()).or_insert_with(|| json!([]));
    let Some(required) = required.as_array_mut() else { return };
    for name in names {
        if !required.contains(&name) {
            required.push(name);
        }
    }
}

/// Older clients want each property to be an object, and `required` to be a list of names.
fn make_members_objects(object: &mut Map<String, Value>) {
    match object.get_mut("properties") {
        None => {}
        Some(Value::Object(properties)) => {
            for property in properties.values_mut() {
                match property {
                    Value::Object(_) => {}
                    Value::Bool(false) => *property = json!({"not": {}}),
                    _ => *property = json!({}),
                }
            }
        }
        Some(_) => {
            object.shift_remove("properties");
        }
    }
    match object.get_mut("required") {
        None => {}
        Some(Value::Array(names)) => names.retain(Value::is_string),
        Some(_) => {
            object.shift_remove("required");
        }
    }
}

#[cfg(test)]
mod tests {
    use std::time::Instant;

    use super::*;

    #[track_caller]
    #[expect(clippy::needless_pass_by_value, reason = "the cases read better")]
    fn check(form: Form, schema: Value, expected: Value) {
        assert_eq!(Value::Object(client_form(&schema, form, Describes::Input)), expected);
    }

    #[test]
    fn the_root_is_an_object() {
        for form in [Form::Legacy, Form::Modern] {
            check(form, json!({}), json!({"type": "object"}));
            check(form, json!(true), json!({"type": "object"}));
            check(form, json!({"type": ["object", "null"]}), json!({"type": "object"}));
            check(form, json!({"properties": {"a": {}}}), json!({"type": "object", "properties": {"a": {}}}));
        }
    }

    #[test]
    fn alternatives_at_the_root_are_joined_for_older_clients_only() {
        let schema = json!({"anyOf": [
            {"type": "object", "properties": {"a": {"type": "string"}, "c": {"type": "string"}}, "required": ["a", "c"]},
            {"type": "object", "properties": {"b": {"type": "number"}, "c": {"type": "integer"}}, "required": ["b", "c"]},
        ]});
        check(
            Form::Legacy,
            schema.clone(),
            json!({"type": "object", "properties": {
                "a": {"type": "string"}, "c": {"anyOf": [{"type": "string"}, {"type": "integer"}]}, "b": {"type": "number"}},
                "required": ["c"]}),
        );
        let mut modern = json!({"type": "object"});
        modern["anyOf"] = schema["anyOf"].clone();
        check(Form::Modern, schema, modern);
        check(
            Form::Legacy,
            json!({"type": "object", "allOf": [{"anyOf": [{"required": ["a"]}, {"required": ["b"]}]}, {"required": ["c"]}]}),
            json!({"type": "object", "required": ["c"]}),
        );
    }

    #[test]
    fn references_are_put_in_and_definitions_stay() {
        check(
            Form::Modern,
            json!({
                "$schema": "https://json-schema.org/draft/2020-12/schema",
                "type": "object",
                "$defs": {"address": {"$anchor": "a", "type": "object", "properties": {"street": {"$ref": "#/$defs/text"}}}, "text": {"type": "string"}},
                "properties": {"home": {"$ref": "#/$defs/address", "description": "Where"}, "x": {"$ref": "https://example.com/x"}},
                "additionalProperties": false,
            }),
            json!({
                "$schema": "https://json-schema.org/draft/2020-12/schema",
                "type": "object",
                "$defs": {"address": {"$anchor": "a", "type": "object", "properties": {"street": {"$ref": "#/$defs/text"}}}, "text": {"type": "string"}},
                "properties": {
                    "home": {"type": "object", "properties": {"street": {"type": "string"}}, "description": "Where"},
                    "x": {"$ref": "https://example.com/x"},
                },
                "additionalProperties": false,
            }),
        );
        check(
            Form::Legacy,
            json!({"$ref": "#/$defs/a%20b", "$defs": {"a b": {"required": ["x"]}}}),
            json!({"type": "object", "required": ["x"], "$defs": {"a b": {"required": ["x"]}}}),
        );
    }

    #[test]
    fn recursion_is_cut_where_it_begins() {
        let node = json!({"type": "object", "properties": {"children": {"type": "array", "items": {"$ref": "#/$defs/N"}}}});
        check(
            Form::Legacy,
            json!({"type": "object", "$defs": {"N": node}, "properties": {"tree": {"$ref": "#/$defs/N"}, "self": {"$ref": "#"}}}),
            json!({"type": "object", "$defs": {"N": node}, "properties": {"tree": node, "self": {"$ref": "#"}}}),
        );
        check(
            Form::Legacy,
            json!({"$ref": "#/$defs/a", "$defs": {"a": {"$ref": "#/$defs/b"}, "b": {"$ref": "#/$defs/a"}}}),
            json!({"type": "object", "$ref": "#/$defs/a", "$defs": {"a": {"$ref": "#/$defs/b"}, "b": {"$ref": "#/$defs/a"}}}),
        );
    }

    #[test]
    fn arrays_have_items_and_values_stay_values() {
        check(
            Form::Legacy,
            json!({"properties": {"xs": {"type": "array", "default": ["a"]}, "t": {"type": ["array", "null"], "prefixItems": [{}]},
                "c": {"const": {"type": "array"}}, "default": {"type": "array"}, "yes": true, "no": false}}),
            json!({"type": "object", "properties": {"xs": {"type": "array", "default": ["a"], "items": {}},
                "t": {"type": ["array", "null"], "prefixItems": [{}]}, "c": {"const": {"type": "array"}},
                "default": {"type": "array", "items": {}}, "yes": {}, "no": {"not": {}}}}),
        );
        check(Form::Legacy, json!({"properties": [1], "required": "x"}), json!({"type": "object"}));
    }

    #[test]
    fn definitions_that_double_are_left_as_references() {
        let mut definitions = Map::new();
        for level in 0..40 {
            let next = json!({"$ref": format!("#/$defs/d{}", level + 1)});
            definitions.insert(format!("d{level}"), json!({"properties": {"l": next, "r": next}}));
        }
        definitions.insert("d40".to_owned(), json!({"type": "string"}));
        let schema = json!({"type": "object", "$defs": definitions, "properties": {"x": {"$ref": "#/$defs/d0"}}});
        let started = Instant::now();
        check(Form::Legacy, schema.clone(), schema);
        assert!(started.elapsed().as_secs() < 5);
    }

    #[test]
    fn an_output_schema_never_refuses_what_was_valid() {
        let schema = json!({"type": "object", "properties": {"a": {}}, "additionalProperties": false, "oneOf": [{"properties": {"b": {"type": "null"}}}]});
        let legacy = client_form(&schema, Form::Legacy, Describes::Output);
        assert_eq!(Value::Object(legacy), json!({"type": "object", "properties": {"a": {}, "b": {}}}));
        let list = json!({"type": "array", "items": {"type": "string"}});
        assert_eq!(Value::Object(client_form(&list, Form::Modern, Describes::Output)), list);
    }
}
