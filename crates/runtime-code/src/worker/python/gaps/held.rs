//! What the names of a program hold, as far as it shows: read before its gaps are searched.

use std::collections::HashSet;

use ruff_python_ast::{
    self as ast, ExceptHandler, Expr, ExprContext, Stmt,
    visitor::{self, Visitor},
};

use super::captures;
use crate::worker::python::analysis::Facts;

/// Exceptions that a tool's failure is one of.
const CATCHING: [&str; 4] = ["Exception", "BaseException", "RuntimeError", "ToolError"];

/// Names by what they hold.
pub(super) struct Held<'f> {
    facts: &'f Facts,
    /// Real iterators, in the embedded interpreter too.
    pub(super) iterators: HashSet<String>,
    pub(super) sets: HashSet<String>,
    /// Compiled patterns with a group that captures.
    pub(super) capturing: HashSet<String>,
    /// Caught exceptions,
    pub(super) exceptions: HashSet<String>,
    /// and those among them that may be a tool's failure.
    pub(super) failures: HashSet<String>,
    /// Attributes that the program sets itself.
    pub(super) own_attributes: HashSet<String>,
    /// Whether tasks are made.
    pub(super) has_tasks: bool,
}

impl<'f> Held<'f> {
    pub(super) fn in_program(program: &[Stmt], facts: &'f Facts) -> Self {
        let mut held = Self {
            facts,
            iterators: HashSet::new(),
            sets: HashSet::new(),
            capturing: HashSet::new(),
            exceptions: HashSet::new(),
            failures: HashSet::new(),
            own_attributes: HashSet::new(),
            has_tasks: false,
        };
        held.visit_body(program);
        held
    }

    /// Whether an expression is a set for certain.
    pub(super) fn is_set(&self, expression: &Expr) -> bool {
        match expression {
            Expr::Set(_) | Expr::SetComp(_) => true,
            Expr::Name(name) => self.sets.contains(name.id.as_str()),
            Expr::Call(call) => match &*call.func {
                Expr::Name(name) => matches!(name.id.as_str(), "set" | "frozenset"),
                // Views of dicts are compared like sets.
                Expr::Attribute(attribute) => matches!(attribute.attr.id.as_str(), "keys" | "items"),
                _ => false,
            },
            _ => false,
        }
    }

    fn assign(&mut self, target: &Expr, value: &Expr) {
        let Expr::Name(name) = target else { return };
        let name = name.id.to_string();
        if self.is_set(value) {
            self.sets.insert(name.clone());
        }
        let Expr::Call(call) = value else { return };
        let is_iterator = match &*call.func {
            Expr::Name(function) => {
                let function = function.id.as_str();
                function == "iter" || self.facts.member_names.get(function).is_some_and(|(module, _)| module == "itertools")
            }
            function => self.facts.module_function(function).is_some_and(|(module, _)| module == "itertools"),
        };
        if is_iterator {
            self.iterators.insert(name.clone());
        }
        let is_compiled = self.facts.module_function(&call.func) == Some(("re", "compile"));
        if is_compiled && call.arguments.args.first().is_none_or(captures) {
            self.capturing.insert(name);
        }
    }
}

impl<'a> Visitor<'a> for Held<'_> {
    fn visit_stmt(&mut self, statement: &'a Stmt) {
        match statement {
            Stmt::Assign(assign) => assign.targets.iter().for_each(|target| self.assign(target, &assign.value)),
            Stmt::AnnAssign(ast::StmtAnnAssign { target, value: Some(value), .. }) => self.assign(target, value),
            _ => {}
        }
        visitor::walk_stmt(self, statement);
    }

    fn visit_expr(&mut self, expression: &'a Expr) {
        match expression {
            Expr::Named(named) => self.assign(&named.target, &named.value),
            Expr::Attribute(attribute) if !matches!(attribute.ctx, ExprContext::Load) => {
                self.own_attributes.insert(attribute.attr.id.to_string());
            }
            Expr::Call(call) => {
                let function = self.facts.asyncio_function(&call.func);
                self.has_tasks |= matches!(function, Some("create_task" | "ensure_future"));
            }
            _ => {}
        }
        visitor::walk_expr(self, expression);
    }

    fn visit_except_handler(&mut self, handler: &'a ExceptHandler) {
        let ExceptHandler::ExceptHandler(inner) = handler;
        if let Some(name) = &inner.name {
            let names = |kind: &Expr| matches!(kind, Expr::Name(kind) if CATCHING.contains(&kind.id.as_str()));
            let catches = match inner.type_.as_deref() {
                None => true,
                Some(Expr::Tuple(kinds)) => kinds.elts.iter().any(names),
                Some(kind) => names(kind),
            };
            self.exceptions.insert(name.id.to_string());
            if catches {
                self.failures.insert(name.id.to_string());
            }
        }
        visitor::walk_except_handler(self, handler);
    }
}
