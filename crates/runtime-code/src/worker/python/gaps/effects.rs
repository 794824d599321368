//! Whether it shows when, or how often, an expression is evaluated.

use ruff_python_ast::{
    Expr,
    visitor::{self, Visitor},
};

use crate::worker::python::analysis::Facts;

/// Built-in functions without effects.
const PURE_FUNCTIONS: &str = "abs all any ascii bin bool bytes chr dict divmod enumerate filter float format frozenset getattr hasattr hash hex int \
    isinstance len list map max min oct ord pow range repr reversed round set slice sorted str sum tuple type zip";
/// Methods of built-in values without effects.
const PURE_METHODS: &str = "capitalize casefold count date decode difference encode endswith find findall finditer format fullmatch get group \
    groupdict groups index intersection isalnum isalpha isascii isdecimal isdigit isdisjoint islower isnumeric isoformat isspace issubset \
    issuperset istitle isupper items join keys lower lstrip match partition replace rfind rindex rpartition rsplit rstrip search span split \
    splitlines startswith strip sub title total_seconds union upper values weekday zfill";

/// Whether evaluating it may have an effect: it calls what is not known to have none.
pub(super) fn has_effects(expression: &Expr, facts: &Facts) -> bool {
    let mut effects = Effects { facts, found: false };
    effects.visit_expr(expression);
    effects.found
}

/// Whether calling it may have an effect.
pub(super) fn may_act(function: &Expr, facts: &Facts) -> bool {
    match function {
        Expr::Name(name) => {
            let name = name.id.as_str();
            facts.bound.contains(name) || !PURE_FUNCTIONS.split_ascii_whitespace().any(|pure| pure == name)
        }
        Expr::Attribute(attribute) => {
            let name = attribute.attr.id.as_str();
            let is_pure = !facts.bound.contains(name) && PURE_METHODS.split_ascii_whitespace().any(|pure| pure == name);
            let is_function = facts.module_function(function).is_some_and(|(module, _)| matches!(module, "math" | "re" | "json"));
            !(is_pure || is_function) || has_effects(&attribute.value, facts)
        }
        Expr::Lambda(lambda) => has_effects(&lambda.body, facts),
        Expr::NoneLiteral(_) => false,
        _ => true,
    }
}

struct Effects<'f> {
    facts: &'f Facts,
    found: bool,
}

impl<'a> Visitor<'a> for Effects<'_> {
    fn visit_expr(&mut self, expression: &'a Expr) {
        match expression {
            Expr::Await(_) | Expr::Named(_) | Expr::Yield(_) | Expr::YieldFrom(_) => self.found = true,
            Expr::Call(call) => self.found |= may_act(&call.func, self.facts),
            _ => {}
        }
        if !self.found {
            visitor::walk_expr(self, expression);
        }
    }
}
