//! Which calls of tools are awaited, and the changes that make them so.
//!
//! In Python a tool is called like a function and gives its value: `x = word_count(text="a")`. The same call may also
//! be awaited or gathered, and then must give a future, so that several run at once. Which one is meant shows in
//! the program: a call is awaited if it stands below `await` or `gather`, or gets into a variable that does.
//! Where that is not seen, the call gives its value, and awaiting the value gives it again.

use std::collections::HashSet;

use ruff_python_ast::{
    self as ast, Arguments, Comprehension, Expr, Stmt,
    visitor::{self, Visitor},
};
use ruff_text_size::Ranged;

use super::{LATER, RETURN, analysis::Facts};
use crate::worker::edits::Edits;

/// Rounds of following variables; each takes one more assignment into account.
const MOST_ROUNDS: usize = 8;
/// Methods that make a task of what they are given.
const TASK_METHODS: [&str; 2] = ["create_task", "run_until_complete"];
/// Methods that put something into a container.
const ADDING_METHODS: [&str; 6] = ["append", "extend", "add", "insert", "appendleft", "put"];
/// Methods and functions that give what is in one.
const READING_METHODS: [&str; 4] = ["values", "items", "copy", "pop"];
const READING_FUNCTIONS: [&str; 4] = ["list", "tuple", "reversed", "set"];

/// Makes the changes: awaited calls, lenient `await` and `gather`, `return` at top level.
pub(crate) fn edit(program: &[Stmt], source: &str, facts: &Facts, tools: &HashSet<&str>, edits: &mut Edits) {
    let mut flow = Flow { facts, tools, source, awaited: HashSet::new(), concurrent: false, functions: 0, edits: None };
    for _ in 0..MOST_ROUNDS {
        let before = flow.awaited.len();
        flow.visit_body(program);
        if flow.awaited.len() == before {
            break;
        }
    }
    flow.edits = Some(edits);
    flow.visit_body(program);
}

struct Flow<'a> {
    facts: &'a Facts,
    tools: &'a HashSet<&'a str>,
    source: &'a str,
    /// Variables that hold what is awaited somewhere.
    awaited: HashSet<String>,
    /// Whether the expression that is visited is awaited.
    concurrent: bool,
    /// Functions around the statement that is visited.
    functions: usize,
    /// Absent while variables are still being followed.
    edits: Option<&'a mut Edits>,
}

