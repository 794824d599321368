//! The ranking of tools for a question. `data/README.md` states the formula.

use std::collections::{HashMap, HashSet};

use crate::{
    index::{Entry, Index},
    spelling::correct,
    table::{Table, TokenId, Vector},
    text::{sum, term, tokens, words},
    vector::{ZERO, dot, length, unit},
};

/// Weight of the keywords beside the vectors.
const KEYWORDS: f32 = 0.1;
/// Weight of the word-by-word comparison of the best.
const WORD_BY_WORD: f32 = 0.4;
/// So many of the best by vectors and keywords are compared word by word.
const COMPARED: usize = 50;
/// BM25's saturation and its share of the length.
const SATURATION: f32 = 1.0;
const LENGTH_SHARE: f32 = 0.5;

/// A tool that was found.
#[derive(Debug, Clone, PartialEq)]
pub struct Hit {
    /// The tool's name.
    pub name: String,
    /// How well it fits: about 0 for a chance hit, above 1 for a very good one. The first fifty are compared more
    /// closely than the rest, so scores compare within those groups.
    pub score: f32,
}

/// A tool on its way to becoming a hit.
struct Candidate<'a> {
    place: usize,
    entry: &'a Entry,
    score: f32,
}

impl Index {
    /// The tools that fit a question best, best first, at most `limit`. A question without a word finds nothing.
    pub fn search(&self, question: &str, limit: usize) -> Vec<Hit> {
        let table = Table::embedded();
        let question = correct(question, &self.vocabulary, table);
        if question.is_empty() || self.is_empty() || limit == 0 {
            return Vec::new();
        }
        let tokens = tokens(&question, table);
        let mut candidates = self.base_scores(&question, &unit(&sum(&tokens, table)));
        let compared = COMPARED.min(candidates.len());
        if limit <= compared && candidates.len() > compared {
            candidates.select_nth_unstable_by(compared, better);
            candidates.truncate(compared);
        } else {
            candidates.sort_unstable_by(better);
        }
        if let Some(best) = candidates.get_mut(..compared) {
            compare_words(&tokens, best, table);
            best.sort_unstable_by(better);
        }
        candidates.truncate(limit);
        candidates.into_iter().map(|candidate| Hit { name: candidate.entry.name.to_string(), score: candidate.score }).collect()
    }

    /// The keyword part of the ranking alone, for comparison: tools without any of the question's words are left out.
    pub fn search_keywords(&self, question: &str, limit: usize) -> Vec<Hit> {
        let mut candidates: Vec<_> =
            self.base_scores(question, &ZERO).into_iter().filter(|candidate| candidate.score > 0.0).collect();
        candidates.sort_unstable_by(better);
        candidates.truncate(limit);
        candidates.into_iter().map(|candidate| Hit { name: candidate.entry.name.to_string(), score: candidate.score }).collect()
    }

    /// Every tool with its score by vector and keywords.
    fn base_scores(&self, question: &str, vector: &Vector) -> Vec<Candidate<'_>> {
        let keywords = self.keyword_scores(question);
        let tools = self.entries.iter().zip(&self.vectors).zip(&keywords).enumerate();
        tools
            .filter_map(|(place, ((entry, tool), keywords))| {
                let entry = entry.as_ref()?;
                Some(Candidate { place, entry, score: dot(tool, vector) + KEYWORDS * keywords })
            })
            .collect()
    }

    /// BM25 of each place, as a share of what the question could reach at most.
    fn keyword_scores(&self, question: &str) -> Vec<f32> {
        let mut scores = vec![0.0_f32; self.entries.len()];
        let tools = self.len() as f32;
        let average_length = (self.total_length / self.len().max(1) as f64) as f32;
        let mut seen = HashSet::new();
        let mut highest = 0.0;
        for term in words(question).iter().filter_map(|word| term(word)) {
            let id = self.vocabulary.term(&term);
            if !seen.insert(term) {
                continue;
            }
            let Some(postings) = id.and_then(|id| self.postings.get(&id)) else {
                highest += (1.0 + tools).ln();
                continue;
            };
            let holders = postings.len() as f32;
            let rarity = (1.0 + (tools - holders + 0.5) / (holders + 0.5)).ln();
            highest += rarity;
            for posting in postings {
                let length =
                    self.entries.get(posting.place).and_then(Option::as_ref).map_or(average_length, |entry| entry.length);
                let norm = SATURATION * (1.0 - LENGTH_SHARE + LENGTH_SHARE * length / average_length);
                if let Some(score) = scores.get_mut(posting.place) {
                    *score += rarity * posting.count * (SATURATION + 1.0) / (posting.count + norm);
                }
            }
        }
        if highest > 0.0 {
            let most = (SATURATION + 1.0) * highest;
            for score in &mut scores {
                *score /= most;
            }
        }
        scores
    }
}

/// Best first; equals in the order of registration.
fn better(left: &Candidate<'_>, right: &Candidate<'_>) -> std::cmp::Ordering {
    right.score.total_cmp(&left.score).then(left.entry.order.cmp(&right.entry.order)).then(left.place.cmp(&right.place))
}

/// Raises each candidate's score by how well its words answer those of the question, one by one.
fn compare_words(question: &[TokenId], candidates: &mut [Candidate<'_>], table: &Table) {
    let rows: Vec<(f32, Vector)> = question.iter().map(|token| table.row(*token)).map(|row| (length(&row), unit(&row))).collect();
    let rows: Vec<(f32, Vector)> = rows.into_iter().filter(|(weight, _)| *weight > 0.0).collect();
    let total: f32 = rows.iter().map(|(weight, _)| weight).sum();
    if total <= 0.0 {
        return;
    }
    // Neighbours in a ranking share many words: each is compared once.
    let mut places: HashMap<TokenId, usize> = HashMap::new();
    let mut closeness: Vec<f32> = Vec::new();
    for candidate in candidates {
        let mut best = vec![0.0_f32; rows.len()];
        for token in &candidate.entry.tokens {
            let start = *places.entry(*token).or_insert_with(|| {
                let word = unit(&table.row(*token));
                closeness.extend(rows.iter().map(|(_, row)| dot(row, &word)));
                closeness.len() - rows.len()
            });
            for (best, value) in best.iter_mut().zip(closeness.get(start..).unwrap_or_default()) {
                *best = best.max(*value);
            }
        }
        let sum: f32 = rows.iter().zip(&best).map(|((weight, _), best)| weight * best).sum();
        candidate.score += WORD_BY_WORD * sum / total;
    }
}
