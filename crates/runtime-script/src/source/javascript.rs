//! Reads off a JavaScript or TypeScript source how it wants to be called, and turns TypeScript into JavaScript.
//!
//! The source is parsed, never run. `signature` makes a schema of what is found here.

use std::path::Path;

use oxc_allocator::Allocator;
use oxc_ast::ast::{
    AssignmentTarget, AwaitExpression, CallExpression, Declaration, ExportDefaultDeclarationKind, Expression,
    ExpressionStatement, ForOfStatement, FormalParameters, ImportExpression, ObjectPropertyKind, Program, Statement,
    StaticMemberExpression, StringLiteral,
};
use oxc_ast_visit::{Visit, walk};
use oxc_codegen::{Codegen, CodegenOptions};
use oxc_parser::{ParseOptions, Parser};
use oxc_semantic::SemanticBuilder;
use oxc_span::SourceType;
use oxc_syntax::scope::ScopeFlags;
use oxc_transformer::{RewriteExtensionsMode, TransformOptions, Transformer};
use skillz_json::Value;

use super::signature;

/// What decides over the protocol and the form of a JavaScript file.
#[derive(Debug, Clone, PartialEq, Default)]
#[expect(clippy::struct_excessive_bools, reason = "independent facts")]
pub(crate) struct Facts {
    /// It exports `run`, or a default function.
    pub(crate) exports_run: bool,
    /// It declares a function `run` and exports none.
    pub(crate) hides_run: bool,
    /// There is no statement in it.
    pub(crate) is_empty: bool,
    /// Nothing but imports, functions, classes and variables stand at its top level.
    pub(crate) only_defines: bool,
    /// How many parameters the exported function has, where they stand in the file.
    pub(crate) parameters: usize,
    /// It reads stdin itself.
    pub(crate) reads_stdin: bool,
    /// It is an ES module; otherwise CommonJS.
    pub(crate) is_module: bool,
    /// A schema made of the parameters of `run`, where they say anything.
    pub(crate) input_schema: Option<Value>,
}

/// Looks at a source; the error is the parser's first message with its line.
pub(crate) fn facts(source: &str, typescript: bool) -> Result<Facts, String> {
    let allocator = Allocator::default();
    let parsed = parse(&allocator, source, typescript)?;
    let mut seen = Seen::default();
    seen.visit_program(&parsed.program);
    let run = exported_run(&parsed.program);
    Ok(Facts {
        exports_run: run.is_some(),
        hides_run: run.is_none() && function_named(&parsed.program, "run").is_some(),
        reads_stdin: seen.reads_stdin,
        is_empty: parsed.program.body.is_empty(),
        only_defines: parsed.program.body.iter().all(|statement| statement.is_declaration() || statement.is_module_declaration()),
        parameters: run.flatten().map_or(0, |parameters| parameters.items.len()),
        is_module: parsed.is_module || seen.awaits_at_top_level,
        input_schema: run.flatten().and_then(|parameters| signature::input_schema(parameters, &parsed.program)),
    })
}

/// Strips the types; enums, namespaces and parameter properties become code. Ends with an inline source map, so that
/// stack traces speak of the original lines.
pub(crate) fn strip_types(source: &str, file_name: &str) -> Result<String, String> {
    let allocator = Allocator::default();
    let mut program = parse(&allocator, source, true)?.program;
    let path = Path::new(file_name);
    let scoping = SemanticBuilder::new().with_enum_eval(true).build(&program).semantic.into_scoping();
    let mut options = TransformOptions::default();
    // The stage keeps TypeScript as `.js`, so that imports must say so too.
    options.typescript.rewrite_import_extensions = Some(RewriteExtensionsMode::Rewrite);
    let transformed = Transformer::new(&allocator, path, &options).build_with_scoping(scoping, &mut program);
    if let Some(diagnostic) = transformed.diagnostics.iter().next() {
        return Err(diagnostic.to_string());
    }
    let options = CodegenOptions { source_map_path: Some(path.to_path_buf()), ..CodegenOptions::default() };
    let printed = Codegen::new().with_options(options).with_source_text(source).build(&program);
    let map = printed.map.map(|map| format!("\n//# sourceMappingURL={}\n", map.to_data_url())).unwrap_or_default();
    Ok(printed.code + &map)
}

