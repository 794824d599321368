//! Iterators: the embedded interpreter makes lists of them at once. Where they are used up where they are made, and
//! nothing shows the order of events, that is the same.

use ruff_python_ast::{self as ast, Expr};
use ruff_text_size::Ranged;

use super::{
    Search,
    effects::{has_effects, may_act},
};

/// Built-in functions that give an iterator.
const MAKERS: [&str; 5] = ["zip", "map", "filter", "enumerate", "reversed"];
/// Functions that use an iterator up: at once, or as part of the iterator they give.
const CONSUMERS: &str = "all any Counter deque dict enumerate filter frozenset iter list map max min OrderedDict reduce reversed set sorted sum \
    tuple zip";
/// Methods that use an iterator up.
const CONSUMING_METHODS: &str = "difference extend fromkeys intersection issubset issuperset join union update";

impl<'a> Search<'a> {
    /// Looks at an expression that may be an iterator.
    pub(super) fn iterator(&mut self, expression: &'a Expr) {
        if is_iterator(expression, self) && !self.consumed.contains(&expression.range()) {
            self.note("the embedded interpreter makes a list of an iterator that is kept");
        }
    }

    /// Takes note of an expression that is used up where it stands, as a whole.
    pub(super) fn consume(&mut self, expression: &'a Expr) {
        self.consumed.insert(expression.range());
    }

    /// Takes note of an expression whose items are used up one by one.
    pub(super) fn consume_by_and_by(&mut self, expression: &'a Expr) {
        self.consume(expression);
        if !is_iterator(expression, self) {
            return;
        }
        self.is_lazy = true;
        if acts(expression, self) {
            self.note("the embedded interpreter does all of an iterator's work before its first item is used");
        }
    }

    /// Looks at what a call does with iterators.
    pub(super) fn iterators_of_call(&mut self, call: &'a ast::ExprCall) {
        let (name, is_method) = match &*call.func {
            Expr::Name(name) => (name.id.as_str(), false),
            Expr::Attribute(attribute) => (attribute.attr.id.as_str(), true),
            _ => return,
        };
        let arguments = &call.arguments.args;
        if !is_method && !self.is_builtin(name) && !self.facts.member_names.contains_key(name) {
            return;
        }
        if !is_method && name == "next" {
            return self.next(arguments);
        }
        let is_listed = |list: &str| list.split_ascii_whitespace().any(|known| known == name);
        if matches!(name, "any" | "all" | "iter" | "zip") && !is_method {
            arguments.iter().for_each(|argument| self.consume_by_and_by(argument));
        } else if is_listed(CONSUMERS) || (is_method && is_listed(CONSUMING_METHODS)) {
            arguments.iter().for_each(|argument| self.consume(argument));
        }
    }

    fn next(&mut self, arguments: &'a [Expr]) {
        let is_real = match arguments.first() {
            Some(Expr::Call(call)) => {
                matches!(&*call.func, Expr::Name(name) if name.id.as_str() == "iter")
                    || self.facts.module_function(&call.func).is_some_and(|(module, _)| module == "itertools")
            }
            Some(Expr::Name(name)) => self.held.iterators.contains(name.id.as_str()),
            _ => false,
        };
        if !is_real {
            self.note("the embedded interpreter has `next` for `iter(...)` only");
        }
    }
}

/// Whether an expression gives an iterator that the embedded interpreter makes a list of.
fn is_iterator(expression: &Expr, search: &Search<'_>) -> bool {
    match expression {
        Expr::Generator(_) => true,
        Expr::Call(call) => match &*call.func {
            Expr::Name(name) => MAKERS.contains(&name.id.as_str()) && search.is_builtin(name.id.as_str()),
            Expr::Attribute(attribute) => attribute.attr.id.as_str() == "finditer",
            _ => false,
        },
        _ => false,
    }
}

/// Whether making an iterator's items has effects. What its first source costs is spent when it is made, anyway.
fn acts(expression: &Expr, search: &Search<'_>) -> bool {
    match expression {
        Expr::Generator(generator) => {
            let later = generator.generators.iter().skip(1).map(|part| &part.iter);
            let conditions = generator.generators.iter().flat_map(|part| &part.ifs);
            let mut parts = std::iter::once(&*generator.elt).chain(later).chain(conditions);
            parts.any(|part| has_effects(part, search.facts))
        }
        Expr::Call(call) => {
            let applies = matches!(&*call.func, Expr::Name(name) if matches!(name.id.as_str(), "map" | "filter"));
            applies && call.arguments.args.first().is_some_and(|function| may_act(function, search.facts))
        }
        _ => false,
    }
}
