//! The words of all indexed tools: each is split into tokens and stemmed once, however often it occurs.

use std::collections::HashMap;

use crate::{
    table::{Table, TokenId},
    text::{term, word_tokens},
};

/// A word's number.
pub(crate) type WordId = u32;
/// A keyword's number: words with one stem share it.
pub(crate) type TermId = u32;

/// Words seen so far. They stay known when the last tool that uses them goes; their count says so.
#[derive(Default)]
pub(crate) struct Vocabulary {
    words: Vec<Word>,
    word_ids: HashMap<Box<str>, WordId>,
    term_ids: HashMap<Box<str>, TermId>,
    /// Words of at least [`SHORTEST_CORRECTED`] characters by their first letter, for the spelling correction.
    by_first_letter: HashMap<char, Vec<WordId>>,
}

/// Words shorter than this, in characters, are neither corrected nor offered as corrections.
pub(crate) const SHORTEST_CORRECTED: usize = 4;

/// What is known of one word.
pub(crate) struct Word {
    /// Its spelling.
    pub(crate) text: Box<str>,
    /// Its tokens in the table.
    pub(crate) tokens: Box<[TokenId]>,
    /// Its keyword, unless it is a stop word.
    pub(crate) term: Option<TermId>,
    /// How many tools use it.
    pub(crate) tools: usize,
    /// Its length in characters.
    pub(crate) characters: usize,
}

impl Vocabulary {
    /// The number of a word, known from now on.
    pub(crate) fn intern(&mut self, word: &str, table: &Table) -> WordId {
        if let Some(id) = self.word_ids.get(word) {
            return *id;
        }
        let id = WordId::try_from(self.words.len()).unwrap_or(WordId::MAX);
        let term = term(word).map(|term| self.intern_term(term));
        let characters = word.chars().count();
        let tokens = word_tokens(word, table).into();
        self.words.push(Word { text: word.into(), tokens, term, tools: 0, characters });
        self.word_ids.insert(word.into(), id);
        if let (Some(first), SHORTEST_CORRECTED..) = (word.chars().next(), characters) {
            self.by_first_letter.entry(first).or_default().push(id);
        }
        id
    }

    fn intern_term(&mut self, term: String) -> TermId {
        let next = TermId::try_from(self.term_ids.len()).unwrap_or(TermId::MAX);
        *self.term_ids.entry(term.into()).or_insert(next)
    }

    /// A word by its number.
    pub(crate) fn word(&self, id: WordId) -> Option<&Word> {
        self.words.get(id as usize)
    }

    /// A word by its number, to count the tools that use it.
    pub(crate) fn word_mut(&mut self, id: WordId) -> Option<&mut Word> {
        self.words.get_mut(id as usize)
    }

    /// Whether some tool uses the word.
    pub(crate) fn is_used(&self, word: &str) -> bool {
        self.word_ids.get(word).and_then(|id| self.word(*id)).is_some_and(|word| word.tools > 0)
    }

    /// The number of a keyword, if any tool ever had it.
    pub(crate) fn term(&self, term: &str) -> Option<TermId> {
        self.term_ids.get(term).copied()
    }

    /// The words in use that a misspelt word may stand for: those that start with the same letter.
    pub(crate) fn with_first_letter(&self, first: char) -> impl Iterator<Item = &Word> {
        let ids = self.by_first_letter.get(&first).map(Vec::as_slice).unwrap_or_default();
        ids.iter().filter_map(|id| self.word(*id)).filter(|word| word.tools > 0)
    }
}
