//! JSON that keeps numbers as they were written. `serde_json::Value` holds whole numbers of 64 bits and doubles, and
//! rounds what does not fit; here nothing is rounded without a word.

use std::{fmt, mem::size_of, str::FromStr};

use serde::{de::DeserializeOwned, ser::Error as _, Deserialize, Deserializer, Serialize, Serializer};
use serde_json::{value::RawValue, Value};

use crate::{reader, Error, Result};

/// Any JSON value, as it was written: each number keeps its digits. It may be an argument, a field, a result, and what
/// memory keeps.
#[derive(Debug, Clone)]
pub struct Json(Box<RawValue>);

impl Json {
    /// Writes a value down.
    pub fn new(value: impl Serialize) -> Result<Self> {
        Self::write(&value).map_err(Error::from)
    }

    pub(crate) fn write(value: &impl Serialize) -> serde_json::Result<Self> {
        serde_json::value::to_raw_value(value).map(Self)
    }

    /// The JSON text. Of a number these are its digits, for any type that parses them.
    pub fn text(&self) -> &str {
        self.0.get()
    }

    /// Reads the value as another type: `u128`, a struct, or `Vec<Json>` and `BTreeMap<String, Json>` to look inside. A
    /// number that the type cannot hold is an error that says where it stands.
    pub fn read<T: DeserializeOwned>(&self) -> Result<T> {
        Ok(reader::read(self.text())?)
    }
}

impl fmt::Display for Json {
    fn fmt(&self, formatter: &mut fmt::Formatter<'_>) -> fmt::Result {
        formatter.write_str(self.text())
    }
}

impl FromStr for Json {
    type Err = Error;

    fn from_str(text: &str) -> Result<Self> {
        RawValue::from_string(text.trim().to_owned()).map(Self).map_err(Error::from)
    }
}

impl Serialize for Json {
    fn serialize<S: Serializer>(&self, serializer: S) -> std::result::Result<S::Ok, S::Error> {
        // A serializer that gives something back builds a value of its own, such as `serde_json::Value`, and may round.
        // One that gives nothing back writes.
        if size_of::<S::Ok>() == 0 {
            return self.0.serialize(serializer);
        }
        reader::read::<Value>(self.text()).map_err(S::Error::custom)?.serialize(serializer)
    }
}

impl<'de> Deserialize<'de> for Json {
    fn deserialize<D: Deserializer<'de>>(deserializer: D) -> std::result::Result<Self, D::Error> {
        Box::deserialize(deserializer).map(Self)
    }
}
