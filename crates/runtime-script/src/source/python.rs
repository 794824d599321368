//! Reads off a Python source how it wants to be called, by its syntax tree, without running it.
//!
//! Whether the source is valid is Python's business: what can be read of a broken one counts.

use ruff_python_ast::{
    Expr, Stmt,
    visitor::{self, Visitor},
};
use ruff_python_parser::{Mode, ParseOptions, parse_unchecked};

/// What decides over the protocol of a Python script.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default)]
#[expect(clippy::struct_excessive_bools, reason = "independent facts")]
pub(crate) struct Facts {
    /// `run` is defined at top level.
    pub(crate) defines_run: bool,
    /// `run` is a class.
    pub(crate) run_is_class: bool,
    /// Its main part, outside of `run`, reads stdin or the command line.
    pub(crate) reads_input: bool,
    /// It reads its command line, wherever.
    pub(crate) reads_command_line: bool,
    /// It defines functions or classes, and does nothing.
    pub(crate) only_defines: bool,
    /// There is no statement in it.
    pub(crate) is_empty: bool,
}

/// Looks at a source.
pub(crate) fn facts(source: &str) -> Facts {
    let source = source.strip_prefix('\u{feff}').unwrap_or(source);
    let Some(parsed) = parse_unchecked(source, ParseOptions::from(Mode::Module)).try_into_module() else {
        return Facts::default();
    };
    let is_whole = parsed.errors().is_empty();
    let body = &parsed.syntax().body;
    let mut facts = Facts { is_empty: is_whole && body.is_empty(), ..Facts::default() };
    let (mut inside, mut outside) = (Reads::default(), Reads::default());
    define(body, &mut facts, &mut inside, &mut outside);
    facts.reads_input = outside.stdin || outside.command_line;
    facts.reads_command_line = inside.command_line || outside.command_line;
    let defines = body.iter().any(|statement| statement.is_function_def_stmt() || statement.is_class_def_stmt());
    facts.only_defines = is_whole && defines && !facts.defines_run && body.iter().all(only_defines);
    facts
}

/// Takes the statements at top level, those behind `if` and `try` included.
fn define(body: &[Stmt], facts: &mut Facts, inside: &mut Reads, outside: &mut Reads) {
    for statement in body {
        match statement {
            Stmt::FunctionDef(function) if function.name.as_str() == "run" => {
                facts.defines_run = true;
                function.decorator_list.iter().for_each(|decorator| outside.visit_decorator(decorator));
                function.body.iter().for_each(|statement| inside.visit_stmt(statement));
                continue;
            }
            Stmt::ClassDef(class) if class.name.as_str() == "run" => (facts.defines_run, facts.run_is_class) = (true, true),
            Stmt::Assign(assign)
                if assign.targets.iter().any(|target| is_named(target, "run")) && makes_function(&assign.value) =>
            {
                facts.defines_run = true;
                inside.visit_stmt(statement);
                continue;
            }
            Stmt::Try(attempt) => {
                define(&attempt.body, facts, inside, outside);
                continue;
            }
            Stmt::If(condition) if !mentions(&condition.test, "__name__") => {
                define(&condition.body, facts, inside, outside);
                condition.elif_else_clauses.iter().for_each(|clause| define(&clause.body, facts, inside, outside));
                continue;
            }
            _ => {}
        }
        outside.visit_stmt(statement);
    }
}

fn mentions(test: &Expr, name: &str) -> bool {
    test.as_compare_expr().is_some_and(|compare| is_named(&compare.left, name))
}

fn is_named(expression: &Expr, name: &str) -> bool {
    expression.as_name_expr().is_some_and(|found| found.id.as_str() == name)
}

/// `lambda ...`, `partial(f, ...)`, or another name.
fn makes_function(value: &Expr) -> bool {
    let is_partial = value.as_call_expr().is_some_and(|call| match &*call.func {
        Expr::Name(name) => name.id.as_str() == "partial",
        Expr::Attribute(attribute) => attribute.attr.as_str() == "partial",
        _ => false,
    });
    is_partial || matches!(value, Expr::Lambda(_) | Expr::Name(_))
}

fn only_defines(statement: &Stmt) -> bool {
    matches!(statement, Stmt::Import(_) | Stmt::ImportFrom(_) | Stmt::FunctionDef(_) | Stmt::ClassDef(_) | Stmt::Pass(_))
        || matches!(statement, Stmt::Assign(assign) if !assign.value.is_call_expr())
        || matches!(statement, Stmt::Expr(expression) if expression.value.is_string_literal_expr())
}

/// Modules that are there for reading a command line.
const COMMAND_LINE_MODULES: [&str; 7] = ["argparse", "optparse", "getopt", "click", "typer", "fire", "docopt"];

