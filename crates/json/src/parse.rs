//! Text to values: bounded in depth and digits, half characters repaired, repeated keys told to whoever wants to know.

use std::fmt;

use crate::{Map, Number, Value};

/// Most levels of arrays and objects inside one another.
pub const MOST_DEPTH: usize = 128;
/// Most digits of a whole number, written out or meant by an exponent: what Python converts by default.
pub const MOST_DIGITS: usize = 4_300;

/// One thing that a text may not hold, and where.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Fault {
    /// JSON Pointer.
    pub path: String,
    /// What is wrong there.
    pub message: String,
}

/// A text is not valid JSON, or holds what is out of bounds.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct ParseError {
    message: String,
    offset: usize,
    /// Whether the grammar allows the text, and only its depth or its digits do not.
    pub is_out_of_bounds: bool,
}

impl fmt::Display for ParseError {
    fn fmt(&self, formatter: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(formatter, "{} at byte {}", self.message, self.offset)
    }
}

impl std::error::Error for ParseError {}

/// Reads a text. Of members with one name the last one wins.
///
/// # Errors
///
/// What is not valid JSON, nests deeper than [`MOST_DEPTH`], or holds a whole number of more than [`MOST_DIGITS`] digits.
pub fn parse(text: &str) -> Result<Value, ParseError> {
    let mut parser = Parser::new(text);
    let value = parser.whole()?;
    match parser.digit_faults.pop() {
        Some(fault) => {
            Err(ParseError { message: format!("{} at `{}`", fault.message, fault.path), offset: 0, is_out_of_bounds: true })
        }
        None => Ok(value),
    }
}

/// Reads a text, and lists members with one name and numbers that are too long, which a caller can mend.
///
/// # Errors
///
/// What is not valid JSON, or nests deeper than [`MOST_DEPTH`].
pub fn parse_strictly(text: &str) -> Result<(Value, Vec<Fault>), ParseError> {
    parse_within(text, MOST_DEPTH)
}

/// Reads a text as [`parse_strictly`] does, with another bound of depth.
///
/// # Errors
///
/// What is not valid JSON, or nests deeper than `most_depth`.
pub fn parse_within(text: &str, most_depth: usize) -> Result<(Value, Vec<Fault>), ParseError> {
    let mut parser = Parser { most_depth, ..Parser::new(text) };
    let value = parser.whole()?;
    parser.digit_faults.append(&mut parser.key_faults);
    Ok((value, parser.digit_faults))
}

struct Parser<'a> {
    text: &'a str,
    most_depth: usize,
    offset: usize,
    path: Vec<Step<'a>>,
    digit_faults: Vec<Fault>,
    key_faults: Vec<Fault>,
}

enum Step<'a> {
    Key(std::borrow::Cow<'a, str>),
    Index(usize),
}

/// What `serde_json` calls a text that it must not look into; as a key from outside it would be taken for such a text.
const RESERVED: &str = "$serde_json::private::RawValue";
/// Most faults that are kept of one kind.
const MOST_FAULTS: usize = 20;

impl<'a> Parser<'a> {
    fn new(text: &'a str) -> Self {
        Self { text, most_depth: MOST_DEPTH, offset: 0, path: Vec::new(), digit_faults: Vec::new(), key_faults: Vec::new() }
    }

    fn whole(&mut self) -> Result<Value, ParseError> {
        let value = self.value()?;
        self.skip_blanks();
        if self.peek().is_some() { Err(self.error("There is more after the value")) } else { Ok(value) }
    }

    fn value(&mut self) -> Result<Value, ParseError> {
        self.skip_blanks();
        match self.peek() {
            Some(b'{') => self.object(),
            Some(b'[') => self.array(),
            Some(b'"') => Ok(Value::String(self.string()?.into_owned())),
            Some(b'-' | b'0'..=b'9') => self.number(),
            Some(b't') => self.word("true", Value::Bool(true)),
            Some(b'f') => self.word("false", Value::Bool(false)),
            Some(b'n') => self.word("null", Value::Null),
            Some(_) => Err(self.error("A value is expected")),
            None => Err(self.error("The text ends where a value is expected")),
        }
    }

    fn object(&mut self) -> Result<Value, ParseError> {
        self.enter()?;
        let mut members = Map::new();
        self.skip_blanks();
        if self.take(b'}') {
            return Ok(Value::Object(members));
        }
        loop {
            self.skip_blanks();
            if self.peek() != Some(b'"') {
                return Err(self.error("A key in quotes is expected"));
            }
            let key = self.string()?;
            self.skip_blanks();
            if !self.take(b':') {
                return Err(self.error("A colon is expected after a key"));
            }
            self.path.push(Step::Key(key.clone()));
            let value = self.value()?;
            let is_reserved = key == RESERVED;
            if (is_reserved || members.contains_key(&*key)) && self.key_faults.len() < MOST_FAULTS {
                let reason = if is_reserved { "The key is reserved" } else { "The key is there twice" };
                let fault = self.fault(reason.to_owned());
                self.key_faults.push(fault);
            }
            self.path.pop();
            members.insert(key.into_owned(), value);
            self.skip_blanks();
            if self.take(b'}') {
                return Ok(Value::Object(members));
            }
            if !self.take(b',') {
                return Err(self.error("A comma or `}` is expected"));
            }
        }
    }

    fn array(&mut self) -> Result<Value, ParseError> {
        self.enter()?;
        let mut elements = Vec::new();
        self.skip_blanks();
        if self.take(b']') {
            return Ok(Value::Array(elements));
        }
        loop {
            self.path.push(Step::Index(elements.len()));
            let value = self.value()?;
            self.path.pop();
            elements.push(value);
            self.skip_blanks();
            if self.take(b']') {
                return Ok(Value::Array(elements));
            }
            if !self.take(b',') {
                return Err(self.error("A comma or `]` is expected"));
            }
        }
    }

