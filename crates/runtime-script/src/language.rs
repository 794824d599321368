//! Languages of scripts: which command runs which extension, and what kind of care each needs.

use std::path::Path;

use skillz_json::Number;

/// What Skillz knows of a script's language.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash)]
pub(crate) enum Language {
    /// Function scripts, dependencies, the Python helper.
    Python,
    /// Function scripts, dependencies, the JavaScript helper.
    JavaScript,
    /// JavaScript once the types are stripped, unless deno or bun runs it.
    TypeScript,
    /// Started as it is.
    Other,
}

impl Language {
    /// Which numbers its programs can hold as they are; nothing is known of other languages.
    pub(crate) fn holds(self) -> fn(&Number) -> bool {
        match self {
            Self::JavaScript | Self::TypeScript => Number::fits_double,
            Self::Python => Number::fits_python,
            Self::Other => |_| true,
        }
    }
}

/// Extension, the command that runs it.
const BY_EXTENSION: [(&str, &str); 24] = [
    ("py", "python3"),
    ("js", "node"),
    ("mjs", "node"),
    ("cjs", "node"),
    ("ts", "node"),
    ("mts", "node"),
    ("cts", "node"),
    ("sh", "bash"),
    ("bash", "bash"),
    ("zsh", "zsh"),
    ("fish", "fish"),
    ("rb", "ruby"),
    ("pl", "perl"),
    ("php", "php"),
    ("lua", "lua"),
    ("r", "Rscript"),
    ("jl", "julia"),
    ("tcl", "tclsh"),
    ("awk", "awk -f"),
    ("ps1", "pwsh -File"),
    ("exs", "elixir"),
    ("raku", "raku"),
    ("groovy", "groovy"),
    ("scm", "guile"),
];

/// Command, without version digits, and the extension that its scripts have.
const BY_COMMAND: [(&str, &str); 26] = [
    ("python", "py"),
    ("pypy", "py"),
    ("uv", "py"),
    ("node", "js"),
    ("nodejs", "js"),
    ("bun", "js"),
    ("deno", "ts"),
    ("tsx", "ts"),
    ("ts-node", "ts"),
    ("sh", "sh"),
    ("dash", "sh"),
    ("bash", "sh"),
    ("zsh", "zsh"),
    ("fish", "fish"),
    ("ruby", "rb"),
    ("perl", "pl"),
    ("php", "php"),
    ("lua", "lua"),
    ("luajit", "lua"),
    ("Rscript", "R"),
    ("julia", "jl"),
    ("tclsh", "tcl"),
    ("awk", "awk"),
    ("pwsh", "ps1"),
    ("elixir", "exs"),
    ("raku", "raku"),
];

/// The command that runs files of an extension (without the dot); `None` for unknown ones.
pub(crate) fn command_for_extension(extension: &str) -> Option<&'static str> {
    let extension = extension.to_ascii_lowercase();
    BY_EXTENSION.iter().find(|(known, _)| *known == extension).map(|(_, command)| *command)
}

/// The extension for scripts of a command; `None` for unknown ones.
pub(crate) fn extension_for_command(command: &str) -> Option<&'static str> {
    let stem = command_stem(command);
    BY_COMMAND.iter().find(|(known, _)| *known == stem).map(|(_, extension)| *extension)
}

/// The language that a command runs; the extension decides between JavaScript and TypeScript.
pub(crate) fn of(command: &str, extension: Option<&str>) -> Language {
    match extension_for_command(command) {
        Some("py") => Language::Python,
        Some("js" | "ts") => match extension.map(str::to_ascii_lowercase).as_deref() {
            Some("ts" | "mts" | "cts") => Language::TypeScript,
            _ => Language::JavaScript,
        },
        _ => Language::Other,
    }
}

/// Whether two commands run the same family of scripts, such as `bash` and `zsh`, or `node` and `deno`.
pub(crate) fn are_kin(one: &str, other: &str) -> bool {
    let family = |command: &str| match extension_for_command(command) {
        Some("zsh" | "fish") => Some("sh"),
        Some("ts") => Some("js"),
        extension => extension,
    };
    family(one).is_some_and(|extension| family(other) == Some(extension))
}

/// Whether a command runs shell scripts.
pub(crate) fn is_shell(command: &str) -> bool {
    matches!(extension_for_command(command), Some("sh" | "zsh" | "fish"))
}

/// `python3.12` → `python`, `/usr/bin/lua5.4` → `lua`.
fn command_stem(command: &str) -> &str {
    let name = Path::new(command).file_name().and_then(|name| name.to_str()).unwrap_or(command);
    let stem = name.trim_end_matches(|last: char| last.is_ascii_digit() || last == '.');
    if stem.is_empty() { name } else { stem.trim_end_matches('-') }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn commands_and_extensions_name_each_other() {
        for (command, extension, language) in [
            ("python3", "py", Language::Python),
            ("/opt/x/bin/python3.12", "py", Language::Python),
            ("node", "js", Language::JavaScript),
            ("lua5.4", "lua", Language::Other),
            ("Rscript", "R", Language::Other),
            ("bash", "sh", Language::Other),
        ] {
            assert_eq!(extension_for_command(command), Some(extension), "{command}");
            assert_eq!(of(command, Some(extension)), language, "{command}");
        }
        assert_eq!(of("node", Some("mts")), Language::TypeScript);
        assert_eq!(of("deno", None), Language::JavaScript);
        assert_eq!(command_for_extension("R"), Some("Rscript"));
        assert_eq!(command_for_extension("xyz"), None);
        assert!(are_kin("zsh", "bash") && are_kin("deno", "node") && !are_kin("python3", "bash") && !are_kin("x", "y"));
    }
}
