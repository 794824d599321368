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
    /// Which member of which module a name stands for.
    pub(crate) member_names: HashMap<String, (String, String)>,
    /// Which function of `asyncio` a name stands for.
    pub(crate) asyncio_names: HashMap<String, String>,
    /// Whether anything is awaited.
    pub(crate) is_async: bool,
    /// Whether `skillz` is used.
    pub(crate) uses_kit: bool,
    /// What classes define for operators and the like.
    pub(crate) special_methods: Vec<String>,
    /// Forms that the embedded interpreter may lack: what it is, and a tiny program that shows it.
    pub(crate) forms: Vec<(&'static str, &'static str)>,
    /// The built-in function that is to call a tool by itself, as in `map(word_count, texts)`.
    pub(crate) callback: Option<String>,
    scan: Scan,
}

/// What is only needed while the tree is walked.
#[derive(Debug, Default)]
struct Scan {
    tools: HashSet<String>,
    /// Functions around the place that is visited.
    functions: Vec<String>,
    in_class: bool,
    /// Functions that call tools.
    callers: HashSet<String>,
    /// Functions given to built-in ones, as (built-in, function).
    callbacks: Vec<(String, String)>,
}

/// Built-in functions and methods that call what they are given.
const CALLING: [&str; 8] = ["map", "filter", "sorted", "min", "max", "reduce", "sort", "sub"];
/// Stands for a function without a name.
const LAMBDA: &str = "<lambda>";

impl Facts {
    pub(crate) fn of(program: &[Stmt], tools: &HashSet<&str>) -> Self {
        let mut facts = Self::default();
        facts.scan.tools = tools.iter().map(|tool| (*tool).to_owned()).chain(["call".to_owned()]).collect();
        facts.visit_body(program);
        let Scan { tools, callers, callbacks, .. } = std::mem::take(&mut facts.scan);
        let calls_a_tool = |(_, function): &&(String, String)| {
            callers.contains(function) || (tools.contains(function) && !facts.bound.contains(function))
        };
        facts.callback = callbacks.iter().find(calls_a_tool).map(|(builtin, _)| builtin.clone());
        facts.uses_kit |= facts.read.contains("skillz");
        let module_names = &facts.module_names;
        // Only now are all imports known.
        let attributes =
            facts.attributes.drain(..).filter_map(|(name, attribute)| Some((module_names.get(&name)?.clone(), attribute)));
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

    /// Whether `asyncio` or anything of it is imported.
    pub(crate) fn uses_asyncio(&self) -> bool {
        let is_member = |(module, _): &(String, String)| module == "asyncio";
        self.modules.iter().any(|module| module == "asyncio")
            || !self.asyncio_names.is_empty()
            || self.members.iter().any(is_member)
    }

    /// The function of a module that an expression stands for, as (module, function).
    pub(crate) fn module_function<'a>(&'a self, function: &'a Expr) -> Option<(&'a str, &'a str)> {
        match function {
            Expr::Name(name) => {
                self.member_names.get(name.id.as_str()).map(|(module, member)| (module.as_str(), member.as_str()))
            }
            Expr::Attribute(attribute) => match &*attribute.value {
                Expr::Name(module) => Some((self.module_names.get(module.id.as_str())?.as_str(), attribute.attr.id.as_str())),
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
                _ => {
                    self.members.push((module.to_owned(), member.to_owned()));
                    self.member_names.insert(bound.to_owned(), (module.to_owned(), member.to_owned()));
                }
            }
        }
    }
}

impl Facts {
    fn function(&mut self, statement: &Stmt, function: &ast::StmtFunctionDef) {
        let name = function.name.id.to_string();
        if self.scan.in_class && name.starts_with("__") && name.ends_with("__") {
            self.special_methods.push(name.clone());
        }
        self.bound.insert(name.clone());
        self.scan.functions.push(name);
        let in_class = std::mem::take(&mut self.scan.in_class);
        visitor::walk_stmt(self, statement);
        self.scan.in_class = in_class;
        self.scan.functions.pop();
    }

