//! Decides what a script is: its language, the command that runs it, the file it lies in, and how it is called.
//!
//! Everything is read off manifest and source; nothing is run and no program is looked for.

pub(crate) mod advice;
mod command_line;
pub(crate) mod javascript;
pub(crate) mod python;
mod signature;

use std::path::Path;

use skillz_json::Value;
use skillz_tool::{Manifest, Protocol, ToolError};

use crate::{
    interpreter::shebang,
    language::{self, Language},
};

/// What a script is.
#[derive(Debug, Clone, PartialEq)]
pub(crate) struct Decision {
    /// The source file's name, relative to the tool's folder.
    pub(crate) entry_file: String,
    /// The command that runs it, as words; empty for a program that runs itself.
    pub(crate) command: Vec<String>,
    /// Its language.
    pub(crate) language: Language,
    /// How it is called.
    pub(crate) protocol: Protocol,
    /// Whether it is an ES module (JavaScript and TypeScript).
    pub(crate) is_module: bool,
    /// A schema read off the source, where it says anything (JavaScript and TypeScript; Python tells it itself).
    pub(crate) input_schema: Option<Value>,
    /// Why it is called so; `None` where the manifest says how.
    pub(crate) reason: Option<&'static str>,
}

/// Where a script comes from, which decides over what its manifest leaves out.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum Origin {
    /// It is being written now.
    New,
    /// It lies in a folder. Earlier versions called each program there by JSON-RPC.
    Folder,
}

/// Commands that can keep a worker of a language; others, such as `uv run`, start anew for each call.
const WORKER_COMMANDS: [&str; 6] = ["python", "pypy", "node", "nodejs", "bun", "deno"];

/// Decides by the manifest's `interpreter`, `entry_file` and `protocol`, and where these are silent by the source.
pub(crate) fn decide(manifest: &Manifest, source: &[u8], origin: Origin) -> Result<Decision, ToolError> {
    let text = String::from_utf8_lossy(source);
    let given_extension = manifest.entry_file.as_deref().and_then(|file| Path::new(file).extension()?.to_str());
    let command = command(manifest, given_extension, &text, source)?;
    let name = command.first().map(String::as_str).unwrap_or_default();
    let mut language = language::of(name, given_extension);
    let mut facts = javascript::Facts::default();
    if matches!(language, Language::JavaScript | Language::TypeScript) {
        (language, facts) = javascript_facts(&text, language, given_extension.is_some(), manifest)?;
    }
    let extension = match language {
        Language::TypeScript => Some("ts"),
        Language::JavaScript if facts.is_module => Some("mjs"),
        Language::JavaScript => Some("js"),
        _ => language::extension_for_command(name),
    };
    let entry_file = match (&manifest.entry_file, extension) {
        (Some(file), _) => file.clone(),
        (None, Some(extension)) => format!("main.{extension}"),
        (None, None) => "main".to_owned(),
    };
    let (protocol, reason) = protocol(manifest, name, language, &text, &facts, origin)?;
    let javascript::Facts { is_module, input_schema, .. } = facts;
    Ok(Decision { entry_file, command, language, protocol, is_module, input_schema, reason })
}

/// The command as words: the manifest's, else by extension and `#!` line, else `python3`, or `node` for what can only
/// be JavaScript; none for a compiled program.
fn command(manifest: &Manifest, extension: Option<&str>, text: &str, source: &[u8]) -> Result<Vec<String>, ToolError> {
    if let Some(interpreter) = &manifest.interpreter {
        let words = match interpreter.trim() {
            // Names of the language, for which there is no command.
            "javascript" | "js" | "typescript" | "ts" => vec!["node".to_owned()],
            _ => shebang::split_words(interpreter),
        };
        if words.is_empty() && !interpreter.is_empty() {
            return Err(ToolError::invalid("The `interpreter` is blank; name a command such as `python3`, or leave it out"));
        }
        if !words.is_empty() {
            return Ok(words);
        }
    }
    let by_line = shebang::command(text);
    let by_extension = extension.and_then(language::command_for_extension).map(shebang::split_words);
    Ok(match (by_extension, by_line) {
        // `main.py` that begins with `#!/usr/bin/env -S python3.12 -u` means that one.
        (Some(by_extension), Some(by_line)) if are_kin(&by_extension, &by_line) => by_line,
        (Some(by_extension), _) => by_extension,
        (None, Some(by_line)) => by_line,
        (None, None) if is_compiled(source) => Vec::new(),
        (None, None) if is_javascript_only(text) => vec!["node".to_owned()],
        (None, None) => vec!["python3".to_owned()],
    })
}

/// Whether a source of which nobody said what it is can be JavaScript or TypeScript and cannot be Python.
fn is_javascript_only(text: &str) -> bool {
    ruff_python_parser::parse_module(text).is_err() && javascript::facts(text, true).is_ok()
}

