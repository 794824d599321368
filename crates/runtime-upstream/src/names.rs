//! Names for the tools of imported servers: `<server>_<tool>`, bent to the rule for tools, each once.

use std::{collections::BTreeSet, fmt::Write};

use sha2::{Digest, Sha256};
use skillz_tool::{BUILTIN_NAMES, ToolError, ToolName};

/// Longest name of a server: its tools' names need room behind it.
const SERVER_NAME_LENGTH: usize = 32;
/// Longest name of a tool, in bytes.
const NAME_LENGTH: usize = 48;
/// Characters of a hash that make a shortened name unique.
const HASH_LENGTH: usize = 6;

/// Checks the name of a server, which becomes a file's name and the beginning of its tools' names.
pub(crate) fn check_server_name(name: &str) -> Result<(), ToolError> {
    if name.len() <= SERVER_NAME_LENGTH && (ToolName::for_new(name).is_ok() || BUILTIN_NAMES.contains(&name)) {
        return Ok(());
    }
    let shown: String = name.chars().take(80).collect();
    let suggestion = ToolName::for_new(name).err().map_or_else(|| name.to_owned(), |error| error.suggestion);
    let suggestion = suggestion.get(..suggestion.len().min(SERVER_NAME_LENGTH)).unwrap_or(&suggestion).trim_end_matches('_');
    Err(ToolError::invalid(format!(
        "`{shown}` cannot be the name of a server: it has 1 to {SERVER_NAME_LENGTH} characters, a lower-case letter first, then lower-case \
         letters, digits or `_`. `{suggestion}` would do"
    )))
}

/// The name of a server's tool. `taken` holds the names given so far, and gets this one.
pub(crate) fn tool_name(server: &str, original: &str, taken: &mut BTreeSet<String>) -> String {
    let mut name = format!("{server}_");
    name.extend(original.chars().map(|character| match character.to_ascii_lowercase() {
        fitting @ ('a'..='z' | '0'..='9' | '_') => fitting,
        _ => '_',
    }));
    if name.len() > NAME_LENGTH {
        name.truncate(NAME_LENGTH - HASH_LENGTH - 1);
        name.push('_');
        for byte in Sha256::digest(original.as_bytes()).iter().take(HASH_LENGTH / 2) {
            let _ = write!(name, "{byte:02x}");
        }
    }
    let mut number = 2_u32;
    let mut candidate = name.clone();
    while BUILTIN_NAMES.contains(&candidate.as_str()) || !taken.insert(candidate.clone()) {
        let suffix = format!("_{number}");
        candidate = format!("{}{suffix}", name.get(..name.len().min(NAME_LENGTH - suffix.len())).unwrap_or(&name));
        number += 1;
    }
    candidate
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn names_are_bent_to_the_rule_and_given_once() {
        let mut taken = BTreeSet::new();
        for (original, expected) in [
            ("echo", "s_echo"),
            ("Echo", "s_echo_2"),
            ("get-sum", "s_get_sum"),
            ("get.sum", "s_get_sum_2"),
            ("größe/x", "s_gr__e_x"),
            ("9lives", "s_9lives"),
        ] {
            assert_eq!(tool_name("s", original, &mut taken), expected);
        }
        let long = "x".repeat(100);
        let first = tool_name("s", &long, &mut taken);
        let second = tool_name("s", &format!("{long}y"), &mut taken);
        assert_ne!(first, second);
        assert!(taken.iter().all(|name| ToolName::for_new(name).is_ok()), "{taken:?}");
        assert_eq!(tool_name("import", "mcp", &mut taken), "import_mcp_2", "built-ins keep their names");
    }

    #[test]
    fn servers_have_plain_names() {
        for name in ["everything", "a", "my_server2", "memory"] {
            assert!(check_server_name(name).is_ok(), "{name}");
        }
        for (name, suggestion) in
            [("My-Server", "`my_server` would do"), ("../x", "`x` would do"), ("", "would do"), (&"a".repeat(33), "would do")]
        {
            let error = check_server_name(name).expect_err(name);
            assert!(error.message.contains(suggestion), "{error}");
        }
    }
}