/// What was seen that reads stdin or the command line.
#[derive(Default)]
struct Reads {
    stdin: bool,
    command_line: bool,
}

impl Reads {
    fn take_module(&mut self, module: &str) {
        self.command_line |= COMMAND_LINE_MODULES.contains(&module);
        self.stdin |= module == "fileinput";
    }

    fn take_name(&mut self, name: &str) {
        self.stdin |= matches!(name, "stdin" | "__stdin__");
        self.command_line |= matches!(name, "argv" | "orig_argv");
    }
}

impl<'a> Visitor<'a> for Reads {
    fn visit_stmt(&mut self, statement: &'a Stmt) {
        match statement {
            Stmt::Import(import) => import.names.iter().for_each(|alias| self.take_module(alias.name.as_str())),
            Stmt::ImportFrom(import) => match import.module.as_ref().map(ruff_python_ast::Identifier::as_str) {
                Some("sys") => import.names.iter().for_each(|alias| self.take_name(alias.name.as_str())),
                Some(module) => self.take_module(module),
                None => {}
            },
            _ => visitor::walk_stmt(self, statement),
        }
    }

    fn visit_expr(&mut self, expression: &'a Expr) {
        match expression {
            Expr::Attribute(attribute) if is_named(&attribute.value, "sys") => self.take_name(attribute.attr.as_str()),
            Expr::Call(call) => {
                let reads_zero = call.arguments.args.first().is_some_and(is_stdin);
                self.stdin |= match &*call.func {
                    Expr::Name(name) => name.id.as_str() == "input" || (reads_zero && name.id.as_str() == "open"),
                    Expr::Attribute(attribute) => reads_zero && matches!(attribute.attr.as_str(), "read" | "fdopen"),
                    _ => false,
                };
            }
            _ => {}
        }
        visitor::walk_expr(self, expression);
    }
}

/// `0`, or the file's name.
fn is_stdin(expression: &Expr) -> bool {
    match expression {
        Expr::NumberLiteral(number) => matches!(&number.value, ruff_python_ast::Number::Int(number) if number.as_u8() == Some(0)),
        Expr::StringLiteral(text) => text.value.to_str() == "/dev/stdin",
        _ => false,
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn functions_are_told_from_programs() {
        for (source, defines_run, reads_input) in [
            ("def run(a): return a", true, false),
            ("import x\n@decorated\nasync def run(\n  a,\n): ...", true, false),
            ("\u{feff}def run ( a ): pass", true, false),
            ("run = lambda a: a", true, false),
            ("from functools import partial\nrun = partial(print, 1)", true, false),
            ("try:\n    import x\n    def run(): ...\nexcept ImportError: ...", true, false),
            ("class A:\n    def run(self): pass", false, false),
            ("def runner(): pass", false, false),
            ("'''\ndef run(): pass\n'''", false, false),
            ("import subprocess\nrun = subprocess.run('ls')", false, false),
            ("def run(): pass\nif __name__ == '__main__':\n    print(run())", true, false),
            ("import sys\nfor line in sys.stdin: pass", false, true),
            ("import sys, json\ndef run(): return json.load(sys . stdin)", true, false),
            ("import sys\ndef run(a): ...\ndef main():\n    run(sys.stdin.read())\nmain()", true, true),
            ("from sys import argv, stdin", false, true),
            ("import sys\ndef run(a): ...\nif __name__ == '__main__': run(sys.argv[1])", true, true),
            ("import click\n@click.command()\ndef run(a): ...", true, true),
            ("name = input('who? ')", false, true),
            ("data = open(0).read()", false, true),
            ("import os\nos.read(0, 9)", false, true),
            ("def run(input: str): return input", true, false),
            ("def run(a): return subprocess.run(a, stdin=subprocess.DEVNULL)", true, false),
            ("def run(): return 'sys.stdin' + \"input(\"", true, false),
        ] {
            let found = facts(source);
            assert_eq!((found.defines_run, found.reads_input), (defines_run, reads_input), "{source}");
        }
    }

    #[test]
    fn what_does_nothing_is_seen() {
        assert!(facts("# nothing\n\n").is_empty && !facts("pass").is_empty);
        assert!(facts("class run: ...").run_is_class);
        for (source, only_defines) in [
            ("\"Counts.\"\nimport re\nX = 1\ndef count(text: str): return 1", true),
            ("def main(): print(1)", true),
            ("def main(): print(1)\nmain()", false),
            ("def main(): print(1)\nx = main()", false),
            ("print(1)", false),
        ] {
            assert_eq!(facts(source).only_defines, only_defines, "{source}");
        }
    }
}
