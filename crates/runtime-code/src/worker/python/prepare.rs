//! A program on its way to the interpreter: changed where tools are awaited.

use std::collections::HashSet;

use ruff_python_ast::{
    self as ast, Stmt,
    statement_visitor::{StatementVisitor, walk_stmt},
};
use ruff_python_parser::parse_module;
use ruff_text_size::Ranged;

use super::{
    FILE_NAME,
    analysis::{Facts, OWN_ASYNCIO},
    flow,
};
use crate::{
    message::{Failure, FailureKind, Program},
    worker::edits::Edits,
};

const PRELUDE_ASYNC: &str = include_str!("prelude_async.py");
const PRELUDE_KIT: &str = include_str!("prelude_kit.py");
/// A tool's failure in a program; the embedded interpreter raises built-in exceptions only.
const PRELUDE_ERROR: &str = "ToolError = RuntimeError\n";

/// Built-in functions of the embedded interpreter that programs may use as names of their own.
const BUILTINS: &str = "abs all any bin bool bytes chr dict divmod enumerate filter float frozenset hash hex id int isinstance iter len list \
    map max min next oct open ord pow print range repr reversed round set slice sorted str sum tuple type zip";

/// A program, ready to be compiled.
pub(crate) struct Prepared {
    /// What the interpreter gets: helpers in front, then the program.
    pub(crate) text: String,
    /// Lines of the helpers.
    pub(crate) prelude_lines: u32,
}

/// Reads and changes a program.
pub(crate) fn prepare(program: &Program) -> Result<Prepared, Failure> {
    let source = program.code.as_str();
    let parsed = parse_module(source).map_err(|error| syntax_failure(source, &error))?;
    let statements = &parsed.syntax().body;
    let tools: HashSet<&str> = program.tools.iter().map(String::as_str).collect();
    let facts = Facts::of(statements);
    let mut edits = Edits::default();
    Imports { source, edits: &mut edits }.visit_body(statements);
    flow::edit(statements, source, &facts, &tools, &mut edits);
    let body = edits.apply(source);

    let mut prelude = String::new();
    if facts.is_async || facts.uses_asyncio() {
        prelude.push_str(PRELUDE_ASYNC);
    }
    if facts.uses_kit {
        prelude.push_str(PRELUDE_KIT);
    }
    if facts.read.contains("ToolError") && !facts.bound.contains("ToolError") {
        prelude.push_str(PRELUDE_ERROR);
    }
    // At top level the interpreter takes such a name in a comprehension for the built-in, unless it is a variable already.
    for name in BUILTINS.split_ascii_whitespace().filter(|name| facts.bound.contains(*name) && !tools.contains(name)) {
        prelude.push_str(&format!("{name} = {name}\n"));
    }
    let prelude_lines = u32::try_from(prelude.lines().count()).unwrap_or_default();
    Ok(Prepared { text: format!("{prelude}{body}"), prelude_lines })
}

fn syntax_failure(source: &str, error: &ruff_python_parser::ParseError) -> Failure {
    let offset = error.location.start().to_usize().min(source.len());
    let before = source.get(..offset).unwrap_or_default();
    let line = before.matches('\n').count() + 1;
    let text = source.lines().nth(line - 1).unwrap_or_default();
    let message = format!("SyntaxError: {} (line {line})", error.error);
    let traceback = format!("  File \"{FILE_NAME}\", line {line}\n    {}\n{message}", text.trim());
    Failure { traceback: Some(traceback), ..Failure::new(FailureKind::Syntax, message) }
}

/// Takes imports out that the prepared program has its own for: `skillz`, and parts of `asyncio`.
struct Imports<'a> {
    source: &'a str,
    edits: &'a mut Edits,
}

impl Imports<'_> {
    fn replace(&mut self, statement: &impl Ranged, text: &str) {
        self.edits.replace_lines(self.source, statement.start().to_usize(), statement.end().to_usize(), text);
    }
}

impl<'a> StatementVisitor<'a> for Imports<'_> {
    fn visit_stmt(&mut self, statement: &'a Stmt) {
        match statement {
            Stmt::Import(import) if import.names.iter().any(|alias| alias.name.id.as_str() == "skillz") => {
                self.replace(import, &without_kit(import));
            }
            Stmt::ImportFrom(import) if import.module.as_ref().is_some_and(|module| module.id.as_str() == "skillz") => {
                let bindings: Vec<String> = import.names.iter().map(member_of_kit).collect();
                self.replace(import, &bindings.join("; "));
            }
            Stmt::ImportFrom(import) if import.module.as_ref().is_some_and(|module| module.id.as_str() == "asyncio") => {
                if import.names.iter().all(|alias| OWN_ASYNCIO.contains(&alias.name.id.as_str())) {
                    self.replace(import, "import asyncio");
                }
            }
            _ => walk_stmt(self, statement),
        }
    }
}

/// An import statement with `skillz` taken from what is there already.
fn without_kit(import: &ast::StmtImport) -> String {
    let parts = import.names.iter().map(|alias| {
        let (name, bound) = (alias.name.id.as_str(), alias.asname.as_ref().map(|bound| bound.id.as_str()));
        match (name, bound) {
            ("skillz", None) => "pass".to_owned(),
            ("skillz", Some(bound)) => format!("{bound} = skillz"),
            (name, None) => format!("import {name}"),
            (name, Some(bound)) => format!("import {name} as {bound}"),
        }
    });
    parts.collect::<Vec<_>>().join("; ")
}

fn member_of_kit(alias: &ast::Alias) -> String {
    let name = alias.name.id.as_str();
    let bound = alias.asname.as_ref().map_or(name, |bound| bound.id.as_str());
    match name {
        "call" if bound == "call" => "pass".to_owned(),
        "call" => format!("{bound} = call"),
        "ToolError" => format!("{bound} = RuntimeError"),
        _ => format!("{bound} = skillz.{name}"),
    }
}
