//! A program on its way to the interpreter: types stripped, made the body of an async
//! function, so that `await` and `return` work at top level and the last expression is its value.

use std::path::{Path, PathBuf};

use oxc_allocator::Allocator;
use oxc_ast::{
    AstKind,
    ast::{Program as Syntax, Statement},
};
use oxc_codegen::{Codegen, CodegenOptions};
use oxc_parser::{ParseOptions, Parser};
use oxc_semantic::SemanticBuilder;
use oxc_span::{GetSpan, SourceType, Span};
use oxc_transformer::{TransformOptions, Transformer};

use super::FILE_NAME;
use crate::{
    message::{Failure, FailureKind, Program},
    request::Language,
    worker::edits::Edits,
};

/// Where the program is to run.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum Target {
    Embedded,
    Process,
}

/// A program, ready to be run.
pub(crate) struct Prepared {
    /// The program; its value is a promise. In a process it follows the header.
    pub(crate) text: String,
    /// Its imports, for a process.
    pub(crate) header: String,
    /// Whether it has forms that only a module may have.
    pub(crate) is_module: bool,
    /// What the program needs and the embedded interpreter lacks.
    pub(crate) unsupported: Option<String>,
    /// Where lines and columns of the text come from, both counted from 0; empty where every line is its own.
    pub(crate) positions: Vec<Position>,
}

/// A place in the text and the line that it comes from.
#[derive(Debug, Clone, Copy)]
pub(crate) struct Position {
    pub(crate) line: u32,
    pub(crate) column: u32,
    pub(crate) source_line: u32,
}

impl Prepared {
    /// The line of the program for each line of the text, counted from 1; empty where they are the same.
    pub(crate) fn lines(&self) -> Vec<u32> {
        if self.positions.is_empty() {
            return Vec::new();
        }
        let mut last = 1;
        let lines = 0..u32::try_from(self.text.lines().count()).unwrap_or_default();
        let lines = lines.map(|line| {
            last = self.positions.iter().find(|position| position.line == line).map_or(last, |position| position.source_line + 1);
            last
        });
        lines.collect()
    }
}

/// Reads, checks and changes a program.
pub(crate) fn prepare(program: &Program, target: Target) -> Result<Prepared, Failure> {
    let (stripped, positions) = match program.language {
        Language::TypeScript => strip_types(&program.code)?,
        _ => (program.code.clone(), Vec::new()),
    };
    let source = stripped.as_str();
    let allocator = Allocator::default();
    let parsed = Parser::new(&allocator, source, SourceType::mjs()).with_options(parse_options()).parse();
    if let Some(fault) = parsed.diagnostics.iter().next() {
        let offset = fault.labels.first().map(|label| label.offset() as usize);
        return Err(syntax_failure(source, &fault.message, offset));
    }
    let record = &parsed.module_record;
    let is_module = !(record.requested_modules.is_empty() && record.dynamic_imports.is_empty() && record.import_metas.is_empty());
    let mut body = Body { source, edits: Edits::default(), header: String::new(), imported: Vec::new() };
    body.change(&parsed.program);
    let missing = |module: &String| format!("the embedded interpreter has no modules, and the program imports `{module}`");
    let unsupported = body.imported.first().map(missing);
    let header = std::mem::take(&mut body.header);
    let text = format!("(async () => {{{}\n}})()", body.edits.apply(source));
    let header = if target == Target::Process { header } else { String::new() };
    Ok(Prepared { text, header, is_module, unsupported, positions })
}

/// The changes that make a module the body of a function.
struct Body<'s> {
    source: &'s str,
    edits: Edits,
    header: String,
    imported: Vec<String>,
}

impl Body<'_> {
    fn change(&mut self, program: &Syntax<'_>) {
        for statement in &program.body {
            self.statement(statement);
        }
        // A text alone is read as a directive, such as "use strict".
        // The transformer ends a module that had only types to import with an empty export.
        let is_empty = |statement: &&Statement<'_>| match statement {
            Statement::ExportNamedDeclaration(export) => export.specifiers.is_empty(),
            _ => false,
        };
        let last = match program.body.iter().rfind(|statement| !is_empty(statement)) {
            Some(Statement::ExpressionStatement(statement)) => Some(statement.expression.span()),
            None => program.directives.last().map(|directive| directive.expression.span),
            _ => None,
        };
        if let Some(span) = last {
            self.edits.insert(span.start as usize, "return (");
            self.edits.insert(span.end as usize, ")");
        }
    }

    fn statement(&mut self, statement: &Statement<'_>) {
        let span = statement.span();
        let text = self.text(span).to_owned();
        if let Statement::ImportDeclaration(import) = statement {
            let is_type = import.import_kind.is_type();
            let module = import.source.value.as_str();
            if !is_type && module != "skillz" {
                self.header.push_str(text.trim_end_matches(';'));
                self.header.push_str("; ");
                self.imported.push(module.to_owned());
            }
            return self.remove(span);
        }
        let Some(exported) = text.strip_prefix("export") else { return };
        if !exported.starts_with(|next: char| next.is_whitespace() || matches!(next, '{' | '*')) {
            return;
        }
        let declared = exported.trim_start();
        let declared = declared.strip_prefix("default").map_or(declared, str::trim_start);
        let kept = if declared.starts_with(['{', '*']) { "" } else { declared };
        self.remove(Span::new(span.start, span.end - u32::try_from(kept.len()).unwrap_or_default()));
    }

    /// Takes a part out; its lines stay.
    fn remove(&mut self, span: Span) {
        self.edits.replace_lines(self.source, span.start as usize, span.end as usize, "");
    }

    fn text(&self, span: Span) -> &str {
        self.source.get(span.start as usize..span.end as usize).unwrap_or_default()
    }
}

