//! The values of a definition that must not show: in states, failures, logs.

use std::collections::BTreeMap;

use reqwest::Url;
use skillz_tool::{ServerDefinition, expand_variables, split_secrets};

/// Shorter values are words of every text (`1`, `true`, `debug`): hiding them would hide the text.
const SHORTEST_SECRET: usize = 6;
/// What stands for a part of an address.
const HIDDEN: &str = "<hidden>";

/// The values of a server's environment and headers, as the server gets them.
#[derive(Clone, Default)]
pub(crate) struct Secrets {
    pub(crate) environment: BTreeMap<String, String>,
    pub(crate) headers: BTreeMap<String, String>,
    /// Each text to hide, and what to show in its place; the longest first.
    hidden: Vec<(String, String)>,
}

impl Secrets {
    /// Puts the values of variables in their places.
    pub(crate) fn of(definition: &ServerDefinition, variables: &BTreeMap<String, String>) -> Self {
        let expand = |values: &BTreeMap<String, String>| -> BTreeMap<String, String> {
            let expanded = values
                .iter()
                .map(|(name, value)| (name.clone(), expand_variables(value, |variable| variables.get(variable).cloned())));
            expanded.collect()
        };
        let (environment, headers) = (expand(&definition.env), expand(&definition.headers));
        let mut hidden: Vec<(String, String)> = Vec::new();
        for (name, value) in environment.iter().chain(&headers) {
            // `Bearer abc` comes back as `abc` in many an error.
            for part in std::iter::once(value.as_str()).chain(value.split_whitespace()) {
                hidden.push((part.to_owned(), format!("<{name}>")));
            }
        }
        for variable in definition.variables() {
            if let Some(value) = variables.get(&variable) {
                hidden.push((value.clone(), format!("<{variable}>")));
            }
        }
        if let Some(url) = definition.url.as_deref().and_then(|url| Url::parse(url).ok()) {
            let parts = url.password().into_iter().chain(url.query());
            hidden.extend(parts.map(|part| (part.to_owned(), HIDDEN.to_owned())));
        }
        // Databases are often named to a server with their password.
        for url in definition.args.iter().filter_map(|argument| Url::parse(split_address(argument).1).ok()) {
            let parts = url.password().into_iter().chain(url.query());
            hidden.extend(parts.map(|part| (part.to_owned(), HIDDEN.to_owned())));
        }
        hidden.extend(split_secrets(&definition.args).map(|(_, secret)| (secret.to_owned(), HIDDEN.to_owned())));
        hidden.retain(|(text, _)| text.len() >= SHORTEST_SECRET);
        hidden.sort_by_key(|(text, _)| std::cmp::Reverse(text.len()));
        Self { environment, headers, hidden }
    }

    /// Arguments as they may be shown: without values that are secrets by their names, however short.
    pub(crate) fn shown_arguments(&self, arguments: &[String]) -> Vec<String> {
        let shown = split_secrets(arguments).map(|(open, secret)| {
            let (name, address) = split_address(open);
            let has_secret = Url::parse(address).is_ok_and(|url| url.password().is_some() || url.query().is_some());
            let open = if has_secret { format!("{name}{}", shown_url(address)) } else { self.hide(open) };
            if secret.is_empty() { open } else { open + HIDDEN }
        });
        shown.collect()
    }

    /// The text without the values.
    pub(crate) fn hide(&self, text: &str) -> String {
        let mut shown = text.to_owned();
        for (value, name) in &self.hidden {
            if shown.contains(value) {
                shown = shown.replace(value, name);
            }
        }
        shown
    }
}

/// An argument as a name with its `=`, or nothing, and an address behind that, which may be none.
fn split_address(argument: &str) -> (&str, &str) {
    let name_end = argument.find('=').filter(|end| argument.get(..*end).is_some_and(|name| !name.contains(':')));
    name_end.and_then(|end| argument.split_at_checked(end + 1)).unwrap_or(("", argument))
}

/// An address as it may be shown: without password and query.
pub(crate) fn shown_url(url: &str) -> String {
    let Ok(mut url) = Url::parse(url) else { return "an address that is no URL".to_owned() };
    let _ = url.set_password(None);
    let _ = url.set_username("");
    if url.query().is_some() {
        url.set_query(Some("..."));
    }
    url.to_string()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn arguments_that_are_secret_by_name_never_show() {
        let arguments = [
            "-y",
            "pkg",
            "--api-key",
            "k1",
            "--Token=token-value",
            "X_PASSWORD=p",
            "Authorization: Bearer bearer-value",
            "--no-auth",
            "--port",
            "80",
            "--auth",
            "https://a.example/x?code=code-value",
            "db://me:pw@h/d",
            "--url=db://me:pw@h/d",
        ]
        .map(str::to_owned);
        let definition = ServerDefinition { args: arguments.to_vec(), ..ServerDefinition::default() };
        let secrets = Secrets::of(&definition, &BTreeMap::new());
        let expected = [
            "-y",
            "pkg",
            "--api-key",
            HIDDEN,
            "--Token=<hidden>",
            "X_PASSWORD=<hidden>",
            "Authorization:<hidden>",
            "--no-auth",
            "--port",
            "80",
            "--auth",
            HIDDEN,
            "db://h/d",
            "--url=db://h/d",
        ];
        assert_eq!(secrets.shown_arguments(&arguments), expected);
        assert_eq!(secrets.hide("bad token-value"), "bad <hidden>");
        assert!(!secrets.hide("Authorization: Bearer bearer-value").contains("bearer-value"));
    }

    #[test]
    fn values_never_show() {
        let definition = ServerDefinition {
            env: BTreeMap::from([("TOKEN".to_owned(), "$REAL".to_owned()), ("DEBUG".to_owned(), "1".to_owned())]),
            headers: BTreeMap::from([("Authorization".to_owned(), "Bearer header-secret".to_owned())]),
            args: vec!["postgres://me:databasepass@host/db".to_owned()],
            url: Some("https://me:passw0rd@example.com/mcp?key=query-secret".to_owned()),
            ..ServerDefinition::default()
        };
        let secrets = Secrets::of(&definition, &BTreeMap::from([("REAL".to_owned(), "real-secret".to_owned())]));
        assert_eq!(secrets.environment.get("TOKEN").map(String::as_str), Some("real-secret"));
        let shown = secrets.hide("1 real-secret, header-secret, Bearer header-secret, passw0rd, key=query-secret, databasepass");
        assert!(!shown.contains("secret") && !shown.contains("passw0rd") && !shown.contains("databasepass"), "{shown}");
        assert!(shown.starts_with("1 <TOKEN>") || shown.starts_with("1 <REAL>"), "{shown}");
        assert_eq!(shown_url(definition.url.as_deref().unwrap_or_default()), "https://example.com/mcp?...");
    }
}
