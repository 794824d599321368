//! What a JSON Schema says for certain about the members of a value. Where it leaves room, nothing is claimed.

use skillz_json::Value;

use crate::reference::Segment;

/// How often local references are followed before a schema counts as unknown.
const REFERENCE_DEPTH: usize = 16;
/// Keywords after which members of a schema no longer tell the whole truth.
const OPEN_KEYWORDS: [&str; 9] =
    ["anyOf", "oneOf", "allOf", "if", "patternProperties", "unevaluatedProperties", "dependentSchemas", "not", "$dynamicRef"];

/// A part of a schema together with the whole, which local references point into.
#[derive(Clone, Copy)]
pub(crate) struct SchemaPart<'a> {
    root: &'a Value,
    part: &'a Value,
}

impl<'a> SchemaPart<'a> {
    pub(crate) fn of(root: &'a Value) -> Self {
        Self { root, part: root }.resolved()
    }

    fn resolved(mut self) -> Self {
        for _ in 0..REFERENCE_DEPTH {
            let Some(pointer) = self.part.get("$ref").and_then(Value::as_str).and_then(|reference| reference.strip_prefix('#'))
            else {
                break;
            };
            let Some(target) = self.root.pointer(pointer) else { break };
            self.part = target;
        }
        self
    }

    /// Whether the schema's members are all there is to know.
    pub(crate) fn is_plain(self) -> bool {
        self.part.is_object()
            && self.part.get("$ref").is_none()
            && !OPEN_KEYWORDS.iter().any(|keyword| self.part.get(keyword).is_some())
    }

    /// The members that a value may have, if the schema names them and does not invite others.
    pub(crate) fn names(self) -> Option<Vec<&'a str>> {
        if !self.is_plain() {
            return None;
        }
        let properties = self.part.get("properties").and_then(Value::as_object);
        let closed = match self.part.get("additionalProperties") {
            Some(Value::Bool(false)) => true,
            Some(_) => return None,
            None => false,
        };
        let names: Vec<&str> = properties.into_iter().flat_map(|properties| properties.keys()).map(String::as_str).collect();
        (closed || !names.is_empty()).then_some(names)
    }

    /// The members that a value must have.
    pub(crate) fn required(self) -> Vec<&'a str> {
        let required = self.part.get("required").and_then(Value::as_array);
        required.into_iter().flatten().filter_map(Value::as_str).collect()
    }

    /// The schema of a member.
    pub(crate) fn member(self, name: &str) -> Option<Self> {
        let part = self.part.get("properties")?.get(name)?;
        Some(Self { root: self.root, part }.resolved())
    }

    /// The schema as JSON.
    pub(crate) fn as_value(self) -> &'a Value {
        self.part
    }

    /// Why a path can lead nowhere in a value of this schema; `None` where it may lead somewhere.
    pub(crate) fn problem(self, path: &[Segment]) -> Option<String> {
        let (segment, rest) = path.split_first()?;
        if !self.is_plain() {
            return None;
        }
        match segment {
            Segment::Key(key) if self.allows("object") => {
                let may_be_index = self.allows("array") && key.bytes().all(|byte| byte.is_ascii_digit());
                if let Some(names) = self.names().filter(|names| !may_be_index && !names.contains(&key.as_str())) {
                    let known: Vec<String> = names.iter().map(|name| format!("`{name}`")).collect();
                    let known = if known.is_empty() { "has no members".to_owned() } else { format!("has {}", known.join(", ")) };
                    return Some(format!("`{key}` is not there; the value {known}"));
                }
                self.member(key)?.problem(rest)
            }
            Segment::Index(_) if self.allows("array") => {
                let items = self.part.get("items").filter(|items| items.is_object())?;
                Self { root: self.root, part: items }.resolved().problem(rest)
            }
            Segment::Key(key) if self.allows("array") && key.bytes().all(|byte| byte.is_ascii_digit()) => None,
            Segment::Index(_) if self.allows("object") => None,
            Segment::Key(key) => Some(format!("`{key}` cannot be there; the value is of type {}", self.type_name())),
            Segment::Index(index) => Some(format!("`[{index}]` cannot be there; the value is of type {}", self.type_name())),
        }
    }

    /// Whether a value may be of a type.
    fn allows(self, name: &str) -> bool {
        match self.part.get("type") {
            Some(Value::String(only)) => only == name,
            Some(Value::Array(several)) => several.iter().any(|one| one == name),
            _ => true,
        }
    }

    fn type_name(self) -> String {
        self.part.get("type").map(Value::to_string).unwrap_or_default().replace('"', "`")
    }
}

#[cfg(test)]
mod tests {
    use skillz_json::json;

    use super::*;
    use crate::reference::Written;

    fn problem(schema: &Value, reference: &str) -> Option<String> {
        let (written, _) = Written::read(reference).expect("valid").expect("a reference");
        SchemaPart::of(schema).problem(&written.path)
    }

    #[test]
    fn only_what_is_certain_is_a_problem() {
        let schema = json!({
            "type": "object",
            "$defs": {"point": {"type": "object", "properties": {"x": {"type": "number"}}}},
            "properties": {
                "text": {"type": "string"}, "list": {"type": "array", "items": {"$ref": "#/$defs/point"}}, "point": {"$ref": "#/$defs/point"},
                "any": {}, "open": {"type": "object", "properties": {"a": {}}, "additionalProperties": true},
                "either": {"anyOf": [{"type": "string"}, {"type": "object"}]}, "maybe": {"type": ["object", "null"]},
            },
        });
        for fine in [
            "$v",
            "$v.text",
            "$v.list[0].x",
            "$v.list[-1]",
            "$v.list.0",
            "$v.point.x",
            "$v.any.a.b[3]",
            "$v.open.z",
            "$v.either.k",
            "$v.maybe.k",
        ] {
            assert_eq!(problem(&schema, fine), None, "{fine}");
        }
        for (wrong, part) in [
            ("$v.txt", "`txt` is not there; the value has `text`, `list`"),
            ("$v.text.length", "`length` cannot be there; the value is of type `string`"),
            ("$v.list[0].y", "`y` is not there; the value has `x`"),
            ("$v.list.first", "`first` cannot be there"),
            ("$v.point[0].x.y", ""),
            ("$v.point.x[0]", "`[0]` cannot be there"),
        ] {
            let found = problem(&schema, wrong);
            assert!(part.is_empty() || found.as_deref().is_some_and(|found| found.contains(part)), "{wrong}: {found:?}");
        }
        assert!(problem(&json!({"additionalProperties": false}), "$v.a").is_some());
        assert!(problem(&json!({}), "$v.a").is_none());
        assert!(problem(&json!({"type": "object", "properties": {}}), "$v.a").is_none());
        let endless = json!({"$ref": "#/$defs/a", "$defs": {"a": {"$ref": "#/$defs/a"}}});
        assert!(problem(&endless, "$v.a").is_none());
    }
}
