//! Version numbers of tools.

use std::{fmt, str::FromStr};

use serde::{Deserialize, Deserializer, Serialize, Serializer};

/// A tool's version, `major.minor.patch`; as digits and dots only it is also a safe folder name.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub struct Version {
    /// Raised by hand only.
    pub major: u32,
    /// Raised when the input schema breaks callers.
    pub minor: u32,
    /// Raised by every other publish.
    pub patch: u32,
}

/// The text is no `major.minor.patch`.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
#[error("`{0}` is not a version; write it as `major.minor.patch`, for example `1.0.2`")]
pub struct ParseVersionError(String);

impl Version {
    /// What a new tool starts with.
    pub const FIRST: Self = Self { major: 1, minor: 0, patch: 0 };

    /// The version after this one; `breaking` when callers of this one may fail.
    #[must_use]
    pub fn next(self, breaking: bool) -> Self {
        if breaking {
            Self { minor: self.minor.saturating_add(1), patch: 0, ..self }
        } else {
            Self { patch: self.patch.saturating_add(1), ..self }
        }
    }
}

impl fmt::Display for Version {
    fn fmt(&self, formatter: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(formatter, "{}.{}.{}", self.major, self.minor, self.patch)
    }
}

impl FromStr for Version {
    type Err = ParseVersionError;

    /// Reads `1`, `1.2` and `1.2.3`; missing parts are 0.
    fn from_str(text: &str) -> Result<Self, ParseVersionError> {
        let refuse = || ParseVersionError(text.chars().take(40).collect());
        let mut numbers = [0_u32; 3];
        let mut parts = text.trim().trim_start_matches('v').split('.');
        for (index, number) in numbers.iter_mut().enumerate() {
            match parts.next() {
                Some(part) if !part.is_empty() && part.bytes().all(|byte| byte.is_ascii_digit()) => {
                    *number = part.parse().map_err(|_| refuse())?;
                }
                None if index > 0 => break,
                _ => return Err(refuse()),
            }
        }
        if parts.next().is_some() {
            return Err(refuse());
        }
        let [major, minor, patch] = numbers;
        Ok(Self { major, minor, patch })
    }
}

impl Serialize for Version {
    fn serialize<S: Serializer>(&self, serializer: S) -> Result<S::Ok, S::Error> {
        serializer.collect_str(self)
    }
}

impl<'de> Deserialize<'de> for Version {
    fn deserialize<D: Deserializer<'de>>(deserializer: D) -> Result<Self, D::Error> {
        String::deserialize(deserializer)?.parse().map_err(serde::de::Error::custom)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn versions_read_and_order_as_numbers() {
        let read = |text: &str| text.parse::<Version>().expect(text);
        assert!(read("1.0.10") > read("1.0.9"));
        assert_eq!(read("2"), Version { major: 2, minor: 0, patch: 0 });
        assert_eq!(read("1.2").to_string(), "1.2.0");
        assert_eq!(Version::FIRST.next(false).to_string(), "1.0.1");
        assert_eq!(read("1.4.7").next(true).to_string(), "1.5.0");
        for text in ["", ".", "1.", "a", "1.2.3.4", "../1", "1.0.0-beta", "-1", "99999999999"] {
            assert!(text.parse::<Version>().is_err(), "{text}");
        }
    }
}
