//! Checks dependencies before any installer sees them: none can be an option, a second line, or, without the
//! permission for it, a URL or a path.

use crate::{EnvironmentError, Language};

/// Longest specifier, in bytes.
const LENGTH: usize = 500;
/// Most dependencies of one tool.
const MOST: usize = 200;

/// Checks all, and gives them trimmed. With `from_anywhere`, URLs and paths are taken too.
pub(crate) fn check(language: Language, dependencies: &[String], from_anywhere: bool) -> Result<Vec<String>, EnvironmentError> {
    if dependencies.len() > MOST {
        return Err(refused(
            &format!("{} and {} more", dependencies.first().map_or("", String::as_str), dependencies.len() - 1),
            &format!("is one of too many; at most {MOST} are taken"),
        ));
    }
    dependencies
        .iter()
        .map(|specifier| check_one(language, specifier, from_anywhere).map(|()| specifier.trim().to_owned()))
        .collect()
}

fn check_one(language: Language, specifier: &str, from_anywhere: bool) -> Result<(), EnvironmentError> {
    let text = specifier.trim();
    if text.is_empty() {
        return Err(refused(specifier, "is empty"));
    }
    if text.len() > LENGTH {
        return Err(refused(specifier, "is too long"));
    }
    if text.starts_with('-') {
        return Err(refused(specifier, "looks like an option of the installer, and none is taken"));
    }
    if text.chars().any(char::is_control) || text.contains(['`', '\\', '#']) {
        return Err(refused(specifier, "has a character that no package name or version has"));
    }
    if is_location(language, text) {
        if from_anywhere {
            let has_option = text.split_whitespace().any(|word| word.starts_with('-'));
            return if has_option {
                Err(refused(specifier, "holds an option of the installer, and none is taken"))
            } else {
                Ok(())
            };
        }
        let reason =
            "is a URL or a path; packages come from the package index, by name. The permission `install_scripts` allows both";
        return Err(refused(specifier, reason));
    }
    let fits = match language {
        Language::Python => is_requirement(text),
        Language::Node => is_npm_specifier(text),
    };
    if fits {
        return Ok(());
    }
    Err(refused(
        specifier,
        match language {
            Language::Python => "is no pip requirement; write `name`, `name==1.2`, `name[extra]>=1,<2`",
            Language::Node => "is no npm specifier; write `name`, `name@1.2.3`, `@scope/name@^1`",
        },
    ))
}

fn refused(specifier: &str, reason: &str) -> EnvironmentError {
    EnvironmentError::Specifier { specifier: specifier.trim().chars().take(100).collect(), reason: reason.to_owned() }
}

/// Whether a specifier names a place rather than a package of the index.
pub(crate) fn is_location(language: Language, text: &str) -> bool {
    let after_name = match language {
        Language::Python => text.split_once('@').map_or(text, |(_, place)| place).trim(),
        Language::Node => text.strip_prefix('@').unwrap_or(text).split_once('@').map_or(text, |(_, place)| place),
    };
    let is_archive = [".tar.gz", ".tgz", ".zip", ".whl", ".tar.bz2"].iter().any(|suffix| text.ends_with(suffix));
    let has_scheme = after_name.contains("://")
        || ["git+", "git:", "file:", "github:", "gitlab:", "npm:", "link:", "http:", "https:"]
            .iter()
            .any(|scheme| after_name.starts_with(scheme));
    let is_path = text.starts_with(['.', '/', '~'])
        || after_name.starts_with(['.', '/', '~']) && language == Language::Node && after_name.contains('/');
    let names_direct = language == Language::Python && text.contains('@');
    // `user/repository` is short for GitHub with npm.
    let is_short_repository = language == Language::Node && !text.starts_with('@') && text.contains('/')
        || language == Language::Node && after_name != text && after_name.contains('/');
    is_archive || has_scheme || is_path || names_direct || is_short_repository
}

