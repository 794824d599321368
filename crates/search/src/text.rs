//! From text to words, from words to the table's tokens and to the terms of the keyword part.

use std::{collections::HashMap, sync::LazyLock};

use crate::{
    table::{Table, TokenId, Vector},
    vector::ZERO,
};

/// Longer words are cut before they are looked up, in characters.
const LONGEST_WORD: usize = 40;
/// Words that carry no meaning for keywords.
const STOP_WORDS: &str = "a an the is are was were be been i me my we our you your it its this that these those to of in on at for from by \
    with and or but as so do does did how what which who when where why can could would should will want need have has had there here not no \
    if then than them they he she his her us am please let s t m ll d ve re";

static FOLDED: LazyLock<HashMap<char, &str>> = LazyLock::new(|| {
    let lines = include_str!("../data/fold.txt").lines();
    lines.filter_map(|line| line.split_once('\t')).filter_map(|(from, to)| Some((from.chars().next()?, to))).collect()
});

/// What the word walk is inside of.
#[derive(Clone, Copy, PartialEq, Eq)]
enum Run {
    Nothing,
    Letters,
    Cjk,
}

/// Splits text into lower-case words without accents. `camelCase` is two words, a run of CJK characters one.
pub(crate) fn words(text: &str) -> Vec<String> {
    let mut words = Vec::new();
    let mut word = String::new();
    let mut run = Run::Nothing;
    let mut after_lower_case = false;
    for character in text.chars() {
        if matches!(character, '\u{300}'..='\u{36F}') {
            continue;
        }
        let here = match character {
            _ if is_cjk(character) => Run::Cjk,
            _ if character.is_alphanumeric() => Run::Letters,
            _ => Run::Nothing,
        };
        let camel_case = here == Run::Letters && after_lower_case && character.is_uppercase();
        if (here != run || camel_case) && !word.is_empty() {
            words.push(std::mem::take(&mut word));
        }
        match here {
            Run::Cjk => word.push(character),
            Run::Letters => push_folded(&mut word, character),
            Run::Nothing => {}
        }
        after_lower_case = character.is_lowercase();
        run = here;
    }
    if !word.is_empty() {
        words.push(word);
    }
    words
}

fn push_folded(word: &mut String, character: char) {
    if character.is_ascii() {
        word.push(character.to_ascii_lowercase());
        return;
    }
    match FOLDED.get(&character) {
        Some(folded) => word.push_str(folded),
        None => word.extend(character.to_lowercase()),
    }
}

fn is_cjk(character: char) -> bool {
    matches!(character, '\u{3040}'..='\u{30FF}' | '\u{3400}'..='\u{4DBF}' | '\u{4E00}'..='\u{9FFF}' | '\u{AC00}'..='\u{D7AF}' | '\u{F900}'..='\u{FAFF}')
}

/// The tokens of one word: the longest known piece first; characters that no piece covers are left out.
pub(crate) fn word_tokens(word: &str, table: &Table) -> Vec<TokenId> {
    let bounds: Vec<usize> = word.char_indices().map(|(index, _)| index).chain([word.len()]).take(LONGEST_WORD + 1).collect();
    let mut tokens = Vec::new();
    let mut key = String::with_capacity(word.len() + 2);
    let mut start = 0;
    while start + 1 < bounds.len() {
        let piece = (start + 1..bounds.len()).rev().find_map(|end| {
            let text = word.get(*bounds.get(start)?..*bounds.get(end)?)?;
            key.clear();
            if start > 0 && !text.starts_with(is_cjk) {
                key.push_str("##");
            }
            key.push_str(text);
            Some((table.find(&key)?, end))
        });
        start = match piece {
            Some((token, end)) => {
                tokens.push(token);
                end
            }
            None => start + 1,
        };
    }
    tokens
}

/// The tokens of a text, with repeats.
pub(crate) fn tokens(text: &str, table: &Table) -> Vec<TokenId> {
    words(text).iter().flat_map(|word| word_tokens(word, table)).collect()
}

/// The sum of the tokens' vectors.
pub(crate) fn sum(tokens: &[TokenId], table: &Table) -> Vector {
    let mut sum = ZERO;
    for token in tokens {
        table.add_row(*token, 1.0, &mut sum);
    }
    sum
}

