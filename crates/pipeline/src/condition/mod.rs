//! Conditions: references, JSON literals, `== != < <= > >= && || !`, `in`, parentheses.

mod evaluate;
mod parse;

use skillz_json::Value;

use crate::reference::Reference;

/// A condition, read.
#[derive(Debug, Clone, PartialEq)]
pub(crate) enum Condition {
    Reference(Reference),
    Literal(Value),
    Not(Box<Condition>),
    Compare(Comparison, Box<Condition>, Box<Condition>),
    /// True if all are; evaluated only as far as needed.
    All(Vec<Condition>),
    /// True if any is; evaluated only as far as needed.
    Any(Vec<Condition>),
}

/// How two values are compared.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum Comparison {
    Equal,
    NotEqual,
    Less,
    LessOrEqual,
    Greater,
    GreaterOrEqual,
    In,
}

impl Comparison {
    fn symbol(self) -> &'static str {
        match self {
            Self::Equal => "==",
            Self::NotEqual => "!=",
            Self::Less => "<",
            Self::LessOrEqual => "<=",
            Self::Greater => ">",
            Self::GreaterOrEqual => ">=",
            Self::In => "in",
        }
    }
}

impl Condition {
    /// Every reference in it.
    pub(crate) fn references(&self) -> Vec<&Reference> {
        match self {
            Self::Reference(reference) => vec![reference],
            Self::Literal(_) => Vec::new(),
            Self::Not(inner) => inner.references(),
            Self::Compare(_, left, right) => [left, right].into_iter().flat_map(|side| side.references()).collect(),
            Self::All(parts) | Self::Any(parts) => parts.iter().flat_map(Self::references).collect(),
        }
    }
}
