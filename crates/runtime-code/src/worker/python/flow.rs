//! Which calls of tools give something to await.
//!
//! In a real Python the calling frame decides. Here the place of the call does, which is the same for a call by the tool's
//! name: within an `async def`, and at top level beside an `await`, it gives a future; elsewhere it waits and gives the
//! value. A tool that is called by another name, such as a variable that holds it, waits.

use std::collections::HashSet;

use ruff_python_ast::{
    self as ast, Expr, Stmt,
    visitor::{self, Visitor},
};
use ruff_text_size::Ranged;

use super::{LATER, RETURN, analysis::Facts};
use crate::worker::edits::Edits;

/// Makes the changes: calls that are awaited, lenient `await` and `gather`, `return` at top level.
pub(crate) fn edit(program: &[Stmt], source: &str, facts: &Facts, tools: &HashSet<&str>, edits: &mut Edits) {
    Flow { facts, tools, source, functions: Vec::new(), edits }.visit_body(program);
}

struct Flow<'a> {
    facts: &'a Facts,
    tools: &'a HashSet<&'a str>,
    source: &'a str,
    /// The functions around the place that is visited, and whether each is `async`.
    functions: Vec<bool>,
    edits: &'a mut Edits,
}

impl Flow<'_> {
    fn gives_future(&self) -> bool {
        self.functions.last().copied().unwrap_or(self.facts.is_async_at_top)
    }

    /// Whether an expression is the name of a tool, or `call`.
    fn is_tool(&self, function: &Expr) -> bool {
        match function {
            Expr::Name(name) => {
                let name = name.id.as_str();
                (name == "call" || self.tools.contains(name)) && !self.facts.bound.contains(name)
            }
            _ => false,
        }
    }

    /// `skillz.call`, which is `call`.
    fn is_call_of_kit(&self, function: &Expr) -> bool {
        let Expr::Attribute(attribute) = function else { return false };
        attribute.attr.id.as_str() == "call"
            && matches!(&*attribute.value, Expr::Name(name) if name.id.as_str() == "skillz")
            && !self.facts.bound.contains("skillz")
    }

    fn call(&mut self, call: &ast::ExprCall) {
        let (is_tool, is_kit) = (self.is_tool(&call.func), self.is_call_of_kit(&call.func));
        if self.gives_future() && (is_tool || is_kit) {
            self.edits.insert(call.start().to_usize(), "_skillz_open(");
            if is_kit {
                self.replace(&*call.func, "call");
            }
            self.edits.insert(call.func.end().to_usize(), LATER);
            self.visit_arguments(&call.arguments);
            self.edits.insert(call.end().to_usize(), ")");
            return;
        }
        let own = self.facts.asyncio_function(&call.func).and_then(|function| match function {
            "gather" => Some("_skillz_gather"),
            "create_task" | "ensure_future" => Some("_skillz_task"),
            "sleep" => Some("_skillz_sleep"),
            _ => None,
        });
        match own {
            Some(own) => self.replace(&*call.func, own),
            None => self.visit_expr(&call.func),
        }
        self.visit_arguments(&call.arguments);
    }

    fn replace(&mut self, part: &impl Ranged, text: &str) {
        self.edits.replace_lines(self.source, part.start().to_usize(), part.end().to_usize(), text);
    }

    fn await_(&mut self, value: &Expr) {
        let is_known = match value {
            Expr::Call(call) => self.is_tool(&call.func) || self.facts.asyncio_function(&call.func).is_some(),
            _ => false,
        };
        if !is_known {
            self.edits.insert(value.start().to_usize(), "_skillz_future(");
        }
        self.visit_expr(value);
        if !is_known {
            self.edits.insert(value.end().to_usize(), ")");
        }
    }

    fn return_at_top_level(&mut self, statement: &ast::StmtReturn) {
        let (start, end) = (statement.start().to_usize(), statement.end().to_usize());
        // Two parentheses: the value may be a tuple without its own.
        self.edits.replace(start, start + "return".len(), format!("{RETURN}(("));
        if let Some(value) = &statement.value {
            self.visit_expr(value);
        }
        let nothing = if statement.value.is_none() { "None" } else { "" };
        self.edits.insert(end, format!("{nothing}))"));
    }
}

impl<'a> Visitor<'a> for Flow<'_> {
    fn visit_stmt(&mut self, statement: &'a Stmt) {
        match statement {
            Stmt::FunctionDef(function) => {
                self.functions.push(function.is_async);
                visitor::walk_stmt(self, statement);
                self.functions.pop();
            }
            Stmt::Return(inner) if self.functions.is_empty() => self.return_at_top_level(inner),
            _ => visitor::walk_stmt(self, statement),
        }
    }

    fn visit_expr(&mut self, expression: &'a Expr) {
        match expression {
            Expr::Await(inner) => self.await_(&inner.value),
            Expr::Call(call) => self.call(call),
            _ => visitor::walk_expr(self, expression),
        }
    }
}
