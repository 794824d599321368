//! Where a program would come to something else in the embedded interpreter than in a real one.
//!
//! `support` finds what is certainly missing. Here is what only shows on the way, perhaps after calls of tools, when it
//! is too late to run the program elsewhere; and what silently differs. A program that may run elsewhere is better off
//! there, so in doubt it goes. Everything is read from the syntax tree; nothing is run but tiny programs that ask the
//! interpreter whether it has a name, once each.

mod attributes;
mod effects;
mod held;
mod iterators;
#[cfg(test)]
mod tests;

use std::collections::HashSet;

use ruff_python_ast::{
    self as ast, CmpOp, Comprehension, ConversionFlag, Expr, InterpolatedStringElement, Stmt,
    visitor::{self, Visitor},
};
use ruff_text_size::{Ranged, TextRange};

use self::held::Held;
use super::{analysis::Facts, support::has};

/// Methods of tasks; the embedded interpreter has coroutines instead.
const TASK_METHODS: [&str; 8] =
    ["add_done_callback", "cancel", "cancelled", "done", "exception", "get_name", "result", "set_name"];
/// Functions with many options, each with an example to put an option in.
const OPTIONS: [(&str, &str, &str); 3] = [
    ("json", "dumps", "import json\njson.dumps(1, {}=None)"),
    ("json", "loads", "import json\njson.loads('1', {}=None)"),
    ("re", "split", "import re\nre.split('a', 'a', {}=0)"),
];

/// What was found.
#[derive(Debug, Default)]
pub(crate) struct Gaps {
    /// Why the program had better run in a real interpreter.
    pub(crate) reason: Option<String>,
    /// Whether items are made before they are wanted, so that an exception may come of one that never would be.
    pub(crate) is_lazy: bool,
}

/// Searches a program.
pub(crate) fn find(program: &[Stmt], source: &str, facts: &Facts, tools: &HashSet<&str>) -> Gaps {
    let held = Held::in_program(program, facts);
    let uses_dates =
        facts.modules.iter().any(|module| module == "datetime") || facts.members.iter().any(|(module, _)| module == "datetime");
    let mut search = Search {
        facts,
        tools,
        held: &held,
        uses_dates,
        functions: 0,
        consumed: HashSet::new(),
        called: HashSet::new(),
        is_lazy: false,
        reason: None,
    };
    if uses_dates && source.contains("%f") && !has(MICROSECONDS) {
        search.note("the embedded interpreter writes `%f` with too many digits");
    }
    // The result of a program is passed on whole.
    if let Some(Stmt::Expr(last)) = program.last() {
        search.consume(&last.value);
    }
    search.visit_body(program);
    Gaps { reason: search.reason, is_lazy: search.is_lazy }
}

/// Fails where `%f` has other than six digits.
const MICROSECONDS: &str = "import datetime\n1 / (len(datetime.datetime(2024, 1, 2).strftime('%f')) == 6)";

/// The search, statement by statement.
struct Search<'a> {
    facts: &'a Facts,
    tools: &'a HashSet<&'a str>,
    held: &'a Held<'a>,
    uses_dates: bool,
    /// Functions around the place that is visited.
    functions: usize,
    /// Expressions that are used up where they stand.
    consumed: HashSet<TextRange>,
    /// Expressions that are called.
    called: HashSet<TextRange>,
    is_lazy: bool,
    /// The first thing found.
    reason: Option<String>,
}

impl<'a> Search<'a> {
    fn note(&mut self, reason: impl Into<String>) {
        self.reason.get_or_insert_with(|| reason.into());
    }

    /// Whether a name is a built-in one's, and not the program's own or a tool's.
    fn is_builtin(&self, name: &str) -> bool {
        !self.facts.bound.contains(name) && !self.tools.contains(name)
    }

    fn is_tool_call(&self, expression: &Expr) -> bool {
        let Expr::Call(call) = expression else { return false };
        let Expr::Name(name) = &*call.func else { return false };
        let name = name.id.as_str();
        (name == "call" || self.tools.contains(name)) && !self.facts.bound.contains(name)
    }