struct Parsed<'a> {
    program: Program<'a>,
    is_module: bool,
}

/// Parses as a module, and where that fails as CommonJS, which allows `return` outside of functions and sloppy mode.
fn parse<'a>(allocator: &'a Allocator, source: &'a str, typescript: bool) -> Result<Parsed<'a>, String> {
    let module = SourceType::mjs().with_typescript(typescript);
    let parsed = Parser::new(allocator, source, module).parse();
    let Some(first) = parsed.diagnostics.iter().next() else {
        return Ok(Parsed { is_module: parsed.module_record.has_module_syntax, program: parsed.program });
    };
    let message = with_line(first, source);
    let options = ParseOptions { allow_return_outside_function: true, ..ParseOptions::default() };
    let script = Parser::new(allocator, source, SourceType::cjs().with_typescript(typescript)).with_options(options).parse();
    if script.diagnostics.iter().next().is_none() && !script.module_record.has_module_syntax {
        return Ok(Parsed { is_module: false, program: script.program });
    }
    Err(message)
}

fn with_line(diagnostic: &oxc_diagnostics::OxcDiagnostic, source: &str) -> String {
    let offset = diagnostic.labels.first().map(oxc_diagnostics::LabeledSpan::offset);
    match offset {
        Some(offset) => {
            let line = source.bytes().take(offset as usize).filter(|byte| *byte == b'\n').count() + 1;
            format!("{diagnostic} (line {line})")
        }
        None => diagnostic.to_string(),
    }
}

/// Collects what may stand anywhere in a source.
#[derive(Default)]
struct Seen {
    reads_stdin: bool,
    awaits_at_top_level: bool,
    functions_around: usize,
}

impl<'a> Visit<'a> for Seen {
    fn visit_static_member_expression(&mut self, member: &StaticMemberExpression<'a>) {
        if let ("stdin", Expression::Identifier(object)) = (member.property.name.as_str(), &member.object) {
            self.reads_stdin |= matches!(object.name.as_str(), "process" | "Deno" | "Bun");
        }
        walk::walk_static_member_expression(self, member);
    }

    fn visit_string_literal(&mut self, literal: &StringLiteral<'a>) {
        self.reads_stdin |= literal.value == "/dev/stdin";
    }

    fn visit_call_expression(&mut self, call: &CallExpression<'a>) {
        let callee = match &call.callee {
            Expression::Identifier(identifier) => Some(identifier.name.as_str()),
            Expression::StaticMemberExpression(member) => Some(member.property.name.as_str()),
            _ => None,
        };
        let reads = matches!(callee, Some("readFileSync" | "readSync" | "readFile" | "read"));
        let first = call.arguments.first().and_then(|argument| argument.as_expression());
        if let (true, Some(Expression::NumericLiteral(number))) = (reads, first) {
            self.reads_stdin |= number.value == 0.0;
        }
        walk::walk_call_expression(self, call);
    }

    fn visit_await_expression(&mut self, expression: &AwaitExpression<'a>) {
        self.awaits_at_top_level |= self.functions_around == 0;
        walk::walk_await_expression(self, expression);
    }

    fn visit_for_of_statement(&mut self, statement: &ForOfStatement<'a>) {
        self.awaits_at_top_level |= statement.r#await && self.functions_around == 0;
        walk::walk_for_of_statement(self, statement);
    }

    fn visit_import_expression(&mut self, expression: &ImportExpression<'a>) {
        // `import()` stands in CommonJS too, and says nothing about the file's form.
        walk::walk_import_expression(self, expression);
    }

    fn visit_function(&mut self, function: &oxc_ast::ast::Function<'a>, flags: ScopeFlags) {
        self.functions_around += 1;
        walk::walk_function(self, function, flags);
        self.functions_around -= 1;
    }

