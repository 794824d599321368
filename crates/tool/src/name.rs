//! Names of tools, typed so that no name can leave the tools folder.

use std::{borrow::Borrow, fmt, str::FromStr, sync::Arc};

use serde::{Deserialize, Deserializer, Serialize, Serializer};

/// The server's own tools; no other tool may take one of these names.
pub const BUILTIN_NAMES: [&str; 13] = [
    "build_tool",
    "call_tool",
    "delete_tool",
    "execute_code",
    "import_mcp",
    "import_tool",
    "list_tools",
    "memory",
    "pipeline",
    "register_script",
    "services",
    "test_tool",
    "version",
];

/// Longest name a new tool may have, in bytes; leaves room for the prefixes that clients add.
const NEW_NAME_LENGTH: usize = 48;
/// Longest name of a folder that is there already, in bytes.
const EXISTING_NAME_LENGTH: usize = 64;

/// A tool's name: letters, digits, `_` and `-` only, so it is always one plain path component.
#[derive(Clone, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub struct ToolName(Arc<str>);

/// Why a name was refused, with one that would do.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
#[error(
    "The name `{shown}` {reason}. A tool's name has 1 to 48 characters: a lower-case letter, then lower-case letters, digits or `_`. `{suggestion}` would do"
)]
pub struct NameError {
    shown: String,
    reason: &'static str,
    /// A valid name close to what was given.
    pub suggestion: String,
}

impl ToolName {
    /// Takes a name for a new tool: `^[a-z][a-z0-9_]{0,47}$`, and none of [`BUILTIN_NAMES`].
    pub fn for_new(name: &str) -> Result<Self, NameError> {
        let reason = if name.is_empty() {
            "is empty"
        } else if BUILTIN_NAMES.contains(&name) {
            "belongs to a built-in tool"
        } else if name.len() > NEW_NAME_LENGTH {
            "is too long"
        } else if !name.starts_with(|first: char| first.is_ascii_lowercase()) {
            "does not start with a lower-case letter"
        } else if !name.bytes().all(|byte| matches!(byte, b'a'..=b'z' | b'0'..=b'9' | b'_')) {
            "has a character that is not allowed"
        } else {
            return Ok(Self(name.into()));
        };
        Err(NameError::new(name, reason))
    }

    /// Takes the name of a folder that is there already: `[A-Za-z0-9_-]{1,64}`, and none of [`BUILTIN_NAMES`].
    pub fn for_existing(name: &str) -> Result<Self, NameError> {
        let reason = if name.is_empty() {
            "is empty"
        } else if BUILTIN_NAMES.contains(&name) {
            "belongs to a built-in tool"
        } else if name.len() > EXISTING_NAME_LENGTH {
            "is too long"
        } else if !name.bytes().all(|byte| byte.is_ascii_alphanumeric() || matches!(byte, b'_' | b'-')) {
            "has a character that is not allowed"
        } else {
            return Ok(Self(name.into()));
        };
        Err(NameError::new(name, reason))
    }

    /// What programs of `execute_code` go by where a tool's name is wanted: that of the built-in, which no tool has.
    pub fn of_programs() -> Self {
        Self("execute_code".into())
    }

    /// The name as text.
    pub fn as_str(&self) -> &str {
        &self.0
    }
}

impl NameError {
    fn new(name: &str, reason: &'static str) -> Self {
        Self { shown: name.chars().take(80).collect(), reason, suggestion: suggest(name) }
    }
}

/// Bends any text into a valid new name: foreign characters become `_`, runs of `_` one.
fn suggest(name: &str) -> String {
    let mut suggestion = String::new();
    for character in name.chars() {
        let character = character.to_ascii_lowercase();
        if character.is_ascii_lowercase() || (character.is_ascii_digit() && !suggestion.is_empty()) {
            suggestion.push(character);
        } else if !suggestion.is_empty() && !suggestion.ends_with('_') {
            suggestion.push('_');
        }
        if suggestion.len() == NEW_NAME_LENGTH {
            break;
        }
    }
    let trimmed = suggestion.trim_end_matches('_');
    if trimmed.is_empty() {
        return "my_tool".to_owned();
    }
    if BUILTIN_NAMES.contains(&trimmed) {
        return format!("my_{trimmed}");
    }
    trimmed.to_owned()
}

impl fmt::Display for ToolName {
    fn fmt(&self, formatter: &mut fmt::Formatter<'_>) -> fmt::Result {
        formatter.write_str(&self.0)
    }
}

impl fmt::Debug for ToolName {
    fn fmt(&self, formatter: &mut fmt::Formatter<'_>) -> fmt::Result {
        fmt::Debug::fmt(&self.0, formatter)
    }
}

impl Borrow<str> for ToolName {
    fn borrow(&self) -> &str {
        &self.0
    }
}

impl FromStr for ToolName {
    type Err = NameError;

    fn from_str(name: &str) -> Result<Self, NameError> {
        Self::for_existing(name)
    }
}

impl Serialize for ToolName {
    fn serialize<S: Serializer>(&self, serializer: S) -> Result<S::Ok, S::Error> {
        serializer.serialize_str(&self.0)
    }
}

impl<'de> Deserialize<'de> for ToolName {
    fn deserialize<D: Deserializer<'de>>(deserializer: D) -> Result<Self, D::Error> {
        let name = String::deserialize(deserializer)?;
        Self::for_existing(&name).map_err(serde::de::Error::custom)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn new_names_follow_the_rule() {
        let longest = "a".repeat(48);
        for name in ["a", "word_count", "x9", longest.as_str()] {
            assert!(ToolName::for_new(name).is_ok(), "{name}");
        }
        let too_long = "a".repeat(49);
        for name in [
            "",
            " ",
            "A",
            "9a",
            "_a",
            "a-b",
            "a b",
            "a/b",
            "../x",
            "/etc/x",
            "a.b",
            "ü",
            "a\0",
            "a\n",
            "list_tools",
            "memory",
            too_long.as_str(),
        ] {
            let error = ToolName::for_new(name).expect_err(name);
            assert!(ToolName::for_new(&error.suggestion).is_ok(), "{name} -> {}", error.suggestion);
        }
    }

    #[test]
    fn existing_names_may_be_older_but_never_paths() {
        for name in ["My-Tool", "9lives", "-x", &"a".repeat(64)] {
            assert!(ToolName::for_existing(name).is_ok(), "{name}");
        }
        for name in ["", ".", "..", "a/b", "a\\b", ".hidden", "a.b", "ü", "build_tool", &"a".repeat(65)] {
            assert!(ToolName::for_existing(name).is_err(), "{name}");
        }
    }

    #[test]
    fn the_error_says_rule_and_suggestion() {
        let error = ToolName::for_new("My Tool!").expect_err("has a space");
        assert_eq!(
            error.to_string(),
            "The name `My Tool!` does not start with a lower-case letter. A tool's name has 1 to 48 characters: \
             a lower-case letter, then lower-case letters, digits or `_`. `my_tool` would do"
        );
    }
}
