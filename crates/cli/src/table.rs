//! Columns of text.

/// Lines up rows in columns; the last column is as wide as it likes.
pub(crate) fn columns<const N: usize>(rows: &[[String; N]]) -> String {
    let mut widths = [0; N];
    for row in rows {
        for (width, cell) in widths.iter_mut().zip(row) {
            *width = (*width).max(cell.chars().count());
        }
    }
    let mut text = String::new();
    for row in rows {
        let mut line = String::new();
        for (cell, width) in row.iter().zip(widths) {
            if !line.is_empty() {
                line.push_str("  ");
            }
            line.push_str(cell);
            line.extend(std::iter::repeat_n(' ', width - cell.chars().count()));
        }
        text.push_str(line.trim_end());
        text.push('\n');
    }
    text
}

/// The first line of a text, cut where it gets long.
pub(crate) fn first_line(text: &str, most: usize) -> String {
    let line = text.trim().lines().next().unwrap_or_default();
    if line.chars().count() <= most {
        return line.to_owned();
    }
    let cut: String = line.chars().take(most.saturating_sub(4)).collect();
    format!("{} ...", cut.trim_end())
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn columns_line_up_by_characters() {
        let rows = [["ä".to_owned(), "b".to_owned()], ["aaa".to_owned(), String::new()]];
        assert_eq!(columns(&rows), "ä    b\naaa\n");
    }

    #[test]
    fn long_lines_are_cut() {
        assert_eq!(first_line("one two three\nfour", 11), "one two ...");
        assert_eq!(first_line("short\nfour", 11), "short");
    }
}