    fn visit_arrow_function_expression(&mut self, function: &oxc_ast::ast::ArrowFunctionExpression<'a>) {
        self.functions_around += 1;
        walk::walk_arrow_function_expression(self, function);
        self.functions_around -= 1;
    }
}

type Parameters<'p, 'a> = Option<&'p FormalParameters<'a>>;

/// Whether the program exports a function to call, and its parameters where they stand in the file.
fn exported_run<'p, 'a>(program: &'p Program<'a>) -> Option<Parameters<'p, 'a>> {
    let mut default = None;
    for statement in &program.body {
        match statement {
            Statement::ExportDeclaration(export) => {
                if let Some(parameters) = declared(&export.declaration, "run") {
                    return Some(parameters);
                }
            }
            Statement::ExportFromDeclaration(export)
                if export.specifiers.iter().any(|specifier| matches!(specifier.exported.name().as_str(), "run" | "default")) =>
            {
                return Some(None);
            }
            Statement::ExportNamedDeclaration(export) => {
                if let Some(specifier) = export.specifiers.iter().find(|specifier| specifier.exported.name() == "run") {
                    return Some(function_named(program, specifier.local.name().as_str()).flatten());
                }
                if let Some(specifier) = export.specifiers.iter().find(|specifier| specifier.exported.name() == "default") {
                    default = function_named(program, specifier.local.name().as_str()).or(default);
                }
            }
            Statement::ExportDefaultDeclaration(export) => default = default_run(&export.declaration, program).or(default),
            Statement::ExpressionStatement(expression) => {
                if let Some(parameters) = assigned_run(expression, program) {
                    return Some(parameters);
                }
            }
            _ => {}
        }
    }
    default
}

/// `export default function ...`, `export default (a) => ...`, `export default run`, `export default { run() {} }`.
fn default_run<'p, 'a>(
    declaration: &'p ExportDefaultDeclarationKind<'a>,
    program: &'p Program<'a>,
) -> Option<Parameters<'p, 'a>> {
    match declaration {
        ExportDefaultDeclarationKind::FunctionDeclaration(function) => Some(Some(&function.params)),
        other => function_expression(other.as_expression()?, program),
    }
}

/// `module.exports = ...`, `module.exports.run = ...`, `exports.run = ...`.
fn assigned_run<'p, 'a>(statement: &'p ExpressionStatement<'a>, program: &'p Program<'a>) -> Option<Parameters<'p, 'a>> {
    let Expression::AssignmentExpression(assignment) = &statement.expression else { return None };
    let AssignmentTarget::StaticMemberExpression(target) = &assignment.left else { return None };
    let names_exports = |expression: &Expression<'a>| match expression {
        Expression::Identifier(identifier) => identifier.name == "exports",
        Expression::StaticMemberExpression(member) => {
            member.property.name == "exports"
                && matches!(&member.object, Expression::Identifier(object) if object.name == "module")
        }
        _ => false,
    };
    let is_whole =
        target.property.name == "exports" && matches!(&target.object, Expression::Identifier(object) if object.name == "module");
    let is_run = target.property.name == "run" && names_exports(&target.object);
    if !is_whole && !is_run {
        return None;
    }
    function_expression(&assignment.right, program)
}

/// A function, the name of one, or an object that has `run`.
fn function_expression<'p, 'a>(expression: &'p Expression<'a>, program: &'p Program<'a>) -> Option<Parameters<'p, 'a>> {
    match expression {
        Expression::FunctionExpression(function) => Some(Some(&function.params)),
        Expression::ArrowFunctionExpression(function) => Some(Some(&function.params)),
        Expression::Identifier(identifier) => function_named(program, identifier.name.as_str()),
        Expression::ParenthesizedExpression(inner) => function_expression(&inner.expression, program),
        Expression::TSAsExpression(inner) => function_expression(&inner.expression, program),
        Expression::TSSatisfiesExpression(inner) => function_expression(&inner.expression, program),
        Expression::ObjectExpression(object) => object.properties.iter().find_map(|property| match property {
            ObjectPropertyKind::ObjectProperty(property) if property.key.static_name().is_some_and(|name| name == "run") => {
                function_expression(&property.value, program).or(Some(None))
            }
            _ => None,
        }),
        _ => None,
    }
}

