//! The parser of conditions: recursive descent with a bound on its depth.

use skillz_json::Value;

use super::{Comparison, Condition};
use crate::{
    reference::{Written, shortened},
    template::Bind,
};

/// Longest condition, in bytes.
const LONGEST: usize = 8_000;
/// Deepest nesting of parentheses and `!`; keeps the parser off the end of its stack.
const DEEPEST: usize = 64;

const COMPARISONS: [(&str, Comparison); 6] = [
    ("==", Comparison::Equal),
    ("!=", Comparison::NotEqual),
    ("<=", Comparison::LessOrEqual),
    (">=", Comparison::GreaterOrEqual),
    ("<", Comparison::Less),
    (">", Comparison::Greater),
];

impl Condition {
    /// Reads a condition. Faulty references are added to `faults`, and reading goes on; a fault of the grammar ends it.
    pub(crate) fn read(text: &str, bind: Bind<'_>, faults: &mut Vec<String>) -> Option<Self> {
        if text.len() > LONGEST {
            faults.push(format!("The condition has {} bytes; at most {LONGEST} are allowed", text.len()));
            return None;
        }
        let mut parser = Parser { text, position: 0, depth: 0, bind, faults };
        let condition = parser.any().and_then(|condition| match parser.rest() {
            "" => Ok(condition),
            rest => Err(parser.unexpected(rest)),
        });
        condition.map_err(|fault| faults.push(fault)).ok()
    }
}

struct Parser<'a> {
    text: &'a str,
    position: usize,
    depth: usize,
    bind: Bind<'a>,
    faults: &'a mut Vec<String>,
}

impl<'a> Parser<'a> {
    fn any(&mut self) -> Result<Condition, String> {
        let first = self.all()?;
        let mut parts = vec![first];
        while self.take("||") {
            parts.push(self.all()?);
        }
        Ok(single_or(parts, Condition::Any))
    }

    fn all(&mut self) -> Result<Condition, String> {
        let mut parts = vec![self.comparison()?];
        while self.take("&&") {
            parts.push(self.comparison()?);
        }
        Ok(single_or(parts, Condition::All))
    }

    fn comparison(&mut self) -> Result<Condition, String> {
        let left = self.unary()?;
        let Some(comparison) = self.take_comparison() else { return Ok(left) };
        let right = self.unary()?;
        if self.take_comparison().is_some() {
            return Err(format!("In the condition `{}` comparisons are chained; join them with `&&`", shortened(self.text)));
        }
        Ok(Condition::Compare(comparison, Box::new(left), Box::new(right)))
    }

    fn unary(&mut self) -> Result<Condition, String> {
        self.depth += 1;
        if self.depth > DEEPEST {
            return Err(format!("The condition `{}` is nested more than {DEEPEST} deep", shortened(self.text)));
        }
        let condition = if !self.rest().starts_with("!=") && self.take("!") {
            Condition::Not(Box::new(self.unary()?))
        } else if self.take("(") {
            let inner = self.any()?;
            if !self.take(")") {
                let rest = self.rest();
                return Err(if rest.is_empty() {
                    format!("The condition `{}` lacks a `)`", shortened(self.text))
                } else {
                    self.unexpected(rest)
                });
            }
            inner
        } else {
            self.operand()?
        };
        self.depth -= 1;
        Ok(condition)
    }

    fn operand(&mut self) -> Result<Condition, String> {
        let rest = self.rest();
        if rest.starts_with('$') {
            return self.reference(rest);
        }
        if let Some(after) = rest.strip_prefix('\'') {
            let (text, _) =
                after.split_once('\'').ok_or_else(|| format!("The condition `{}` lacks a closing `'`", shortened(self.text)))?;
            self.position += text.len() + 2;
            return Ok(Condition::Literal(Value::String(text.to_owned())));
        }
        let (value, length) = read_literal(rest).ok_or_else(|| self.unexpected(rest))?;
        self.position += length;
        Ok(Condition::Literal(value))
    }

    fn reference(&mut self, rest: &str) -> Result<Condition, String> {
        let Some((written, length)) = Written::read(rest)? else { return Err(self.unexpected(rest)) };
        self.position += length;
        Ok(match (self.bind)(written) {
            Ok(reference) => Condition::Reference(reference),
            Err(fault) => {
                self.faults.push(fault);
                Condition::Literal(Value::Null)
            }
        })
    }

    fn take_comparison(&mut self) -> Option<Comparison> {
        let rest = self.rest();
        if let Some(after) = rest.strip_prefix("in") {
            let ends = !after.starts_with(|next: char| next.is_alphanumeric() || next == '_');
            return ends.then(|| {
                self.position += 2;
                Comparison::In
            });
        }
        let (symbol, comparison) = COMPARISONS.into_iter().find(|(symbol, _)| rest.starts_with(symbol))?;
        self.position += symbol.len();
        Some(comparison)
    }

    fn take(&mut self, symbol: &str) -> bool {
        let found = self.rest().starts_with(symbol);
        if found {
            self.position += symbol.len();
        }
        found
    }

    /// What is left, white space skipped.
    fn rest(&mut self) -> &'a str {
        let rest = self.text.get(self.position..).unwrap_or_default();
        let trimmed = rest.trim_start();
        self.position += rest.len() - trimmed.len();
        trimmed
    }

    fn unexpected(&self, rest: &str) -> String {
        let condition = shortened(self.text);
        if rest.is_empty() {
            return format!("The condition `{condition}` ends where a value is missing");
        }
        let hint = match rest.split(|end: char| end.is_whitespace() || end == '(').next().unwrap_or_default() {
            "and" => ". Write `&&`",
            "or" => ". Write `||`",
            "not" => ". Write `!`",
            "True" | "False" | "None" => ". Literals are JSON: `true`, `false`, `null`",
            word if word.starts_with('=') => ". Write `==`",
            word if word.starts_with('&') => ". Write `&&`",
            word if word.starts_with('|') => ". Write `||`",
            word if word.starts_with(|first: char| first.is_alphabetic()) => {
                ". References start with `$`, texts stand in double quotes"
            }
            _ => "",
        };
        format!("The condition `{condition}` has `{}` where it is not expected{hint}", shortened(rest))
    }
}

/// Reads a JSON literal at the start of `text`; gives it with the bytes it takes.
fn read_literal(text: &str) -> Option<(Value, usize)> {
    if text.starts_with(['"', '[', '{']) {
        let mut values = serde_json::Deserializer::from_str(text).into_iter::<Value>();
        let value = values.next()?.ok()?;
        return Some((value, values.byte_offset()));
    }
    // Numbers and words do not say where they end; an operator may follow at once.
    let is_part: fn(char) -> bool = if text.starts_with(|first: char| first.is_ascii_digit() || first == '-') {
        |part| part.is_ascii_digit() || matches!(part, '+' | '-' | '.' | 'e' | 'E')
    } else {
        |part| part.is_alphanumeric() || part == '_'
    };
    let end = text.find(|part| !is_part(part)).unwrap_or(text.len());
    let value = serde_json::from_str(text.get(..end)?).ok()?;
    Some((value, end))
}

fn single_or(mut parts: Vec<Condition>, several: fn(Vec<Condition>) -> Condition) -> Condition {
    match (parts.pop(), parts.is_empty()) {
        (Some(only), true) => only,
        (Some(last), false) => {
            parts.push(last);
            several(parts)
        }
        (None, _) => several(parts),
    }
}
