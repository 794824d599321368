//! Arguments bent into their schema where that loses nothing: text that holds JSON, and whole numbers in another form.

use std::collections::HashSet;

use jsonschema::ValidatorMap;
use skillz_json::{Map, Value};

use super::exact::Exact;

/// How deep references and alternatives are followed.
const REFERENCE_DEPTH: usize = 16;

/// A schema, its parts by their pointers, and the checkers of its parts.
pub(super) struct Fitting<'a> {
    pub(super) root: &'a Value,
    pub(super) checkers: &'a dyn Fn() -> Option<&'a ValidatorMap<Exact>>,
}

impl<'a> Fitting<'a> {
    /// Parses strings that hold JSON where the schema wants an object or array and would take no string.
    /// Models often send nested values as text.
    pub(super) fn read_texts(&self, arguments: &mut Map<String, Value>) {
        let Some(properties) = self.root.get("properties").and_then(Value::as_object) else { return };
        for (name, property) in properties {
            let Some(Value::String(text)) = arguments.get(name) else { continue };
            let wanted = self.wanted_types(property, 0);
            if wanted.contains("string") {
                continue;
            }
            match skillz_json::parse(text) {
                Ok(parsed)
                    if parsed.is_object() && wanted.contains("object") || parsed.is_array() && wanted.contains("array") =>
                {
                    arguments.insert(name.clone(), parsed);
                }
                _ => {}
            }
        }
    }