/// The keyword that a word counts as: its ending stripped; `None` for words without meaning.
pub(crate) fn term(word: &str) -> Option<String> {
    static STOPS: LazyLock<std::collections::HashSet<&str>> = LazyLock::new(|| STOP_WORDS.split_whitespace().collect());
    (!STOPS.contains(word)).then(|| stem(word))
}

/// Strips plural and verb endings, lightly.
fn stem(word: &str) -> String {
    let mut letters: Vec<char> = word.chars().collect();
    let before_last = |letters: &[char]| letters.iter().rev().nth(1).copied();
    if letters.len() > 4 && letters.ends_with(&['i', 'e', 's']) {
        letters.truncate(letters.len() - 3);
        letters.push('y');
    } else if letters.len() > 3 && letters.ends_with(&['s']) && !matches!(before_last(&letters), Some('s' | 'u' | 'i')) {
        letters.pop();
    }
    if letters.len() > 5 && letters.ends_with(&['i', 'n', 'g']) {
        letters.truncate(letters.len() - 3);
    } else if letters.len() > 4 && letters.ends_with(&['e', 'd']) {
        letters.truncate(letters.len() - 2);
    }
    if letters.len() > 4 && letters.ends_with(&['e']) {
        letters.pop();
    }
    if letters.len() > 3 && letters.last().copied() == before_last(&letters) && !matches!(letters.last(), Some('l' | 's' | 'z')) {
        letters.pop();
    }
    letters.into_iter().collect()
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::vector::{dot, unit};

    #[test]
    fn words_are_split_at_case_marks_and_scripts() {
        for (text, expected) in [
            ("getWeatherForecast", "get weather forecast"),
            ("HTTPServer", "httpserver"),
            ("send_email-to, x.y", "send email to x y"),
            ("sha256 of k8s.yaml", "sha256 of k8s yaml"),
            ("Löschen ÆON Straße", "loschen aeon strasse"),
            ("cafe\u{301}", "cafe"),
            ("把PDF转成文字", "把 pdf 转成文字"),
            ("it's", "it s"),
            ("  ?! ", ""),
        ] {
            assert_eq!(words(text).join(" "), expected, "{text}");
        }
    }

    #[test]
    fn stems_and_stop_words() {
        for (word, expected) in [
            ("queries", "query"),
            ("files", "file"),
            ("class", "class"),
            ("status", "status"),
            ("running", "run"),
            ("converted", "convert"),
            ("merge", "merg"),
            ("merges", "merg"),
            ("filled", "fill"),
            ("is", "is"),
            ("ties", "tie"),
        ] {
            assert_eq!(stem(word), expected, "{word}");
        }
        assert_eq!(term("the"), None);
        assert_eq!(term("notes").as_deref(), Some("note"));
    }

    #[test]
    fn long_and_unknown_words_do_no_harm() {
        let table = Table::embedded();
        assert!(word_tokens("\u{1F600}", table).is_empty());
        assert!(!word_tokens(&"a".repeat(10_000), table).is_empty());
        assert!(word_tokens(&"ü".repeat(100), table).is_empty());
    }

    /// Tokens and vectors that the makers of the table computed with their own program.
    #[test]
    fn the_tables_test_vectors_hold() {
        let table = Table::embedded();
        let cases: skillz_json::Value = serde_json::from_str(include_str!("../data/test_vectors.json")).expect("valid JSON");
        let vector = |text: &str| unit(&sum(&tokens(text, table), table));
        for case in cases["vectors"].as_array().expect("an array") {
            let text = case["text"].as_str().expect("a text");
            let spelled: Vec<&str> = tokens(text, table).into_iter().map(|token| table.spelling(token)).collect();
            assert_eq!(skillz_json::json!(spelled), case["tokens"], "{text}");
            assert_eq!(skillz_json::json!(words(text)), case["words"], "{text}");
            for (index, expected) in case["first8"].as_array().expect("an array").iter().enumerate() {
                let expected = expected.as_f64().expect("a number");
                assert!((f64::from(vector(text)[index]) - expected).abs() < 2e-5, "{text}: dimension {index}");
            }
        }
        for case in cases["cosines"].as_array().expect("an array") {
            let (left, right) = (case["a"].as_str().expect("a text"), case["b"].as_str().expect("a text"));
            let cosine = f64::from(dot(&vector(left), &vector(right)));
            assert!((cosine - case["cosine"].as_f64().expect("a number")).abs() < 2e-5, "{left} / {right}: {cosine}");
        }
    }
}
