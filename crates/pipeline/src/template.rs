//! Arguments with references in them, read once and filled in at each call.

use skillz_json::{Map, Value};

use crate::{
    reference::{Reference, Written, shortened},
    scope::Scope,
};

/// A JSON value whose texts may hold references.
#[derive(Debug, Clone, PartialEq)]
pub(crate) enum Template {
    /// Holds no reference.
    Literal(Value),
    /// One reference: becomes the value itself, with its type.
    Reference(Reference),
    /// A text with references in it.
    Text(Vec<Part>),
    Array(Vec<Template>),
    Object(Vec<(String, Template)>),
}

/// A piece of a text.
#[derive(Debug, Clone, PartialEq)]
pub(crate) enum Part {
    Text(String),
    Reference(Reference),
}

/// Ties a written reference to what it means at the place where it stands, or says why it means nothing.
pub(crate) type Bind<'a> = &'a dyn Fn(Written) -> Result<Reference, String>;

impl Template {
    /// Reads a value; every faulty reference is added to `faults`.
    pub(crate) fn read(value: &Value, bind: Bind<'_>, faults: &mut Vec<String>) -> Self {
        match value {
            Value::String(text) => Self::read_text(text, bind, faults),
            Value::Array(items) => {
                let items: Vec<Self> = items.iter().map(|item| Self::read(item, bind, faults)).collect();
                if items.iter().all(Self::is_untouched) { Self::Literal(value.clone()) } else { Self::Array(items) }
            }
            Value::Object(members) => {
                let members: Vec<(String, Self)> =
                    members.iter().map(|(key, member)| (key.clone(), Self::read(member, bind, faults))).collect();
                if members.iter().all(|(_, member)| member.is_untouched()) {
                    Self::Literal(value.clone())
                } else {
                    Self::Object(members)
                }
            }
            other => Self::Literal(other.clone()),
        }
    }

    fn read_text(text: &str, bind: Bind<'_>, faults: &mut Vec<String>) -> Self {
        if !text.contains('$') {
            return Self::Literal(Value::String(text.to_owned()));
        }
        let mut parts = Vec::new();
        let mut plain = String::new();
        let mut rest = text;
        while let Some(start) = rest.find('$') {
            let (before, from_dollar) = rest.split_at(start);
            plain.push_str(before);
            if let Some(after) = from_dollar.strip_prefix("$$") {
                plain.push('$');
                rest = after;
                continue;
            }
            let bound = Written::read(from_dollar)
                .and_then(|read| read.map(|(written, length)| Ok((bind(written)?, length))).transpose());
            let (reference, length) = match bound {
                Ok(Some((reference, length))) => (Some(reference), length),
                Ok(None) => (None, 1),
                Err(fault) => {
                    faults.push(fault);
                    (None, 1)
                }
            };
            if let Some(reference) = reference {
                if !plain.is_empty() {
                    parts.push(Part::Text(std::mem::take(&mut plain)));
                }
                parts.push(Part::Reference(reference));
            } else {
                plain.push('$');
            }
            rest = from_dollar.get(length..).unwrap_or_default();
        }
        plain.push_str(rest);
        Self::from_parts(parts, plain)
    }

    fn from_parts(mut parts: Vec<Part>, plain: String) -> Self {
        if parts.is_empty() {
            // `$$` is a dollar sign in texts without references too.
            return Self::Text(vec![Part::Text(plain)]);
        }
        if !plain.is_empty() {
            parts.push(Part::Text(plain));
        }
        if let [Part::Reference(reference)] = parts.as_slice() {
            return Self::Reference(reference.clone());
        }
        Self::Text(parts)
    }

    /// Whether the template is the value it was read from.
    fn is_untouched(&self) -> bool {
        matches!(self, Self::Literal(_))
    }

    /// The value itself, where no reference is in it.
    pub(crate) fn literal(&self) -> Option<Value> {
        match self {
            Self::Literal(value) => Some(value.clone()),
            Self::Reference(_) => None,
            Self::Text(parts) => match parts.as_slice() {
                [Part::Text(text)] => Some(Value::String(text.clone())),
                _ => None,
            },
            Self::Array(items) => items.iter().map(Self::literal).collect::<Option<Vec<_>>>().map(Value::Array),
            Self::Object(members) => {
                let members = members.iter().map(|(key, member)| Some((key.clone(), member.literal()?)));
                members.collect::<Option<Map<_, _>>>().map(Value::Object)
            }
        }
    }

    /// Fills the references in.
    pub(crate) fn fill(&self, scope: &Scope<'_>) -> Result<Value, String> {
        match self {
            Self::Literal(value) => Ok(value.clone()),
            Self::Reference(reference) => scope.resolve(reference).cloned(),
            Self::Text(parts) => {
                let mut text = String::new();
                for part in parts {
                    match part {
                        Part::Text(plain) => text.push_str(plain),
                        Part::Reference(reference) => push_as_text(&mut text, scope.resolve(reference)?),
                    }
                }
                Ok(Value::String(text))
            }
            Self::Array(items) => items.iter().map(|item| item.fill(scope)).collect::<Result<Vec<_>, _>>().map(Value::Array),
            Self::Object(members) => fill_object(members, scope).map(Value::Object),
        }
    }

    /// Every reference in it.
    pub(crate) fn references(&self) -> Vec<&Reference> {
        match self {
            Self::Literal(_) => Vec::new(),
            Self::Reference(reference) => vec![reference],
            Self::Text(parts) => parts
                .iter()
                .filter_map(|part| match part {
                    Part::Reference(reference) => Some(reference),
                    Part::Text(_) => None,
                })
                .collect(),
            Self::Array(items) => items.iter().flat_map(Self::references).collect(),
            Self::Object(members) => members.iter().flat_map(|(_, member)| member.references()).collect(),
        }
    }
}

fn fill_object(members: &[(String, Template)], scope: &Scope<'_>) -> Result<Map<String, Value>, String> {
    members.iter().map(|(key, member)| Ok((key.clone(), member.fill(scope)?))).collect()
}

fn push_as_text(text: &mut String, value: &Value) {
    match value {
        Value::String(inner) => text.push_str(inner),
        other => text.push_str(&other.to_string()),
    }
}

/// A value as short JSON, for messages.
pub(crate) fn preview(value: &Value) -> String {
    shortened(&value.to_string())
}
