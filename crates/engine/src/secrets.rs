//! Keeps the values of environment variables out of logs and the history.

use std::borrow::Cow;

use skillz_tool::EnvironmentVariable;

/// Shorter values are words of every text (`1`, `true`, `debug`): hiding them would hide the text.
const SHORTEST_SECRET: usize = 6;

/// The variables that a tool was given.
pub(crate) struct Secrets<'a>(pub(crate) &'a [EnvironmentVariable]);

impl Secrets<'_> {
    /// The text with each value replaced by its variable's name.
    pub(crate) fn hide<'t>(&self, text: &'t str) -> Cow<'t, str> {
        let mut hidden = Cow::Borrowed(text);
        for variable in self.0 {
            if variable.value.len() >= SHORTEST_SECRET && hidden.contains(&variable.value) {
                hidden = Cow::Owned(hidden.replace(&variable.value, &format!("<{}>", variable.name)));
            }
        }
        hidden
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn values_are_replaced_by_names() {
        let variables = [
            EnvironmentVariable { name: "KEY".into(), value: "s3cret-value".into() },
            EnvironmentVariable { name: "DEBUG".into(), value: "1".into() },
        ];
        let secrets = Secrets(&variables);
        assert_eq!(secrets.hide("1 s3cret-value 1"), "1 <KEY> 1");
        assert!(matches!(secrets.hide("nothing"), Cow::Borrowed("nothing")));
    }
}