    fn class(&mut self, statement: &Stmt, class: &ast::StmtClassDef) {
        self.bound.insert(class.name.id.to_string());
        let in_class = std::mem::replace(&mut self.scan.in_class, true);
        visitor::walk_stmt(self, statement);
        self.scan.in_class = in_class;
    }

    fn operation(&mut self, operation: &ast::ExprBinOp) {
        match (operation.op, &*operation.left, &*operation.right) {
            (ast::Operator::Mod, Expr::StringLiteral(_), _) => self.forms.push(("`%` for texts", "'%s' % 1")),
            (ast::Operator::BitOr, Expr::Dict(_), _) | (ast::Operator::BitOr, _, Expr::Dict(_)) => {
                self.forms.push(("`|` for dicts", "{} | {}"));
            }
            _ => {}
        }
    }

    fn call(&mut self, call: &ast::ExprCall) {
        self.call_forms(call);
        let name = match &*call.func {
            Expr::Name(name) => name.id.as_str(),
            Expr::Attribute(attribute) => attribute.attr.id.as_str(),
            _ => return,
        };
        if self.scan.tools.contains(name) {
            self.scan.callers.extend(self.scan.functions.iter().cloned());
        }
        if !CALLING.contains(&name) {
            return;
        }
        let keyword = call.arguments.keywords.iter().map(|keyword| &keyword.value);
        for argument in call.arguments.args.iter().chain(keyword) {
            let function = match argument {
                Expr::Name(function) => function.id.as_str(),
                Expr::Lambda(_) => LAMBDA,
                _ => continue,
            };
            self.scan.callbacks.push((name.to_owned(), function.to_owned()));
        }
    }
}

impl Facts {
    fn call_forms(&mut self, call: &ast::ExprCall) {
        let has_keyword = |name: &str| {
            call.arguments.keywords.iter().any(|keyword| keyword.arg.as_ref().is_some_and(|arg| arg.id.as_str() == name))
        };
        match &*call.func {
            Expr::Name(name) if name.id.as_str() == "print" && has_keyword("file") => {
                self.forms.push(("`file` of `print`", "import sys\nprint('', file=sys.stdout)"));
            }
            Expr::Attribute(method) if method.attr.id.as_str() == "sub" => {
                if matches!(call.arguments.args.get(1), Some(Expr::Lambda(_))) {
                    self.forms.push(("functions in `re.sub`", "import re\nre.sub('a', lambda match: 'b', 'a')"));
                }
            }
            _ => {}
        }
    }

    fn target(&mut self, target: &Expr) {
        if let Expr::Subscript(subscript) = target
            && matches!(*subscript.slice, Expr::Slice(_))
        {
            self.forms.push(("assignment to slices", "x = [1]\nx[0:] = [2]"));
        }
    }
}

impl<'a> Visitor<'a> for Facts {
    fn visit_stmt(&mut self, statement: &'a Stmt) {
        match statement {
            Stmt::Import(import) => return self.import(import),
            Stmt::ImportFrom(import) => return self.import_from(import),
            Stmt::FunctionDef(function) => return self.function(statement, function),
            Stmt::ClassDef(class) => return self.class(statement, class),
            Stmt::Assign(assign) => assign.targets.iter().for_each(|target| self.target(target)),
            Stmt::For(ast::StmtFor { is_async: true, .. }) | Stmt::With(ast::StmtWith { is_async: true, .. }) => {
                self.is_async = true;
            }
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
            Expr::Call(call) => self.call(call),
            Expr::BinOp(operation) => self.operation(operation),
            _ => {}
        }
        let is_lambda = matches!(expression, Expr::Lambda(_));
        if is_lambda {
            self.scan.functions.push(LAMBDA.to_owned());
        }
        visitor::walk_expr(self, expression);
        if is_lambda {
            self.scan.functions.pop();
        }
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
