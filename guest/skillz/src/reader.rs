//! Reads JSON into types, and rounds no whole number on the way: one that its type cannot hold is a fault with its
//! place. `serde_json` says whether the text is JSON at all; here it is only taken apart.

use std::{borrow::Cow, fmt, iter};

use serde::{
    de::{
        value::MapDeserializer, DeserializeOwned, DeserializeSeed, EnumAccess, Error as _, IgnoredAny, IntoDeserializer,
        MapAccess, SeqAccess, Unexpected, VariantAccess, Visitor,
    },
    forward_to_deserialize_any, Deserialize, Deserializer,
};

use crate::number;

/// Most levels of arrays and objects inside one another, as everywhere in the server.
const MAX_DEPTH: usize = 128;
/// Digits of a number that a message shows.
const SHOWN: usize = 40;
/// The name under which `serde_json::value::RawValue` asks for the text of a value.
const RAW_VALUE: &str = "$serde_json::private::RawValue";

/// A value does not fit its type.
#[derive(Debug)]
pub(crate) struct Fault {
    message: String,
    /// Where it stands, the innermost step first.
    path: Vec<String>,
}

impl Fault {
    fn at(mut self, step: String) -> Self {
        self.path.push(step);
        self
    }
}

impl serde::de::Error for Fault {
    fn custom<T: fmt::Display>(message: T) -> Self {
        Self { message: message.to_string(), path: Vec::new() }
    }
}

impl std::error::Error for Fault {}

impl fmt::Display for Fault {
    fn fmt(&self, formatter: &mut fmt::Formatter<'_>) -> fmt::Result {
        if !self.path.is_empty() {
            let path: String = self.path.iter().rev().map(String::as_str).collect();
            write!(formatter, "`{}`: ", path.trim_start_matches('.'))?;
        }
        formatter.write_str(&self.message)
    }
}

/// Reads a text as a type.
pub(crate) fn read<T: DeserializeOwned>(text: &str) -> Result<T, Fault> {
    check(text)?;
    T::deserialize(&mut Reader { rest: text, depth: 0 })
}

fn check(text: &str) -> Result<(), Fault> {
    serde_json::from_str::<IgnoredAny>(text).map(drop).map_err(Fault::custom)
}

/// What is left of a text that is known to be JSON.
struct Reader<'t> {
    rest: &'t str,
    depth: usize,
}

impl<'t> Reader<'t> {
    /// The first byte of what comes next.
    fn peek(&mut self) -> u8 {
        self.rest = self.rest.trim_start_matches([' ', '\n', '\r', '\t']);
        self.rest.bytes().next().unwrap_or_default()
    }

