//! JSON as text, for comparing values exactly: numbers stay as they are written, whatever the program under test uses.

use std::fmt::Write as _;

/// More digits than this are refused, whoever is called.
pub(super) const MOST_DIGITS: i64 = 4_300;

#[derive(Debug, Clone, PartialEq, Eq)]
pub(super) enum Json {
    /// `null`, `true` or `false`.
    Word(String),
    /// As written.
    Number(String),
    Text(String),
    List(Vec<Json>),
    Object(Vec<(String, Json)>),
}

impl Json {
    /// Reads a text; half characters in it come out as U+FFFD, as they do at every border.
    pub(super) fn read(text: &str) -> Result<Self, String> {
        let mut reader = Reader { rest: text };
        let value = reader.value()?;
        reader.skip_space();
        if reader.rest.is_empty() { Ok(value) } else { Err(reader.wrong("something follows the value")) }
    }

    pub(super) fn as_text(&self) -> Option<&str> {
        if let Self::Text(text) = self { Some(text) } else { None }
    }

    /// The value of a key; of two equal ones the last.
    pub(super) fn get(&self, key: &str) -> Option<&Self> {
        let Self::Object(fields) = self else { return None };
        fields.iter().rfind(|(name, _)| name == key).map(|(_, value)| value)
    }

    pub(super) fn write(&self) -> String {
        match self {
            Self::Word(text) | Self::Number(text) => text.clone(),
            Self::Text(text) => quoted(text),
            Self::List(items) => format!("[{}]", joined(items.iter().map(Self::write))),
            Self::Object(fields) => {
                format!("{{{}}}", joined(fields.iter().map(|(name, value)| format!("{}:{}", quoted(name), value.write()))))
            }
        }
    }

    /// Every number in it.
    pub(super) fn numbers(&self) -> Vec<Number> {
        match self {
            Self::Number(text) => vec![Number::read(text)],
            Self::List(items) => items.iter().flat_map(Self::numbers).collect(),
            Self::Object(fields) => fields.iter().flat_map(|(_, value)| value.numbers()).collect(),
            Self::Word(_) | Self::Text(_) => Vec::new(),
        }
    }

    /// Where two values differ; keys may come in any order.
    pub(super) fn difference(&self, other: &Self, keeps_sign_of_zero: bool) -> Option<String> {
        let inside = |place: String, left: &Self, right: &Self| {
            left.difference(right, keeps_sign_of_zero).map(|difference| format!("{place}{difference}"))
        };
        match (self, other) {
            (Self::Number(left), Self::Number(right)) => {
                let same = Number::read(left).is_same(&Number::read(right), keeps_sign_of_zero);
                (!same).then(|| format!(": {left} became {right}"))
            }
            (Self::List(left), Self::List(right)) if left.len() == right.len() => {
                left.iter().zip(right).enumerate().find_map(|(index, (left, right))| inside(format!("/{index}"), left, right))
            }
            (Self::Object(left), Self::Object(right)) if left.len() == right.len() => {
                left.iter().find_map(|(name, value)| match other.get(name) {
                    Some(found) => inside(format!("/{name:?}"), value, found),
                    None => Some(format!(": the key {name:?} is gone")),
                })
            }
            _ if self == other => None,
            _ => Some(format!(": {} became {}", cut(&self.write()), cut(&other.write()))),
        }
    }
}

fn joined(parts: impl Iterator<Item = String>) -> String {
    parts.collect::<Vec<_>>().join(",")
}

/// A JSON text in quotes, with nothing escaped but what must be: it is a literal of Python and of JavaScript as well.
pub(super) fn quoted(text: &str) -> String {
    let mut written = String::from('"');
    for character in text.chars() {
        match character {
            '"' | '\\' => written.extend(['\\', character]),
            '\u{0}'..='\u{1f}' => write!(written, "\\u{:04x}", u32::from(character)).expect("a string takes everything"),
            _ => written.push(character),
        }
    }
    written + "\""
}

/// The start of a long text.
pub(super) fn cut(text: &str) -> String {
    if text.chars().count() > 300 { text.chars().take(300).collect::<String>() + "..." } else { text.to_owned() }
}

