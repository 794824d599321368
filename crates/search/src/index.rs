//! The index: one entry for each tool, kept up to date tool by tool.

use std::collections::{HashMap, HashSet};

use skillz_json::Value;

use crate::{
    table::{Table, TokenId, Vector},
    text::words,
    vector::{ZERO, add_scaled, unit},
    vocabulary::{TermId, Vocabulary, WordId},
};

/// Share of the parameter names in a tool's vector; at full weight they drown the description.
const PARAMETERS_IN_VECTOR: f32 = 0.2;
/// What one occurrence counts as a keyword, by where it stands.
const KEYWORD_IN_NAME: f32 = 1.5;
const KEYWORD_IN_DESCRIPTION: f32 = 1.0;
const KEYWORD_IN_PARAMETERS: f32 = 0.5;

/// What the search knows of a tool.
#[derive(Debug, Clone, Copy)]
pub struct Document<'a> {
    /// The tool's name, unique in the index.
    pub name: &'a str,
    /// Changes whenever anything else here does; a hash or a version.
    pub revision: &'a str,
    /// What the tool does.
    pub description: &'a str,
    /// Words to find it by; they count like words of the description.
    pub tags: &'a [String],
    /// JSON Schema of the arguments; the names of its properties are searched.
    pub input_schema: Option<&'a Value>,
}

/// Finds tools by the meaning and the words of a question.
#[derive(Default)]
pub struct Index {
    pub(crate) vocabulary: Vocabulary,
    pub(crate) entries: Vec<Option<Entry>>,
    /// The tools' vectors, in the order of `entries`, next to each other in memory.
    pub(crate) vectors: Vec<Vector>,
    /// For each keyword the entries that hold it, with its weighted count.
    pub(crate) postings: HashMap<TermId, Vec<Posting>>,
    /// Sum of all entries' lengths, in weighted keywords.
    pub(crate) total_length: f64,
    places: HashMap<Box<str>, usize>,
    free: Vec<usize>,
    next_order: u64,
}

/// One tool.
pub(crate) struct Entry {
    pub(crate) name: Box<str>,
    revision: Box<str>,
    /// Place in the order of registration, which breaks ties.
    pub(crate) order: u64,
    /// Distinct tokens of name and description.
    pub(crate) tokens: Box<[TokenId]>,
    /// Weighted keywords in all.
    pub(crate) length: f32,
    words: Box<[WordId]>,
    terms: Box<[TermId]>,
}

/// A keyword's occurrences in one entry.
pub(crate) struct Posting {
    pub(crate) place: usize,
    pub(crate) count: f32,
}

impl Index {
    /// An empty index; costs nothing.
    pub fn new() -> Self {
        Self::default()
    }

    /// How many tools it holds.
    pub fn len(&self) -> usize {
        self.places.len()
    }

    /// Whether it holds no tool.
    pub fn is_empty(&self) -> bool {
        self.places.is_empty()
    }