fn parse_options() -> ParseOptions {
    ParseOptions { allow_return_outside_function: true, ..ParseOptions::default() }
}

/// Turns TypeScript into JavaScript.
fn strip_types(source: &str) -> Result<(String, Vec<Position>), Failure> {
    let allocator = Allocator::default();
    let mut parsed = Parser::new(&allocator, source, SourceType::ts().with_module(true)).with_options(parse_options()).parse();
    if let Some(fault) = parsed.diagnostics.iter().next() {
        let offset = fault.labels.first().map(|label| label.offset() as usize);
        return Err(syntax_failure(source, &fault.message, offset));
    }
    let semantic = SemanticBuilder::new()
        .with_build_nodes(true)
        .with_excess_capacity(2.0)
        .with_enum_eval(true)
        .build(&parsed.program)
        .semantic;
    // No interpreter has them yet, and the transformer knows only those of an earlier proposal, which do other things.
    if let Some(decorator) = semantic.nodes().iter().find(|node| matches!(node.kind(), AstKind::Decorator(_))) {
        let offset = decorator.kind().span().start as usize;
        return Err(syntax_failure(source, "decorators are not supported; call the function on the class instead", Some(offset)));
    }
    let scoping = semantic.into_scoping();
    let options = TransformOptions::default();
    let transformed =
        Transformer::new(&allocator, Path::new("code.ts"), &options).build_with_scoping(scoping, &mut parsed.program);
    if let Some(fault) = transformed.diagnostics.iter().next() {
        return Err(syntax_failure(source, &fault.message, None));
    }
    let options = CodegenOptions { source_map_path: Some(PathBuf::from("code.ts")), ..CodegenOptions::default() };
    let generated = Codegen::new().with_options(options).build(&parsed.program);
    #[expect(clippy::redundant_closure_for_method_calls, reason = "the map's crate is not among our own dependencies")]
    let tokens = generated.map.iter().flat_map(|map| map.get_tokens());
    let positions = tokens.map(|token| Position {
        line: token.get_dst_line(),
        column: token.get_dst_col(),
        source_line: token.get_src_line(),
    });
    let positions = positions.collect();
    Ok((generated.code, positions))
}

fn syntax_failure(source: &str, message: &str, offset: Option<usize>) -> Failure {
    let Some(offset) = offset else {
        return Failure::new(FailureKind::Syntax, format!("SyntaxError: {message}"));
    };
    let line = source.get(..offset.min(source.len())).unwrap_or_default().matches('\n').count() + 1;
    let text = source.lines().nth(line - 1).unwrap_or_default().trim();
    let message = format!("SyntaxError: {message} (line {line})");
    let traceback = format!("{message}\n    at {FILE_NAME}:{line}\n    {text}");
    Failure { traceback: Some(traceback), ..Failure::new(FailureKind::Syntax, message) }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn prepared(language: Language, code: &str) -> Result<Prepared, Failure> {
        let program = Program {
            run: 1,
            language,
            code: code.to_owned(),
            tools: vec!["word_count".to_owned()],
            budget_ms: 1,
            memory_bytes: 1,
            output_bytes: 1,
        };
        prepare(&program, Target::Process)
    }

    #[test]
    fn the_last_expression_is_returned_and_lines_stay() {
        for (code, expected) in [
            ("1 + 1", "(async () => {return (1 + 1)\n})()"),
            ("const a = 1;\na;", "(async () => {const a = 1;\nreturn (a);\n})()"),
            ("'text'", "(async () => {return ('text')\n})()"),
            ("return 5", "(async () => {return 5\n})()"),
            ("let a = 1", "(async () => {let a = 1\n})()"),
            ("export const a = 1;\nexport default function f() {}", "(async () => {const a = 1;\nfunction f() {}\n})()"),
            ("await word_count({text: 'a'}) // done", "(async () => {return (await word_count({text: 'a'})) // done\n})()"),
        ] {
            assert_eq!(
                prepared(Language::JavaScript, code).map(|prepared| prepared.text).map_err(|failure| failure.message),
                Ok(expected.to_owned())
            );
        }
        let module = prepared(Language::JavaScript, "import fs from 'fs';\nfs.x").expect("valid");
        assert_eq!(module.text, "(async () => {\nreturn (fs.x)\n})()");
        assert_eq!(module.header, "import fs from 'fs'; ");
    }

    #[test]
    fn types_are_stripped() {
        let code = "interface A { x: number }\nenum Color { Red = 1, Blue }\nconst a: A = { x: Color.Blue as number };\nconst f = <T,>(t: T): T => t;\nf(a.x!)";
        let stripped = prepared(Language::TypeScript, code).expect("valid");
        assert!(
            !stripped.text.contains("interface") && !stripped.text.contains(": A") && !stripped.text.contains(" as "),
            "{}",
            stripped.text
        );
        assert!(stripped.text.contains("return (f(a.x))") && !stripped.positions.is_empty(), "{}", stripped.text);
        assert!(prepared(Language::JavaScript, "const a: number = 1").is_err());
    }

    #[test]
    fn faults_name_their_line() {
        for code in ["let a = ;", "a b", "{", "const x = 1;\nfunction (", "\u{0}", "await await"] {
            let failure = prepared(Language::JavaScript, code).err().unwrap_or_else(|| panic!("{code}"));
            assert!(failure.message.starts_with("SyntaxError: "), "{code}: {failure:?}");
        }
        let failure = prepared(Language::JavaScript, "const x = 1;\nlet y = ;").err().expect("faulty");
        assert!(failure.message.ends_with("(line 2)"), "{failure:?}");
    }
}