    /// Steps over an opening bracket; the way to here is as long as the brackets are many.
    fn enter(&mut self) -> Result<(), ParseError> {
        if self.path.len() >= self.most_depth {
            return Err(ParseError {
                is_out_of_bounds: true,
                ..self.error(&format!("The value is nested deeper than {} levels", self.most_depth))
            });
        }
        self.offset += 1;
        Ok(())
    }

    fn number(&mut self) -> Result<Value, ParseError> {
        let start = self.offset;
        self.take(b'-');
        if !self.take(b'0') {
            self.digits()?;
        }
        if self.take(b'.') {
            self.digits()?;
        }
        if self.take(b'e') || self.take(b'E') {
            let _signed = self.take(b'+') || self.take(b'-');
            self.digits()?;
        }
        let number = Number::of_text(self.text.get(start..self.offset).unwrap_or_default());
        let digits = number.whole_digits();
        if digits > MOST_DIGITS as u64 && self.digit_faults.len() < MOST_FAULTS {
            let fault = self.fault(format!("The whole number has {digits} digits; at most {MOST_DIGITS} are kept"));
            self.digit_faults.push(fault);
        }
        Ok(Value::Number(number))
    }

    fn digits(&mut self) -> Result<(), ParseError> {
        let start = self.offset;
        while matches!(self.peek(), Some(b'0'..=b'9')) {
            self.offset += 1;
        }
        if self.offset == start { Err(self.error("A digit is expected")) } else { Ok(()) }
    }

    /// A string without its quotes; most have no escapes and are taken as they stand.
    fn string(&mut self) -> Result<std::borrow::Cow<'a, str>, ParseError> {
        self.offset += 1;
        let mut owned: Option<String> = None;
        loop {
            let rest = self.text.get(self.offset..).unwrap_or_default();
            let length = rest.bytes().position(|byte| byte == b'"' || byte == b'\\' || byte < b' ').unwrap_or(rest.len());
            let plain = rest.get(..length).unwrap_or_default();
            self.offset += length;
            match self.peek() {
                Some(b'"') => {
                    self.offset += 1;
                    return Ok(match owned {
                        None => plain.into(),
                        Some(text) => (text + plain).into(),
                    });
                }
                Some(b'\\') => {
                    let text = owned.get_or_insert_default();
                    text.push_str(plain);
                    let character = self.escape()?;
                    text.push(character);
                }
                Some(_) => return Err(self.error("A control character stands in a string")),
                None => return Err(self.error("The text ends within a string")),
            }
        }
    }

    fn escape(&mut self) -> Result<char, ParseError> {
        self.offset += 2;
        Ok(match self.text.as_bytes().get(self.offset - 1) {
            Some(b'"') => '"',
            Some(b'\\') => '\\',
            Some(b'/') => '/',
            Some(b'b') => '\u{8}',
            Some(b'f') => '\u{c}',
            Some(b'n') => '\n',
            Some(b'r') => '\r',
            Some(b't') => '\t',
            Some(b'u') => self.unicode()?,
            _ => return Err(self.error("The escape is none of JSON's")),
        })
    }

    /// The character of four hexadecimal digits, or of a pair of them; half of a pair is U+FFFD.
    fn unicode(&mut self) -> Result<char, ParseError> {
        let high = self.hexadecimal()?;
        if (0xd800..0xdc00).contains(&high) && self.text.get(self.offset..).is_some_and(|rest| rest.starts_with("\\u")) {
            let before = self.offset;
            self.offset += 2;
            let low = self.hexadecimal()?;
            if (0xdc00..0xe000).contains(&low) {
                let code = 0x1_0000 + ((high - 0xd800) << 10) + (low - 0xdc00);
                return Ok(char::from_u32(code).unwrap_or(char::REPLACEMENT_CHARACTER));
            }
            self.offset = before;
        }
        Ok(char::from_u32(high).unwrap_or(char::REPLACEMENT_CHARACTER))
    }

    fn hexadecimal(&mut self) -> Result<u32, ParseError> {
        let digits =
            self.text.get(self.offset..self.offset + 4).filter(|digits| digits.bytes().all(|byte| byte.is_ascii_hexdigit()));
        let code = digits.and_then(|digits| u32::from_str_radix(digits, 16).ok());
        self.offset += 4;
        code.ok_or_else(|| self.error("Four hexadecimal digits are expected"))
    }

    fn word(&mut self, word: &str, value: Value) -> Result<Value, ParseError> {
        if !self.text.get(self.offset..).is_some_and(|rest| rest.starts_with(word)) {
            return Err(self.error("A value is expected"));
        }
        self.offset += word.len();
        Ok(value)
    }

    fn skip_blanks(&mut self) {
        while matches!(self.peek(), Some(b' ' | b'\t' | b'\n' | b'\r')) {
            self.offset += 1;
        }
    }

    fn peek(&self) -> Option<u8> {
        self.text.as_bytes().get(self.offset).copied()
    }

    fn take(&mut self, byte: u8) -> bool {
        let is_there = self.peek() == Some(byte);
        self.offset += usize::from(is_there);
        is_there
    }

    fn fault(&self, message: String) -> Fault {
        let mut path = String::new();
        for step in &self.path {
            path.push('/');
            match step {
                Step::Key(key) => path.push_str(&key.replace('~', "~0").replace('/', "~1")),
                Step::Index(index) => path.push_str(&index.to_string()),
            }
        }
        Fault { path, message }
    }

    fn error(&self, message: &str) -> ParseError {
        ParseError { message: message.to_owned(), offset: self.offset.min(self.text.len()), is_out_of_bounds: false }
    }
}
