//! The table of settings: name, form, variable, and whether a workspace may touch it.

use toml::Value;

/// A setting.
#[derive(Debug, Clone, Copy)]
pub struct Key {
    /// Its dotted name, as in `config.toml`.
    pub name: &'static str,
    /// The form of its value.
    pub kind: Kind,
    /// The environment variable that sets it.
    pub variable: Option<&'static str>,
    /// How a workspace's `.skillz.toml` may narrow it; `None` where it may not touch it.
    pub(crate) narrowing: Option<Narrowing>,
    /// Whether it may stand in `config.toml`; the place of that file itself cannot.
    pub(crate) in_file: bool,
}

/// The form of a value.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Kind {
    /// Any text.
    Text,
    /// A text that is never shown.
    Secret,
    /// One of these words.
    Choice(&'static [&'static str]),
    /// A folder; `~/` is the user's home.
    Folder,
    /// Several folders; separated by colons in a variable.
    Folders,
    /// Several texts; separated by commas in a variable.
    Texts,
    /// Yes or no; `1`, `0`, `yes`, `no`, `on`, `off` too in a variable.
    Switch,
    /// A whole number from zero to this.
    Number(u32),
}

/// Which of two values is the narrower.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum Narrowing {
    /// The word that stands first in the list of choices.
    EarlierChoice,
    /// The smaller number.
    Smaller,
    /// `false`.
    Off,
}

const POLICY: Kind = Kind::Choice(&["deny", "ask", "declared"]);

const fn key(name: &'static str, kind: Kind) -> Key {
    Key { name, kind, variable: None, narrowing: None, in_file: true }
}

impl Key {
    const fn from(self, variable: &'static str) -> Self {
        Self { variable: Some(variable), ..self }
    }

    const fn narrowed_by(self, narrowing: Narrowing) -> Self {
        Self { narrowing: Some(narrowing), ..self }
    }

    const fn not_in_file(self) -> Self {
        Self { in_file: false, ..self }
    }
}

/// All settings.
pub const KEYS: &[Key] = &[
    key("home", Kind::Folder).from("SKILLZ_HOME").not_in_file(),
    key("tools_dir", Kind::Folder).from("TOOLS_DIR"),
    key("transport", Kind::Choice(&["stdio", "http"])).from("SKILLZ_TRANSPORT"),
    key("host", Kind::Text).from("SKILLZ_HOST"),
    key("port", Kind::Number(65_535)).from("SKILLZ_PORT"),
    key("watch", Kind::Switch).from("SKILLZ_WATCH"),
    key("log", Kind::Text).from("SKILLZ_LOG"),
    key("log_format", Kind::Choice(&["text", "json"])).from("SKILLZ_LOG_FORMAT"),
    key("sandbox", Kind::Choice(&["auto", "builtin", "bubblewrap", "firejail", "nsjail", "none"])).from("SKILLZ_SANDBOX"),
    key("sandbox_network", Kind::Switch).from("SKILLZ_SANDBOX_NETWORK").narrowed_by(Narrowing::Off),
    key("roots", Kind::Folders).from("SKILLZ_ROOTS"),
    key("forward_env", Kind::Choice(&["named", "all"])).narrowed_by(Narrowing::EarlierChoice),
    key("expose", Kind::Choice(&["auto", "all", "pinned"])).from("SKILLZ_EXPOSE"),
    key("policy.network", POLICY).narrowed_by(Narrowing::EarlierChoice),
    key("policy.fs", POLICY).narrowed_by(Narrowing::EarlierChoice),
    key("policy.env", POLICY).narrowed_by(Narrowing::EarlierChoice),
    key("policy.servers", POLICY).narrowed_by(Narrowing::EarlierChoice),
    key("limits.timeout_ms", Kind::Number(u32::MAX)).narrowed_by(Narrowing::Smaller),
    key("limits.memory_mb", Kind::Number(u32::MAX)).narrowed_by(Narrowing::Smaller),
    key("limits.max_output_bytes", Kind::Number(u32::MAX)).narrowed_by(Narrowing::Smaller),
    key("limits.max_processes", Kind::Number(u32::MAX)).narrowed_by(Narrowing::Smaller),
    key("limits.max_result_bytes", Kind::Number(u32::MAX)).narrowed_by(Narrowing::Smaller),
    key("http.token", Kind::Secret).from("SKILLZ_AUTH_TOKEN"),
    key("http.allowed_origins", Kind::Texts),
    key("import.github_api", Kind::Text).from("SKILLZ_GITHUB_API"),
    key("memory.url", Kind::Text).from("SKILLZ_MEMORY_URL"),
    key("memory.token", Kind::Secret).from("SKILLZ_MEMORY_TOKEN"),
    key("workers.max", Kind::Number(10_000)),
    key("workers.idle_seconds", Kind::Number(86_400)),
];

