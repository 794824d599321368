//! What a condition comes to.

use std::{borrow::Cow, cmp::Ordering};

use skillz_json::Value;

use super::{Comparison, Condition};
use crate::{reference::describe, scope::Scope, template::preview};

impl Condition {
    /// Whether it holds. `false`, `null`, `0`, and empty texts, arrays and objects count as false.
    pub(crate) fn holds(&self, scope: &Scope<'_>) -> Result<bool, String> {
        match self {
            Self::Not(inner) => Ok(!inner.holds(scope)?),
            Self::Compare(comparison, left, right) => {
                let (left, right) = (left.value(scope)?, right.value(scope)?);
                compare(*comparison, &left, &right)
            }
            Self::All(parts) => {
                for part in parts {
                    if !part.holds(scope)? {
                        return Ok(false);
                    }
                }
                Ok(true)
            }
            Self::Any(parts) => {
                for part in parts {
                    if part.holds(scope)? {
                        return Ok(true);
                    }
                }
                Ok(false)
            }
            Self::Reference(_) | Self::Literal(_) => self.value(scope).map(|value| is_true(&value)),
        }
    }

    fn value<'a>(&'a self, scope: &Scope<'a>) -> Result<Cow<'a, Value>, String> {
        match self {
            Self::Reference(reference) => scope.resolve(reference).map(Cow::Borrowed),
            Self::Literal(value) => Ok(Cow::Borrowed(value)),
            _ => self.holds(scope).map(|holds| Cow::Owned(Value::Bool(holds))),
        }
    }
}

fn is_true(value: &Value) -> bool {
    match value {
        Value::Null => false,
        Value::Bool(value) => *value,
        Value::Number(number) => number.as_f64() != Some(0.0),
        Value::String(text) => !text.is_empty(),
        Value::Array(items) => !items.is_empty(),
        Value::Object(members) => !members.is_empty(),
    }
}

fn compare(comparison: Comparison, left: &Value, right: &Value) -> Result<bool, String> {
    match comparison {
        Comparison::Equal => Ok(equal(left, right)),
        Comparison::NotEqual => Ok(!equal(left, right)),
        Comparison::In => is_in(left, right),
        Comparison::Less => ordering(comparison, left, right).map(Ordering::is_lt),
        Comparison::LessOrEqual => ordering(comparison, left, right).map(Ordering::is_le),
        Comparison::Greater => ordering(comparison, left, right).map(Ordering::is_gt),
        Comparison::GreaterOrEqual => ordering(comparison, left, right).map(Ordering::is_ge),
    }
}

/// Equality of JSON values; numbers are equal by value, so that `1 == 1.0`.
fn equal(left: &Value, right: &Value) -> bool {
    match (left, right) {
        (Value::Number(left), Value::Number(right)) => left == right,
        (Value::Array(left), Value::Array(right)) => {
            left.len() == right.len() && left.iter().zip(right).all(|(left, right)| equal(left, right))
        }
        (Value::Object(left), Value::Object(right)) => {
            left.len() == right.len() && left.iter().all(|(key, value)| right.get(key).is_some_and(|other| equal(value, other)))
        }
        _ => left == right,
    }
}

/// Whether `left` is an item of an array, a key of an object, or a part of a text.
fn is_in(left: &Value, right: &Value) -> Result<bool, String> {
    match (left, right) {
        (_, Value::Array(items)) => Ok(items.iter().any(|item| equal(left, item))),
        (Value::String(key), Value::Object(members)) => Ok(members.contains_key(key)),
        (Value::String(part), Value::String(text)) => Ok(text.contains(part.as_str())),
        _ => Err(format!("`in` cannot look for `{}` in {}", preview(left), describe(right))),
    }
}

fn ordering(comparison: Comparison, left: &Value, right: &Value) -> Result<Ordering, String> {
    let order = match (left, right) {
        (Value::Number(left), Value::Number(right)) => left.partial_cmp(right),
        (Value::String(left), Value::String(right)) => Some(left.cmp(right)),
        _ => None,
    };
    order.ok_or_else(|| {
        let symbol = comparison.symbol();
        format!("`{symbol}` compares two numbers or two texts, not {} with {}", describe(left), describe(right))
    })
}

#[cfg(test)]
mod tests {
    use proptest::prelude::*;
    use skillz_json::json;

    use super::*;
    use crate::{
        reference::{Reference, Root, Written},
        scope::StepResult,
    };

