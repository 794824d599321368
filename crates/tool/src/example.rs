//! Examples: a tool's tests, and its documentation.

use serde::{Deserialize, Serialize};
use skillz_json::{Map, Value};

/// One example of a call and of what must come of it. At least one expectation has to be given.
#[derive(Debug, Clone, PartialEq, Default, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct Example {
    /// What the call shows.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub description: Option<String>,
    /// Arguments of the call.
    #[serde(default, skip_serializing_if = "Map::is_empty")]
    pub arguments: Map<String, Value>,
    /// The exact result. `null` given explicitly is a result too.
    #[serde(default, skip_serializing_if = "Option::is_none", deserialize_with = "present")]
    pub result: Option<Value>,
    /// Text that the result holds, or members that an object result has.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub contains: Option<Value>,
    /// Regular expression that the result's text matches.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub matches: Option<String>,
    /// Whether the call must fail.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub is_error: Option<bool>,
}

/// An example that did not hold.
#[derive(Debug, Clone, PartialEq, Serialize)]
pub struct ExampleFailure {
    /// Position in the tool's `examples`, from 0.
    pub index: usize,
    /// The example's description, where it has one.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub description: Option<String>,
    /// Its arguments.
    pub arguments: Map<String, Value>,
    /// What was expected, in words.
    pub expected: String,
    /// What came.
    pub actual: String,
}

/// Keeps an explicit `null` apart from an absent field.
fn present<'de, D: serde::Deserializer<'de>>(deserializer: D) -> Result<Option<Value>, D::Error> {
    Value::deserialize(deserializer).map(Some)
}
