//! What a number is, told from its digits: a whole number in one of the forms that JSON has for it (`3`, `3.0`, `1e3`),
//! or something else.

/// The most digits of a whole number.
const MAX_DIGITS: usize = 4_300;

/// The digits of a whole number, without a sign for zero, whichever way it is written. `None` is a fraction, or a number
/// too long to be written out.
pub(crate) fn whole(literal: &str) -> Option<String> {
    let (sign, rest) = literal.strip_prefix('-').map_or(("", literal), |rest| ("-", rest));
    let (mantissa, exponent) = rest.split_once(['e', 'E']).unwrap_or((rest, "0"));
    let (integer, fraction) = mantissa.split_once('.').unwrap_or((mantissa, ""));
    let fraction = fraction.trim_end_matches('0');
    let mut digits = [integer, fraction].concat().trim_start_matches('0').to_owned();
    if digits.is_empty() {
        return Some("0".to_owned());
    }
    let fraction = i64::try_from(fraction.len()).ok()?;
    let shift = exponent.parse::<i64>().ok()?.checked_sub(fraction)?;
    match usize::try_from(shift) {
        Ok(zeros) if zeros <= MAX_DIGITS => digits.push_str(&"0".repeat(zeros)),
        Ok(_) => return None,
        Err(_) => {
            let cut = usize::try_from(shift.unsigned_abs()).ok()?;
            let kept = digits.len().checked_sub(cut).filter(|kept| *kept > 0)?;
            if digits.split_off(kept).bytes().any(|digit| digit != b'0') {
                return None;
            }
        }
    }
    (digits.len() <= MAX_DIGITS).then(|| format!("{sign}{digits}"))
}

/// Whether a double holds a number so that it is written again with the same digits. Fractions are doubles by nature.
pub(crate) fn is_exact(literal: &str, double: f64) -> bool {
    // Fifteen digits a double always holds.
    if literal.bytes().filter(u8::is_ascii_digit).count() <= 15 {
        return double.is_finite();
    }
    match whole(literal) {
        Some(digits) => double.is_finite() && whole(&format!("{double:e}")).as_deref() == Some(&*digits),
        None => double.is_finite(),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn whole_numbers_have_many_forms() {
        for (literal, expected) in [
            ("0", "0"),
            ("-0", "0"),
            ("-0.0", "0"),
            ("0e999999999999999999999", "0"),
            ("3.0", "3"),
            ("-3.00", "-3"),
            ("1e3", "1000"),
            ("1E+3", "1000"),
            ("1.5e1", "15"),
            ("1500e-2", "15"),
            ("0.001e3", "1"),
            ("12.50e1", "125"),
            ("18446744073709551616", "18446744073709551616"),
            ("1e30", "1000000000000000000000000000000"),
        ] {
            assert_eq!(whole(literal).as_deref(), Some(expected), "{literal}");
        }
        for literal in ["3.5", "1e-3", "15e-2", "0.1", "1e999999999999999999999", "1e-999999999999999999999", "1e4300"] {
            assert_eq!(whole(literal), None, "{literal}");
        }
        assert_eq!(whole("1e4299").map(|digits| digits.len()), Some(4_300));
    }

    #[test]
    fn doubles_hold_what_they_write_again() {
        for literal in [
            "1.0",
            "0.1",
            "1e30",
            "-0.0",
            "1e308",
            "9007199254740992.0",
            "1.7976931348623157e308",
            "5e-324",
            "0.30000000000000004444",
        ] {
            assert!(is_exact(literal, literal.parse().unwrap()), "{literal}");
        }
        for literal in ["18446744073709551616", "9007199254740993.0", "123456789012345678901234567890", "1e309", "1e99999"] {
            assert!(!is_exact(literal, literal.parse().unwrap()), "{literal}");
        }
    }
}