    fn bind(written: Written) -> Result<Reference, String> {
        let root = match written.root.as_str() {
            "input" => Root::Input,
            "prev" => Root::Previous,
            "item" => Root::Item,
            "done" => Root::Step(0),
            "skipped" => Root::Step(1),
            other => return Err(format!("`{other}` is unknown")),
        };
        Ok(Reference { root, written })
    }

    fn evaluate(text: &str) -> Result<bool, String> {
        let mut faults = Vec::new();
        let condition = Condition::read(text, &bind, &mut faults);
        if !faults.is_empty() {
            return Err(faults.join("; "));
        }
        let input = json!({
            "n": 3, "big": 9_007_199_254_740_993_i64, "half": 0.5, "s": "abc", "list": [1, "a", null], "o": {"k": 1, "x-y": 2},
            "yes": true, "no": false, "none": null, "empty": "",
        });
        let previous = json!({"count": 10});
        let results = [StepResult::Value(json!({"ok": true})), StepResult::Skipped];
        let scope = Scope { input: &input, previous: Some(&previous), results: &results, item: None };
        condition.ok_or("no condition")?.holds(&scope)
    }

    #[test]
    fn conditions_hold_or_not() {
        for (expected, texts) in [
            (
                true,
                [
                    "true",
                    " true ",
                    "(true)",
                    "((true))",
                    "!false",
                    "!!true",
                    "1",
                    "-1",
                    "0.5",
                    "\"a\"",
                    "[0]",
                    "{\"a\":1}",
                    "!0",
                    "!\"\"",
                    "![]",
                    "!{}",
                    "!null",
                    "'a' == \"a\"",
                    "$input.n == 3",
                    "$input.n==3.0",
                    "$input.n != 4",
                    "$input.n < 4",
                    "$input.n <= 3",
                    "$input.n > 2.5",
                    "$input.n >= 3",
                    "3 == $input.n",
                    "$input.big == 9007199254740993",
                    "$input.big != 9007199254740992",
                    "$input.big > 9007199254740992",
                    "$input.s == \"abc\"",
                    "$input.s < \"abd\"",
                    "\"b\" in $input.s",
                    "'a' in $input.list",
                    "null in $input.list",
                    "1.0 in $input.list",
                    "\"k\" in $input.o",
                    "!(\"z\" in $input.o)",
                    "$input.n in [1, 2, 3]",
                    "$input.o == {\"x-y\": 2, \"k\": 1.0}",
                    "$input.list == [1, \"a\", null]",
                    "$input.o[\"x-y\"] == 2",
                    "${input.o.x-y} == 2",
                    "$input.list[-1] == null",
                    "$input.list[0] == 1",
                    "$input.yes",
                    "!$input.no",
                    "$input.none == null",
                    "$input.yes && $prev.count > 5",
                    "$input.no || $prev.count >= 10",
                    "false || false || true",
                    "true && true && 1",
                    "true || false && false",
                    "(true || false) && true",
                    "!false && true",
                    "!(true && false)",
                    "$done.ok",
                    "$done == {\"ok\":true}",
                    "$skipped == null",
                    "!$skipped",
                    "false && $input.missing || true",
                    "true || $input.missing",
                    "$input.yes == true",
                    "(1 < 2) == true",
                    "!$input.no == true",
                    "$input.s != 1",
                    "\"in\" == \"in\"",
                    "\"a && b\" == \"a && b\"",
                    "\"\" in \"\"",
                    "[] == []",
                    "{} == {}",
                    "1e3 == 1000",
                    "$input.half < 1",
                ]
                .as_slice(),
            ),
            (
                false,
                &[
                    "false",
                    "null",
                    "0",
                    "0.0",
                    "\"\"",
                    "[]",
                    "{}",
                    "!true",
                    "!1",
                    "$input.n == 4",
                    "$input.n == \"3\"",
                    "$input.n != 3",
                    "$input.n < 3",
                    "$input.n > 3",
                    "\"z\" in $input.s",
                    "2 in $input.list",
                    "\"z\" in $input.o",
                    "$input.no",
                    "$input.none",
                    "$input.empty",
                    "true && false",
                    "false || false",
                    "(true || true) && false",
                    "$input.list == [1, \"a\"]",
                    "$input.o == {}",
                    "$prev.count < 10",
                    "[1,2] == [2,1]",
                    "null == false",
                    "0 == false",
                    "'' == null",
                    "$input.yes && $input.no",
                    "false && $input.missing",
                    "!(1 in [1])",
                ],
            ),
        ] {
            for text in texts {
                assert_eq!(evaluate(text), Ok(expected), "{text}");
            }
        }
    }

