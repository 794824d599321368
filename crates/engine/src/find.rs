//! Finds the tool that a call names, or the tools that it may have meant.

use std::sync::Arc;

use skillz_tool::{BUILTIN_NAMES, ErrorKind, ToolError, ToolKind, ToolName, Version};

use crate::{callable::Callable, engine::Engine, view::View};

/// Most names that a failed look-up suggests.
const MOST_SUGGESTIONS: usize = 3;
/// Share of a name that may differ for it still to count as close.
const FARTHEST: f64 = 0.5;
/// What counts for a name that holds the other: closer than one with a third of its letters changed.
const CONTAINED: f64 = 0.3;

/// Why there is nothing to call.
#[derive(Debug, Clone, PartialEq)]
pub(crate) enum FindError {
    /// No tool of that name; the text names the closest.
    Unknown(String),
    /// A tool that cannot be called as asked.
    Unusable(ToolError),
}

impl Engine {
    /// The tool of that name, in its current version or in the one asked for.
    pub(crate) async fn find(&self, name: &str, version: Option<&str>) -> Result<Arc<Callable>, FindError> {
        let view = self.view();
        let Some(current) = view.callables.get(name) else {
            return Err(FindError::Unknown(self.unknown_text(name, &view)));
        };
        if current.tool.manifest.disabled {
            let message = format!("The tool `{name}` is disabled: its manifest says `disabled: true`");
            let hint = "Take `disabled` out of its manifest, or use another tool; `list_tools` with a `query` finds one";
            return Err(FindError::Unusable(ToolError::new(ErrorKind::Unavailable, message).with_hint(hint)));
        }
        match version {
            None => Ok(Arc::clone(current)),
            Some(version) => self.find_version(current, version).await.map_err(FindError::Unusable),
        }
    }

    async fn find_version(&self, current: &Arc<Callable>, version: &str) -> Result<Arc<Callable>, ToolError> {
        let version: Version =
            version.parse().map_err(|error: skillz_tool::ParseVersionError| ToolError::invalid(error.to_string()))?;
        if current.tool.version == version {
            return Ok(Arc::clone(current));
        }
        let key = (current.tool.name.clone(), version);
        if let Some(known) = self.older_versions().get(&key) {
            return Ok(Arc::clone(known));
        }
        if current.tool.kind() == ToolKind::Mcp {
            let message = format!("`{}` is a tool of an imported server, which keeps no versions here", current.name);
            return Err(ToolError::invalid(message).with_hint("Leave `version` out"));
        }
        let tool = self.registry().tool_version(&key.0, version).await?;
        let callable = Arc::new(self.make_callable(tool));
        self.older_versions().insert(key, Arc::clone(&callable));
        Ok(callable)
    }

    /// What to say about a name that belongs to no tool.
    pub(crate) fn unknown_tool(&self, name: &str) -> ToolError {
        ToolError::new(ErrorKind::NotFound, self.unknown_text(name, &self.view()))
    }

    /// The closest names, and why it may be missing.
    fn unknown_text(&self, name: &str, view: &View) -> String {
        let text = unknown(name, view);
        match self.upstreams().and_then(|upstreams| upstreams.explain(name)) {
            Some(reason) => format!("{text}. {reason}"),
            None => text,
        }
    }
}

impl From<FindError> for ToolError {
    fn from(error: FindError) -> Self {
        match error {
            FindError::Unknown(message) => Self::new(ErrorKind::NotFound, message),
            FindError::Unusable(error) => error,
        }
    }
}

