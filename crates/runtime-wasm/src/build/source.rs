//! What can be told from a Rust program's text before it is compiled.

use super::dependency::crate_name;

/// Edition of a program that names none.
const EDITION: &str = "2021";

/// The edition: `//! edition = "2024"` in the comments at the top, or 2021.
pub(crate) fn edition(code: &str) -> Result<&str, String> {
    let comments =
        code.lines().map(str::trim).take_while(|line| line.is_empty() || line.starts_with("//") || line.starts_with("#!"));
    for line in comments {
        let Some(text) = line.strip_prefix("//!") else { continue };
        let Some((key, value)) = text.split_once('=') else { continue };
        if key.trim() != "edition" {
            continue;
        }
        let edition = value.trim().trim_matches('"');
        return match edition {
            "2015" | "2018" | "2021" | "2024" => Ok(edition),
            other => Err(format!(
                "There is no edition `{other}` of Rust; write `//! edition = \"2024\"`, or leave it out for {EDITION}"
            )),
        };
    }
    Ok(EDITION)
}

/// Whether a program names the crate `skillz`, outside of comments and texts.
pub(crate) fn names_skillz(code: &str) -> bool {
    code.lines().map(without_comment).any(|line| {
        let mut rest = line;
        while let Some(at) = rest.find("skillz") {
            let before = rest.get(..at).unwrap_or_default();
            let after = rest.get(at + "skillz".len()..).unwrap_or_default();
            let whole = !before.ends_with(|last: char| last.is_alphanumeric() || last == '_');
            let used = after.trim_start().starts_with("::")
                || matches!(before.split_whitespace().last(), Some("use" | "crate")) && !after.starts_with(is_word);
            if whole && used {
                return true;
            }
            rest = after;
        }
        false
    })
}

fn is_word(character: char) -> bool {
    character.is_alphanumeric() || character == '_'
}

fn without_comment(line: &str) -> &str {
    line.split("//").next().unwrap_or(line)
}

/// The crates that a program names and does not have, from the compiler's messages.
pub(crate) fn missing_crates(messages: &str, known: &[String]) -> Vec<String> {
    /// Texts of rustc around the name of a crate that it does not find.
    const PATTERNS: [(&str, &str); 5] = [
        ("use of undeclared crate or module `", "`"),
        ("use of unresolved module or unlinked crate `", "`"),
        ("can't find crate for `", "`"),
        ("you might be missing crate `", "`"),
        ("maybe a missing crate `", "`"),
    ];
    let mut missing = Vec::new();
    for (start, end) in PATTERNS {
        for part in messages.split(start).skip(1) {
            let name = part.split(end).next().unwrap_or_default();
            let plain = !name.is_empty() && name.chars().all(is_word);
            let ours = ["std", "core", "alloc", "crate", "self", "super"].contains(&name);
            let is_known = known.iter().any(|package| crate_name(package) == name);
            if plain && !ours && !is_known && !missing.iter().any(|other| other == name) {
                missing.push(name.to_owned());
            }
        }
    }
    missing
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_edition_is_in_the_first_comments() {
        for (code, expected) in [
            ("fn main() {}", "2021"),
            ("//! edition = \"2024\"\nfn main() {}", "2024"),
            ("#![allow(unused)]\n\n//! Counts.\n//! edition = 2018\nfn main() {}", "2018"),
            ("fn main() {}\n//! edition = \"2024\"", "2021"),
            ("// edition = \"2024\"\nfn main() {}", "2021"),
        ] {
            assert_eq!(edition(code), Ok(expected), "{code}");
        }
        assert!(edition("//! edition = \"2022\"").unwrap_err().contains("2022"));
    }

    #[test]
    fn the_guest_crate_is_seen_where_it_is_used() {
        for code in [
            "#[skillz::tool]\nfn run() {}",
            "use skillz;",
            "use skillz::memory;",
            "fn f() { ::skillz::log(\"a\", \"b\"); }",
            "extern crate skillz;",
            "skillz :: call(1)",
        ] {
            assert!(names_skillz(code), "{code}");
        }
        for code in
            ["// skillz::tool", "let my_skillz = 1;", "fn main() { println!(\"skillz\"); }", "use skillz2::x;", "my_skillz::x()"]
        {
            assert!(!names_skillz(code), "{code}");
        }
    }

    #[test]
    fn missing_crates_are_named_once() {
        let messages = "error[E0432]: unresolved import `serde`\n use of unresolved module or unlinked crate `serde`\n \
                        error: use of undeclared crate or module `serde`\n can't find crate for `regex`";
        assert_eq!(missing_crates(messages, &[]), ["serde", "regex"]);
        assert_eq!(missing_crates(messages, &["regex".to_owned()]), ["serde"]);
    }
}
