//! Attributes and methods that the embedded interpreter lacks: it is asked for each by a tiny program.

use ruff_python_ast::{self as ast, Expr, ExprContext};
use ruff_text_size::Ranged;

use super::Search;
use crate::worker::python::support::{has, has_attribute};

/// Attributes of functions, classes and exceptions that it lacks on some of them.
const SPECIAL: [&str; 11] = [
    "__annotations__",
    "__cause__",
    "__class__",
    "__context__",
    "__dict__",
    "__doc__",
    "__module__",
    "__name__",
    "__qualname__",
    "__traceback__",
    "__wrapped__",
];

/// Built-in classes.
const CLASSES: [&str; 11] = ["str", "bytes", "int", "float", "bool", "list", "tuple", "dict", "set", "frozenset", "object"];

/// Methods of built-in values that are seldom implemented, each with an example.
const RARE_METHODS: [(&str, &str); 27] = [
    ("format_map", "''.format_map({})"),
    ("isprintable", "''.isprintable()"),
    ("maketrans", "''.maketrans('a', 'b')"),
    ("translate", "''.translate({})"),
    ("expandtabs", "b''.expandtabs()"),
    ("difference_update", "{1}.difference_update()"),
    ("intersection_update", "{1}.intersection_update()"),
    ("symmetric_difference_update", "{1}.symmetric_difference_update([])"),
    ("as_integer_ratio", "(1).as_integer_ratio()"),
    ("bit_count", "(1).bit_count()"),
    ("bit_length", "(1).bit_length()"),
    ("conjugate", "(1).conjugate()"),
    ("denominator", "(1).denominator"),
    ("numerator", "(1).numerator"),
    ("imag", "(1).imag"),
    ("real", "(1).real"),
    ("to_bytes", "(1).to_bytes(1, 'big')"),
    ("is_integer", "(1.0).is_integer()"),
    ("add_note", "ValueError().add_note('')"),
    ("with_traceback", "ValueError().with_traceback(None)"),
    ("default_factory", "import collections\ncollections.defaultdict(list).default_factory"),
    ("expand", "import re\nre.match('a', 'a').expand('a')"),
    ("lastgroup", "import re\nre.match('a', 'a').lastgroup"),
    ("lastindex", "import re\nre.match('a', 'a').lastindex"),
    ("groupindex", "import re\nre.compile('a').groupindex"),
    ("subn", "import re\nre.compile('a').subn('a', 'a')"),
    ("indices", "slice(1).indices(1)"),
];

/// What dates and times have, by the classes that have it.
const DATE_NAMES: [(&str, &str); 4] = [
    ("datetime.date(2024, 1, 2)", "ctime isocalendar isoformat isoweekday replace strftime timetuple toordinal weekday"),
    (
        "datetime.datetime(2024, 1, 2)",
        "astimezone ctime dst fold isocalendar isoweekday timestamp timetuple timetz toordinal tzname utcoffset utctimetuple weekday",
    ),
    ("datetime.timedelta(1)", "resolution total_seconds"),
    ("datetime.timezone.utc", "tzname utcoffset"),
];

/// Methods that programs like to hand on without calling them.
const HANDED_ON: &str = "add append capitalize count endswith extend find format get index insert isalpha isdigit items join keys lower lstrip pop \
    remove replace rstrip setdefault split startswith strip title update upper values";

impl<'a> Search<'a> {
    pub(super) fn attribute(&mut self, expression: &'a Expr, attribute: &'a ast::ExprAttribute) {
        if !matches!(attribute.ctx, ExprContext::Load) {
            return;
        }
        let name = attribute.attr.id.as_str();
        let is_called = self.called.contains(&expression.range());
        if SPECIAL.contains(&name) {
            return self.lacks(name);
        }
        self.of_class(attribute, is_called);
        if self.held.own_attributes.contains(name) || self.facts.bound.contains(name) {
            return;
        }
        self.of_value(attribute, is_called);
    }

    fn lacks(&mut self, name: &str) {
        self.note(format!("the embedded interpreter has no `{name}` everywhere"));
    }

    /// `datetime.today` and the like: what classes have.
    fn of_class(&mut self, attribute: &ast::ExprAttribute, is_called: bool) {
        let Some((root, path)) = path_of(attribute) else { return };
        let program = if let Some((module, member)) = self.facts.member_names.get(root) {
            format!("from {module} import {member}\n{member}.{path}")
        } else if let Some(module) = self.facts.module_names.get(root) {
            // What a module itself has is asked for elsewhere.
            if !path.contains('.') {
                return;
            }
            format!("import {module}\n{module}.{path}")
        } else if CLASSES.contains(&root) && self.is_builtin(root) {
            format!("{root}.{path}")
        } else {
            return;
        };
        let is_there = if is_called { has_attribute(&format!("{program}()")) } else { has(&program) };
        if !is_there {
            self.note(format!("the embedded interpreter has no `{root}.{path}`"));
        }
    }

    /// What values have, whose class does not show.
    fn of_value(&mut self, attribute: &ast::ExprAttribute, is_called: bool) {
        let name = attribute.attr.id.as_str();
        let root = if let Expr::Name(root) = &*attribute.value { root.id.as_str() } else { "" };
        if self.facts.module_names.contains_key(root) {
            return;
        }
        if self.held.exceptions.contains(root) {
            let program = format!("try:\n    raise RuntimeError('a')\nexcept RuntimeError as error:\n    error.{name}");
            if !has(&program) {
                return self.note(format!("the embedded interpreter has no `{name}` of exceptions"));
            }
        }
        let rare = RARE_METHODS.iter().find(|(rare, program)| *rare == name && !has_attribute(program));
        if rare.is_some() {
            return self.lacks(name);
        }
        let is_handed_on = !is_called && HANDED_ON.split_ascii_whitespace().any(|method| method == name);
        if is_handed_on && !has("''.upper") {
            return self.note(format!("the embedded interpreter cannot hand on the method `{name}` without calling it"));
        }
        if self.uses_dates {
            let lacking = |(value, names): &&(&str, &str)| {
                names.split_ascii_whitespace().any(|known| known == name)
                    && !has_attribute(&format!("import datetime\n{value}.{name}{}", if is_called { "()" } else { "" }))
            };
            if DATE_NAMES.iter().find(lacking).is_some() {
                self.note(format!("the embedded interpreter has no `{name}` of dates and times"));
            }
        }
    }
}

/// The name at the root of a chain of attributes, and the rest of it.
fn path_of(attribute: &ast::ExprAttribute) -> Option<(&str, String)> {
    let name = attribute.attr.id.as_str();
    match &*attribute.value {
        Expr::Name(root) => Some((root.id.as_str(), name.to_owned())),
        Expr::Attribute(inner) => path_of(inner).map(|(root, path)| (root, format!("{path}.{name}"))),
        _ => None,
    }
}