/// A number as an exact decimal: its significant digits times ten to a power.
#[derive(Debug)]
pub(super) struct Number {
    written: String,
    is_negative: bool,
    digits: String,
    power: i64,
}

impl Number {
    fn read(written: &str) -> Self {
        let (mantissa, exponent) = written.split_once(['e', 'E']).unwrap_or((written, "0"));
        // What does not fit is far out of every range.
        let exponent = exponent.parse::<i64>().unwrap_or(if exponent.starts_with('-') { -(1 << 60) } else { 1 << 60 });
        let (whole, fraction) =
            mantissa.trim_start_matches('-').split_once('.').unwrap_or((mantissa.trim_start_matches('-'), ""));
        let all = format!("{whole}{fraction}");
        let digits = all.trim_start_matches('0').trim_end_matches('0').to_owned();
        let trailing = all.len() - all.trim_end_matches('0').len();
        let power = if digits.is_empty() { 0 } else { exponent + size(trailing) - size(fraction.len()) };
        Self { written: written.to_owned(), is_negative: mantissa.starts_with('-'), digits, power }
    }

    fn double(&self) -> f64 {
        self.written.parse().expect("every JSON number is one of Rust's")
    }

    fn is_whole(&self) -> bool {
        self.power >= 0
    }

    /// How many digits the whole number has when it is written out.
    pub(super) fn has_too_many_digits(&self) -> bool {
        self.is_whole() && !self.digits.is_empty() && size(self.digits.len()) + self.power > MOST_DIGITS
    }

    /// Whether a double holds it and prints it back; of what is not whole, the nearest double stands for it.
    fn fits_double(&self) -> bool {
        let double = self.double();
        let is_there = double.is_finite() && (double != 0.0 || self.digits.is_empty());
        is_there && (!self.is_whole() || Self::read(&format!("{double:e}")).is_equal(self))
    }

    fn is_written_as_integer(&self) -> bool {
        !self.written.contains(['.', 'e', 'E'])
    }

    /// Whether no double is near it, though it is not written as an integer.
    pub(super) fn is_beyond_doubles(&self) -> bool {
        !self.is_written_as_integer() && !(self.double().is_finite() && (self.double() != 0.0 || self.digits.is_empty()))
    }

    pub(super) fn may_be_lost_in_javascript(&self) -> bool {
        let is_beyond_safe = self.is_written_as_integer() && self.double().abs() > 9_007_199_254_740_991.0;
        is_beyond_safe || !self.fits_double()
    }

    /// Whether programs that read numbers as they usually do, those with a point or an exponent as doubles, hold it.
    pub(super) fn survives_usual_reading(&self) -> bool {
        self.is_written_as_integer() || self.fits_double()
    }

    fn is_equal(&self, other: &Self) -> bool {
        self.digits == other.digits
            && self.power == other.power
            && (self.digits.is_empty() || self.is_negative == other.is_negative)
    }

    /// What is written as an integer keeps every digit; others are doubles. A zero written as an integer has no sign.
    fn is_same(&self, other: &Self, keeps_sign_of_zero: bool) -> bool {
        if self.digits.is_empty() && other.digits.is_empty() {
            return self.is_written_as_integer() || !keeps_sign_of_zero || self.is_negative == other.is_negative;
        }
        let (left, right) = (self.double(), other.double());
        self.is_equal(other) || (!self.is_written_as_integer() && left.is_finite() && left.to_bits() == right.to_bits())
    }
}

fn size(length: usize) -> i64 {
    i64::try_from(length).expect("a length")
}

struct Reader<'a> {
    rest: &'a str,
}

impl<'a> Reader<'a> {
    fn wrong(&self, what: &str) -> String {
        format!("{what}: {}", cut(self.rest))
    }

    fn skip_space(&mut self) {
        self.rest = self.rest.trim_start_matches([' ', '\t', '\r', '\n']);
    }

    fn takes(&mut self, sign: &str) -> bool {
        self.skip_space();
        let rest = self.rest.strip_prefix(sign);
        self.rest = rest.unwrap_or(self.rest);
        rest.is_some()
    }