fn are_kin(one: &[String], other: &[String]) -> bool {
    matches!((one.first(), other.first()), (Some(one), Some(other)) if language::are_kin(one, other))
}

/// Whether a file is a program for the kernel: ELF, Mach-O or PE.
pub(crate) fn is_compiled(source: &[u8]) -> bool {
    const MACH_O: [[u8; 4]; 5] = [
        [0xfe, 0xed, 0xfa, 0xce],
        [0xfe, 0xed, 0xfa, 0xcf],
        [0xce, 0xfa, 0xed, 0xfe],
        [0xcf, 0xfa, 0xed, 0xfe],
        [0xca, 0xfe, 0xba, 0xbe],
    ];
    source.starts_with(b"\x7fELF") || source.starts_with(b"MZ") || MACH_O.iter().any(|magic| source.starts_with(magic))
}

/// Parses JavaScript; what is none, and was not named so by its extension, is tried as TypeScript.
fn javascript_facts(
    text: &str,
    language: Language,
    is_named: bool,
    manifest: &Manifest,
) -> Result<(Language, javascript::Facts), ToolError> {
    let text = text.strip_prefix('\u{feff}').unwrap_or(text);
    let error = match javascript::facts(text, language == Language::TypeScript) {
        Ok(facts) => return Ok((language, facts)),
        Err(error) => error,
    };
    if language == Language::JavaScript
        && !is_named
        && let Ok(facts) = javascript::facts(text, true)
    {
        return Ok((Language::TypeScript, facts));
    }
    let kind = if language == Language::TypeScript { "TypeScript" } else { "JavaScript" };
    Err(ToolError::failed(format!("The script of `{}` is not valid {kind}: {error}", manifest.name))
        .with_hint("Correct the code and send it again"))
}

/// How the script is called, and why where the manifest does not say so.
fn protocol(
    manifest: &Manifest,
    command: &str,
    language: Language,
    text: &str,
    facts: &javascript::Facts,
    origin: Origin,
) -> Result<(Protocol, Option<&'static str>), ToolError> {
    let stem = Path::new(command).file_name().and_then(|name| name.to_str()).unwrap_or_default();
    let stem = stem.trim_end_matches(|last: char| last.is_ascii_digit() || last == '.');
    let keeps_worker = language != Language::Other && WORKER_COMMANDS.contains(&stem);
    match manifest.protocol {
        Some(Protocol::Function) if !keeps_worker => {
            return Err(ToolError::invalid(format!(
                "`{}` asks for the protocol `function`, which there is for Python and JavaScript only, not for `{command}`",
                manifest.name
            ))
            .with_hint("Leave `protocol` out, read the arguments from stdin and print the result"));
        }
        Some(protocol) => return Ok((protocol, None)),
        None => {}
    }
    if keeps_worker && language == Language::Python {
        let python = python::facts(text);
        if python.defines_run && !python.reads_input {
            return Ok((Protocol::Function, Some("it defines `run`")));
        }
        if python.defines_run && origin == Origin::New {
            return Err(ToolError::invalid(format!(
                "`{}` defines `run` and also reads stdin or its command line outside of it, so that it can be called both ways",
                manifest.name
            ))
            .with_hint(
                "Pass `protocol: \"function\"` to have `run` called, or `protocol: \"json\"` to have it run as a program",
            ));
        }
    } else if keeps_worker && facts.exports_run {
        return Ok((Protocol::Function, Some("it exports `run` or a default function")));
    }
    Ok(match origin {
        Origin::Folder => (Protocol::JsonRpc, Some("programs in folders without a `protocol` talk so")),
        Origin::New if text.contains("jsonrpc") && text.contains("params") => {
            (Protocol::JsonRpc, Some("it names `jsonrpc` and `params`"))
        }
        Origin::New => (Protocol::Json, Some("it is a program: its arguments are one line of JSON on stdin")),
    })
}

#[cfg(test)]
mod tests {
    use skillz_tool::ToolKind;

    use super::*;

    fn manifest(interpreter: Option<&str>, entry_file: Option<&str>) -> Manifest {
        let mut manifest = Manifest::new("t", "", ToolKind::Script);
        manifest.interpreter = interpreter.map(str::to_owned);
        manifest.entry_file = entry_file.map(str::to_owned);
        manifest
    }

