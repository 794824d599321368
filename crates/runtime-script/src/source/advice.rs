//! Scripts that look like functions and are run as programs: told when they are published, since the call shows it too late.

use std::{fs, path::Path};

use ruff_python_ast::Stmt;
use ruff_python_parser::parse_module;

use super::{Decision, python};
use crate::language::Language;

/// What to tell whoever publishes a script that is run as a program without having been asked for.
pub(crate) fn note(decision: &Decision, source: &Path) -> Option<&'static str> {
    match decision.language {
        Language::Python => python_note(&String::from_utf8_lossy(&fs::read(source).ok()?)),
        _ if decision.hides_run => Some(
            "It defines `run` and does not export it, so each call runs the whole file as a program with JSON on stdin. Write \
             `export function run({ ... })` to have `run` called",
        ),
        _ => None,
    }
}

fn python_note(text: &str) -> Option<&'static str> {
    let facts = python::facts(text);
    if facts.defines_run && facts.has_main {
        return Some(
            "It has an `if __name__ == \"__main__\"` part, so each call runs the whole file as a program with JSON on stdin. \
             Remove that part, or pass `protocol: \"function\"`, to have `run` called with the arguments",
        );
    }
    if facts.defines_run {
        return Some(
            "It reads stdin itself, so each call runs the whole file as a program. Pass `protocol: \"function\"` to have `run` \
             called with the arguments",
        );
    }
    let only_defines = |statement: &Stmt| {
        matches!(statement, Stmt::Import(_) | Stmt::ImportFrom(_) | Stmt::FunctionDef(_) | Stmt::ClassDef(_))
            || matches!(statement, Stmt::Assign(_) | Stmt::AnnAssign(_))
            || matches!(statement, Stmt::Expr(expression) if expression.value.is_string_literal_expr())
    };
    let parsed = parse_module(text).ok()?;
    let body = &parsed.syntax().body;
    let defines_functions = body.iter().any(Stmt::is_function_def_stmt);
    (defines_functions && body.iter().all(only_defines)).then_some(
        "It defines functions and calls none, so a call does nothing. Name the function that takes the arguments `run`",
    )
}

#[cfg(test)]
mod tests {
    use skillz_tool::{Manifest, ToolKind};

    use super::*;
    use crate::source::decide;

    #[test]
    fn what_looks_like_a_function_and_is_none_is_told() {
        for (code, says) in [
            ("def run(a): return a\nif __name__ == '__main__':\n    print(run(1))", Some("__main__")),
            ("import sys\ndef run(a): return a\nprint(run(sys.stdin.read()))", Some("stdin")),
            ("\"Counts.\"\nimport re\nX = 1\ndef count(text: str): return 1", Some("Name the function")),
            ("def count(text): return 1\nprint(count('a'))", None),
            ("print(1)", None),
            ("X = 1", None),
        ] {
            let note = python_note(code);
            assert_eq!(note.is_some(), says.is_some(), "{code}");
            assert!(note.zip(says).is_none_or(|(note, says)| note.contains(says)), "{code}: {note:?}");
        }
        let of = |code: &str| {
            let manifest = Manifest { interpreter: Some("node".to_owned()), ..Manifest::new("t", "", ToolKind::Script) };
            note(&decide(&manifest, code.as_bytes()).unwrap(), Path::new("main.js"))
        };
        assert!(of("function run({ a }) { return a }").is_some());
        assert!(of("const run = async (a) => a").is_some());
        assert!(of("console.log(1)").is_none() && of("export function run() {}").is_none());
    }
}