/// `name[extra,extra] >=1,<2 ; marker`
fn is_requirement(text: &str) -> bool {
    let (requirement, marker) = text.split_once(';').map_or((text, None), |(requirement, marker)| (requirement, Some(marker)));
    let requirement = requirement.trim();
    let name_end = requirement.find(|character: char| !is_name_character(character)).unwrap_or(requirement.len());
    let (name, rest) = requirement.split_at(name_end);
    let name_fits = name.starts_with(|first: char| first.is_ascii_alphanumeric())
        && name.ends_with(|last: char| last.is_ascii_alphanumeric());
    let rest = rest.trim_start();
    let (extras, versions) = match rest.strip_prefix('[') {
        Some(inside) => match inside.split_once(']') {
            Some((extras, versions)) => (Some(extras), versions),
            None => return false,
        },
        None => (None, rest),
    };
    let extras_fit = extras.is_none_or(|extras| {
        extras.split(',').all(|extra| !extra.trim().is_empty() && extra.trim().chars().all(is_name_character))
    });
    let versions = versions.trim().trim_start_matches('(').trim_end_matches(')');
    let versions_fit = versions.is_empty() || versions.split(',').all(is_version_clause);
    name_fits && extras_fit && versions_fit && marker.is_none_or(|marker| after_marker(marker).is_some_and(str::is_empty))
}

/// What follows an environment marker of PEP 508: comparisons joined by `and` and `or`, each perhaps in parentheses.
fn after_marker(text: &str) -> Option<&str> {
    let mut rest = text.trim_start();
    loop {
        rest = match rest.strip_prefix('(') {
            Some(inside) => after_marker(inside)?.strip_prefix(')')?,
            None => after_marker_value(after_marker_operator(after_marker_value(rest)?)?)?,
        };
        rest = rest.trim_start();
        match ["and", "or"].iter().find_map(|word| after_word(rest, word)) {
            Some(next) => rest = next.trim_start(),
            None => return Some(rest),
        }
    }
}

/// A text in quotes, or a variable such as `python_version`.
fn after_marker_value(text: &str) -> Option<&str> {
    let text = text.trim_start();
    for quote in ['\'', '"'] {
        if let Some(inside) = text.strip_prefix(quote) {
            return inside.split_once(quote).map(|(_, rest)| rest);
        }
    }
    let rest = text.trim_start_matches(|character: char| character.is_ascii_alphabetic() || matches!(character, '_' | '.'));
    let name = text.strip_suffix(rest)?;
    (name.starts_with(|first: char| first.is_ascii_lowercase()) && name != "and" && name != "or").then_some(rest)
}

fn after_marker_operator(text: &str) -> Option<&str> {
    let text = text.trim_start();
    let by_sign = ["===", "==", "~=", "!=", "<=", ">=", "<", ">"].iter().find_map(|sign| text.strip_prefix(sign));
    by_sign.or_else(|| after_word(text, "in")).or_else(|| after_word(after_word(text, "not")?.trim_start(), "in"))
}

fn after_word<'text>(text: &'text str, word: &str) -> Option<&'text str> {
    text.strip_prefix(word).filter(|rest| !rest.starts_with(|next: char| next.is_ascii_alphanumeric() || next == '_'))
}

fn is_name_character(character: char) -> bool {
    character.is_ascii_alphanumeric() || matches!(character, '-' | '_' | '.')
}

fn is_version_clause(clause: &str) -> bool {
    let clause = clause.trim();
    let operators = ["===", "==", ">=", "<=", "!=", "~=", ">", "<"];
    let Some(version) = operators.iter().find_map(|operator| clause.strip_prefix(operator)) else { return false };
    let version = version.trim();
    !version.is_empty() && version.chars().all(|character| character.is_ascii_alphanumeric() || ".*+!-_".contains(character))
}

/// `name@range`, `@scope/name@range`.
fn is_npm_specifier(text: &str) -> bool {
    let (name, range) = split_npm(text);
    let plain = match name.strip_prefix('@') {
        Some(scoped) => match scoped.split_once('/') {
            Some((scope, plain)) if is_npm_name(scope) => plain,
            _ => return false,
        },
        None => name,
    };
    let range_fits = range.is_none_or(|range| {
        !range.trim().is_empty()
            && range.chars().all(|character| character.is_ascii_alphanumeric() || " .^~<>=|*+-".contains(character))
    });
    is_npm_name(plain) && range_fits
}