    fn take(&mut self, length: usize) -> &'t str {
        let (taken, rest) = self.rest.split_at(length);
        self.rest = rest;
        taken
    }

    /// The whole text of the next value.
    fn value(&mut self) -> &'t str {
        let length = match self.peek() {
            b'"' => string_length(self.rest),
            b'{' | b'[' => group_length(self.rest),
            _ => self.rest.find([',', ']', '}', ' ', '\n', '\r', '\t']).unwrap_or(self.rest.len()),
        };
        self.take(length)
    }

    fn string(&mut self) -> Result<Cow<'t, str>, Fault> {
        let text = self.value();
        match text.get(1..text.len().saturating_sub(1)) {
            Some(plain) if !plain.contains('\\') => Ok(Cow::Borrowed(plain)),
            _ => serde_json::from_str(text).map(Cow::Owned).map_err(Fault::custom),
        }
    }

    fn enter(&mut self) -> Result<(), Fault> {
        self.take(1);
        self.depth += 1;
        if self.depth > MAX_DEPTH {
            return Err(Fault::custom(format!("nested deeper than {MAX_DEPTH} levels")));
        }
        Ok(())
    }

    fn leave(&mut self, end: u8) -> Result<(), Fault> {
        if self.peek() != end {
            return Err(Fault::custom("there are more items than the type has places"));
        }
        self.take(1);
        self.depth -= 1;
        Ok(())
    }

    /// Goes on to the next part of an array or object, if there is one.
    fn next(&mut self, is_first: bool, end: u8) -> bool {
        if self.peek() == end {
            return false;
        }
        if !is_first {
            self.take(1);
        }
        true
    }

    /// A key, and the colon after it.
    fn key(&mut self) -> Result<Cow<'t, str>, Fault> {
        self.peek();
        let key = self.string()?;
        self.peek();
        self.take(1);
        Ok(key)
    }

    /// A number for a type that counts, in whichever form it is written. Others get what is there, and say themselves
    /// what they miss.
    fn integer<'de, V: Visitor<'de>>(&mut self, visitor: V, is_wide: bool) -> Result<V::Value, Fault> {
        if !matches!(self.peek(), b'-' | b'0'..=b'9') {
            return self.deserialize_any(visitor);
        }
        let literal = self.value();
        let Some(digits) = number::whole(literal) else {
            let double = literal.parse().unwrap_or_default();
            return Err(Fault::invalid_type(Unexpected::Float(double), &visitor));
        };
        if let Ok(number) = digits.parse() {
            return visitor.visit_u64(number);
        }
        if let Ok(number) = digits.parse() {
            return visitor.visit_i64(number);
        }
        match (digits.parse(), digits.parse()) {
            (Ok(number), _) if is_wide => visitor.visit_u128(number),
            (_, Ok(number)) if is_wide => visitor.visit_i128(number),
            _ => Err(Fault::invalid_value(Unexpected::Other(&format!("the number {}", shortened(literal))), &visitor)),
        }
    }

    fn double<'de, V: Visitor<'de>>(&mut self, visitor: V) -> Result<V::Value, Fault> {
        if !matches!(self.peek(), b'-' | b'0'..=b'9') {
            return self.deserialize_any(visitor);
        }
        let literal = self.value();
        match literal.parse::<f64>() {
            Ok(double) if double.is_finite() => visitor.visit_f64(double),
            _ => Err(Fault::custom(format!("the number {} is beyond what a double holds", shortened(literal)))),
        }
    }
}

/// A number for a type that takes anything, such as `serde_json::Value`.
fn any_number<'de, V: Visitor<'de>>(literal: &str, visitor: V) -> Result<V::Value, Fault> {
    if let Ok(number) = literal.parse() {
        return visitor.visit_u64(number);
    }
    if let Ok(number) = literal.parse() {
        return visitor.visit_i64(number);
    }
    match literal.parse() {
        Ok(double) if number::is_exact(literal, double) => visitor.visit_f64(double),
        _ => Err(Fault::custom(format!(
            "the number {} would be rounded here; take it as `skillz::Json`, which keeps every digit",
            shortened(literal)
        ))),
    }
}

fn shortened(literal: &str) -> Cow<'_, str> {
    match literal.get(..SHOWN) {
        Some(start) if literal.len() > SHOWN => Cow::Owned(format!("{start}... ({} characters)", literal.len())),
        _ => Cow::Borrowed(literal),
    }
}

/// The length of the string at the start of a text, quotes included.
fn string_length(text: &str) -> usize {
    let mut is_escaped = false;
    for (at, byte) in text.bytes().enumerate().skip(1) {
        match byte {
            _ if is_escaped => is_escaped = false,
            b'\\' => is_escaped = true,
            b'"' => return at + 1,
            _ => {}
        }
    }
    text.len()
}

/// The length of the array or object at the start of a text, brackets included.
fn group_length(text: &str) -> usize {
    let (mut depth, mut at) = (0_usize, 0);
    while let Some(byte) = text.as_bytes().get(at) {
        match byte {
            b'"' => {
                at += string_length(text.get(at..).unwrap_or_default());
                continue;
            }
            b'{' | b'[' => depth += 1,
            b'}' | b']' => depth -= 1,
            _ => {}
        }
        at += 1;
        if depth == 0 {
            break;
        }
    }
    at
}

macro_rules! integers {
    ($($method:ident $is_wide:literal)*) => {$(
        fn $method<V: Visitor<'de>>(self, visitor: V) -> Result<V::Value, Fault> {
            self.integer(visitor, $is_wide)
        }
    )*};
}

macro_rules! doubles {
    ($($method:ident)*) => {$(
        fn $method<V: Visitor<'de>>(self, visitor: V) -> Result<V::Value, Fault> {
            self.double(visitor)
        }
    )*};
}