    /// Makes the index hold exactly these tools. What is there with the same revision is left as it is, so
    /// that following one publish among thousands costs one entry.
    pub fn update<'a>(&mut self, documents: impl IntoIterator<Item = Document<'a>>) {
        let mut seen = HashSet::with_capacity(self.len());
        for document in documents {
            seen.insert(document.name);
            self.insert(document);
        }
        if seen.len() == self.len() {
            return;
        }
        let gone: Vec<Box<str>> = self.places.keys().filter(|name| !seen.contains(&***name)).cloned().collect();
        for name in gone {
            self.remove(&name);
        }
    }

    /// Adds a tool, or replaces it if its revision changed. A replaced tool keeps its place in the order.
    pub fn insert(&mut self, document: Document<'_>) {
        let known = self.places.get(document.name).and_then(|place| self.entries.get(*place)).and_then(Option::as_ref);
        let order = match known {
            Some(entry) if *entry.revision == *document.revision => return,
            Some(entry) => {
                let order = entry.order;
                self.remove(document.name);
                order
            }
            None => {
                self.next_order += 1;
                self.next_order
            }
        };
        let (entry, vector, counts) = self.read(document, order);
        let place = self.free.pop().unwrap_or(self.entries.len());
        for (term, count) in counts {
            self.postings.entry(term).or_default().push(Posting { place, count });
        }
        self.total_length += f64::from(entry.length);
        self.places.insert(entry.name.clone(), place);
        if let (Some(free_entry), Some(free_vector)) = (self.entries.get_mut(place), self.vectors.get_mut(place)) {
            *free_entry = Some(entry);
            *free_vector = vector;
        } else {
            self.entries.push(Some(entry));
            self.vectors.push(vector);
        }
    }

    /// Takes a tool out; unknown names are fine.
    pub fn remove(&mut self, name: &str) {
        let Some(place) = self.places.remove(name) else { return };
        let Some(entry) = self.entries.get_mut(place).and_then(Option::take) else { return };
        for word in &entry.words {
            if let Some(word) = self.vocabulary.word_mut(*word) {
                word.tools = word.tools.saturating_sub(1);
            }
        }
        for term in &entry.terms {
            let Some(postings) = self.postings.get_mut(term) else { continue };
            postings.retain(|posting| posting.place != place);
            if postings.is_empty() {
                self.postings.remove(term);
            }
        }
        self.total_length -= f64::from(entry.length);
        self.free.push(place);
    }

    /// Reads a document: its entry, its vector, and its weighted keywords.
    fn read(&mut self, document: Document<'_>, order: u64) -> (Entry, Vector, HashMap<TermId, f32>) {
        let table = Table::embedded();
        let parameters = parameter_names(document.input_schema).join(" ");
        let tags = document.tags.join(" ");
        let parts = [
            (document.name, KEYWORD_IN_NAME, 1.0),
            (document.description, KEYWORD_IN_DESCRIPTION, 1.0),
            (tags.as_str(), KEYWORD_IN_DESCRIPTION, 1.0),
            (parameters.as_str(), KEYWORD_IN_PARAMETERS, PARAMETERS_IN_VECTOR),
        ];
        let mut sum = ZERO;
        let mut counts: HashMap<TermId, f32> = HashMap::new();
        let (mut used, mut tokens) = (Vec::new(), Vec::new());
        for (part, (text, keyword_weight, vector_weight)) in parts.into_iter().enumerate() {
            let mut part_sum = ZERO;
            for word in words(text) {
                let id = self.vocabulary.intern(&word, table);
                used.push(id);
                let Some(word) = self.vocabulary.word(id) else { continue };
                for token in &word.tokens {
                    table.add_row(*token, 1.0, &mut part_sum);
                }
                if part < 3 {
                    tokens.extend_from_slice(&word.tokens);
                }
                if let Some(term) = word.term {
                    *counts.entry(term).or_default() += keyword_weight;
                }
            }
            add_scaled(&mut sum, &part_sum, vector_weight);
        }
        sort_distinct(&mut used);
        sort_distinct(&mut tokens);
        for word in &used {
            if let Some(word) = self.vocabulary.word_mut(*word) {
                word.tools += 1;
            }
        }
        let entry = Entry {
            name: document.name.into(),
            revision: document.revision.into(),
            order,
            tokens: tokens.into(),
            length: counts.values().sum(),
            words: used.into(),
            terms: counts.keys().copied().collect(),
        };
        (entry, unit(&sum), counts)
    }
}

fn sort_distinct<T: Ord>(values: &mut Vec<T>) {
    values.sort_unstable();
    values.dedup();
}

/// The names of the root's properties, those of its alternatives included.
fn parameter_names(schema: Option<&Value>) -> Vec<&str> {
    let Some(schema) = schema else { return Vec::new() };
    let branches = ["anyOf", "oneOf", "allOf"].into_iter().filter_map(|keyword| schema.get(keyword)?.as_array()).flatten();
    let mut names: Vec<&str> = Vec::new();
    for part in std::iter::once(schema).chain(branches) {
        let properties = part.get("properties").and_then(Value::as_object);
        for name in properties.into_iter().flat_map(|properties| properties.keys()) {
            if !names.contains(&name.as_str()) {
                names.push(name);
            }
        }
    }
    names
}
