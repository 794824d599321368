//! Compilers' messages, as the author of a tool should read them.

use std::fmt::Write;

use serde::Deserialize;
use skillz_json::Value;

/// Errors shown in full; the rest is counted. One mistake often causes dozens.
const MAX_ERRORS: usize = 8;
/// Warnings mentioned when a tool was built.
const MAX_WARNINGS: usize = 3;
/// Lines of a message of cargo's own that are shown.
const MAX_RESOLVE_LINES: usize = 20;

/// What a compiler said.
#[derive(Debug, Default)]
pub(crate) struct Diagnostics {
    pub(crate) errors: Vec<String>,
    pub(crate) warnings: Vec<String>,
}

#[derive(Deserialize)]
struct Diagnostic {
    #[serde(default)]
    level: String,
    #[serde(default)]
    message: String,
    #[serde(default)]
    rendered: Option<String>,
    #[serde(default)]
    spans: Vec<Span>,
}

#[derive(Deserialize)]
struct Span {
    file_name: String,
    line_start: u64,
    is_primary: bool,
}

impl Diagnostics {
    /// Reads rustc's own output, one JSON object a line.
    pub(crate) fn of_rustc(output: &str) -> Self {
        let mut diagnostics = Self::default();
        for line in output.lines().filter(|line| line.starts_with('{')) {
            if let Ok(diagnostic) = serde_json::from_str(line) {
                diagnostics.add(diagnostic);
            }
        }
        diagnostics
    }

    /// Reads cargo's output, where rustc's objects are wrapped.
    pub(crate) fn of_cargo(output: &str) -> Self {
        let mut diagnostics = Self::default();
        for line in output.lines().filter(|line| line.starts_with(r#"{"reason":"compiler-message""#)) {
            let Ok(mut message) = serde_json::from_str::<Value>(line) else { continue };
            if let Some(Ok(diagnostic)) = message.get_mut("message").map(|message| skillz_json::from_value(message.take())) {
                diagnostics.add(diagnostic);
            }
        }
        diagnostics
    }

    fn add(&mut self, diagnostic: Diagnostic) {
        match diagnostic.level.as_str() {
            "error" | "error: internal compiler error" => {
                // These only count the others.
                if diagnostic.message.starts_with("aborting due to") {
                    return;
                }
                let rendered = diagnostic.rendered.unwrap_or(diagnostic.message);
                self.errors.push(rendered.trim_end().to_owned());
            }
            "warning" => {
                let place = diagnostic.spans.iter().find(|span| span.is_primary);
                if let Some(place) = place {
                    let (file, line) = (&place.file_name, place.line_start);
                    self.warnings.push(format!("Warning: {} ({file}, line {line})", diagnostic.message));
                }
            }
            _ => {}
        }
    }

    /// The first errors in full, and how many more there are.
    pub(crate) fn error_text(&self) -> String {
        let mut text = self.errors.iter().take(MAX_ERRORS).cloned().collect::<Vec<_>>().join("\n\n");
        let more = self.errors.len().saturating_sub(MAX_ERRORS);
        if more > 0 {
            let _ = write!(text, "\n\n... and {more} more {}", if more == 1 { "error" } else { "errors" });
        }
        text
    }

    /// Sentences for whoever built the tool.
    pub(crate) fn warning_notes(mut self) -> Vec<String> {
        let more = self.warnings.len().saturating_sub(MAX_WARNINGS);
        self.warnings.truncate(MAX_WARNINGS);
        if more > 0 {
            self.warnings.push(format!("... and {more} more warnings"));
        }
        self.warnings
    }
}

/// Cargo's own errors, which are text on stderr: what crates it does not find, and which versions do not go together.
/// Cut to the error, and rid of folders that mean nothing to the reader.
pub(crate) fn resolve_error(stderr: &str, hidden: &[&str]) -> String {
    let start = stderr.find("error: ").unwrap_or_default();
    let mut text = stderr.get(start..).unwrap_or_default().to_owned();
    for folder in hidden {
        text = text.replace(&format!(" ({folder})"), "").replace(folder, "");
    }
    let lines: Vec<&str> = text.lines().filter(|line| !line.trim().is_empty()).take(MAX_RESOLVE_LINES).collect();
    lines.join("\n")
}

#[cfg(test)]
mod tests {
    use super::*;

    fn message(level: &str, text: &str) -> String {
        let span = skillz_json::json!({"file_name": "src.rs", "line_start": 3, "is_primary": true});
        skillz_json::json!({"level": level, "message": text, "rendered": format!("{level}: {text}\n"), "spans": [span]})
            .to_string()
    }

    #[test]
    fn eight_errors_are_shown_and_the_rest_counted() {
        let mut lines: Vec<String> = (0..11).map(|number| message("error", &format!("number {number}"))).collect();
        lines.push(message("error", "aborting due to 11 previous errors"));
        lines.push(message("failure-note", "for more information"));
        lines.push("not JSON".to_owned());
        let diagnostics = Diagnostics::of_rustc(&lines.join("\n"));
        let text = diagnostics.error_text();
        assert!(text.contains("error: number 7") && !text.contains("number 8"), "{text}");
        assert!(text.ends_with("... and 3 more errors"), "{text}");
    }

    #[test]
    fn warnings_become_sentences() {
        let lines: Vec<String> = (0..5).map(|number| message("warning", &format!("number {number}"))).collect();
        let notes = Diagnostics::of_rustc(&lines.join("\n")).warning_notes();
        assert_eq!(notes.first().map(String::as_str), Some("Warning: number 0 (src.rs, line 3)"));
        assert_eq!(notes.len(), 4);
    }

    #[test]
    fn cargo_wraps_and_writes_text() {
        let line = format!(r#"{{"reason":"compiler-message","message":{}}}"#, message("error", "in a crate"));
        assert_eq!(Diagnostics::of_cargo(&line).error_text(), "error: in a crate");
        let stderr = "    Updating crates.io index\nerror: no matching package named `nope` found\n\
                      location searched: crates.io index\nrequired by package `tool v0.0.0 (/tmp/x/project)`\n";
        let text = resolve_error(stderr, &["/tmp/x/project"]);
        assert_eq!(
            text,
            "error: no matching package named `nope` found\nlocation searched: crates.io index\nrequired by package `tool v0.0.0`"
        );
    }
}