fn unknown(name: &str, view: &View) -> String {
    let shown: String = name.chars().take(80).collect();
    if let Some(broken) = view.catalog.broken().iter().find(|broken| broken.name == name) {
        return format!("The tool `{shown}` cannot be loaded: {broken}");
    }
    if BUILTIN_NAMES.contains(&name) {
        return format!("`{shown}` is one of the server's own tools, which is called directly and not as a tool of yours");
    }
    let names = view.callables.values().filter(|callable| !callable.tool.manifest.disabled).map(|callable| &callable.tool.name);
    let close = closest(name, names.map(ToolName::as_str));
    let advice = match close.as_slice() {
        [] if view.callables.is_empty() => "There are no tools yet: `build_tool` and `register_script` make them".to_owned(),
        [] => "`list_tools` with a `query` finds tools by what they do".to_owned(),
        close => {
            let close: Vec<String> = close.iter().map(|name| format!("`{name}`")).collect();
            format!("Close to it: {}. `list_tools` with a `query` finds tools by what they do", close.join(", "))
        }
    };
    format!("There is no tool `{shown}`. {advice}")
}

/// The names closest to `name`, the closest first.
pub(crate) fn closest<'a>(name: &str, names: impl Iterator<Item = &'a str>) -> Vec<&'a str> {
    let name = name.to_lowercase();
    let mut close: Vec<(f64, &str)> = names
        .map(|candidate| (distance(&name, &candidate.to_lowercase()), candidate))
        .filter(|(distance, _)| *distance <= FARTHEST)
        .collect();
    close.sort_by(|(left, left_name), (right, right_name)| left.total_cmp(right).then_with(|| left_name.cmp(right_name)));
    close.into_iter().take(MOST_SUGGESTIONS).map(|(_, name)| name).collect()
}

/// How far apart two names are: 0 for equal ones, 1 for those that share nothing.
fn distance(left: &str, right: &str) -> f64 {
    let longest = left.chars().count().max(right.chars().count()).max(1);
    let edits = edit_distance(left, right) as f64 / longest as f64;
    let contained = left.len().min(right.len()) >= 3 && (left.contains(right) || right.contains(left));
    if contained || same_words(left, right) { edits.min(CONTAINED) } else { edits }
}

/// Whether two names are made of the same words, whatever their order (`count_words`, `word_count`).
fn same_words(left: &str, right: &str) -> bool {
    let words = |name: &str| {
        let mut words: Vec<String> =
            name.split(['_', '-', '.', ' ', '/']).map(|word| word.trim_end_matches('s').to_owned()).collect();
        words.sort();
        words
    };
    words(left) == words(right)
}

/// Levenshtein distance, in characters.
fn edit_distance(left: &str, right: &str) -> usize {
    let right: Vec<char> = right.chars().collect();
    let mut row: Vec<usize> = (0..=right.len()).collect();
    for (index, character) in left.chars().enumerate() {
        let mut diagonal = std::mem::replace(row.first_mut().unwrap_or(&mut 0), index + 1);
        let mut before = index + 1;
        for (cell, other) in row.iter_mut().skip(1).zip(&right) {
            let replaced = diagonal + usize::from(character != *other);
            diagonal = *cell;
            *cell = replaced.min(before + 1).min(diagonal + 1);
            before = *cell;
        }
    }
    row.last().copied().unwrap_or(0)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn edit_distances() {
        for (left, right, edits) in
            [("", "", 0), ("", "abc", 3), ("kitten", "sitting", 3), ("word_count", "wrod_count", 2), ("ü", "u", 1)]
        {
            assert_eq!(edit_distance(left, right), edits, "{left} {right}");
            assert_eq!(edit_distance(right, left), edits, "{right} {left}");
        }
    }

    #[test]
    fn close_names_come_first_and_far_ones_not_at_all() {
        let names = ["word_count", "count_lines", "currency_convert", "resize_image", "count_words_in_file"];
        let close = |name| closest(name, names.into_iter());
        assert_eq!(close("wrod_count"), ["word_count"]);
        assert_eq!(close("WordCount"), ["word_count"]);
        assert_eq!(close("count_words").first(), Some(&"count_words_in_file"));
        assert!(close("count_words").contains(&"word_count"));
        assert_eq!(close("image"), ["resize_image"]);
        assert!(close("xyz").is_empty());
        assert!(close("").is_empty());
    }
}