    #[test]
    fn faults_say_what_is_wrong() {
        for (text, part) in [
            ("", "ends where a value is missing"),
            ("   ", "ends where a value is missing"),
            ("1 ==", "ends where a value is missing"),
            ("(1", "lacks a `)`"),
            ("(1 2)", "has `2)` where it is not expected"),
            ("1)", "has `)` where it is not expected"),
            ("1 = 1", "Write `==`"),
            ("true and false", "Write `&&`"),
            ("true or false", "Write `||`"),
            ("not true", "Write `!`"),
            ("true & false", "Write `&&`"),
            ("true | false", "Write `||`"),
            ("True", "Literals are JSON"),
            ("input.n > 1", "References start with `$`"),
            ("1 < 2 < 3", "comparisons are chained"),
            ("$nobody.x == 1", "`nobody` is unknown"),
            ("$input.missing", "`$input.missing` leads nowhere"),
            ("$input.n.deep == 1", "`$input.n` is a number"),
            ("$skipped.x == 1", "was skipped"),
            ("$item == 1", "only inside `for_each`"),
            ("1 < \"a\"", "compares two numbers or two texts, not a number with a text"),
            ("null > 1", "not null with a number"),
            ("1 in 5", "`in` cannot look for `1` in a number"),
            ("1 in \"1\"", "`in` cannot look for"),
            ("'abc", "lacks a closing `'`"),
            ("\"abc", "not expected"),
            ("${input.n", "lacks its closing `}`"),
            ("$ == 1", "not expected"),
            ("!", "ends where a value is missing"),
            ("&& true", "not expected"),
            ("1 inside [1]", "not expected"),
        ] {
            let fault = evaluate(text).expect_err(text);
            assert!(fault.contains(part), "`{text}`: {fault}");
        }
    }

    #[test]
    fn depth_and_length_are_bounded() {
        let nested = |depth: usize| format!("{}true{}", "(".repeat(depth), ")".repeat(depth));
        assert_eq!(evaluate(&nested(60)), Ok(true));
        for text in [nested(1_000), "!".repeat(5_000), "(".repeat(7_000), "[".repeat(7_000)] {
            assert!(evaluate(&text).is_err());
        }
        assert!(evaluate(&"true && ".repeat(5_000)).expect_err("too long").contains("at most"));
        assert_eq!(evaluate(&format!("{}true", "false || ".repeat(800))), Ok(true));
    }

    proptest! {
        /// Whatever the text, reading and evaluating it ends with a value or a message.
        #[test]
        fn no_text_breaks_the_parser(text in "\\PC{0,60}") {
            let _ = evaluate(&text);
        }

        /// The same with texts made of the grammar's own pieces, which get further.
        #[test]
        fn no_sequence_of_tokens_breaks_it(tokens in prop::collection::vec(prop::sample::select(vec![
            "(", ")", "!", "&&", "||", "==", "!=", "<", "<=", ">", ">=", "in", "$input", "$input.n", "$prev.count", "$done", "$skipped.x", ".", "[0]", "[", "]",
            "{", "}", "1", "-", "0.5", "\"a\"", "'", "\"", "true", "null", "$", "${", "$$", ",", "é", "名", "\u{0}",
        ]), 0..24), space in prop::bool::ANY) {
            let _ = evaluate(&tokens.join(if space { " " } else { "" }));
        }

        /// Comparisons of whole numbers are those of the numbers.
        #[test]
        fn numbers_compare_as_numbers(left in any::<i64>(), right in any::<i64>()) {
            prop_assert_eq!(evaluate(&format!("{left} < {right}")), Ok(left < right));
            prop_assert_eq!(evaluate(&format!("{left} == {right}")), Ok(left == right));
            prop_assert_eq!(evaluate(&format!("!({left} >= {right}) || {left} >= {right}")), Ok(true));
        }

        /// Every text is found equal to itself when quoted as JSON, and never to one that is longer.
        #[test]
        fn texts_survive_quoting(text in "\\PC{0,40}") {
            let quoted = Value::String(text.clone()).to_string();
            prop_assert_eq!(evaluate(&format!("{quoted} == {quoted}")), Ok(true));
            let longer = Value::String(format!("{text}!")).to_string();
            prop_assert_eq!(evaluate(&format!("{quoted} == {longer}")), Ok(false));
            prop_assert_eq!(evaluate(&format!("{quoted} in {longer}")), Ok(true));
        }
    }
}