    /// Which types a schema asks for by name.
    fn wanted_types(&self, schema: &'a Value, depth: usize) -> HashSet<&'a str> {
        let mut wanted = HashSet::new();
        if depth > REFERENCE_DEPTH {
            return wanted;
        }
        if let Some((_, target)) = self.referred(schema) {
            wanted.extend(self.wanted_types(target, depth + 1));
        }
        wanted.extend(types(schema));
        if schema.get("type").is_none() {
            let branches = ["anyOf", "oneOf", "allOf"].into_iter().filter_map(|keyword| schema.get(keyword)?.as_array());
            branches.flatten().for_each(|branch| wanted.extend(self.wanted_types(branch, depth + 1)));
        }
        wanted
    }

    /// Writes numbers such as `3.0` and `1e3` as whole ones wherever a part of the schema that the value fits says
    /// integer and none says number.
    pub(super) fn write_whole(&self, value: &mut Value) {
        if has_other_form(value) {
            self.write_whole_below(value, vec![(String::from("#"), self.root)]);
        }
    }

    fn write_whole_below(&self, value: &mut Value, schemas: Vec<(String, &'a Value)>) {
        let mut parts = Vec::new();
        for (pointer, schema) in schemas {
            self.matching(pointer, schema, value, &mut parts, 0);
        }
        match value {
            Value::Number(number) => {
                let says = |name: &str| parts.iter().any(|(_, schema)| types(schema).any(|said| said == name));
                if !number.is_written_whole()
                    && says("integer")
                    && !says("number")
                    && let Some(whole) = number.to_whole()
                {
                    *number = whole;
                }
            }
            Value::Object(members) => {
                for (name, member) in members.iter_mut().filter(|(_, member)| has_other_form(member)) {
                    let schemas = parts.iter().flat_map(|(pointer, schema)| self.of_member(pointer, schema, name)).collect();
                    self.write_whole_below(member, schemas);
                }
            }
            Value::Array(elements) => {
                for (index, element) in elements.iter_mut().enumerate().filter(|(_, element)| has_other_form(element)) {
                    let schemas = parts.iter().filter_map(|(pointer, schema)| of_element(pointer, schema, index)).collect();
                    self.write_whole_below(element, schemas);
                }
            }
            _ => {}
        }
    }

    /// Adds a schema, and all that it says of this value by reference, by all of its parts, and by alternatives that fit.
    fn matching(&self, pointer: String, schema: &'a Value, value: &Value, parts: &mut Vec<(String, &'a Value)>, depth: usize) {
        if depth > REFERENCE_DEPTH || parts.iter().any(|(known, _)| *known == pointer) {
            return;
        }
        if let Some((target, schema)) = self.referred(schema) {
            self.matching(target, schema, value, parts, depth + 1);
        }
        for keyword in ["allOf", "anyOf", "oneOf"] {
            for (index, branch) in schema.get(keyword).and_then(Value::as_array).into_iter().flatten().enumerate() {
                let branch_pointer = format!("{pointer}/{keyword}/{index}");
                if keyword == "allOf" || self.fits(&branch_pointer, value) {
                    self.matching(branch_pointer, branch, value, parts, depth + 1);
                }
            }
        }
        if schema.get("if").is_some() {
            let keyword = if self.fits(&format!("{pointer}/if"), value) { "then" } else { "else" };
            if let Some(branch) = schema.get(keyword) {
                self.matching(format!("{pointer}/{keyword}"), branch, value, parts, depth + 1);
            }
        }
        parts.push((pointer, schema));
    }

    /// Whether a value fits a part of the schema; a part that cannot be checked fits nothing.
    fn fits(&self, pointer: &str, value: &Value) -> bool {
        (self.checkers)().and_then(|checkers| checkers.get(pointer)).is_some_and(|checker| checker.is_valid(value))
    }

    /// What a reference within the schema leads to: by a pointer, or by the name of an anchor.
    fn referred(&self, schema: &'a Value) -> Option<(String, &'a Value)> {
        let reference = schema.get("$ref")?.as_str()?;
        let fragment = reference.strip_prefix('#')?;
        if fragment.is_empty() || fragment.starts_with('/') {
            return Some((reference.to_owned(), self.root.pointer(fragment)?));
        }
        let definitions = self.root.get("$defs").or_else(|| self.root.get("definitions"))?.as_object()?;
        let named = definitions.iter().find(|(_, schema)| schema.get("$anchor").is_some_and(|anchor| *anchor == *fragment));
        named.map(|(name, schema)| (format!("#/$defs/{}", escaped(name)), schema))
    }

    fn of_member(&self, pointer: &str, schema: &'a Value, name: &str) -> Vec<(String, &'a Value)> {
        let mut found = Vec::new();
        if let Some(property) = schema.get("properties").and_then(|properties| properties.get(name)) {
            found.push((format!("{pointer}/properties/{}", escaped(name)), property));
        }
        for (pattern, property) in schema.get("patternProperties").and_then(Value::as_object).into_iter().flatten() {
            let matcher = jsonschema::options().build(&serde_json::json!({"pattern": pattern}));
            if matcher.is_ok_and(|matcher| matcher.is_valid(&serde_json::Value::String(name.to_owned()))) {
                found.push((format!("{pointer}/patternProperties/{}", escaped(pattern)), property));
            }
        }
        if found.is_empty()
            && let Some(others) = schema.get("additionalProperties")
        {
            found.push((format!("{pointer}/additionalProperties"), others));
        }
        found
    }
}

fn of_element<'a>(pointer: &str, schema: &'a Value, index: usize) -> Option<(String, &'a Value)> {
    for keyword in ["prefixItems", "items"] {
        if let Some(element) = schema.get(keyword).and_then(|list| list.as_array()?.get(index)) {
            return Some((format!("{pointer}/{keyword}/{index}"), element));
        }
    }
    let keyword = if schema.get("items").is_some_and(Value::is_array) { "additionalItems" } else { "items" };
    Some((format!("{pointer}/{keyword}"), schema.get(keyword)?))
}

/// The types that a schema names itself.
fn types(schema: &Value) -> impl Iterator<Item = &str> {
    let named = schema.get("type");
    let list = named.and_then(Value::as_array).into_iter().flatten().filter_map(Value::as_str);
    named.and_then(Value::as_str).into_iter().chain(list)
}

/// Whether a whole number in a value is written with a fraction or an exponent.
fn has_other_form(value: &Value) -> bool {
    match value {
        Value::Number(number) => !number.is_written_whole() && number.is_whole(),
        Value::Array(elements) => elements.iter().any(has_other_form),
        Value::Object(members) => members.values().any(has_other_form),
        _ => false,
    }
}

fn escaped(name: &str) -> String {
    name.replace('~', "~0").replace('/', "~1")
}
