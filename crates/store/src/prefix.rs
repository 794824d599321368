//! Ranges of keys by prefix. `LIKE` would treat `%` and `_` as wildcards and ignore case.

/// The smallest text above every text that starts with `prefix`, in the order of UTF-8 bytes (which is the
/// order of code points); `None` where there is no upper bound.
pub(crate) fn upper_bound(prefix: &str) -> Option<String> {
    let mut characters: Vec<char> = prefix.chars().collect();
    while let Some(last) = characters.pop() {
        if let Some(next) = next_character(last) {
            characters.push(next);
            return Some(characters.into_iter().collect());
        }
    }
    None
}

fn next_character(character: char) -> Option<char> {
    match character {
        char::MAX => None,
        // Surrogates are no characters.
        '\u{D7FF}' => Some('\u{E000}'),
        _ => char::from_u32(character as u32 + 1),
    }
}

#[cfg(test)]
mod tests {
    use proptest::prelude::*;

    use super::*;

    #[test]
    fn bounds_skip_what_is_no_character() {
        for (prefix, bound) in
            [("", None), ("a", Some("b")), ("a%", Some("a&")), ("a_", Some("a`")), ("\u{D7FF}", Some("\u{E000}"))]
        {
            assert_eq!(upper_bound(prefix).as_deref(), bound, "{prefix:?}");
        }
        assert_eq!(upper_bound("a\u{10FFFF}").as_deref(), Some("b"));
        assert_eq!(upper_bound("\u{10FFFF}\u{10FFFF}"), None);
    }

    proptest! {
        #[test]
        fn a_key_is_in_range_exactly_if_it_has_the_prefix(prefix in ".{0,4}", rest in ".{0,4}", other in ".{0,6}") {
            let bound = upper_bound(&prefix);
            let in_range = |key: &str| key >= prefix.as_str() && bound.as_deref().is_none_or(|bound| key < bound);
            let extended = prefix.clone() + &rest;
            prop_assert!(in_range(&extended));
            prop_assert_eq!(in_range(&other), other.starts_with(&prefix));
        }
    }
}
