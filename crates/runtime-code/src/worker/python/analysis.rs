//! What a Python program imports, defines and uses, read from its syntax tree.

use std::collections::{HashMap, HashSet};

use ruff_python_ast::{
    self as ast, Alias, ExceptHandler, Expr, ExprContext, Parameter, Stmt,
    visitor::{self, Visitor},
};

/// Functions of `asyncio` that the prepared program has its own for.
pub(crate) const OWN_ASYNCIO: [&str; 5] = ["gather", "sleep", "create_task", "ensure_future", "run"];

/// The facts of a program.
#[derive(Debug, Default)]
pub(crate) struct Facts {
    /// Names that are bound anywhere: assigned, defined, imported, parameters.
    pub(crate) bound: HashSet<String>,
    /// Names that are read anywhere.
    pub(crate) read: HashSet<String>,
    /// Imported modules.
    pub(crate) modules: Vec<String>,
    /// Names imported from modules.
    pub(crate) members: Vec<(String, String)>,
    /// Attributes read of imported modules, as (module, attribute).
    pub(crate) attributes: Vec<(String, String)>,
    /// Which module a name stands for.
    pub(crate) module_names: HashMap<String, String>,
    /// Which function of `asyncio` a name stands for.
    pub(crate) asyncio_names: HashMap<String, String>,
    /// Whether anything is awaited.
    pub(crate) is_async: bool,
    /// Whether `skillz` is used.
    pub(crate) uses_kit: bool,
}

impl Facts {
    pub(crate) fn of(program: &[Stmt]) -> Self {
        let mut facts = Self::default();
        facts.visit_body(program);
        facts.uses_kit |= facts.read.contains("skillz");
        let module_names = &facts.module_names;
        // Only now are all imports known.
        let attributes = facts.attributes.drain(..).filter_map(|(name, attribute)| Some((module_names.get(&name)?.clone(), attribute)));
        facts.attributes = attributes.collect();
        facts
    }

    /// The function of `asyncio` that an expression stands for.
    pub(crate) fn asyncio_function<'a>(&'a self, function: &'a Expr) -> Option<&'a str> {
        match function {
            Expr::Name(name) => self.asyncio_names.get(name.id.as_str()).map(String::as_str),
            Expr::Attribute(attribute) => match &*attribute.value {
                Expr::Name(module) if self.module_names.get(module.id.as_str()).is_some_and(|module| module == "asyncio") => {
                    Some(attribute.attr.id.as_str())
                }
                _ => None,
            },
            _ => None,
        }
    }

    fn import(&mut self, statement: &ast::StmtImport) {
        for alias in &statement.names {
            let module = alias.name.id.as_str();
            let bound = alias.asname.as_ref().map_or_else(|| module.split('.').next().unwrap_or(module), |name| name.id.as_str());
            self.bound.insert(bound.to_owned());
            if module == "skillz" {
                self.uses_kit = true;
                continue;
            }
            self.modules.push(module.to_owned());
            let stands_for = if alias.asname.is_some() { module } else { bound };
            self.module_names.insert(bound.to_owned(), stands_for.to_owned());
        }
    }

    fn import_from(&mut self, statement: &ast::StmtImportFrom) {
        let module = statement.module.as_ref().map(|module| module.id.as_str()).unwrap_or_default();
        for alias in &statement.names {
            let member = alias.name.id.as_str();
            let bound = alias.asname.as_ref().map_or(member, |name| name.id.as_str());
            self.bound.insert(bound.to_owned());
            match module {
                "skillz" => self.uses_kit = true,
                "asyncio" if OWN_ASYNCIO.contains(&member) => {
                    self.asyncio_names.insert(bound.to_owned(), member.to_owned());
                }
                _ => self.members.push((module.to_owned(), member.to_owned())),
            }
        }
    }
}

impl<'a> Visitor<'a> for Facts {
    fn visit_stmt(&mut self, statement: &'a Stmt) {
        match statement {
            Stmt::Import(import) => return self.import(import),
            Stmt::ImportFrom(import) => return self.import_from(import),
            Stmt::FunctionDef(function) => {
                self.bound.insert(function.name.id.to_string());
            }
            Stmt::ClassDef(class) => {
                self.bound.insert(class.name.id.to_string());
            }
            Stmt::For(ast::StmtFor { is_async: true, .. }) | Stmt::With(ast::StmtWith { is_async: true, .. }) => self.is_async = true,
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
            Expr::Attribute(attribute) => {
                if let Expr::Name(name) = &*attribute.value {
                    self.attributes.push((name.id.to_string(), attribute.attr.id.to_string()));
                }
            }
            Expr::Await(_) => self.is_async = true,
            _ => {}
        }
        visitor::walk_expr(self, expression);
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
