//! What an import asks for, in words for the user who is to allow it: all that is run or reached, and no secret.

use std::collections::BTreeMap;

use skillz_tool::{ServerDefinition, split_secrets, variables_in};

/// Longest command line or address that is shown, in characters: a question has to be read.
const SHOWN_LENGTH: usize = 500;
/// What stands for a secret.
const HIDDEN: &str = "<hidden>";

/// What an import asks for, as the end of a sentence about the server.
pub(crate) fn wish(definition: &ServerDefinition, replaces: bool) -> String {
    let mut what = match (&definition.command, &definition.url) {
        (Some(command), _) => {
            let confined = if definition.sandbox { ", confined" } else { "" };
            format!("runs `{}` on this machine{confined}", cut(&command_line(command, &definition.args)))
        }
        (None, Some(url)) => format!("connects this server to `{}`", cut(&address(url))),
        (None, None) => "names neither a command nor an address".to_owned(),
    };
    for (kind, values) in [("variable", &definition.env), ("header", &definition.headers)] {
        if !values.is_empty() {
            what.push_str(&format!(", gives it {}", given(kind, values)));
        }
    }
    if replaces {
        what.push_str(", and replaces the server of that name");
    }
    what
}

/// The names of what a server is given, and the variables of this server's environment that go there.
fn given(kind: &str, values: &BTreeMap<String, String>) -> String {
    let each = values.iter().map(|(name, value)| {
        let variables: Vec<String> = variables_in(value).iter().map(|variable| format!("`${variable}`")).collect();
        if variables.is_empty() {
            format!("the {kind} `{name}`")
        } else {
            format!("the {kind} `{name}` with {} from this server's environment", variables.join(" and "))
        }
    });
    each.collect::<Vec<_>>().join(", ")
}

/// The whole command line on one line, as a shell would have it, without the values of secrets: those that their names
/// tell, and the passwords and queries of addresses.
fn command_line(command: &str, arguments: &[String]) -> String {
    let mut line = command.to_owned();
    for (open, secret) in split_secrets(arguments) {
        let mut shown = if open.contains("://") { address(open) } else { open.to_owned() };
        if !secret.is_empty() {
            shown.push_str(HIDDEN);
        }
        line.push(' ');
        line.push_str(&if shown.is_empty() || shown.contains(char::is_whitespace) { format!("'{shown}'") } else { shown });
    }
    line
}

/// Scheme, host and path of an address: neither who logs in nor what is asked.
fn address(url: &str) -> String {
    let Some((scheme, rest)) = url.split_once("://") else { return "an address that is no URL".to_owned() };
    let rest = rest.split(['?', '#']).next().unwrap_or_default();
    let (host, path) = rest.split_at(rest.find('/').unwrap_or(rest.len()));
    let host = host.rsplit('@').next().unwrap_or_default();
    format!("{scheme}://{host}{path}")
}

/// What is too long ends in dots. Neither line ends nor backticks can pretend to be the question's own words.
fn cut(text: &str) -> String {
    let plain = |character: char| if character.is_control() || character == '`' { '\u{fffd}' } else { character };
    let mut shown: String = text.chars().take(SHOWN_LENGTH).map(plain).collect();
    if text.chars().count() > SHOWN_LENGTH {
        shown.push_str("...");
    }
    shown
}

#[cfg(test)]
mod tests {
    use skillz_json::{Value, json};

    use super::*;

    fn of(definition: Value, replaces: bool) -> String {
        wish(&skillz_json::from_value(definition).expect("a definition"), replaces)
    }

    #[test]
    fn the_whole_command_shows_and_no_secret() {
        let arguments = json!([
            "-y",
            "a b",
            "--api-key",
            "one1",
            "--token=two2",
            "PASSWORD=three3",
            "postgres://me:four4@host/db?x=five5",
            "Authorization: Bearer six6",
            "--no-auth",
            "--port",
            "80"
        ]);
        assert_eq!(
            of(json!({"command": "npx", "args": arguments, "sandbox": true}), false),
            "runs `npx -y 'a b' --api-key <hidden> --token=<hidden> PASSWORD=<hidden> postgres://host/db Authorization:<hidden> --no-auth \
             --port 80` on this machine, confined"
        );
        let long = of(json!({"command": "sh", "args": ["-c", "x".repeat(600)]}), false);
        assert!(long.contains(&"x".repeat(490)) && !long.contains(&"x".repeat(500)) && long.contains("...`"), "{long}");
        assert!(!of(json!({"command": "sh", "args": ["`\nAllow it"]}), false).contains("`\n"));
    }

    #[test]
    fn addresses_variables_and_replacing_show() {
        let definition = json!({
            "url": "https://me:pass@example.com/mcp?key=k1", "headers": {"Authorization": "Bearer ${DOCS} $TWO", "X-Plain": "literal1"},
        });
        assert_eq!(
            of(definition, true),
            "connects this server to `https://example.com/mcp`, gives it the header `Authorization` with `$DOCS` and `$TWO` from this \
             server's environment, the header `X-Plain`, and replaces the server of that name"
        );
        let local = of(json!({"command": "x", "env": {"NODE_OPTIONS": "--require ./y.js"}}), false);
        assert_eq!(local, "runs `x` on this machine, gives it the variable `NODE_OPTIONS`");
    }
}