impl<'de> Deserializer<'de> for &mut Reader<'_> {
    type Error = Fault;

    fn deserialize_any<V: Visitor<'de>>(self, visitor: V) -> Result<V::Value, Fault> {
        match self.peek() {
            b'"' => match self.string()? {
                Cow::Borrowed(text) => visitor.visit_str(text),
                Cow::Owned(text) => visitor.visit_string(text),
            },
            b'[' => {
                self.enter()?;
                let value = visitor.visit_seq(Items { reader: self, index: 0 })?;
                self.leave(b']')?;
                Ok(value)
            }
            b'{' => {
                self.enter()?;
                let value = visitor.visit_map(Members { reader: self, is_first: true, key: String::new() })?;
                self.leave(b'}')?;
                Ok(value)
            }
            _ => match self.value() {
                "null" => visitor.visit_unit(),
                "true" => visitor.visit_bool(true),
                "false" => visitor.visit_bool(false),
                literal => any_number(literal, visitor),
            },
        }
    }

    integers! {
        deserialize_i8 false deserialize_i16 false deserialize_i32 false deserialize_i64 false deserialize_i128 true
        deserialize_u8 false deserialize_u16 false deserialize_u32 false deserialize_u64 false deserialize_u128 true
    }

    doubles! { deserialize_f32 deserialize_f64 }

    fn deserialize_option<V: Visitor<'de>>(self, visitor: V) -> Result<V::Value, Fault> {
        if self.peek() == b'n' {
            self.value();
            return visitor.visit_none();
        }
        visitor.visit_some(self)
    }

    fn deserialize_newtype_struct<V: Visitor<'de>>(self, name: &'static str, visitor: V) -> Result<V::Value, Fault> {
        if name == RAW_VALUE {
            return visitor.visit_map(MapDeserializer::new(iter::once((RAW_VALUE, self.value()))));
        }
        visitor.visit_newtype_struct(self)
    }

    fn deserialize_enum<V: Visitor<'de>>(
        self,
        _: &'static str,
        _: &'static [&'static str],
        visitor: V,
    ) -> Result<V::Value, Fault> {
        match self.peek() {
            b'"' => visitor.visit_enum(self.string()?.into_deserializer()),
            b'{' => {
                self.enter()?;
                let value = visitor.visit_enum(Variant { reader: self, name: String::new() })?;
                self.leave(b'}')?;
                Ok(value)
            }
            _ => self.deserialize_any(visitor),
        }
    }

    fn deserialize_bytes<V: Visitor<'de>>(self, visitor: V) -> Result<V::Value, Fault> {
        match self.peek() {
            b'"' => visitor.visit_byte_buf(self.string()?.into_owned().into_bytes()),
            _ => self.deserialize_any(visitor),
        }
    }

    fn deserialize_byte_buf<V: Visitor<'de>>(self, visitor: V) -> Result<V::Value, Fault> {
        self.deserialize_bytes(visitor)
    }

    fn deserialize_ignored_any<V: Visitor<'de>>(self, visitor: V) -> Result<V::Value, Fault> {
        self.value();
        visitor.visit_unit()
    }

    forward_to_deserialize_any! {
        bool char str string unit unit_struct seq tuple tuple_struct map struct identifier
    }
}

/// The items of an array.
struct Items<'r, 't> {
    reader: &'r mut Reader<'t>,
    index: usize,
}

impl<'de> SeqAccess<'de> for Items<'_, '_> {
    type Error = Fault;

    fn next_element_seed<T: DeserializeSeed<'de>>(&mut self, seed: T) -> Result<Option<T::Value>, Fault> {
        if !self.reader.next(self.index == 0, b']') {
            return Ok(None);
        }
        let index = self.index;
        self.index += 1;
        seed.deserialize(&mut *self.reader).map(Some).map_err(|fault| fault.at(format!("[{index}]")))
    }
}

/// The members of an object.
struct Members<'r, 't> {
    reader: &'r mut Reader<'t>,
    is_first: bool,
    key: String,
}

impl<'de> MapAccess<'de> for Members<'_, '_> {
    type Error = Fault;

