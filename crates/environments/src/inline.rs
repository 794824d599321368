//! Inline metadata of Python scripts (PEP 723): the block `# /// script`, read as the PEP's regular expression reads it.
//! Where that passes over a block that its author meant as one, it is refused with its line.

use crate::{EnvironmentError, requirement::OPERATORS};

/// What a script says of what it needs.
#[derive(Debug, Clone, PartialEq, Eq, Default)]
pub struct InlineMetadata {
    /// Requirements, unchecked.
    pub dependencies: Vec<String>,
    /// Versions of Python that will do, such as `>=3.11`.
    pub requires_python: Option<String>,
}

const START: &str = "# /// script";

/// Reads the block of a source; empty where there is none.
pub fn inline_metadata(source: &str) -> Result<InlineMetadata, EnvironmentError> {
    let lines: Vec<&str> = source.trim_start_matches('\u{FEFF}').lines().collect();
    let mut starts = lines.iter().enumerate().filter(|(_, line)| **line == START).map(|(index, _)| index);
    let Some(start) = starts.next() else { return Ok(InlineMetadata::default()) };
    if let Some(second) = starts.next() {
        return Err(fault(second, format!("a second block begins, after that on line {}; leave one of them out", start + 1)));
    }
    let after = lines.get(start + 1..).unwrap_or_default();
    let comments: Vec<&str> =
        after.iter().map_while(|line| if *line == "#" { Some("") } else { line.strip_prefix("# ") }).collect();
    let Some(end) = comments.iter().rposition(|line| *line == "///") else {
        let stop = start + 1 + comments.len();
        let reason = match lines.get(stop) {
            Some(line) if line.starts_with('#') => "a line of the block has no space after its `#`".to_owned(),
            _ => format!("the block that begins on line {} has no end; close it with a line `# ///`", start + 1),
        };
        return Err(fault(stop.min(lines.len().saturating_sub(1)), reason));
    };
    let text = comments.get(..end).unwrap_or_default().join("\n");
    read(&text)
        .map_err(|(offset, reason)| fault(start + 1 + text.get(..offset).unwrap_or_default().matches('\n').count(), reason))
}

/// The fields that matter of a block's TOML; a fault comes with its place.
fn read(text: &str) -> Result<InlineMetadata, (usize, String)> {
    let table: toml::Table =
        toml::from_str(text).map_err(|error| (error.span().map_or(0, |span| span.start), error.message().to_owned()))?;
    let place = |field: &str| text.find(field).unwrap_or_default();
    let texts = |list: &toml::Value| -> Option<Vec<String>> {
        list.as_array()?.iter().map(|item| item.as_str().map(str::to_owned)).collect()
    };
    let dependencies = match table.get("dependencies") {
        None => Vec::new(),
        Some(list) => texts(list).ok_or_else(|| (place("dependencies"), "`dependencies` must be a list of texts".to_owned()))?,
    };
    let requires_python = match table.get("requires-python") {
        None => None,
        Some(toml::Value::String(versions)) => Some(versions.clone()),
        Some(_) => return Err((place("requires-python"), "`requires-python` must be a text such as \">=3.11\"".to_owned())),
    };
    if let Some(versions) = &requires_python
        && satisfies("3.0.0", versions).is_none()
    {
        return Err((place("requires-python"), format!("`{versions}` are no versions of Python; write such as \">=3.11\"")));
    }
    Ok(InlineMetadata { dependencies, requires_python })
}

fn fault(index: usize, reason: String) -> EnvironmentError {
    EnvironmentError::InlineMetadata { line: index + 1, reason }
}

/// Whether a version meets a condition such as `>=3.9,<4`, by PEP 440; `None` where it is no such condition.
pub(crate) fn satisfies(version: &str, condition: &str) -> Option<bool> {
    let found = release(version)?;
    let clauses: Option<Vec<bool>> = condition
        .split(',')
        .map(str::trim)
        .filter(|clause| !clause.is_empty())
        .map(|clause| {
            let operator = OPERATORS.into_iter().find(|part| clause.starts_with(part))?;
            let wanted = clause.strip_prefix(operator)?.trim();
            let (wanted, is_prefix) = wanted.strip_suffix(".*").map_or((wanted, false), |prefix| (prefix, true));
            if is_prefix && !matches!(operator, "==" | "!=") {
                return None;
            }
            let parts = release(wanted)?;
            let order = padded(&found).cmp(&padded(&parts));
            let begins = |count: usize| padded(&found).iter().zip(&padded(&parts)).take(count).all(|(one, other)| one == other);
            Some(match operator {
                "==" if is_prefix => begins(parts.len()),
                "!=" if is_prefix => !begins(parts.len()),
                "==" | "===" => order.is_eq(),
                "!=" => order.is_ne(),
                ">=" => order.is_ge(),
                "<=" => order.is_le(),
                ">" => order.is_gt(),
                "<" => order.is_lt(),
                _ if parts.len() < 2 => return None,
                _ => order.is_ge() && begins(parts.len() - 1),
            })
        })
        .collect();
    clauses.map(|clauses| clauses.into_iter().all(|holds| holds))
}