    #[test]
    fn interpreter_file_and_protocol_follow_from_what_is_given() {
        use Protocol::{Function, Json};
        for (interpreter, entry, source, command, file, protocol) in [
            (None, None, "print(1)", "python3", "main.py", Json),
            (None, None, "def run(): return 1", "python3", "main.py", Function),
            (Some("python3"), None, "def run(): return 1\nif __name__ == '__main__': run()", "python3", "main.py", Function),
            (Some("python3.12 -u"), None, "def run(): ...", "python3.12 -u", "main.py", Function),
            (None, None, "export function run({ a }: { a: number }) { return a }", "node", "main.ts", Function),
            (None, None, "const { a } = require('x')", "node", "main.js", Json),
            (None, None, "neither = of these (", "python3", "main.py", Json),
            (None, None, "#!/bin/bash\necho 1", "/bin/bash", "main.sh", Json),
            (None, None, "#!/usr/bin/env -S python3 -u\ndef run(): ...", "python3 -u", "main.py", Function),
            (None, Some("main.rb"), "puts 1", "ruby", "main.rb", Json),
            (None, Some("main.py"), "#!/usr/bin/env -S python3.11 -I\nprint()", "python3.11 -I", "main.py", Json),
            (None, Some("main.py"), "#!/bin/sh\nprint()", "python3", "main.py", Json),
            (None, Some("main.xyz"), "#!/usr/bin/perl\n1", "/usr/bin/perl", "main.xyz", Json),
            (None, Some("main.sh"), "#!/bin/zsh\n", "/bin/zsh", "main.sh", Json),
            (Some("node"), None, "export function run() {}", "node", "main.mjs", Function),
            (Some("node"), None, "module.exports = { run() {} }", "node", "main.js", Function),
            (Some("node"), None, "console.log(1)", "node", "main.js", Json),
            (Some("node"), None, "export function run(a: string) {}", "node", "main.ts", Function),
            (Some("node"), None, "export function run() { process.stdin.read() }", "node", "main.mjs", Function),
            (Some("deno"), None, "export default (a: { b: number }) => a", "deno", "main.ts", Function),
            (Some("typescript"), None, "export function run(a: string) {}", "node", "main.ts", Function),
            (Some("tsx"), None, "export function run() {}", "tsx", "main.mjs", Json),
            (Some("uv run"), None, "def run(): ...", "uv run", "main.py", Json),
            (Some("made-up"), None, "x", "made-up", "main", Json),
            (None, Some("tool"), "\u{7f}ELF...", "", "tool", Json),
        ] {
            let decision = decide(&manifest(interpreter, entry), source.as_bytes(), Origin::New).expect(source);
            assert_eq!(
                (decision.command.join(" ").as_str(), decision.entry_file.as_str(), decision.protocol),
                (command, file, protocol),
                "{source}"
            );
        }
    }

    #[test]
    fn the_protocol_is_settled_by_source_and_place() {
        use Protocol::{Function, Json, JsonRpc};
        for (source, new, on_disk) in [
            ("import json, sys\nprint(json.load(sys.stdin))", Some(Json), JsonRpc),
            ("r = json.loads(input())\nprint({'jsonrpc': '2.0', 'result': r['params']})", Some(JsonRpc), JsonRpc),
            ("print('jsonrpc')", Some(Json), JsonRpc),
            ("import skillz\nskillz.memory.get('a')", Some(Json), JsonRpc),
            ("def run(a): return a", Some(Function), Function),
            ("import sys\ndef run(a): return a\nprint(run(sys.stdin.read()))", None, JsonRpc),
            ("import argparse\ndef run(a): return a\nargparse.ArgumentParser()", None, JsonRpc),
        ] {
            let decided = |origin| decide(&manifest(None, None), source.as_bytes(), origin).map(|decision| decision.protocol);
            assert_eq!(decided(Origin::New).ok(), new, "{source}");
            assert_eq!(decided(Origin::Folder).ok(), Some(on_disk), "{source}");
            for protocol in [Function, Json, JsonRpc] {
                let given = Manifest { protocol: Some(protocol), ..manifest(None, None) };
                assert_eq!(decide(&given, source.as_bytes(), Origin::New).map(|decision| decision.protocol), Ok(protocol));
            }
        }
    }

    #[test]
    fn what_cannot_be_is_refused_with_a_reason() {
        let error = decide(&manifest(Some("node"), None), b"export function run( {", Origin::New).expect_err("is no JavaScript");
        assert!(error.text().contains("not valid JavaScript"), "{error}");
        let error =
            decide(&manifest(None, Some("main.js")), b"let a: number = 1", Origin::New).expect_err("was named JavaScript");
        assert!(error.text().contains("not valid JavaScript"), "{error}");
        let mut bash = manifest(Some("bash"), None);
        bash.protocol = Some(Protocol::Function);
        assert!(decide(&bash, b"echo", Origin::New).expect_err("there is no such thing").text().contains("`function`"));
        assert!(decide(&manifest(Some("  "), None), b"x", Origin::New).is_err());
    }
}
