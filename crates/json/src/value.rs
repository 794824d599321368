//! The value, and the usual ways into it.

use std::{fmt, ops};

use crate::{Map, Number};

/// A JSON value.
#[derive(Clone, PartialEq, Default)]
#[expect(missing_docs, reason = "the names are the standard's")]
pub enum Value {
    #[default]
    Null,
    Bool(bool),
    Number(Number),
    String(String),
    Array(Vec<Value>),
    Object(Map<String, Value>),
}

/// What is where nothing is.
static NOTHING: Value = Value::Null;

impl Value {
    /// Whether it is null.
    pub fn is_null(&self) -> bool {
        matches!(self, Self::Null)
    }

    /// Whether it is a number.
    pub fn is_number(&self) -> bool {
        matches!(self, Self::Number(_))
    }

    /// Whether it is a string.
    pub fn is_string(&self) -> bool {
        matches!(self, Self::String(_))
    }

    /// Whether it is an array.
    pub fn is_array(&self) -> bool {
        matches!(self, Self::Array(_))
    }

    /// Whether it is an object.
    pub fn is_object(&self) -> bool {
        matches!(self, Self::Object(_))
    }

    /// The truth value, if it is one.
    pub fn as_bool(&self) -> Option<bool> {
        if let Self::Bool(value) = self { Some(*value) } else { None }
    }

    /// The number, if it is one.
    pub fn as_number(&self) -> Option<&Number> {
        if let Self::Number(number) = self { Some(number) } else { None }
    }

    /// The number, if it is written as a whole one and fits.
    pub fn as_i64(&self) -> Option<i64> {
        self.as_number()?.as_i64()
    }

    /// The number, if it is written as a whole one and fits.
    pub fn as_u64(&self) -> Option<u64> {
        self.as_number()?.as_u64()
    }

    /// The double nearest to a number.
    pub fn as_f64(&self) -> Option<f64> {
        self.as_number()?.as_f64()
    }

    /// The text of a string.
    pub fn as_str(&self) -> Option<&str> {
        if let Self::String(text) = self { Some(text) } else { None }
    }

    /// The elements of an array.
    pub fn as_array(&self) -> Option<&Vec<Value>> {
        if let Self::Array(elements) = self { Some(elements) } else { None }
    }

    /// The elements of an array, to change them.
    pub fn as_array_mut(&mut self) -> Option<&mut Vec<Value>> {
        if let Self::Array(elements) = self { Some(elements) } else { None }
    }

    /// The members of an object.
    pub fn as_object(&self) -> Option<&Map<String, Value>> {
        if let Self::Object(members) = self { Some(members) } else { None }
    }

    /// The members of an object, to change them.
    pub fn as_object_mut(&mut self) -> Option<&mut Map<String, Value>> {
        if let Self::Object(members) = self { Some(members) } else { None }
    }

    /// A member or an element.
    pub fn get(&self, index: impl Index) -> Option<&Value> {
        index.of(self)
    }

    /// A member or an element, to change it.
    pub fn get_mut(&mut self, index: impl Index) -> Option<&mut Value> {
        index.of_mut(self)
    }

    /// What a JSON Pointer (RFC 6901) leads to.
    pub fn pointer(&self, pointer: &str) -> Option<&Value> {
        if pointer.is_empty() {
            return Some(self);
        }
        pointer.strip_prefix('/')?.split('/').try_fold(self, |value, step| match value {
            Self::Object(members) => members.get(&step.replace("~1", "/").replace("~0", "~")),
            Self::Array(elements) if step == "0" || !step.starts_with(['0', '+']) => elements.get(step.parse::<usize>().ok()?),
            _ => None,
        })
    }

    /// What a JSON Pointer (RFC 6901) leads to, to change it.
    pub fn pointer_mut(&mut self, pointer: &str) -> Option<&mut Value> {
        if pointer.is_empty() {
            return Some(self);
        }
        pointer.strip_prefix('/')?.split('/').try_fold(self, |value, step| match value {
            Self::Object(members) => members.get_mut(&step.replace("~1", "/").replace("~0", "~")),
            Self::Array(elements) if step == "0" || !step.starts_with(['0', '+']) => {
                elements.get_mut(step.parse::<usize>().ok()?)
            }
            _ => None,
        })
    }

    /// Takes the value away and leaves null.
    #[must_use]
    pub fn take(&mut self) -> Value {
        std::mem::take(self)
    }

    /// The first number in the value that something cannot hold: its JSON Pointer, and the start of its digits.
    pub fn unheld_number(&self, holds: fn(&Number) -> bool) -> Option<(String, String)> {
        let below = |step: &dyn fmt::Display, value: &Self| {
            value.unheld_number(holds).map(|(path, written)| (format!("/{step}{path}"), written))
        };
        match self {
            Self::Number(number) if !holds(number) => Some((String::new(), number.as_str().chars().take(40).collect())),
            Self::Array(elements) => elements.iter().enumerate().find_map(|(index, element)| below(&index, element)),
            Self::Object(members) => members.iter().find_map(|(key, member)| below(key, member)),
            _ => None,
        }
    }

    /// How many bytes the value has as compact JSON, told without writing it.
    pub fn written_length(&self) -> usize {
        match self {
            Self::Null | Self::Bool(true) => 4,
            Self::Bool(false) => 5,
            Self::Number(number) => number.as_str().len(),
            Self::String(text) => string_length(text),
            Self::Array(elements) => {
                2 + elements.len().saturating_sub(1) + elements.iter().map(Value::written_length).sum::<usize>()
            }
            Self::Object(members) => {
                let pairs: usize = members.iter().map(|(key, value)| string_length(key) + 1 + value.written_length()).sum();
                2 + members.len().saturating_sub(1) + pairs
            }
        }
    }
}