fn release(version: &str) -> Option<Vec<u32>> {
    let parts: Option<Vec<u32>> = version.split('.').map(|part| part.parse().ok()).collect();
    parts.filter(|parts| parts.len() <= 4)
}

fn padded(parts: &[u32]) -> [u32; 4] {
    std::array::from_fn(|index| parts.get(index).copied().unwrap_or(0))
}

#[cfg(test)]
mod tests {
    use super::*;

    fn dependencies(source: &str) -> Vec<String> {
        inline_metadata(source).expect(source).dependencies
    }

    #[test]
    fn blocks_are_read_as_the_pep_reads_them() {
        let block = "# /// script\n# dependencies = [\"a==1.0\", \"b; os_name == 'x'\"]\n# ///\n";
        let both = vec!["a==1.0".to_owned(), "b; os_name == 'x'".to_owned()];
        for source in [
            block.to_owned(),
            format!("#!/usr/bin/env python3\n\nimport x\n{block}def run(): pass\n"),
            block.replace('\n', "\r\n"),
            format!("\u{FEFF}{block}"),
            block.trim_end().to_owned(),
            format!("'''\n{block}'''\n"),
            format!("{block}\n# /// other\n# x = 1\n# ///\n"),
            block.replace("\n# ///\n", "\n#\n# requires-python = \">=3.8\"\n# [tool.x]\n# y = 1\n# [[tool.z]]\n# ///\n"),
            block.replace("[\"", "[\n#   # a comment\n#   \"").replace("'x'\"]", "'x'\",\n# ]"),
        ] {
            assert_eq!(dependencies(&source), both, "{source}");
        }
        for source in [
            "",
            "# /// other\n# dependencies = [\"a\"]\n# ///\n",
            "#/// script\n# dependencies = [\"a\"]\n# ///\n",
            " # /// script\n # dependencies = [\"a\"]\n # ///\n",
            "# /// script\n# ///\n",
            "# /// script\n# dependencies = []\n# ///\n",
            "x = '# /// script'\n",
            "# /// script\n# [tool.x]\n# dependencies = [\"a\"]\n# ///\n",
        ] {
            assert_eq!(inline_metadata(source).expect(source), InlineMetadata::default(), "{source}");
        }
    }

    #[test]
    fn broken_blocks_are_refused_with_their_line() {
        let block = "# /// script\n# dependencies = [\"a\"]\n# ///\n";
        for (source, line, part) in [
            (format!("{block}\n{block}"), 5, "second block"),
            (format!("{block}{block}"), 4, "second block"),
            (block.replace(']', ""), 2, ""),
            (format!("import x\n{}", block.replace("\"a\"", "1")), 3, "list of texts"),
            (block.replace("[\"a\"]", "\"a\""), 2, "list of texts"),
            (block.replace("# ///\n", ""), 2, "no end"),
            (block.replace("# ///\n", "\n# ///\n"), 3, "no end"),
            (block.replace("# ///\n", "import x\n"), 3, "no end"),
            ("# /// script".to_owned(), 1, "no end"),
            (block.replace("# dep", "#dep"), 2, "no space"),
            (block.replace("# ///\n", "# requires-python = 3.9\n# ///\n"), 3, "must be a text"),
            (block.replace("# ///\n", "# requires-python = \"three\"\n# ///\n"), 3, "no versions"),
            (block.replace("# ///\n", "# dependencies = []\n# ///\n"), 3, "duplicate"),
        ] {
            let error = inline_metadata(&source).expect_err(&source).to_string();
            assert!(error.contains(&format!("line {line}:")) && error.contains(part), "{source}\n{error}");
        }
    }

    #[test]
    fn versions_meet_conditions() {
        for (condition, holds) in [
            ("", Some(true)),
            (">=3.9", Some(true)),
            (">=3.11.4", Some(true)),
            (">3.11", Some(true)),
            (">=3.99", Some(false)),
            ("<3.12,>=3.8", Some(true)),
            (">= 3.8, < 3.11", Some(false)),
            ("==3.11.*", Some(true)),
            ("==3.1.*", Some(false)),
            ("!=3.11.*", Some(false)),
            ("==3.11", Some(false)),
            ("~=3.10", Some(true)),
            ("~=3.10.1", Some(false)),
            ("~=3.11.2", Some(true)),
            ("<4", Some(true)),
            ("~=3", None),
            (">=3.*", None),
            ("3.11", None),
            (">=x", None),
        ] {
            assert_eq!(satisfies("3.11.4", condition), holds, "{condition}");
        }
    }
}
