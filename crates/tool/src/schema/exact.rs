//! Our values as the schema checker sees them: without a copy, and without a digit lost.

use std::{borrow::Cow, collections::HashSet};

use jsonschema_value::{Array, Json, JsonNumber, Node, NodeIdentity, Object, types::JsonType};
use serde_json::Value as Foreign;
use skillz_json::{Map, Number, Value, wire};

/// Selects our values.
pub(super) struct Exact;

/// A number to be compared with those of a schema, which are of 64 bits or doubles.
pub(super) struct Compared<'a>(&'a Number);

type Members<'a> = std::iter::Map<indexmap::map::Iter<'a, String, Value>, fn((&'a String, &'a Value)) -> (&'a str, &'a Value)>;

impl Json for Exact {
    type Node<'a> = &'a Value;
    type PreparedKey = String;
    type StringBuffer = Value;
    const ACYCLIC: bool = true;

    fn prepare_key(key: &str) -> String {
        key.to_owned()
    }

    fn with_string_node<T>(buffer: &mut Value, string: &str, f: impl FnOnce(&Value) -> T) -> T {
        *buffer = Value::from(string);
        f(buffer)
    }
}

impl<'a> Node<'a, Exact> for &'a Value {
    type Object = &'a Map<String, Value>;
    type Array = &'a [Value];
    type Number = Compared<'a>;

    fn as_object(&self) -> Option<Self::Object> {
        Value::as_object(self)
    }

    fn as_array(&self) -> Option<&'a [Value]> {
        Value::as_array(self).map(Vec::as_slice)
    }

    fn as_string(&self) -> Option<Cow<'a, str>> {
        self.as_str().map(Cow::Borrowed)
    }

    fn as_number(&self) -> Option<Compared<'a>> {
        Value::as_number(self).map(Compared)
    }

    fn as_boolean(&self) -> Option<bool> {
        self.as_bool()
    }

    fn is_null(&self) -> bool {
        Value::is_null(self)
    }

    fn json_type(&self) -> JsonType {
        match self {
            Value::Null => JsonType::Null,
            Value::Bool(_) => JsonType::Boolean,
            Value::Number(_) => JsonType::Number,
            Value::String(_) => JsonType::String,
            Value::Array(_) => JsonType::Array,
            Value::Object(_) => JsonType::Object,
        }
    }

    /// The schema has come by [`wire`], which keeps the numbers of `const` and `enum`.
    fn equals_value(&self, expected: &Foreign) -> bool {
        match (self, expected) {
            (Value::String(text), Foreign::String(expected)) => text == expected,
            (Value::String(_), _) => false,
            _ => **self == wire::leave(expected.clone()),
        }
    }

    fn to_value(&self) -> Cow<'a, Foreign> {
        Cow::Owned(wire::enter((*self).clone()))
    }

    fn identity(&self) -> Option<NodeIdentity> {
        Some(NodeIdentity::new(std::ptr::from_ref::<Value>(self) as usize))
    }
}

impl<'a> Object<'a, Exact> for &'a Map<String, Value> {
    type Node = &'a Value;
    type MemberName = &'a str;
    type MembersIter = Members<'a>;

    fn len(&self) -> usize {
        Map::len(self)
    }

    fn get(&self, key: &String) -> Option<&'a Value> {
        (*self).get(key)
    }

    fn members(&self) -> Members<'a> {
        (*self).iter().map(|(name, value)| (name.as_str(), value))
    }
}

impl<'a> Array<'a, Exact> for &'a [Value] {
    type Node = &'a Value;
    type ElementsIter = std::slice::Iter<'a, Value>;

    fn len(&self) -> usize {
        <[Value]>::len(self)
    }

    fn elements(&self) -> Self::ElementsIter {
        (*self).iter()
    }

    fn is_unique(&self) -> bool {
        let mut seen = HashSet::new();
        self.iter().all(|element| seen.insert(canonical(element)))
    }
}

impl JsonNumber for Compared<'_> {
    fn as_u64(&self) -> Option<u64> {
        self.0.as_u64()
    }

    fn as_i64(&self) -> Option<i64> {
        self.0.as_i64()
    }

    /// Beyond all doubles is infinity, which no bound lets through.
    fn as_f64(&self) -> Option<f64> {
        self.0.as_f64().or_else(|| self.0.as_str().parse().ok())
    }

    fn as_str(&self) -> Cow<'_, str> {
        self.0.as_str()
    }

    fn to_number(&self) -> Cow<'_, serde_json::Number> {
        Cow::Owned(serde_json::Number::from_f64(self.0.as_f64().unwrap_or(f64::MAX)).unwrap_or_else(|| 0.into()))
    }

    fn is_integer(&self) -> bool {
        self.0.is_whole()
    }

    fn is_written_as_integer(&self) -> bool {
        self.0.is_written_whole()
    }
}

/// A text that equal values share, however their numbers are written and their members ordered.
fn canonical(value: &Value) -> String {
    match value {
        Value::Number(number) => number.to_whole().map_or_else(|| format!("{:?}", number.as_f64()), |whole| whole.to_string()),
        Value::Array(elements) => format!("[{}]", elements.iter().map(canonical).collect::<Vec<_>>().join(",")),
        Value::Object(members) => {
            let mut members: Vec<String> =
                members.iter().map(|(key, value)| format!("{}:{}", Value::from(key), canonical(value))).collect();
            members.sort();
            format!("{{{}}}", members.join(","))
        }
        other => other.to_string(),
    }
}
