//! Small changes of a source text that keep every line where it is.

/// Insertions and replacements, by byte positions of the original.
#[derive(Debug, Default)]
pub(crate) struct Edits(Vec<Edit>);

#[derive(Debug)]
struct Edit {
    start: usize,
    end: usize,
    text: String,
    /// Among edits at one place: closing ones of inner ranges come first.
    order: usize,
}

impl Edits {
    /// Inserts a text.
    pub(crate) fn insert(&mut self, at: usize, text: impl Into<String>) {
        self.replace(at, at, text);
    }

    /// Replaces a part.
    pub(crate) fn replace(&mut self, start: usize, end: usize, text: impl Into<String>) {
        let order = self.0.len();
        self.0.push(Edit { start, end, text: text.into(), order });
    }

    /// Replaces a part with a shorter one, and keeps its line breaks.
    pub(crate) fn replace_lines(&mut self, source: &str, start: usize, end: usize, text: &str) {
        let breaks = source.get(start..end).unwrap_or_default().matches('\n').count();
        self.replace(start, end, format!("{text}{}", "\n".repeat(breaks)));
    }

    /// The changed text. Edits at one place stand in the order in which they were made; of overlapping ones the
    /// first wins.
    pub(crate) fn apply(mut self, source: &str) -> String {
        self.0.sort_by_key(|edit| (edit.start, edit.order));
        let mut result = String::with_capacity(source.len() + 256);
        let mut position = 0;
        for edit in &self.0 {
            if edit.start < position {
                continue;
            }
            result.push_str(source.get(position..edit.start).unwrap_or_default());
            result.push_str(&edit.text);
            position = edit.end;
        }
        result.push_str(source.get(position..).unwrap_or_default());
        result
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn edits_apply_in_order_and_keep_lines() {
        let source = "return f(\n  1)\nx";
        let mut edits = Edits::default();
        edits.insert(14, ")");
        edits.replace(0, 6, "give(");
        edits.insert(15, "y");
        edits.replace_lines(source, 7, 14, "g");
        let text = edits.apply(source);
        assert_eq!(text, "give( g\n)\nyx");
        assert_eq!(text.lines().count(), source.lines().count());
        let mut edits = Edits::default();
        edits.replace(0, 6, "a");
        edits.replace(2, 4, "b");
        assert_eq!(edits.apply("0123456789"), "a6789");
    }
}