impl Flow<'_> {
    fn is_tool(&self, function: &Expr) -> bool {
        let Expr::Name(name) = function else { return false };
        let name = name.id.as_str();
        (name == "call" || self.tools.contains(name)) && !self.facts.bound.contains(name)
    }

    /// Whether a target is, or is part of, an awaited variable.
    fn holds_awaited(&self, target: &Expr) -> bool {
        match target {
            Expr::Name(name) => self.awaited.contains(name.id.as_str()),
            Expr::Subscript(subscript) => self.holds_awaited(&subscript.value),
            Expr::Starred(starred) => self.holds_awaited(&starred.value),
            Expr::Tuple(tuple) => tuple.elts.iter().any(|part| self.holds_awaited(part)),
            Expr::List(list) => list.elts.iter().any(|part| self.holds_awaited(part)),
            _ => false,
        }
    }

    fn visit_as(&mut self, concurrent: bool, expression: &Expr) {
        let before = std::mem::replace(&mut self.concurrent, concurrent);
        self.visit_expr(expression);
        self.concurrent = before;
    }

    fn visit_arguments_as(&mut self, concurrent: bool, arguments: &Arguments) {
        for argument in &arguments.args {
            self.visit_as(concurrent, argument);
        }
        for keyword in &arguments.keywords {
            self.visit_as(false, &keyword.value);
        }
    }

    fn call(&mut self, call: &ast::ExprCall) {
        if let Some(function) = self.facts.asyncio_function(&call.func).map(str::to_owned) {
            return self.asyncio_call(call, &function);
        }
        if self.concurrent && self.is_tool(&call.func) {
            if let Some(edits) = &mut self.edits {
                edits.insert(call.start().to_usize(), "_skillz_open(");
                edits.insert(call.func.end().to_usize(), LATER);
            }
            self.visit_arguments_as(false, &call.arguments);
            if let Some(edits) = &mut self.edits {
                edits.insert(call.end().to_usize(), ")");
            }
            return;
        }
        match &*call.func {
            // Of a `TaskGroup`, or of an event loop.
            Expr::Attribute(method) if self.makes_task(method) => {
                self.visit_as(false, &method.value);
                self.wrapped_arguments(call, Some("_skillz_future("));
            }
            Expr::Attribute(method) if ADDING_METHODS.contains(&method.attr.id.as_str()) && self.holds_awaited(&method.value) => {
                self.visit_arguments_as(true, &call.arguments);
            }
            Expr::Attribute(method) if self.concurrent && READING_METHODS.contains(&method.attr.id.as_str()) => {
                self.visit_as(true, &method.value);
                self.visit_arguments_as(false, &call.arguments);
            }
            Expr::Name(name) if self.concurrent && READING_FUNCTIONS.contains(&name.id.as_str()) => {
                self.visit_arguments_as(true, &call.arguments);
            }
            function => {
                self.visit_as(false, function);
                self.visit_arguments_as(false, &call.arguments);
            }
        }
    }

    /// Whether a method makes a task, and is not one of the program's own by that name.
    fn makes_task(&self, method: &ast::ExprAttribute) -> bool {
        let name = method.attr.id.as_str();
        TASK_METHODS.contains(&name) && self.facts.uses_asyncio() && !self.facts.bound.contains(name)
    }

    fn asyncio_call(&mut self, call: &ast::ExprCall, function: &str) {
        let (own, wrap) = match function {
            "gather" => (Some("_skillz_gather"), None),
            "create_task" | "ensure_future" => (Some("_skillz_task"), None),
            "sleep" => (Some("_skillz_sleep"), None),
            "run" => (None, Some("_skillz_run(")),
            "wait_for" | "shield" => (None, Some("_skillz_future(")),
            "as_completed" => (None, Some("_skillz_futures(")),
            _ => (None, None),
        };
        if let (Some(edits), Some(own)) = (&mut self.edits, own) {
            let range = call.func.range();
            edits.replace_lines(self.source, range.start().to_usize(), range.end().to_usize(), own);
        }
        if function == "sleep" {
            return self.visit_arguments_as(false, &call.arguments);
        }
        self.wrapped_arguments(call, wrap);
    }

    /// Arguments that are awaited, the first of them in a call of a helper.
    fn wrapped_arguments(&mut self, call: &ast::ExprCall, wrap: Option<&str>) {
        let wrap = wrap.zip(call.arguments.args.first());
        if let (Some(edits), Some((helper, first))) = (&mut self.edits, wrap) {
            edits.insert(first.start().to_usize(), helper);
        }
        self.visit_arguments_as(true, &call.arguments);
        let first = wrap.map(|(_, first)| first);
        if let (Some(edits), Some(first)) = (&mut self.edits, first) {
            edits.insert(first.end().to_usize(), ")");
        }
    }

    fn await_(&mut self, value: &Expr) {
        let needs_no_help = match value {
            Expr::Call(call) => self.is_tool(&call.func) || self.facts.asyncio_function(&call.func).is_some(),
            _ => false,
        };
        if let (Some(edits), false) = (&mut self.edits, needs_no_help) {
            edits.insert(value.start().to_usize(), "_skillz_future(");
        }
        self.visit_as(true, value);
        if let (Some(edits), false) = (&mut self.edits, needs_no_help) {
            edits.insert(value.end().to_usize(), ")");
        }
    }

    fn comprehension(&mut self, parts: &[&Expr], generators: &[Comprehension]) {
        let concurrent = self.concurrent;
        for part in parts {
            self.visit_as(concurrent, part);
        }
        for generator in generators {
            let concurrent = self.holds_awaited(&generator.target);
            self.visit_as(concurrent, &generator.iter);
            for condition in &generator.ifs {
                self.visit_as(false, condition);
            }
        }
    }

    fn return_at_top_level(&mut self, statement: &ast::StmtReturn) {
        let (start, end) = (statement.start().to_usize(), statement.end().to_usize());
        if let Some(edits) = &mut self.edits {
            // Two parentheses: the value may be a tuple without its own.
            edits.replace(start, start + "return".len(), format!("{RETURN}(("));
        }
        if let Some(value) = &statement.value {
            self.visit_as(false, value);
        }
        if let Some(edits) = &mut self.edits {
            let nothing = if statement.value.is_none() { "None" } else { "" };
            edits.insert(end, format!("{nothing}))"));
        }
    }
}