fn string_length(text: &str) -> usize {
    let escape = |byte| match byte {
        b'"' | b'\\' | b'\n' | b'\r' | b'\t' | 8 | 12 => 1,
        ..=0x1f => 5,
        _ => 0,
    };
    text.len() + 2 + text.bytes().map(escape).sum::<usize>()
}

/// What a value is looked into with: the name of a member, or the number of an element.
pub trait Index {
    #[doc(hidden)]
    fn of<'a>(&self, value: &'a Value) -> Option<&'a Value>;
    #[doc(hidden)]
    fn of_mut<'a>(&self, value: &'a mut Value) -> Option<&'a mut Value>;
}

impl Index for usize {
    fn of<'a>(&self, value: &'a Value) -> Option<&'a Value> {
        value.as_array()?.get(*self)
    }

    fn of_mut<'a>(&self, value: &'a mut Value) -> Option<&'a mut Value> {
        value.as_array_mut()?.get_mut(*self)
    }
}

impl Index for str {
    fn of<'a>(&self, value: &'a Value) -> Option<&'a Value> {
        value.as_object()?.get(self)
    }

    fn of_mut<'a>(&self, value: &'a mut Value) -> Option<&'a mut Value> {
        value.as_object_mut()?.get_mut(self)
    }
}

impl Index for String {
    fn of<'a>(&self, value: &'a Value) -> Option<&'a Value> {
        self.as_str().of(value)
    }

    fn of_mut<'a>(&self, value: &'a mut Value) -> Option<&'a mut Value> {
        self.as_str().of_mut(value)
    }
}

impl<I: Index + ?Sized> Index for &I {
    fn of<'a>(&self, value: &'a Value) -> Option<&'a Value> {
        (**self).of(value)
    }

    fn of_mut<'a>(&self, value: &'a mut Value) -> Option<&'a mut Value> {
        (**self).of_mut(value)
    }
}

impl<I: Index> ops::Index<I> for Value {
    type Output = Value;

    /// Null where there is nothing.
    fn index(&self, index: I) -> &Value {
        index.of(self).unwrap_or(&NOTHING)
    }
}

impl ops::IndexMut<&str> for Value {
    /// Makes the member where there is none; what is no object becomes one.
    fn index_mut(&mut self, name: &str) -> &mut Value {
        if !self.is_object() {
            *self = Self::Object(Map::new());
        }
        match self {
            Self::Object(members) => members.entry(name.to_owned()).or_default(),
            // It is one now.
            other => other,
        }
    }
}

impl fmt::Display for Value {
    /// Compact JSON; with `{:#}` on lines of their own.
    fn fmt(&self, formatter: &mut fmt::Formatter<'_>) -> fmt::Result {
        let text = if formatter.alternate() { serde_json::to_string_pretty(self) } else { serde_json::to_string(self) };
        formatter.write_str(&text.map_err(|_| fmt::Error)?)
    }
}

impl fmt::Debug for Value {
    fn fmt(&self, formatter: &mut fmt::Formatter<'_>) -> fmt::Result {
        fmt::Display::fmt(self, formatter)
    }
}

impl From<&str> for Value {
    fn from(text: &str) -> Self {
        Self::String(text.to_owned())
    }
}

impl From<&String> for Value {
    fn from(text: &String) -> Self {
        Self::String(text.clone())
    }
}

impl From<f64> for Value {
    /// Null for NaN and infinities.
    fn from(value: f64) -> Self {
        Number::from_f64(value).map_or(Self::Null, Self::Number)
    }
}

impl<T: Into<Value>> From<Option<T>> for Value {
    fn from(value: Option<T>) -> Self {
        value.map_or(Self::Null, Into::into)
    }
}

impl<T: Into<Value>> From<Vec<T>> for Value {
    fn from(values: Vec<T>) -> Self {
        Self::Array(values.into_iter().map(Into::into).collect())
    }
}

impl<T: Into<Value>> FromIterator<T> for Value {
    fn from_iter<I: IntoIterator<Item = T>>(values: I) -> Self {
        Self::Array(values.into_iter().map(Into::into).collect())
    }
}

impl FromIterator<(String, Value)> for Value {
    fn from_iter<I: IntoIterator<Item = (String, Value)>>(members: I) -> Self {
        Self::Object(members.into_iter().collect())
    }
}

macro_rules! from_variants {
    ($($source:ty => $variant:ident),* $(,)?) => {$(
        impl From<$source> for Value {
            fn from(value: $source) -> Self {
                Self::$variant(value.into())
            }
        }
    )*};
}
from_variants!(
    bool => Bool, String => String, Number => Number, Map<String, Value> => Object,
    i8 => Number, i16 => Number, i32 => Number, i64 => Number, i128 => Number, isize => Number,
    u8 => Number, u16 => Number, u32 => Number, u64 => Number, u128 => Number, usize => Number,
);

macro_rules! equals {
    ($($other:ty),*) => {$(
        impl PartialEq<$other> for Value {
            fn eq(&self, other: &$other) -> bool {
                let other: Value = other.to_owned().into();
                *self == other
            }
        }

        impl PartialEq<Value> for $other {
            fn eq(&self, other: &Value) -> bool {
                other == self
            }
        }
    )*};
}
equals!(&str, String, bool, i32, i64, u32, u64, usize, f64);

impl PartialEq<str> for Value {
    fn eq(&self, other: &str) -> bool {
        self.as_str() == Some(other)
    }
}