    fn call(&mut self, call: &'a ast::ExprCall) {
        self.called.insert(call.func.range());
        self.iterators_of_call(call);
        self.options(call);
        self.concurrency(call);
        let first = call.arguments.args.first();
        let is_split = match &*call.func {
            Expr::Attribute(attribute) if attribute.attr.id.as_str() == "split" => {
                matches!(&*attribute.value, Expr::Name(pattern) if self.held.capturing.contains(pattern.id.as_str()))
            }
            _ => false,
        };
        let splits = is_split || (self.facts.module_function(&call.func) == Some(("re", "split")) && first.is_none_or(captures));
        if splits && !has("import re\n1 / (len(re.split('(,)', 'a,b')) == 3)") {
            self.note("the embedded interpreter's `re.split` leaves out what groups capture");
        }
        if let (Expr::Name(function), Some(Expr::Name(argument))) = (&*call.func, first)
            && matches!(function.id.as_str(), "repr" | "type" | "ascii")
            && self.held.failures.contains(argument.id.as_str())
        {
            self.note("in the embedded interpreter a tool's failure has no class of its own");
        }
        let adds_up = matches!(&*call.func, Expr::Name(function) if function.id.as_str() == "sum");
        let parts = first.and_then(|first| match first {
            Expr::Generator(generator) => Some(&generator.elt),
            Expr::ListComp(list) => Some(&list.elt),
            _ => None,
        });
        if adds_up && parts.is_some_and(|part| is_truth(part)) {
            self.counts_truth();
        }
        if matches!(&*call.func, Expr::Name(function) if function.id.as_str() == "isinstance")
            && let Some(Expr::BinOp(kinds)) = call.arguments.args.get(1)
            && kinds.op == ast::Operator::BitOr
            && !has("isinstance(1, int | str)")
        {
            self.note("the embedded interpreter has no `|` for classes");
        }
    }

    fn options(&mut self, call: &ast::ExprCall) {
        let Some((module, function)) = self.facts.module_function(&call.func) else { return };
        let Some((_, _, example)) = OPTIONS.iter().find(|(known, name, _)| (*known, *name) == (module, function)) else { return };
        let names = call.arguments.keywords.iter().filter_map(|keyword| keyword.arg.as_ref());
        let lacking: Option<String> = names.map(|name| name.id.to_string()).find(|name| !has(&example.replace("{}", name)));
        if let Some(name) = lacking {
            self.note(format!("the embedded interpreter's `{module}.{function}` has no `{name}`"));
        }
    }

    fn concurrency(&mut self, call: &'a ast::ExprCall) {
        match self.facts.asyncio_function(&call.func) {
            Some("gather") if !call.arguments.keywords.is_empty() => {
                self.note("the embedded interpreter's `gather` takes no options");
            }
            Some("create_task" | "ensure_future")
                if !call.arguments.args.first().is_some_and(|first| self.is_tool_call(first)) =>
            {
                self.note("the embedded interpreter has no tasks but calls of tools");
            }
            _ => {}
        }
        if let Expr::Attribute(attribute) = &*call.func
            && self.held.has_tasks
            && TASK_METHODS.contains(&attribute.attr.id.as_str())
        {
            self.note(format!("the embedded interpreter's tasks have no `{}`", attribute.attr.id));
        }
    }

    /// `True` is 1 where it is added up.
    fn counts_truth(&mut self) {
        if !has("1 + True") {
            self.note("the embedded interpreter does not add up truth values");
        }
    }

    fn compare(&mut self, compare: &'a ast::ExprCompare) {
        let operands = || std::iter::once(&*compare.left).chain(&compare.comparators);
        let orders = compare.ops.iter().any(|op| matches!(op, CmpOp::Lt | CmpOp::LtE | CmpOp::Gt | CmpOp::GtE));
        if orders && operands().any(|operand| self.held.is_set(operand)) && !has("{1} <= {1}") {
            self.note("the embedded interpreter cannot compare sets by `<` and `<=`");
        }
        for (op, operand) in compare.ops.iter().zip(&compare.comparators) {
            if matches!(op, CmpOp::In | CmpOp::NotIn) {
                self.consume_by_and_by(operand);
            }
        }
    }
}