impl<'a> Visitor<'a> for Flow<'_> {
    fn visit_stmt(&mut self, statement: &'a Stmt) {
        self.concurrent = false;
        match statement {
            Stmt::FunctionDef(_) => {
                self.functions += 1;
                visitor::walk_stmt(self, statement);
                self.functions -= 1;
            }
            Stmt::Return(inner) if self.functions == 0 => self.return_at_top_level(inner),
            Stmt::Assign(assign) => {
                let concurrent = assign.targets.iter().any(|target| self.holds_awaited(target));
                self.visit_as(concurrent, &assign.value);
                for target in &assign.targets {
                    self.visit_as(false, target);
                }
            }
            Stmt::AnnAssign(ast::StmtAnnAssign { target, value: Some(value), .. }) => {
                let concurrent = self.holds_awaited(target);
                self.visit_as(concurrent, value);
            }
            Stmt::AugAssign(assign) => {
                let concurrent = self.holds_awaited(&assign.target);
                self.visit_as(concurrent, &assign.value);
            }
            Stmt::For(loop_) => {
                let concurrent = self.holds_awaited(&loop_.target);
                self.visit_as(concurrent, &loop_.iter);
                self.visit_body(&loop_.body);
                self.visit_body(&loop_.orelse);
            }
            _ => visitor::walk_stmt(self, statement),
        }
    }

    fn visit_expr(&mut self, expression: &'a Expr) {
        let concurrent = self.concurrent;
        match expression {
            Expr::Await(inner) => self.await_(&inner.value),
            Expr::Call(call) => self.call(call),
            Expr::Name(name) => {
                if concurrent {
                    self.awaited.insert(name.id.to_string());
                }
            }
            Expr::Subscript(subscript) => {
                self.visit_as(concurrent, &subscript.value);
                self.visit_as(false, &subscript.slice);
            }
            Expr::Dict(dict) => {
                for item in &dict.items {
                    if let Some(key) = &item.key {
                        self.visit_as(false, key);
                    }
                    self.visit_as(concurrent, &item.value);
                }
            }
            Expr::If(choice) => {
                self.visit_as(false, &choice.test);
                self.visit_as(concurrent, &choice.body);
                self.visit_as(concurrent, &choice.orelse);
            }
            Expr::Named(named) => {
                let concurrent = concurrent || self.holds_awaited(&named.target);
                self.visit_as(concurrent, &named.value);
            }
            Expr::ListComp(inner) => self.comprehension(&[&inner.elt], &inner.generators),
            Expr::SetComp(inner) => self.comprehension(&[&inner.elt], &inner.generators),
            Expr::Generator(inner) => self.comprehension(&[&inner.elt], &inner.generators),
            Expr::DictComp(inner) => {
                if let Some(key) = &inner.key {
                    self.visit_as(false, key);
                }
                self.comprehension(&[&inner.value], &inner.generators);
            }
            // These pass on what they hold.
            Expr::Starred(_) | Expr::List(_) | Expr::Tuple(_) | Expr::Set(_) | Expr::BinOp(_) => {
                visitor::walk_expr(self, expression);
            }
            _ => {
                self.concurrent = false;
                visitor::walk_expr(self, expression);
            }
        }
        self.concurrent = concurrent;
    }
}
