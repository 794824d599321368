//! Checks how a server is said to be reached, before anything is kept or started.

use reqwest::{Url, header};
use skillz_tool::{ServerDefinition, ToolError};

/// Why a header cannot be sent; its value may be a secret and is not told.
pub(crate) const UNFIT_HEADER: &str = "its value holds a line end or something else that is no printable ASCII character";

/// How a server is reached.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(crate) enum Reach {
    /// By a process of this machine.
    Command(String),
    /// Over HTTP.
    Url(Url),
}

/// Reads a definition; the error tells all of its faults.
pub(crate) fn check(definition: &ServerDefinition) -> Result<Reach, ToolError> {
    let mut faults = Vec::new();
    let reach = match (&definition.command, &definition.url) {
        (Some(command), None) if command.trim().is_empty() || command.contains('\0') => {
            faults.push("`command` is empty; name a program, such as `npx` or `uvx`".to_owned());
            None
        }
        (Some(command), None) => Some(Reach::Command(command.trim().to_owned())),
        (None, Some(url)) => match Url::parse(url.trim()) {
            Ok(url) if matches!(url.scheme(), "http" | "https") && url.has_host() => Some(Reach::Url(url)),
            _ => {
                faults.push("`url` is no http or https address, such as `https://example.com/mcp`".to_owned());
                None
            }
        },
        (Some(_), Some(_)) => {
            faults.push("there are both `command` and `url`; a server is reached by one of them".to_owned());
            None
        }
        (None, None) => {
            faults.push("there is neither `command` (a local server) nor `url` (a remote one)".to_owned());
            None
        }
    };
    if definition.command.is_none() && definition.url.is_some() {
        if !definition.args.is_empty() || !definition.env.is_empty() {
            faults.push("`args` and `env` are for servers with a `command`; a remote one takes `headers`".to_owned());
        }
        if definition.sandbox {
            faults.push("`sandbox` is for servers with a `command`".to_owned());
        }
    }
    if definition.command.is_some() && !definition.headers.is_empty() {
        faults.push("`headers` are for servers with a `url`; a local one takes `env`".to_owned());
    }
    let is_wrong = |name: &&String| name.is_empty() || name.contains(['=', '\0']);
    faults.extend(definition.env.keys().filter(is_wrong).map(|name| format!("`{name}` is no name of a variable")));
    faults.extend(
        definition
            .headers
            .keys()
            .filter(|name| header::HeaderName::from_bytes(name.as_bytes()).is_err())
            .map(|name| format!("`{name}` is no name of a header")),
    );
    let is_unfit = |value: &str| header::HeaderValue::from_str(value.trim()).is_err();
    let unfit = definition.headers.iter().filter(|(_, value)| is_unfit(value));
    faults.extend(unfit.map(|(name, _)| format!("the header `{name}` cannot be sent: {UNFIT_HEADER}")));
    if definition.args.iter().chain(definition.env.values()).any(|text| text.contains('\0')) {
        faults.push("`args` and `env` hold a NUL character".to_owned());
    }
    match reach {
        Some(reach) if faults.is_empty() => Ok(reach),
        _ => Err(ToolError::invalid(format!("The server cannot be imported: {}", faults.join("; ")))),
    }
}

#[cfg(test)]
mod tests {
    use skillz_json::{Value, json};

    use super::*;

    fn checked(definition: Value) -> Result<Reach, String> {
        check(&skillz_json::from_value(definition).expect("a definition")).map_err(|error| error.message)
    }

    #[test]
    fn all_faults_are_told_at_once() {
        assert_eq!(checked(json!({"command": "npx", "args": ["-y", "x"]})), Ok(Reach::Command("npx".to_owned())));
        assert!(matches!(checked(json!({"url": "https://example.com/mcp", "headers": {"X-A": "b"}})), Ok(Reach::Url(_))));
        for (definition, part) in [
            (json!({}), "neither `command`"),
            (json!({"command": "a", "url": "http://b"}), "both"),
            (json!({"command": " "}), "is empty"),
            (json!({"url": "ftp://x"}), "no http or https address"),
            (json!({"url": "http://x", "env": {"A": "1"}}), "take `headers`".trim_start_matches("take ")),
            (json!({"command": "x", "headers": {"A": "1"}}), "takes `env`"),
            (json!({"command": "x", "env": {"A=B": "1"}}), "no name of a variable"),
            (json!({"url": "http://x", "headers": {"X-A": "a\nb"}}), "the header `X-A` cannot be sent"),
        ] {
            let fault = checked(definition).expect_err(part);
            assert!(fault.contains(part), "{fault}");
        }
    }
}
