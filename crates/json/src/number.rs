//! A number as it was written, and what can be said of it without rounding.

use std::{borrow::Cow, cmp::Ordering, fmt};

use serde::{Serialize, Serializer};
use serde_json::value::RawValue;

/// A JSON number. Whole numbers of 64 bits are kept as such, all others as their text. Two numbers are equal where their
/// values are: whole ones digit by digit, others as doubles.
#[derive(Clone)]
pub struct Number(Form);

#[derive(Clone)]
enum Form {
    /// Its text is the usual one: `-0` and `1e3` are not kept here.
    Whole(i64),
    Written(Box<str>),
}

/// Sign, digits without zeros around them, and the power of ten of the last digit.
struct Decimal {
    is_negative: bool,
    digits: String,
    exponent: i64,
}

impl Number {
    /// Takes a text that the grammar of JSON allows as a number.
    pub(crate) fn of_text(text: &str) -> Self {
        match text.parse::<i64>() {
            Ok(whole) if !text.starts_with("-0") => Self(Form::Whole(whole)),
            _ => Self(Form::Written(text.into())),
        }
    }

    /// The double nearest to nothing else; `None` for NaN and infinities, which JSON has no text for.
    pub fn from_f64(value: f64) -> Option<Self> {
        serde_json::Number::from_f64(value).map(|number| Self(Form::Written(number.to_string().into())))
    }

    /// The text as it was written.
    pub fn as_str(&self) -> Cow<'_, str> {
        match &self.0 {
            Form::Whole(whole) => Cow::Owned(whole.to_string()),
            Form::Written(text) => Cow::Borrowed(text),
        }
    }

    /// The value, if it is written as a whole number and fits.
    pub fn as_i64(&self) -> Option<i64> {
        match &self.0 {
            Form::Whole(whole) => Some(*whole),
            Form::Written(text) => text.parse().ok(),
        }
    }

    /// The value, if it is written as a whole number and fits.
    pub fn as_u64(&self) -> Option<u64> {
        match &self.0 {
            Form::Whole(whole) => u64::try_from(*whole).ok(),
            Form::Written(text) => text.parse().ok(),
        }
    }

    /// The nearest double; `None` where the number lies outside their range.
    pub fn as_f64(&self) -> Option<f64> {
        match &self.0 {
            Form::Whole(whole) => Some(*whole as f64),
            Form::Written(text) => text.parse().ok().filter(|value: &f64| value.is_finite()),
        }
    }

    /// Whether it is written with digits alone, without fraction and exponent.
    pub fn is_written_whole(&self) -> bool {
        match &self.0 {
            Form::Whole(_) => true,
            Form::Written(text) => !text.contains(['.', 'e', 'E']),
        }
    }

    /// Whether its value is whole, however it is written: `3.0` and `1e3` are.
    pub fn is_whole(&self) -> bool {
        self.is_written_whole() || self.decimal().exponent >= 0
    }

    /// The number in the form of a whole one, if its value is: `3` for `3.0`, `1000` for `1e3`, `0` for `-0.0`.
    pub fn to_whole(&self) -> Option<Self> {
        if matches!(self.0, Form::Whole(_)) {
            return Some(self.clone());
        }
        let decimal = self.decimal();
        if decimal.digits.is_empty() {
            return Some(Self(Form::Whole(0)));
        }
        let zeros = usize::try_from(decimal.exponent).ok().filter(|zeros| *zeros <= crate::MOST_DIGITS)?;
        let sign = if decimal.is_negative { "-" } else { "" };
        Some(Self::of_text(&format!("{sign}{}{}", decimal.digits, "0".repeat(zeros))))
    }

    /// How many digits the whole number would have that this stands for; 0 for one with a fraction. Expands nothing.
    pub(crate) fn whole_digits(&self) -> u64 {
        let Form::Written(text) = &self.0 else { return 0 };
        if text.len() <= crate::MOST_DIGITS && self.is_written_whole() {
            return text.len() as u64;
        }
        let decimal = self.decimal();
        u64::try_from(decimal.exponent).map_or(0, |zeros| zeros.saturating_add(decimal.digits.len() as u64))
    }

    /// Whether JavaScript and others that know doubles only can hold it: one written whole without loss of a digit, any
    /// other at all.
    pub fn fits_double(&self) -> bool {
        match self.as_f64() {
            Some(double) if self.is_written_whole() => format!("{double:.0}") == self.as_str(),
            double => double.is_some(),
        }
    }

    /// Whether Python, which knows whole numbers of any length and doubles, can hold it.
    pub fn fits_python(&self) -> bool {
        self.is_written_whole() || self.as_f64().is_some()
    }

    /// Digits and exponent; the exponent saturates, far beyond all that is allowed.
    fn decimal(&self) -> Decimal {
        let text = self.as_str();
        let (mantissa, exponent) = text.split_once(['e', 'E']).unwrap_or((&text, "0"));
        let is_huge = exponent.trim_start_matches(['+', '-']).trim_start_matches('0').len() > 15;
        let exponent = match (is_huge, exponent.starts_with('-')) {
            (true, true) => i64::MIN / 4,
            (true, false) => i64::MAX / 4,
            (false, _) => exponent.parse().unwrap_or_default(),
        };
        let (is_negative, mantissa) = mantissa.strip_prefix('-').map_or((false, mantissa), |rest| (true, rest));
        let (whole, fraction) = mantissa.split_once('.').unwrap_or((mantissa, ""));
        let digits = format!("{whole}{fraction}");
        let significant = digits.trim_end_matches('0');
        let zeros = (digits.len() - significant.len()) as u64;
        let exponent = exponent.saturating_sub_unsigned(fraction.len() as u64).saturating_add_unsigned(zeros);
        let digits = significant.trim_start_matches('0').to_owned();
        // Nothing is nothing, whatever power of ten it is multiplied with.
        let exponent = if digits.is_empty() { 0 } else { exponent };
        Decimal { is_negative, digits, exponent }
    }
}

