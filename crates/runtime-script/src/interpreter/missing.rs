//! Words the error for an interpreter that is nowhere: what was looked for, where, and how to get it.

use std::path::{Path, PathBuf};

use skillz_tool::{ErrorKind, ToolError};

use super::SearchPath;

/// The error for `command`.
pub(super) fn error(command: &str, search: &SearchPath) -> ToolError {
    let shown: String = command.chars().take(80).collect();
    let name = Path::new(command).file_name().and_then(|name| name.to_str()).unwrap_or(command);
    let (existing, absent): (Vec<PathBuf>, Vec<PathBuf>) = search.places().into_iter().partition(|place| place.is_dir());
    let list = |places: &[PathBuf]| {
        let shown: Vec<String> = places.iter().map(|place| shorten(place, search.home.as_deref())).collect();
        shown.join(", ")
    };
    let mut message = format!("The interpreter `{shown}` was not found. These places were searched: {}", list(&existing));
    if !absent.is_empty() {
        message.push_str("; these do not exist: ");
        message.push_str(&list(&absent));
    }
    ToolError::new(ErrorKind::Unavailable, message).with_hint(format!(
        "Install it, {}, or name another interpreter. One that lies elsewhere can be given by its absolute path",
        how_to_install(name)
    ))
}

fn shorten(place: &Path, home: Option<&Path>) -> String {
    match home.and_then(|home| place.strip_prefix(home).ok()) {
        Some(below) if !below.as_os_str().is_empty() => format!("~/{}", below.display()),
        _ => place.display().to_string(),
    }
}

/// How a person gets an interpreter on this system.
fn how_to_install(name: &str) -> String {
    let stem = name.trim_end_matches(|last: char| last.is_ascii_digit() || last == '.');
    let (debian, homebrew) = match stem {
        "python" => ("python3", "python"),
        "node" | "nodejs" | "npm" | "npx" => ("nodejs npm", "node"),
        "ruby" => ("ruby", "ruby"),
        "php" => ("php-cli", "php"),
        "lua" => ("lua5.4", "lua"),
        "perl" => ("perl", "perl"),
        "Rscript" | "R" => ("r-base-core", "r"),
        "bash" => ("bash", "bash"),
        "zsh" => ("zsh", "zsh"),
        "fish" => ("fish", "fish"),
        "julia" => ("julia", "julia"),
        "tclsh" => ("tcl", "tcl-tk"),
        "deno" => return "for example with `npm install -g deno` or from https://deno.com".to_owned(),
        "bun" => return "for example with `npm install -g bun` or from https://bun.sh".to_owned(),
        "uv" => return "for example with `pip install uv`".to_owned(),
        "tsx" | "ts-node" => return format!("for example with `npm install -g {stem}`"),
        _ => return "with the system's package manager or from its own site".to_owned(),
    };
    if cfg!(target_os = "macos") {
        format!("for example with `brew install {homebrew}`")
    } else {
        format!("for example with `apt install {debian}`")
    }
}