impl Kind {
    /// Reads a variable's or a flag's text.
    pub(crate) fn parse(self, text: &str) -> Result<Value, String> {
        let texts = |separator| Value::Array(text.split(separator).filter(|part| !part.is_empty()).map(Value::from).collect());
        let value = match self {
            Self::Folders => texts(':'),
            Self::Texts => texts(','),
            Self::Switch => match text.to_ascii_lowercase().as_str() {
                "1" | "true" | "yes" | "on" => Value::Boolean(true),
                "0" | "false" | "no" | "off" => Value::Boolean(false),
                _ => return Err(self.expected()),
            },
            Self::Number(_) => Value::Integer(text.trim().parse().map_err(|_| self.expected())?),
            Self::Text | Self::Secret | Self::Choice(_) | Self::Folder => Value::from(text),
        };
        self.check(&value)?;
        Ok(value)
    }

    /// Checks a value's form.
    pub(crate) fn check(self, value: &Value) -> Result<(), String> {
        let fits = match (self, value) {
            (Self::Text | Self::Secret | Self::Folder, Value::String(text)) => !text.is_empty(),
            (Self::Choice(words), Value::String(text)) => words.contains(&text.as_str()),
            (Self::Folders | Self::Texts, Value::Array(items)) => items.iter().all(Value::is_str),
            (Self::Switch, Value::Boolean(_)) => true,
            (Self::Number(most), Value::Integer(number)) => (0..=i64::from(most)).contains(number),
            _ => false,
        };
        if fits { Ok(()) } else { Err(self.expected()) }
    }

    /// What would be right, as the end of a sentence.
    fn expected(self) -> String {
        match self {
            Self::Text | Self::Secret => "must be a text that is not empty".to_owned(),
            Self::Choice(words) => {
                let quoted: Vec<String> = words.iter().map(|word| format!("`{word}`")).collect();
                format!("must be one of {}", quoted.join(", "))
            }
            Self::Folder => "must be the path of a folder".to_owned(),
            Self::Folders => "must be a list of folders".to_owned(),
            Self::Texts => "must be a list of texts".to_owned(),
            Self::Switch => "must be `true` or `false`".to_owned(),
            Self::Number(most) => format!("must be a whole number from 0 to {most}"),
        }
    }
}

impl Narrowing {
    /// Whether `new` is narrower than `old`, both being valid values of `kind`. An absent `old` is the widest.
    pub(crate) fn narrows(self, kind: Kind, old: Option<&Value>, new: &Value) -> bool {
        let Some(old) = old else { return true };
        match self {
            Self::EarlierChoice => {
                let Kind::Choice(words) = kind else { return false };
                let place = |value: &Value| words.iter().position(|word| value.as_str() == Some(word));
                place(new) < place(old)
            }
            Self::Smaller => new.as_integer() < old.as_integer(),
            Self::Off => new.as_bool() == Some(false) && old.as_bool() == Some(true),
        }
    }
}
