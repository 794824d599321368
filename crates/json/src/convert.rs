//! Between values, texts and what serde knows.

use serde::{Deserialize, Deserializer, Serialize, Serializer, de::DeserializeOwned};
use serde_json::value::RawValue;

use crate::{Value, parse};

/// Reads a value as any type.
///
/// # Errors
///
/// Where the value is not of the type's form; the message names no place in a text, since there is none.
pub fn from_value<T: DeserializeOwned>(value: Value) -> Result<T, serde_json::Error> {
    read(&value)
}

/// Reads a value as any type, and leaves it where it is.
///
/// # Errors
///
/// Where the value is not of the type's form; the message names no place in a text, since there is none.
pub fn read<T: DeserializeOwned>(value: &Value) -> Result<T, serde_json::Error> {
    serde_json::from_str(&value.to_string()).map_err(|error| {
        let message = error.to_string();
        let place = message.rfind(" at line ").unwrap_or(message.len());
        serde::de::Error::custom(message.get(..place).unwrap_or(&message))
    })
}

/// What serialises, as a value.
///
/// # Errors
///
/// Keys that are no text, and what the type itself refuses.
pub fn to_value<T: Serialize>(value: T) -> Result<Value, serde_json::Error> {
    parse(&serde_json::to_string(&value)?).map_err(serde::de::Error::custom)
}

impl Serialize for Value {
    fn serialize<S: Serializer>(&self, serializer: S) -> Result<S::Ok, S::Error> {
        match self {
            Self::Null => serializer.serialize_unit(),
            Self::Bool(value) => serializer.serialize_bool(*value),
            Self::Number(number) => number.serialize(serializer),
            Self::String(text) => serializer.serialize_str(text),
            Self::Array(elements) => elements.serialize(serializer),
            Self::Object(members) => members.serialize(serializer),
        }
    }
}

impl<'de> Deserialize<'de> for Value {
    /// Takes the text as it stands, which only `serde_json` has: not through `flatten` or `untagged`, which lose digits.
    fn deserialize<D: Deserializer<'de>>(deserializer: D) -> Result<Self, D::Error> {
        let text = Box::<RawValue>::deserialize(deserializer)?;
        parse(text.get()).map_err(serde::de::Error::custom)
    }
}

impl From<serde_json::Value> for Value {
    fn from(value: serde_json::Value) -> Self {
        match value {
            serde_json::Value::Null => Self::Null,
            serde_json::Value::Bool(value) => Self::Bool(value),
            serde_json::Value::Number(number) => Self::Number(crate::Number::of_text(&number.to_string())),
            serde_json::Value::String(text) => Self::String(text),
            serde_json::Value::Array(elements) => Self::Array(elements.into_iter().map(Self::from).collect()),
            serde_json::Value::Object(members) => {
                Self::Object(members.into_iter().map(|(key, value)| (key, Self::from(value))).collect())
            }
        }
    }
}