    fn next_key_seed<K: DeserializeSeed<'de>>(&mut self, seed: K) -> Result<Option<K::Value>, Fault> {
        if !self.reader.next(self.is_first, b'}') {
            return Ok(None);
        }
        self.is_first = false;
        self.key = self.reader.key()?.into_owned();
        seed.deserialize(Key(&self.key)).map(Some).map_err(|fault| fault.at(format!(".{}", self.key)))
    }

    fn next_value_seed<V: DeserializeSeed<'de>>(&mut self, seed: V) -> Result<V::Value, Fault> {
        seed.deserialize(&mut *self.reader).map_err(|fault| fault.at(format!(".{}", self.key)))
    }
}

/// A key, which may stand for a number.
struct Key<'k>(&'k str);

macro_rules! number_keys {
    ($($method:ident)*) => {$(
        fn $method<V: Visitor<'de>>(self, visitor: V) -> Result<V::Value, Fault> {
            let is_number = self.0.starts_with(|first: char| first == '-' || first.is_ascii_digit()) && check(self.0).is_ok();
            if is_number { Reader { rest: self.0, depth: 0 }.$method(visitor) } else { visitor.visit_str(self.0) }
        }
    )*};
}

impl<'de> Deserializer<'de> for Key<'_> {
    type Error = Fault;

    fn deserialize_any<V: Visitor<'de>>(self, visitor: V) -> Result<V::Value, Fault> {
        visitor.visit_str(self.0)
    }

    number_keys! {
        deserialize_i8 deserialize_i16 deserialize_i32 deserialize_i64 deserialize_i128
        deserialize_u8 deserialize_u16 deserialize_u32 deserialize_u64 deserialize_u128
        deserialize_f32 deserialize_f64
    }

    fn deserialize_bool<V: Visitor<'de>>(self, visitor: V) -> Result<V::Value, Fault> {
        match self.0 {
            "true" => visitor.visit_bool(true),
            "false" => visitor.visit_bool(false),
            text => visitor.visit_str(text),
        }
    }

    fn deserialize_option<V: Visitor<'de>>(self, visitor: V) -> Result<V::Value, Fault> {
        visitor.visit_some(self)
    }

    fn deserialize_newtype_struct<V: Visitor<'de>>(self, _: &'static str, visitor: V) -> Result<V::Value, Fault> {
        visitor.visit_newtype_struct(self)
    }

    fn deserialize_enum<V: Visitor<'de>>(
        self,
        _: &'static str,
        _: &'static [&'static str],
        visitor: V,
    ) -> Result<V::Value, Fault> {
        visitor.visit_enum(self.0.into_deserializer())
    }

    forward_to_deserialize_any! {
        char str string bytes byte_buf unit unit_struct seq tuple tuple_struct map struct identifier ignored_any
    }
}

/// A variant with its content, as `{"name": content}`.
struct Variant<'r, 't> {
    reader: &'r mut Reader<'t>,
    name: String,
}

impl<'de> EnumAccess<'de> for Variant<'_, '_> {
    type Error = Fault;
    type Variant = Self;

    fn variant_seed<V: DeserializeSeed<'de>>(mut self, seed: V) -> Result<(V::Value, Self), Fault> {
        if self.reader.peek() == b'}' {
            return Err(Fault::custom("an object with one member is expected, named after a variant"));
        }
        self.name = self.reader.key()?.into_owned();
        let value = seed.deserialize(Key(&self.name))?;
        Ok((value, self))
    }
}

impl<'de> VariantAccess<'de> for Variant<'_, '_> {
    type Error = Fault;

    fn unit_variant(self) -> Result<(), Fault> {
        <()>::deserialize(&mut *self.reader).map_err(|fault| fault.at(format!(".{}", self.name)))
    }

    fn newtype_variant_seed<T: DeserializeSeed<'de>>(self, seed: T) -> Result<T::Value, Fault> {
        seed.deserialize(&mut *self.reader).map_err(|fault| fault.at(format!(".{}", self.name)))
    }

    fn tuple_variant<V: Visitor<'de>>(self, _: usize, visitor: V) -> Result<V::Value, Fault> {
        self.reader.deserialize_any(visitor).map_err(|fault| fault.at(format!(".{}", self.name)))
    }

    fn struct_variant<V: Visitor<'de>>(self, _: &'static [&'static str], visitor: V) -> Result<V::Value, Fault> {
        self.reader.deserialize_any(visitor).map_err(|fault| fault.at(format!(".{}", self.name)))
    }
}
