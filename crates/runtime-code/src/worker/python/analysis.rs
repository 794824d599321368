//! What a Python program imports, binds and awaits, read from its syntax tree.

use std::collections::{HashMap, HashSet};

use ruff_python_ast::{
    self as ast, Alias, ExceptHandler, Expr, ExprContext, Parameter, Stmt,
    visitor::{self, Visitor},
};

/// Functions of `asyncio` that the prepared program has its own for.
pub(crate) const OWN_ASYNCIO: [&str; 4] = ["gather", "sleep", "create_task", "ensure_future"];

/// The facts of a program.
#[derive(Debug, Default)]
pub(crate) struct Facts {
    /// Names that are bound anywhere: assigned, defined, imported, parameters.
    pub(crate) bound: HashSet<String>,
    /// Names that are read anywhere.
    pub(crate) read: HashSet<String>,
    /// Names that stand for the module `asyncio`.
    asyncio: HashSet<String>,
    /// Which function of `asyncio` a name stands for.
    asyncio_functions: HashMap<String, String>,
    /// Whether anything is awaited.
    pub(crate) is_async: bool,
    /// Whether something is awaited outside all functions.
    pub(crate) is_async_at_top: bool,
    /// Whether `skillz` is used.
    pub(crate) uses_kit: bool,
    /// Functions around the place that is visited.
    depth: usize,
}

impl Facts {
    pub(crate) fn of(program: &[Stmt]) -> Self {
        let mut facts = Self::default();
        facts.visit_body(program);
        facts.uses_kit |= facts.read.contains("skillz");
        facts
    }

    /// The function of `asyncio` that an expression stands for.
    pub(crate) fn asyncio_function<'a>(&'a self, function: &'a Expr) -> Option<&'a str> {
        match function {
            Expr::Name(name) => self.asyncio_functions.get(name.id.as_str()).map(String::as_str),
            Expr::Attribute(attribute) => match &*attribute.value {
                Expr::Name(module) if self.asyncio.contains(module.id.as_str()) => Some(attribute.attr.id.as_str()),
                _ => None,
            },
            _ => None,
        }
    }

    /// Whether `asyncio` or anything of it is imported.
    pub(crate) fn uses_asyncio(&self) -> bool {
        !self.asyncio.is_empty() || !self.asyncio_functions.is_empty()
    }

    fn import(&mut self, statement: &ast::StmtImport) {
        for alias in &statement.names {
            let module = alias.name.id.as_str();
            let bound = alias.asname.as_ref().map_or_else(|| module.split('.').next().unwrap_or(module), |name| name.id.as_str());
            match module {
                // The kit is there under its own name already.
                "skillz" => {
                    self.uses_kit = true;
                    if bound == "skillz" {
                        continue;
                    }
                }
                "asyncio" => drop(self.asyncio.insert(bound.to_owned())),
                _ => {}
            }
            self.bound.insert(bound.to_owned());
        }
    }

    fn import_from(&mut self, statement: &ast::StmtImportFrom) {
        let module = statement.module.as_ref().map(|module| module.id.as_str()).unwrap_or_default();
        for alias in &statement.names {
            let member = alias.name.id.as_str();
            let bound = alias.asname.as_ref().map_or(member, |name| name.id.as_str());
            match module {
                "skillz" => {
                    self.uses_kit = true;
                    if member == "call" && bound == "call" {
                        continue;
                    }
                }
                "asyncio" => drop(self.asyncio_functions.insert(bound.to_owned(), member.to_owned())),
                _ => {}
            }
            self.bound.insert(bound.to_owned());
        }
    }

    fn awaits(&mut self) {
        self.is_async = true;
        self.is_async_at_top |= self.depth == 0;
    }
}

impl<'a> Visitor<'a> for Facts {
    fn visit_stmt(&mut self, statement: &'a Stmt) {
        match statement {
            Stmt::Import(import) => return self.import(import),
            Stmt::ImportFrom(import) => return self.import_from(import),
            Stmt::FunctionDef(function) => {
                self.bound.insert(function.name.id.to_string());
                self.depth += 1;
                visitor::walk_stmt(self, statement);
                self.depth -= 1;
                return;
            }
            Stmt::ClassDef(class) => drop(self.bound.insert(class.name.id.to_string())),
            Stmt::For(ast::StmtFor { is_async: true, .. }) | Stmt::With(ast::StmtWith { is_async: true, .. }) => self.awaits(),
            _ => {}
        }
        visitor::walk_stmt(self, statement);
    }

    fn visit_expr(&mut self, expression: &'a Expr) {
        match expression {
            Expr::Name(name) => {
                let names = if matches!(name.ctx, ExprContext::Load) { &mut self.read } else { &mut self.bound };
                names.insert(name.id.to_string());
            }
            Expr::Await(_) => self.awaits(),
            _ => {}
        }
        visitor::walk_expr(self, expression);
    }

    fn visit_comprehension(&mut self, comprehension: &'a ast::Comprehension) {
        if comprehension.is_async {
            self.awaits();
        }
        visitor::walk_comprehension(self, comprehension);
    }

    fn visit_parameter(&mut self, parameter: &'a Parameter) {
        self.bound.insert(parameter.name.id.to_string());
        visitor::walk_parameter(self, parameter);
    }

    fn visit_except_handler(&mut self, handler: &'a ExceptHandler) {
        let ExceptHandler::ExceptHandler(inner) = handler;
        if let Some(name) = &inner.name {
            self.bound.insert(name.id.to_string());
        }
        visitor::walk_except_handler(self, handler);
    }

    fn visit_alias(&mut self, _alias: &'a Alias) {}
}
