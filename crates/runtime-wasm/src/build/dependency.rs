//! Dependencies of a Rust tool: `name`, `name@1.2`, `name@1.2[feature,feature]`, and nothing else. Among the features
//! `default-features=false` says what it says to Cargo.

use std::fmt::Write;

use skillz_tool::ToolError;

/// A crate from the registry.
#[derive(Debug, Clone, PartialEq, Eq, PartialOrd, Ord)]
pub(crate) struct Dependency {
    pub(crate) name: String,
    pub(crate) version: Option<String>,
    pub(crate) features: Vec<String>,
    pub(crate) has_defaults: bool,
}

/// Stands among the features of a crate whose default ones are not wanted.
const NO_DEFAULTS: &str = "default-features=false";

/// Reads a list of dependencies; lists every fault at once. Sorted by name, so that equal sets are equal.
pub(crate) fn parse(texts: &[String]) -> Result<Vec<Dependency>, ToolError> {
    let mut dependencies = Vec::new();
    let mut faults = String::new();
    for text in texts {
        match parse_one(text) {
            Ok(dependency) => dependencies.push(dependency),
            Err(reason) => {
                let _ = writeln!(faults, "- `{}` {reason}", text.chars().take(100).collect::<String>());
            }
        }
    }
    dependencies.sort();
    for pair in dependencies.windows(2) {
        if let [first, second] = pair
            && crate_name(&first.name) == crate_name(&second.name)
        {
            let _ = writeln!(faults, "- `{}` is listed twice", second.name);
        }
    }
    if faults.is_empty() {
        return Ok(dependencies);
    }
    Err(ToolError::invalid(format!("These dependencies are not understood:\n{}", faults.trim_end())).with_hint(
        "Write crates from crates.io as `regex`, `regex@1.11` or `serde@1[derive,rc]`; paths, URLs and git are not taken",
    ))
}

/// The name by which Rust code knows a package.
pub(crate) fn crate_name(package: &str) -> String {
    package.replace('-', "_")
}

fn parse_one(text: &str) -> Result<Dependency, &'static str> {
    let text = text.trim();
    let (rest, features) = match text.split_once('[') {
        Some((rest, list)) => (rest, list.strip_suffix(']').ok_or("has a `[` without a `]` at its end")?),
        None => (text, ""),
    };
    let (name, version) = match rest.split_once('@') {
        Some((name, version)) => (name.trim(), Some(version.trim())),
        None => (rest.trim(), None),
    };
    if !is_name(name) {
        return Err("has no valid crate name, which is made of letters, digits, `-` and `_`");
    }
    if version.is_some_and(|version| !is_version(version)) {
        return Err("has no valid version after `@`, such as `1`, `1.2` or `1.2.3`");
    }
    let features: Vec<&str> = features.split(',').map(str::trim).filter(|feature| !feature.is_empty()).collect();
    let (no_defaults, features): (Vec<&str>, Vec<&str>) = features.into_iter().partition(|feature| *feature == NO_DEFAULTS);
    if !features.iter().all(|feature| is_feature(feature)) {
        return Err("has a feature with characters that features cannot have");
    }
    let mut features: Vec<String> = features.into_iter().map(str::to_owned).collect();
    features.sort();
    features.dedup();
    let version = version.map(str::to_owned);
    Ok(Dependency { name: name.to_owned(), version, features, has_defaults: no_defaults.is_empty() })
}

fn is_name(name: &str) -> bool {
    let plain = |byte: u8| byte.is_ascii_alphanumeric() || matches!(byte, b'-' | b'_');
    name.len() <= 64 && name.bytes().all(plain) && name.starts_with(|first: char| first.is_ascii_alphabetic())
}

/// A version as Cargo takes it, with at most one operator.
fn is_version(version: &str) -> bool {
    let number = version.strip_prefix(['=', '^', '~']).unwrap_or(version);
    let plain = |byte: u8| byte.is_ascii_alphanumeric() || matches!(byte, b'.' | b'-' | b'+');
    number.len() <= 64 && number.starts_with(|first: char| first.is_ascii_digit()) && number.bytes().all(plain)
}

fn is_feature(feature: &str) -> bool {
    let plain = |byte: u8| byte.is_ascii_alphanumeric() || matches!(byte, b'-' | b'_' | b'+' | b'.');
    !feature.is_empty() && feature.len() <= 64 && feature.bytes().all(plain)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn three_forms_are_read() {
        for (text, name, version, features) in [
            ("regex", "regex", None, ""),
            ("regex@1.11", "regex", Some("1.11"), ""),
            ("serde@1.0[derive]", "serde", Some("1.0"), "derive"),
            ("serde@=1.0.2[ rc , derive ,rc]", "serde", Some("=1.0.2"), "derive,rc"),
            ("serde_json[preserve_order]", "serde_json", None, "preserve_order"),
            (" tokio@1 ", "tokio", Some("1"), ""),
            ("image@0.25[default-features=false, png]", "image", Some("0.25"), "png"),
        ] {
            let dependency = parse_one(text).expect(text);
            assert_eq!((dependency.name.as_str(), dependency.version.as_deref()), (name, version), "{text}");
            assert_eq!(dependency.features.join(","), features, "{text}");
            assert_eq!(dependency.has_defaults, !text.contains("default-features=false"), "{text}");
        }
    }

    #[test]
    fn everything_else_is_refused() {
        for text in [
            "",
            "@1",
            "regex@",
            "regex@latest",
            "regex@*",
            "regex@1[",
            "regex@1[a",
            "regex[a]b",
            "../evil",
            "/abs",
            "a b",
            "git+https://example.com/x",
            "https://example.com/x.git",
            "regex = \"1\"",
            "regex@1\"\npath=\"/\"",
            "regex[a\"]",
            "regex[default-features=true]",
            "--config",
            "é",
            "regex@>=1,<2",
            "file:///x",
            "a/b",
            "1abc",
        ] {
            assert!(parse_one(text).is_err(), "{text}");
        }
        let error = parse(&["a b".into(), "serde".into(), "x@".into(), "serde_json".into(), "serde-json".into()]).unwrap_err();
        assert!(error.message.contains("`a b`") && error.message.contains("`x@`"), "{error}");
        assert!(parse(&["serde_json".into(), "serde-json@1".into()]).unwrap_err().message.contains("listed twice"));
    }
}