impl<'a> Visitor<'a> for Search<'a> {
    fn visit_stmt(&mut self, statement: &'a Stmt) {
        match statement {
            Stmt::Assign(assign) => {
                let unpacks = |target: &Expr| matches!(target, Expr::Tuple(_) | Expr::List(_));
                if assign.targets.len() == 1 && assign.targets.iter().all(unpacks) {
                    self.consume(&assign.value);
                }
            }
            Stmt::AugAssign(assign) if is_truth(&assign.value) => self.counts_truth(),
            Stmt::For(loop_) => self.consume_by_and_by(&loop_.iter),
            Stmt::Return(ast::StmtReturn { value: Some(value), .. }) if self.functions == 0 => self.consume(value),
            Stmt::Raise(ast::StmtRaise { exc: Some(raised), .. }) => {
                let class = if let Expr::Call(call) = &**raised { &*call.func } else { &**raised };
                if matches!(class, Expr::Name(class) if class.id.as_str() == "ToolError") {
                    self.note("in the embedded interpreter a tool's failure has no class of its own");
                }
            }
            Stmt::FunctionDef(_) => {
                self.functions += 1;
                visitor::walk_stmt(self, statement);
                self.functions -= 1;
                return;
            }
            _ => {}
        }
        visitor::walk_stmt(self, statement);
    }

    fn visit_expr(&mut self, expression: &'a Expr) {
        if self.reason.is_some() {
            return;
        }
        self.iterator(expression);
        match expression {
            Expr::Call(call) => self.call(call),
            Expr::Starred(starred) => self.consume(&starred.value),
            Expr::Compare(compare) => self.compare(compare),
            Expr::BinOp(operation) if is_truth(&operation.left) || is_truth(&operation.right) => self.counts_truth(),
            Expr::Attribute(attribute) => self.attribute(expression, attribute),
            _ => {}
        }
        visitor::walk_expr(self, expression);
    }

    fn visit_comprehension(&mut self, comprehension: &'a Comprehension) {
        self.consume_by_and_by(&comprehension.iter);
        visitor::walk_comprehension(self, comprehension);
    }

    fn visit_interpolated_string_element(&mut self, element: &'a InterpolatedStringElement) {
        if let InterpolatedStringElement::Interpolation(inner) = element
            && matches!(inner.conversion, ConversionFlag::Repr | ConversionFlag::Ascii)
            && matches!(&*inner.expression, Expr::Name(name) if self.held.failures.contains(name.id.as_str()))
        {
            self.note("in the embedded interpreter a tool's failure has no class of its own");
        }
        visitor::walk_interpolated_string_element(self, element);
    }

    // What annotations say is not done.
    fn visit_annotation(&mut self, _expression: &'a Expr) {}
}

/// Whether an expression is true or false for certain.
fn is_truth(expression: &Expr) -> bool {
    match expression {
        Expr::Compare(_) | Expr::BooleanLiteral(_) | Expr::UnaryOp(ast::ExprUnaryOp { op: ast::UnaryOp::Not, .. }) => true,
        Expr::Call(call) => {
            matches!(&*call.func, Expr::Name(function) if matches!(function.id.as_str(), "bool" | "isinstance" | "any" | "all"))
        }
        _ => false,
    }
}

/// Whether a pattern has a group that captures, or does not show.
fn captures(pattern: &Expr) -> bool {
    let Expr::StringLiteral(literal) = pattern else { return true };
    let text = literal.value.to_str();
    let mut in_class = false;
    let mut characters = text.chars().peekable();
    while let Some(character) = characters.next() {
        match character {
            '\\' => drop(characters.next()),
            '[' => in_class = true,
            ']' => in_class = false,
            '(' if !in_class && (characters.peek() != Some(&'?') || text.contains("(?P<")) => return true,
            _ => {}
        }
    }
    false
}