impl PartialEq for Number {
    fn eq(&self, other: &Self) -> bool {
        if let (Form::Whole(one), Form::Whole(two)) = (&self.0, &other.0) {
            return one == two;
        }
        let (one, two) = (self.decimal(), other.decimal());
        let is_same = one.digits == two.digits
            && one.exponent == two.exponent
            && (one.is_negative == two.is_negative || one.digits.is_empty());
        is_same || (one.exponent < 0 && two.exponent < 0 && self.as_f64() == other.as_f64())
    }
}

impl PartialOrd for Number {
    /// By value, digit by digit.
    fn partial_cmp(&self, other: &Self) -> Option<Ordering> {
        if self == other {
            return Some(Ordering::Equal);
        }
        let (one, two) = (self.decimal(), other.decimal());
        Some(match (one.sign(), two.sign()) {
            (sign, other_sign) if sign != other_sign => sign.cmp(&other_sign),
            (-1, _) => two.compare_magnitude(&one),
            _ => one.compare_magnitude(&two),
        })
    }
}

impl Decimal {
    fn sign(&self) -> i8 {
        match (self.digits.is_empty(), self.is_negative) {
            (true, _) => 0,
            (false, true) => -1,
            (false, false) => 1,
        }
    }

    fn compare_magnitude(&self, other: &Self) -> Ordering {
        let length = |decimal: &Self| decimal.exponent.saturating_add_unsigned(decimal.digits.len() as u64);
        // Of equal length before the point, digits compare like text: what ends first is smaller.
        length(self).cmp(&length(other)).then_with(|| self.digits.cmp(&other.digits))
    }
}