    fn take_while(&mut self, fits: impl Fn(char) -> bool) -> &'a str {
        let end = self.rest.find(|character| !fits(character)).unwrap_or(self.rest.len());
        let (taken, rest) = self.rest.split_at(end);
        self.rest = rest;
        taken
    }

    fn value(&mut self) -> Result<Json, String> {
        if self.takes("{") {
            return self
                .items("}", |reader| {
                    let Json::Text(name) = reader.value()? else { return Err(reader.wrong("no key")) };
                    if !reader.takes(":") {
                        return Err(reader.wrong("no colon"));
                    }
                    Ok((name, reader.value()?))
                })
                .map(Json::Object);
        }
        if self.takes("[") {
            return self.items("]", Self::value).map(Json::List);
        }
        if self.takes("\"") {
            return self.quoted().map(Json::Text);
        }
        let word = self.take_while(|character| character.is_ascii_alphanumeric() || "+-.".contains(character));
        match word {
            "null" | "true" | "false" => Ok(Json::Word(word.to_owned())),
            _ if word.parse::<f64>().is_ok() && word.ends_with(|last: char| last.is_ascii_digit()) => {
                Ok(Json::Number(word.to_owned()))
            }
            _ => Err(format!("{word:?} is no JSON: {}", cut(self.rest))),
        }
    }

    fn items<Item>(&mut self, end: &str, mut item: impl FnMut(&mut Self) -> Result<Item, String>) -> Result<Vec<Item>, String> {
        let mut items = Vec::new();
        if self.takes(end) {
            return Ok(items);
        }
        loop {
            items.push(item(self)?);
            if self.takes(end) {
                return Ok(items);
            }
            if !self.takes(",") {
                return Err(self.wrong("no comma"));
            }
        }
    }

    fn quoted(&mut self) -> Result<String, String> {
        let mut units = Vec::new();
        loop {
            units.extend(self.take_while(|character| character != '"' && character != '\\').encode_utf16());
            if let Some(rest) = self.rest.strip_prefix('"') {
                self.rest = rest;
                return Ok(String::from_utf16_lossy(&units));
            }
            let mut escape = self.rest.chars().skip(1);
            let kind = escape.next().ok_or_else(|| self.wrong("no end of the text"))?;
            let length = if kind == 'u' { 6 } else { 2 };
            let digits = self.rest.get(2..length).ok_or_else(|| self.wrong("half an escape"))?;
            units.push(match kind {
                'u' => u16::from_str_radix(digits, 16).map_err(|_| self.wrong("no escape"))?,
                'b' => 8,
                't' => 9,
                'n' => 10,
                'f' => 12,
                'r' => 13,
                '"' | '\\' | '/' => u16::try_from(u32::from(kind)).expect("ASCII"),
                _ => return Err(self.wrong("no escape")),
            });
            self.rest = self.rest.get(length..).unwrap_or_default();
        }
    }
}

#[test]
fn the_comparer_tells_apart_what_differs_and_nothing_else() {
    let same = |left: &str, right: &str| Json::read(left).unwrap().difference(&Json::read(right).unwrap(), true).is_none();
    for (left, right) in [
        ("1e3", "1000"),
        ("3.0", "3"),
        ("-0", "0"),
        ("-0.0", "-0e7"),
        ("0.10", "1e-1"),
        ("0.1000000000000000055511151231257827", "0.1"),
        ("1e400", &format!("1{}", "0".repeat(400))),
        (r#""\ud83c\udf89\ud800""#, "\"🎉\u{fffd}\""),
        (r#"{"a":1,"b":[]}"#, r#"{"b": [], "a": 1.0}"#),
    ] {
        assert!(same(left, right), "{left} is {right}");
    }
    for (left, right) in [
        ("9007199254740993", "9007199254740992"),
        ("1e400", "1e401"),
        ("-0.0", "0.0"),
        ("0.1", "0.2"),
        ("1e-400", "0.5"),
        ("12345678901234567890123", "1.2345678901234568e22"),
        ("[]", "{}"),
        ("null", "\"null\""),
        ("{}", r#"{"a":null}"#),
        ("1", "-1"),
    ] {
        assert!(!same(left, right), "{left} is not {right}");
    }
}
