//! Which parts of a command line are secrets, told by the names before them.

/// Parts of names whose values are secrets.
const SECRET_NAMES: [&str; 5] = ["key", "token", "secret", "password", "auth"];

/// Each argument as what may be shown of it and the secret behind that, which is mostly empty: the value of
/// `--api-key VALUE`, `--token=VALUE`, `PASSWORD=VALUE`, `Authorization: VALUE`.
pub fn split_secrets(arguments: &[String]) -> impl Iterator<Item = (&str, &str)> {
    let mut is_awaited = false;
    arguments.iter().map(move |argument| {
        let was_awaited = std::mem::take(&mut is_awaited);
        if was_awaited && !argument.starts_with('-') {
            return ("", argument.as_str());
        }
        let separator = argument.find(['=', ':']).filter(|end| argument.get(*end..).is_some_and(|rest| !rest.starts_with("://")));
        match separator {
            Some(end) if argument.get(..end).is_some_and(names_secret) => {
                argument.split_at_checked(end + 1).unwrap_or((argument, ""))
            }
            Some(_) => (argument, ""),
            None => {
                is_awaited = argument.starts_with('-') && names_secret(argument);
                (argument, "")
            }
        }
    })
}

fn names_secret(name: &str) -> bool {
    let name = name.to_ascii_lowercase();
    SECRET_NAMES.iter().any(|part| name.contains(part))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn names_tell_which_values_are_secrets() {
        let arguments = [
            "-y",
            "--api-key",
            "one",
            "--Token=two",
            "PASSWORD=three",
            "Authorization: four",
            "--no-auth",
            "--port",
            "80",
            "a://b",
        ]
        .map(str::to_owned);
        let split: Vec<(&str, &str)> = split_secrets(&arguments).collect();
        let expected = [
            ("-y", ""),
            ("--api-key", ""),
            ("", "one"),
            ("--Token=", "two"),
            ("PASSWORD=", "three"),
            ("Authorization:", " four"),
            ("--no-auth", ""),
            ("--port", ""),
            ("80", ""),
            ("a://b", ""),
        ];
        assert_eq!(split, expected);
    }
}