impl Serialize for Number {
    fn serialize<S: Serializer>(&self, serializer: S) -> Result<S::Ok, S::Error> {
        match &self.0 {
            Form::Whole(whole) => serializer.serialize_i64(*whole),
            Form::Written(text) => {
                RawValue::from_string(text.to_string()).map_err(serde::ser::Error::custom)?.serialize(serializer)
            }
        }
    }
}

impl fmt::Display for Number {
    fn fmt(&self, formatter: &mut fmt::Formatter<'_>) -> fmt::Result {
        formatter.write_str(&self.as_str())
    }
}

impl fmt::Debug for Number {
    fn fmt(&self, formatter: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(formatter, "Number({self})")
    }
}

macro_rules! from_whole {
    ($($whole:ty),*) => {$(
        impl From<$whole> for Number {
            fn from(value: $whole) -> Self {
                Self::of_text(&value.to_string())
            }
        }
    )*};
}
from_whole!(i8, i16, i32, u8, u16, u32, u64, u128, i128, usize, isize);

impl From<i64> for Number {
    fn from(value: i64) -> Self {
        Self(Form::Whole(value))
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn number(text: &str) -> Number {
        Number::of_text(text)
    }

    #[test]
    fn whole_values_have_a_whole_form() {
        for (text, whole) in [
            ("3.0", Some("3")),
            ("1e3", Some("1000")),
            ("1E+3", Some("1000")),
            ("-0.0", Some("0")),
            ("-0", Some("0")),
            ("0e999999999999999999999", Some("0")),
            ("1.5e1", Some("15")),
            ("1200e-2", Some("12")),
            ("-12.50e1", Some("-125")),
            ("18446744073709551616", Some("18446744073709551616")),
            ("1e-3", None),
            ("3.5", None),
            ("1e5000", None),
            ("1e99999999999999999999", None),
        ] {
            assert_eq!(number(text).to_whole().map(|number| number.to_string()).as_deref(), whole, "{text}");
        }
        assert!(number("1e5000").is_whole());
        assert_eq!(number("1e5000").whole_digits(), 5_001);
        assert_eq!(number("1e-5000").whole_digits(), 0);
        assert!(number("1e99999999999999999999").whole_digits() > 1 << 40);
    }

    #[test]
    fn equality_is_that_of_values() {
        for (one, two, equal) in [
            ("1", "1.0", true),
            ("1000", "1e3", true),
            ("0", "-0.0", true),
            ("18446744073709551616", "18446744073709551617", false),
            ("9007199254740993", "9007199254740992.0", false),
            ("0.1", "0.1000000000000000055511151231257827", true),
            ("0.1", "0.2", false),
            ("-1", "1", false),
            ("1e400", "1e401", false),
        ] {
            assert_eq!(number(one) == number(two), equal, "{one} {two}");
        }
    }

    #[test]
    fn order_is_that_of_values() {
        let ascending = [
            "-1e400",
            "-12",
            "-1.5",
            "-1",
            "0",
            "1e-400",
            "0.1",
            "1",
            "1.05",
            "1.5",
            "9",
            "12",
            "18446744073709551616",
            "18446744073709551617",
            "1e400",
        ];
        for pair in ascending.windows(2) {
            assert!(number(pair[0]) < number(pair[1]), "{pair:?}");
            assert!(number(pair[1]) > number(pair[0]), "{pair:?}");
        }
        assert_eq!(number("1.0").partial_cmp(&number("1")), Some(Ordering::Equal));
    }

    #[test]
    fn doubles_hold_what_they_hold() {
        for (text, fits) in [
            ("9007199254740992", true),
            ("9007199254740993", false),
            ("-9007199254740993", false),
            ("9007199254740993.0", true),
            ("9007199254740994", true),
            ("9223372036854775807", false),
            ("18446744073709551616", true),
            ("100000000000000000000000", false),
            ("1e23", true),
            ("-0", true),
            ("-0.0", true),
            ("0.1", true),
            ("1e400", false),
            ("1e-400", true),
        ] {
            assert_eq!(number(text).fits_double(), fits, "{text}");
        }
    }
}
