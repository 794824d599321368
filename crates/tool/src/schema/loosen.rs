//! Schemas as they come from elsewhere: what this checker cannot check is left out and named, the rest stands.

use std::collections::HashSet;

use serde_json::{Map, Value as Foreign};
use skillz_json::{Value, wire};

/// Keywords whose value is one schema, or a list of them.
const SCHEMAS: [&str; 16] = [
    "additionalItems",
    "additionalProperties",
    "allOf",
    "anyOf",
    "contains",
    "contentSchema",
    "else",
    "if",
    "items",
    "not",
    "oneOf",
    "prefixItems",
    "propertyNames",
    "then",
    "unevaluatedItems",
    "unevaluatedProperties",
];
/// Keywords whose value is an object of schemas.
const SCHEMAS_BY_NAME: [&str; 6] =
    ["$defs", "definitions", "dependencies", "dependentSchemas", "patternProperties", "properties"];
/// Keywords whose value is a number to compare with.
const BOUNDS: [&str; 5] = ["maximum", "minimum", "exclusiveMaximum", "exclusiveMinimum", "multipleOf"];

/// A schema for the checker, and a sentence for each part that was left out.
pub(super) struct Loosened {
    pub(super) schema: Foreign,
    pub(super) unchecked: Vec<String>,
}

/// Compiles a schema without what cannot be checked. Bounds that no double holds are left out always; the rest only where
/// the whole does not compile, so that ordinary schemas are neither searched nor compiled twice.
pub(super) fn compile<V, E>(schema: &Value, build: impl Fn(&Foreign) -> Result<V, E>) -> Result<(V, Loosened), E> {
    let mut schema = wire::enter(schema.clone());
    let compiles = |schema: &Foreign| build(schema).is_ok();
    let mut walk =
        Walk { names: HashSet::new(), unchecked: Vec::new(), compiles: &compiles, is_thorough: false, drops_unevaluated: false };
    walk.schema(&mut schema, "");
    if let Ok(validator) = build(&schema) {
        return Ok((validator, Loosened { schema, unchecked: walk.unchecked }));
    }
    walk.is_thorough = true;
    collect_names(&schema, &mut walk.names);
    walk.schema(&mut schema, "");
    if !walk.unchecked.is_empty() {
        walk.drops_unevaluated = true;
        walk.schema(&mut schema, "");
    }
    let unchecked = walk.unchecked;
    Ok((build(&schema)?, Loosened { schema, unchecked }))
}

struct Walk<'a> {
    /// What `$id`, `$anchor` and `$dynamicAnchor` call parts of the schema.
    names: HashSet<String>,
    unchecked: Vec<String>,
    compiles: &'a dyn Fn(&Foreign) -> bool,
    is_thorough: bool,
    /// What a part that was left out would have seen counts as seen.
    drops_unevaluated: bool,
}

impl Walk<'_> {
    fn schema(&mut self, schema: &mut Foreign, path: &str) {
        let Foreign::Object(keywords) = schema else { return };
        self.bounds(keywords, path);
        if self.is_thorough {
            self.dialect(keywords, path);
            self.references(keywords, path);
            self.patterns(keywords, path);
        }
        if self.drops_unevaluated {
            keywords.shift_remove("unevaluatedProperties");
            keywords.shift_remove("unevaluatedItems");
        }
        // With a part left out these would refuse what the whole takes.
        let mut turned: Vec<&str> = Vec::new();
        for (keyword, value) in keywords.iter_mut() {
            let path = format!("{path}/{keyword}");
            let before = self.unchecked.len();
            match value {
                Foreign::Object(named) if SCHEMAS_BY_NAME.contains(&keyword.as_str()) => {
                    named.iter_mut().for_each(|(name, schema)| self.schema(schema, &format!("{path}/{name}")));
                }
                Foreign::Array(list) if SCHEMAS.contains(&keyword.as_str()) => {
                    list.iter_mut().enumerate().for_each(|(index, schema)| self.schema(schema, &format!("{path}/{index}")));
                }
                value if SCHEMAS.contains(&keyword.as_str()) => self.schema(value, &path),
                _ => {}
            }
            let turns = ["not", "oneOf", "if"].into_iter().find(|turning| turning == keyword);
            turned.extend(turns.filter(|_| self.unchecked.len() > before));
        }
        for keyword in turned {
            keywords.shift_remove(keyword);
        }
    }

    fn bounds(&mut self, keywords: &mut Map<String, Foreign>, path: &str) {
        for bound in BOUNDS {
            let Some(value @ Foreign::String(_)) = keywords.get(bound) else { continue };
            let Value::Number(number) = wire::leave(value.clone()) else { continue };
            match number.as_f64().filter(|_| number.fits_double()).and_then(serde_json::Number::from_f64) {
                Some(double) => {
                    keywords.insert(bound.to_owned(), Foreign::Number(double));
                }
                None => self.leave_out(keywords, bound, path, "has more digits than the check can compare with"),
            }
        }
    }

    fn dialect(&mut self, keywords: &mut Map<String, Foreign>, path: &str) {
        if let Some(dialect) = keywords.get("$schema") {
            let alone = serde_json::json!({"$schema": dialect});
            if !(self.compiles)(&alone) {
                self.leave_out(keywords, "$schema", path, "is no dialect that is known; 2020-12 is taken");
            }
        }
    }

    fn references(&mut self, keywords: &mut Map<String, Foreign>, path: &str) {
        for keyword in ["$ref", "$dynamicRef"] {
            let Some(target) = keywords.get(keyword).and_then(Foreign::as_str) else { continue };
            let name = target.split('#').next().unwrap_or_default();
            if !name.is_empty() && !self.names.contains(name) {
                self.leave_out(keywords, keyword, path, "leads out of the schema, and nothing is fetched");
            }
        }
    }

    fn patterns(&mut self, keywords: &mut Map<String, Foreign>, path: &str) {
        if let Some(pattern) = keywords.get("pattern")
            && !(self.compiles)(&serde_json::json!({"pattern": pattern}))
        {
            self.leave_out(keywords, "pattern", path, "is no pattern that can be checked here");
        }
        let Some(Foreign::Object(patterns)) = keywords.get_mut("patternProperties") else { return };
        let broken: Vec<String> =
            patterns.keys().filter(|pattern| !(self.compiles)(&serde_json::json!({"pattern": pattern}))).cloned().collect();
        for pattern in &broken {
            self.leave_out(patterns, pattern, &format!("{path}/patternProperties"), "is no pattern that can be checked here");
        }
        // What the pattern would have taken must not be refused as an additional property.
        if !broken.is_empty() {
            keywords.shift_remove("additionalProperties");
            keywords.shift_remove("unevaluatedProperties");
        }
    }

    fn leave_out(&mut self, keywords: &mut Map<String, Foreign>, keyword: &str, path: &str, why: &str) {
        let value = keywords.shift_remove(keyword).unwrap_or_default();
        let shown = super::explain::shorten(wire::leave(value).to_string(), 200);
        self.unchecked.push(format!("`{path}/{keyword}` is not checked: {shown} {why}"));
    }
}

fn collect_names(schema: &Foreign, names: &mut HashSet<String>) {
    match schema {
        Foreign::Object(keywords) => {
            let ids = ["$id", "id"].into_iter().filter_map(|keyword| keywords.get(keyword)?.as_str());
            names.extend(ids.map(|id| id.split('#').next().unwrap_or_default().to_owned()));
            keywords.values().for_each(|value| collect_names(value, names));
        }
        Foreign::Array(list) => list.iter().for_each(|value| collect_names(value, names)),
        _ => {}
    }
}
