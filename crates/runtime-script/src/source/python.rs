//! Reads off a Python source how it wants to be called, without running it.
//!
//! A full parser is not needed for that: strings and comments are blanked, and what is left is looked at line by
//! line. Whether the source is valid is Python's business, at registration.

/// What decides over the protocol of a Python script.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default)]
pub(crate) struct Facts {
    /// `run` is defined at top level.
    pub(crate) defines_run: bool,
    /// It reads stdin itself.
    pub(crate) reads_stdin: bool,
    /// It has an `if __name__ == "__main__"` part.
    pub(crate) has_main: bool,
}

/// Looks at a source.
pub(crate) fn facts(source: &str) -> Facts {
    let code = blank_strings_and_comments(source);
    let mut facts = Facts::default();
    for line in code.lines() {
        let words: Vec<&str> = tokens(line);
        match words.as_slice() {
            ["def", "run", "(", ..] | ["async", "def", "run", "(", ..] if !starts_indented(line) => facts.defines_run = true,
            ["if", "__name__", ..] | ["if", "(", "__name__", ..] if !starts_indented(line) => facts.has_main = true,
            _ => {}
        }
        facts.reads_stdin |= line_reads_stdin(&words);
    }
    facts
}

fn starts_indented(line: &str) -> bool {
    line.starts_with([' ', '\t'])
}

fn line_reads_stdin(words: &[&str]) -> bool {
    let imports_it = matches!(words, ["from", "sys", "import", ..]) && words.contains(&"stdin");
    let mentions_it = words.windows(3).any(|three| matches!(three, ["sys", ".", "stdin"] | ["fileinput", ".", "input"]))
        || words.windows(3).any(|three| matches!(three, ["open" | "fdopen", "(", "0"]))
        || words.windows(5).any(|five| matches!(five, ["os", ".", "read", "(", "0"]));
    // `input(` as a call, not `x.input(` and not `def input(`.
    let asks = words.windows(2).enumerate().any(|(index, two)| {
        let before = index.checked_sub(1).and_then(|before| words.get(before));
        matches!(two, ["input", "("]) && !matches!(before, Some(&"." | &"def"))
    });
    imports_it || mentions_it || asks
}

/// Names, numbers and single signs of a line.
fn tokens(line: &str) -> Vec<&str> {
    let mut tokens = Vec::new();
    let mut rest = line.trim_start();
    while let Some(first) = rest.chars().next() {
        let is_word = |character: char| character.is_alphanumeric() || character == '_';
        let length =
            if is_word(first) { rest.find(|character| !is_word(character)).unwrap_or(rest.len()) } else { first.len_utf8() };
        let (token, after) = rest.split_at(length);
        tokens.push(token);
        rest = after.trim_start();
    }
    tokens
}

/// The source with the inside of strings, and comments, replaced by nothing; line breaks in strings go too, so that
/// each line starts with code.
fn blank_strings_and_comments(source: &str) -> String {
    let mut code = String::with_capacity(source.len());
    let mut rest = source.strip_prefix('\u{feff}').unwrap_or(source);
    while let Some(first) = rest.chars().next() {
        match first {
            '#' => rest = rest.find('\n').map_or("", |end| rest.get(end..).unwrap_or_default()),
            '"' | '\'' => {
                code.push(first);
                code.push(first);
                rest = after_string(rest, first);
            }
            '\\' if rest.starts_with("\\\n") => {
                code.push(' ');
                rest = rest.get(2..).unwrap_or_default();
            }
            _ => {
                code.push(first);
                rest = rest.get(first.len_utf8()..).unwrap_or_default();
            }
        }
    }
    code
}

/// What follows the string that `text` starts with. A string that is not closed ends with its line, or with the source.
fn after_string(text: &str, quote: char) -> &str {
    let triple: String = std::iter::repeat_n(quote, 3).collect();
    let is_triple = text.starts_with(&triple);
    let opening = if is_triple { 3 } else { 1 };
    let mut characters = text.char_indices().skip(opening);
    while let Some((index, character)) = characters.next() {
        if character == '\\' {
            // In a raw string too, a backslash keeps the quote behind it from ending the string.
            characters.next();
            continue;
        }
        let here = text.get(index..).unwrap_or_default();
        if is_triple && here.starts_with(&triple) {
            return here.get(3..).unwrap_or_default();
        }
        if !is_triple && character == quote {
            return here.get(1..).unwrap_or_default();
        }
        if !is_triple && character == '\n' {
            return here;
        }
    }
    ""
}

#[cfg(test)]
mod tests {
    use super::*;

    fn check(source: &str, defines_run: bool, reads_stdin: bool, has_main: bool) {
        assert_eq!(facts(source), Facts { defines_run, reads_stdin, has_main }, "{source}");
    }

    #[test]
    fn functions_are_told_from_programs() {
        check("def run(a): return a", true, false, false);
        check("import x\n@decorated\nasync def run(\n  a,\n): ...", true, false, false);
        check("\u{feff}def run ( a ): pass", true, false, false);
        check("class A:\n    def run(self): pass", false, false, false);
        check("def runner(): pass", false, false, false);
        check("'''\ndef run(): pass\n'''", false, false, false);
        check("x = '''it's\ndef run(): pass'''\ndef run(): pass # sys.stdin", true, false, false);
        check("def run(): pass\nif __name__ == '__main__':\n    run()", true, false, true);
        check("def run(): pass\nif (__name__ == \"__main__\"): run()", true, false, true);
        check("def run(): pass\n# if __name__ == '__main__':", true, false, false);
    }

    #[test]
    fn reading_stdin_is_seen_and_lookalikes_are_not() {
        check("import sys\nfor line in sys.stdin: pass", false, true, false);
        check("import sys, json\ndef run(): return json.load(sys . stdin)", true, true, false);
        check("from sys import argv, stdin", false, true, false);
        check("name = input('who? ')", false, true, false);
        check("import os\nos.read(0, 9)\ndef run(): pass", true, true, false);
        check("data = open(0).read()", false, true, false);
        check("def run(input: str): return input", true, false, false);
        check("def run(a): return subprocess.run(a, stdin=subprocess.DEVNULL)", true, false, false);
        check("def run(a): return a.input('x')", true, false, false);
        check("def run(): return 'sys.stdin' + \"input(\"", true, false, false);
        check("def input(x): return x\ndef run(): return 1", true, false, false);
        check(r#"def run(): return "\"sys.stdin\"" + 'a\\' + r'\'' "#, true, false, false);
    }
}