fn is_npm_name(name: &str) -> bool {
    !name.is_empty()
        && !name.starts_with(['.', '_', '-'])
        && name.len() <= 214
        && name.chars().all(|character| character.is_ascii_alphanumeric() || "-._~".contains(character))
}

/// Name and range of an npm specifier.
pub(crate) fn split_npm(text: &str) -> (&str, Option<&str>) {
    let offset = usize::from(text.starts_with('@'));
    match text.get(offset..).and_then(|rest| rest.find('@')) {
        Some(position) => {
            let (name, range) = text.split_at(position + offset);
            (name, range.get(1..))
        }
        None => (text, None),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn taken(language: Language, text: &str) -> bool {
        check(language, &[text.to_owned()], false).is_ok()
    }

    #[test]
    fn requirements_of_every_usual_form_are_taken() {
        for text in [
            "six",
            "six==1.17.0",
            "requests >= 2, < 3",
            "uvicorn[standard]",
            "uvicorn[standard, http2]~=0.3",
            "Pillow!=9.0.*",
            "zope.interface",
            "typing_extensions>=4; python_version < '3.11'",
            "idna; python_version>\"3\" and (os_name == 'posix' or sys_platform != \"win32\")",
            "idna; 'linux' in sys_platform",
            "idna; sys_platform not in 'win32 cygwin'",
            "idna;extra=='a'",
            "torch==2.1.0+cpu",
            "a",
            "pip (>=1,<2)",
        ] {
            assert!(taken(Language::Python, text), "{text}");
        }
        for text in
            ["left-pad", "left-pad@1.3.0", "@types/node@^20", "lodash@>=4 <5", "chalk@latest", "a@1.x || 2.x", "JSONStream"]
        {
            assert!(taken(Language::Node, text), "{text}");
        }
    }

    #[test]
    fn options_places_and_nonsense_are_refused() {
        for text in [
            "",
            "  ",
            "-r /etc/passwd",
            "--index-url=http://evil",
            "six\n--index-url x",
            "git+https://x/y",
            "x @ https://h/x.whl",
            "./local",
            "/abs/path",
            "../up",
            "file:///x",
            "x.tar.gz",
            "six=1",
            "six==",
            "[extra]",
            "six;import os`x`",
            "idna; python_version>\"3\" --config-settings=x=y",
            "idna; python_version>\"3\" --hash=sha256:0",
            "idna; python_version>'3' -e",
            "idna --config-settings=x=y",
            "idna;",
            "idna; python_version",
            "idna; python_version > 3",
            "idna; (python_version > '3'",
            "idna; python_version > '3' and",
            "a b",
            "-e .",
            "six @ file:///x",
            "~/x",
            "six[",
            "six #egg",
        ] {
            assert!(!taken(Language::Python, text), "{text}");
        }
        for text in [
            "",
            "-g",
            "--registry=http://evil",
            "git+ssh://x/y",
            "user/repo",
            "a@user/repo",
            "a@file:../x",
            "./x",
            "/x",
            "../x",
            "a@https://h/x.tgz",
            "a@npm:b",
            "@/x",
            "@a",
            "a@",
            "a b",
            "https://h/x.tgz",
            "a\0b",
            ".hidden",
            "github:u/r",
        ] {
            assert!(!taken(Language::Node, text), "{text}");
        }
    }

    #[test]
    fn places_are_taken_with_the_permission_and_options_never() {
        for (language, text, fits) in [
            (Language::Python, "./pkg-1.0.tar.gz", true),
            (Language::Python, "x @ https://h/x.whl", true),
            (Language::Python, "--index-url=x", false),
            (Language::Python, "x @ https://h/x.whl --config-settings=x=y", false),
            (Language::Node, "user/repo", true),
            (Language::Node, "-g", false),
        ] {
            assert_eq!(check(language, &[text.to_owned()], true).is_ok(), fits, "{text}");
        }
    }
}
