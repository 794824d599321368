//! Reads `#!` lines: which command a script asks to be run by.

/// The command of a `#!` line, as words; the first is the program's name or path. `env` and its options are left
/// out, since programs are looked for here anyway. `None` where there is no such line.
pub(crate) fn command(source: &str) -> Option<Vec<String>> {
    let line = source.strip_prefix('\u{feff}').unwrap_or(source).strip_prefix("#!")?;
    let line = line.split(['\n', '\r']).next().unwrap_or_default();
    let mut words: Vec<String> = split_words(line);
    let through_env = words.first().is_some_and(|program| program == "env" || program.ends_with("/env"));
    if through_env {
        words.remove(0);
        while let Some(word) = words.first() {
            let is_option = word.starts_with('-');
            let is_assignment = word.split_once('=').is_some_and(|(name, _)| !name.contains('/'));
            if !is_option && !is_assignment {
                break;
            }
            let word = words.remove(0);
            // `-Spython3 -u`: the rest of the option is the first word of the command.
            if let Some(rest) = word.strip_prefix("-S").filter(|rest| !rest.is_empty()) {
                words.insert(0, rest.to_owned());
                break;
            }
            if let Some(rest) = word.strip_prefix("--split-string=") {
                words.insert(0, rest.to_owned());
                break;
            }
            if word == "-u" && !words.is_empty() {
                words.remove(0);
            }
        }
    }
    (!words.is_empty()).then_some(words)
}

/// Splits a command into words at blanks, outside single and double quotes.
pub(crate) fn split_words(text: &str) -> Vec<String> {
    let mut words = Vec::new();
    let mut word: Option<String> = None;
    let mut quote = None;
    for character in text.chars() {
        match quote {
            Some(open) if character == open => quote = None,
            None if character == '"' || character == '\'' => {
                quote = Some(character);
                word.get_or_insert_default();
            }
            None if character.is_whitespace() => words.extend(word.take()),
            _ => word.get_or_insert_default().push(character),
        }
    }
    words.extend(word);
    words
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn commands_come_out_of_every_usual_form() {
        for (source, words) in [
            ("#!/usr/bin/python3\nprint()", vec!["/usr/bin/python3"]),
            ("#! /bin/bash -e\r\n", vec!["/bin/bash", "-e"]),
            ("#!/usr/bin/env python3\n", vec!["python3"]),
            ("#!/usr/bin/env -S python3 -u\n", vec!["python3", "-u"]),
            ("#!/usr/bin/env -Spython3 -u", vec!["python3", "-u"]),
            ("#!/usr/bin/env -S deno run --allow-read='a b'\n", vec!["deno", "run", "--allow-read=a b"]),
            ("#!/usr/bin/env -i LANG=C ruby\n", vec!["ruby"]),
            ("#!/usr/bin/env -u HOME node", vec!["node"]),
            ("\u{feff}#!/usr/bin/env perl", vec!["perl"]),
        ] {
            assert_eq!(command(source).expect(source), words, "{source}");
        }
        for source in ["print()", "", "#!", "#!   \nx", "# !/bin/sh", "#!/usr/bin/env\n", "\n#!/bin/sh"] {
            assert_eq!(command(source), None, "{source}");
        }
    }
}
