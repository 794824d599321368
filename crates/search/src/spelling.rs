//! Correction of a question's words that neither a tool nor the table knows.

use crate::{
    table::Table,
    text::words,
    vocabulary::{SHORTEST_CORRECTED, Vocabulary},
};

/// Words up to this many characters may differ by one mistake, longer ones by two.
const ONE_MISTAKE_LENGTH: usize = 5;

/// The question's words, misspelt ones replaced by the closest word of a tool.
pub(crate) fn correct(question: &str, vocabulary: &Vocabulary, table: &Table) -> String {
    let mut corrected = words(question);
    for word in &mut corrected {
        if let Some(better) = correction(word, vocabulary, table) {
            *word = better;
        }
    }
    corrected.join(" ")
}

fn correction(word: &str, vocabulary: &Vocabulary, table: &Table) -> Option<String> {
    let plain = word.len() >= SHORTEST_CORRECTED && word.bytes().all(|byte| byte.is_ascii_alphabetic());
    if !plain || vocabulary.is_used(word) || table.find(word).is_some() {
        return None;
    }
    let most = if word.len() <= ONE_MISTAKE_LENGTH { 1 } else { 2 };
    let letters: Vec<char> = word.chars().collect();
    let candidates = vocabulary.with_first_letter(*letters.first()?);
    candidates
        .filter(|candidate| candidate.characters.abs_diff(letters.len()) <= most)
        .filter_map(|candidate| Some((distance(&letters, &candidate.text, most)?, candidate)))
        .min_by(|(left_distance, left), (right_distance, right)| {
            left_distance.cmp(right_distance).then(right.tools.cmp(&left.tools)).then_with(|| left.text.cmp(&right.text))
        })
        .map(|(_, candidate)| candidate.text.to_string())
}

/// How many letters were left out, added, replaced or swapped with their neighbour; `None` beyond `most`.
fn distance(left: &[char], right: &str, most: usize) -> Option<usize> {
    let right: Vec<char> = right.chars().collect();
    let width = right.len() + 1;
    let mut before: Vec<usize> = vec![0; width];
    let mut above: Vec<usize> = (0..width).collect();
    let mut current: Vec<usize> = vec![0; width];
    for (row, letter) in left.iter().enumerate() {
        let mut diagonal = row;
        let mut beside = row + 1;
        let mut smallest = beside;
        let swapped_with = row.checked_sub(1).and_then(|index| left.get(index));
        if let Some(first) = current.first_mut() {
            *first = beside;
        }
        for (column, other) in right.iter().enumerate() {
            let over = above.get(column + 1).copied().unwrap_or(usize::MAX - 1);
            let mut cost = (over + 1).min(beside + 1).min(diagonal + usize::from(letter != other));
            let previous = column.checked_sub(1).and_then(|index| right.get(index).zip(before.get(index)));
            if let Some((previous, swap_cost)) =
                previous.filter(|(previous, _)| *previous == letter && swapped_with == Some(other))
            {
                debug_assert_eq!(previous, letter);
                cost = cost.min(swap_cost + 1);
            }
            if let Some(cell) = current.get_mut(column + 1) {
                *cell = cost;
            }
            smallest = smallest.min(cost);
            diagonal = over;
            beside = cost;
        }
        if smallest > most {
            return None;
        }
        std::mem::swap(&mut before, &mut above);
        std::mem::swap(&mut above, &mut current);
    }
    above.last().copied().filter(|distance| *distance <= most)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn distances_count_swaps_as_one() {
        for (left, right, expected) in [
            ("flie", "file", Some(1)),
            ("file", "file", Some(0)),
            ("wether", "weather", Some(1)),
            ("wehater", "weather", Some(2)),
            ("file", "filter", Some(2)),
            ("currency", "calendar", None),
            ("ab", "abcd", Some(2)),
            ("abcd", "ab", Some(2)),
        ] {
            let letters: Vec<char> = left.chars().collect();
            assert_eq!(distance(&letters, right, 2), expected, "{left} {right}");
        }
    }

    #[test]
    fn only_unknown_plain_words_are_corrected() {
        let table = Table::embedded();
        let mut vocabulary = Vocabulary::default();
        for (word, tools) in [("weather", 1), ("forecast", 1), ("translate", 3), ("translator", 1), ("gone", 0)] {
            let id = vocabulary.intern(word, table);
            vocabulary.word_mut(id).expect("just added").tools = tools;
        }
        for (question, expected) in [
            ("wheather forcast", "weather forecast"),
            ("Tranlsate this", "translate this"),
            ("wtr", "wtr"),
            ("weather2x", "weather2x"),
            ("gonne", "gonne"),
            ("calendar", "calendar"),
        ] {
            assert_eq!(correct(question, &vocabulary, table), expected, "{question}");
        }
    }
}
