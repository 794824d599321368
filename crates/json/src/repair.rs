//! What is done to a JSON text without building a value.

use std::borrow::Cow;

/// The text with each escaped half of a surrogate pair replaced by U+FFFD, since no string of ours could hold it.
pub fn repaired(text: &str) -> Cow<'_, str> {
    let mut repaired = String::new();
    let mut kept = 0;
    let mut offset = 0;
    while let Some(start) = next_backslash(text, offset) {
        let Some(code) = escaped(text, start) else {
            offset = start + 2;
            continue;
        };
        offset = start + 6;
        let is_pair =
            (0xd800..0xdc00).contains(&code) && escaped(text, offset).is_some_and(|low| (0xdc00..0xe000).contains(&low));
        if is_pair {
            offset += 6;
        } else if (0xd800..0xe000).contains(&code) {
            repaired.push_str(text.get(kept..start).unwrap_or_default());
            repaired.push_str("\\ufffd");
            kept = offset;
        }
    }
    if kept == 0 {
        return Cow::Borrowed(text);
    }
    repaired.push_str(text.get(kept..).unwrap_or_default());
    Cow::Owned(repaired)
}

fn next_backslash(text: &str, offset: usize) -> Option<usize> {
    text.as_bytes().get(offset..)?.iter().position(|byte| *byte == b'\\').map(|start| offset + start)
}

/// The code of the escape `\uXXXX` at an offset, if one stands there.
fn escaped(text: &str, offset: usize) -> Option<u32> {
    let digits = text.get(offset..offset + 6)?.strip_prefix("\\u")?;
    u32::from_str_radix(digits, 16).ok().filter(|_| !digits.starts_with('+'))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn half_characters_are_replaced_and_whole_ones_kept() {
        for (text, expected) in [
            (r#""\ud83d\ude00""#, r#""\ud83d\ude00""#),
            (r#""a\ud83d b""#, r#""a\ufffd b""#),
            (r#""\ude00\ud83d""#, r#""\ufffd\ufffd""#),
            (r#""\ud83d\ud83d\ude00""#, r#""\ufffd\ud83d\ude00""#),
            (r#""\\ud83d""#, r#""\\ud83d""#),
            (r#""\\\ud83d""#, r#""\\\ufffd""#),
            (r#""\ud83"#, r#""\ud83"#),
            (r#""\u00e9é""#, r#""\u00e9é""#),
            (r#""\é\ud83d""#, r#""\é\ufffd""#),
            ("\"\\", "\"\\"),
        ] {
            assert_eq!(repaired(text), expected);
        }
    }
}
