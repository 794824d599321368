//! What is told of a script when it is published: what cannot work is refused, and what shows too late is noted.

use skillz_tool::{Manifest, Protocol, ToolError};

use super::{Decision, command_line, javascript, python};
use crate::language::Language;

/// Refuses what can be seen to do nothing, or to be called in vain.
pub(crate) fn check(name: &str, decision: &Decision, text: &str) -> Result<(), ToolError> {
    let is_function = decision.protocol == Protocol::Function;
    let (reason, hint) = match decision.language {
        Language::Python => {
            let facts = python::facts(text);
            if facts.is_empty {
                ("has no code, only comments", "Send the code that does the work")
            } else if facts.run_is_class && is_function {
                ("has a class as `run`", "Make `run` a function that takes the arguments: `def run(text: str)`")
            } else if facts.only_defines && !is_function {
                (
                    "defines functions and calls none, so that it would do nothing",
                    "Name the function that takes the arguments `run`",
                )
            } else {
                return Ok(());
            }
        }
        Language::JavaScript | Language::TypeScript => {
            let facts = javascript::facts(text, decision.language == Language::TypeScript).unwrap_or_default();
            if facts.is_empty {
                ("has no code, only comments", "Send the code that does the work")
            } else if facts.hides_run && !is_function && !facts.reads_stdin && facts.only_defines {
                ("defines `run` and does not export it, so that it would do nothing", "Write `export function run({ ... })`")
            } else if facts.parameters > 1 && is_function {
                (
                    "has a `run` with more than one parameter; it is called with one object that holds the arguments",
                    "Write `run({ a, b })` with braces",
                )
            } else {
                return Ok(());
            }
        }
        Language::Other => {
            if text.lines().all(|line| line.trim().is_empty() || line.trim_start().starts_with('#')) {
                ("has no code, only comments", "Send the code that does the work")
            } else {
                return Ok(());
            }
        }
    };
    Err(ToolError::invalid(format!("The script of `{name}` {reason}")).with_hint(hint))
}

/// How it was settled what the script is, and what it will miss.
pub(crate) fn notes(manifest: &Manifest, decision: &Decision, text: &str) -> Vec<String> {
    let mut notes = Vec::new();
    if let Some(reason) = decision.reason {
        notes.push(format!("protocol `{}`: {reason}", word(decision.protocol)));
    }
    notes.extend(without_argv(manifest, decision, text));
    notes
}

/// What to tell of a program that reads its command line where there is none.
pub(crate) fn without_argv(manifest: &Manifest, decision: &Decision, text: &str) -> Option<String> {
    let misses_it =
        manifest.argv.is_none() && decision.protocol != Protocol::Function && reads_command_line(decision.language, text);
    misses_it.then(|| command_line::note(decision.language, text, manifest.input_schema.as_ref()))
}

/// Whether a program reads its command line, as far as its text shows.
fn reads_command_line(language: Language, text: &str) -> bool {
    if language == Language::Python {
        return python::facts(text).reads_command_line;
    }
    const SIGNS: [&str; 14] = [
        "process.argv",
        "Deno.args",
        "Bun.argv",
        "parseArgs",
        "commander",
        "yargs",
        "ARGV",
        "$argv",
        "getopts",
        "commandArgs",
        "\"$@\"",
        "${1",
        "$*",
        "arg[1]",
    ];
    let positional = ('1'..='9').any(|digit| text.contains(&format!("${digit}")));
    SIGNS.iter().any(|sign| text.contains(sign)) || (language == Language::Other && positional)
}

/// The protocol as manifests spell it.
fn word(protocol: Protocol) -> &'static str {
    match protocol {
        Protocol::Function => "function",
        Protocol::Json => "json",
        Protocol::JsonRpc => "jsonrpc",
    }
}

#[cfg(test)]
mod tests {
    use skillz_tool::ToolKind;

    use super::*;
    use crate::source::{Origin, decide};

    fn decided(interpreter: &str, code: &str) -> (Manifest, Decision) {
        let manifest = Manifest { interpreter: Some(interpreter.to_owned()), ..Manifest::new("t", "", ToolKind::Script) };
        let decision = decide(&manifest, code.as_bytes(), Origin::New).expect(code);
        (manifest, decision)
    }

    #[test]
    fn what_cannot_work_is_refused_with_the_reason() {
        for (interpreter, code, says) in [
            ("python3", "# only a comment", Some("no code")),
            ("python3", "class run:\n    pass", Some("a class")),
            ("python3", "def main():\n    print(1)", Some("calls none")),
            ("python3", "def main():\n    print(1)\nmain()", None),
            ("python3", "run = lambda a: a", None),
            ("node", "export function run(a, b) { return a }", Some("more than one parameter")),
            ("node", "export function run({ a }, options = {}) { return a }", Some("more than one parameter")),
            ("node", "module.exports = (a, b) => a", Some("more than one parameter")),
            ("node", "export function run({ a, b }) { return a }", None),
            ("node", "// nothing", Some("no code")),
            ("node", "function run({ a }) { return a }", Some("does not export")),
            ("node", "function run({ a }) { return a }\nconsole.log(run({ a: 1 }))", None),
            ("bash", "#!/bin/bash\n# nothing\n", Some("no code")),
            ("bash", "echo 1", None),
        ] {
            let refused = check("t", &decided(interpreter, code).1, code).err();
            assert_eq!(refused.is_some(), says.is_some(), "{code}: {refused:?}");
            assert!(refused.zip(says).is_none_or(|(error, says)| error.text().contains(says)), "{code}");
        }
    }

    #[test]
    fn programs_that_read_their_command_line_are_told_of_argv() {
        for (interpreter, code, reads) in [
            ("python3", "import sys\nprint(sys.argv[1])", true),
            ("python3", "import argparse\np = argparse.ArgumentParser()", true),
            ("python3", "print('sys.argv')", false),
            ("node", "console.log(process.argv[2])", true),
            ("bash", "echo \"$1\"", true),
            ("ruby", "puts ARGV[0]", true),
            ("php", "<?php echo $argv[1];", true),
            ("bash", "cat", false),
        ] {
            let (mut manifest, decision) = decided(interpreter, code);
            assert_eq!(without_argv(&manifest, &decision, code).is_some(), reads, "{code}");
            manifest.argv = Some(skillz_json::json!(["$input.a"]));
            assert!(without_argv(&manifest, &decision, code).is_none(), "{code}");
        }
    }
}