/// The parameters of the top-level function of that name.
fn function_named<'p, 'a>(program: &'p Program<'a>, name: &str) -> Option<Parameters<'p, 'a>> {
    program.body.iter().find_map(|statement| statement.as_declaration().and_then(|declaration| declared(declaration, name)))
}

/// The parameters of the function that a declaration declares under that name.
fn declared<'p, 'a>(declaration: &'p Declaration<'a>, name: &str) -> Option<Parameters<'p, 'a>> {
    match declaration {
        Declaration::FunctionDeclaration(function) if function.id.as_ref().is_some_and(|id| id.name == name) => {
            Some(Some(&function.params))
        }
        Declaration::VariableDeclaration(variables) => {
            let declarator = variables
                .declarations
                .iter()
                .find(|declarator| declarator.id.get_identifier_name().is_some_and(|identifier| identifier == name))?;
            match declarator.init.as_ref()? {
                Expression::FunctionExpression(function) => Some(Some(&function.params)),
                Expression::ArrowFunctionExpression(function) => Some(Some(&function.params)),
                Expression::CallExpression(_) | Expression::Identifier(_) => Some(None),
                _ => None,
            }
        }
        _ => None,
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn check(source: &str, exports_run: bool, reads_stdin: bool, is_module: bool) {
        let facts = facts(source, false).unwrap_or_else(|error| panic!("{source}: {error}"));
        assert_eq!((facts.exports_run, facts.reads_stdin, facts.is_module), (exports_run, reads_stdin, is_module), "{source}");
    }

    #[test]
    fn exports_are_found_in_both_module_systems() {
        for source in [
            "export function run({a}) { return a }",
            "export async function run(a) {}",
            "export const run = async ({a}) => a;",
            "function go() {}\nexport { go as run };",
            "export default function () {}",
            "export default async ({a}) => a",
            "const go = function () {};\nexport default go;",
            "export default { run() { return 1 } }",
            "function go() {}\nexport { go as default };",
        ] {
            check(source, true, false, true);
        }
        for source in [
            "module.exports = { run };\nfunction run() {}",
            "module.exports = async (a) => a",
            "exports.run = function (a) { return a }",
            "module.exports.run = ({a}) => a",
            "const run = () => 1; module.exports = { run, other: 2 }",
        ] {
            check(source, true, false, false);
        }
        for (source, is_module) in [
            ("console.log(1)", false),
            ("export const x = 1", true),
            ("export default 42", true),
            ("function run() {}", false),
            ("// export function run() {}", false),
            ("import fs from 'fs'; run()", true),
            ("return 1", false),
            ("await x()", true),
            ("for await (const a of b) {}", true),
            ("async function f() { await x() }", false),
            ("import('x')", false),
            ("with (a) { b }", false),
        ] {
            check(source, false, false, is_module);
        }
    }

    #[test]
    fn reading_stdin_is_seen() {
        for source in [
            "process.stdin.on('data', d => d)",
            "require('fs').readFileSync(0, 'utf8')",
            "const a = readFileSync('/dev/stdin')",
            "const r = require('readline').createInterface({input: process.stdin})",
        ] {
            check(source, false, true, false);
        }
        check("'process.stdin'; x.stdin; readFileSync('0')", false, false, false);
    }

    #[test]
    fn types_are_stripped_and_lines_kept_by_the_map() {
        let source = "enum Color { Red = 'r' }\ninterface A { b: number }\nexport function run({ b }: A): string { return Color.Red + (b as any); }\n";
        let code = strip_types(source, "main.ts").unwrap();
        assert!(!code.contains("interface") && !code.contains(": A") && code.contains("sourceMappingURL=data:"), "{code}");
        assert!(facts(&code, false).unwrap().exports_run);
        assert!(facts(source, false).is_err(), "it is no JavaScript");
        let error = facts("\n\nexport function run( {", true).unwrap_err();
        assert!(error.contains("line 3"), "{error}");
    }
}
