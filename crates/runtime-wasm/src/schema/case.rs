//! serde's `rename_all`.

/// A field's name (`snake_case` in the source) under a rule; an unknown rule changes nothing.
pub(crate) fn rename_field(name: &str, rule: &str) -> String {
    rename(&name.split('_').map(str::to_owned).collect::<Vec<_>>(), name, rule)
}

/// A variant's name (`PascalCase` in the source) under a rule.
pub(crate) fn rename_variant(name: &str, rule: &str) -> String {
    let mut words: Vec<String> = Vec::new();
    for character in name.chars() {
        match words.last_mut() {
            Some(word) if !character.is_uppercase() => word.push(character),
            _ => words.push(character.to_lowercase().collect()),
        }
    }
    // serde's two rules for one word only change its case.
    match rule {
        "lowercase" => name.to_lowercase(),
        "UPPERCASE" => name.to_uppercase(),
        _ => rename(&words, name, rule),
    }
}

fn rename(words: &[String], name: &str, rule: &str) -> String {
    match rule {
        "lowercase" => name.to_lowercase(),
        "UPPERCASE" => name.to_uppercase(),
        "snake_case" => words.join("_"),
        "SCREAMING_SNAKE_CASE" => words.join("_").to_uppercase(),
        "kebab-case" => words.join("-"),
        "SCREAMING-KEBAB-CASE" => words.join("-").to_uppercase(),
        "PascalCase" => words.iter().map(|word| capitalised(word)).collect(),
        "camelCase" => {
            let mut words = words.iter();
            let first = words.next().cloned().unwrap_or_default();
            words.fold(first, |name, word| name + &capitalised(word))
        }
        _ => name.to_owned(),
    }
}

fn capitalised(word: &str) -> String {
    let mut letters = word.chars();
    letters.next().map_or_else(String::new, |first| first.to_uppercase().chain(letters).collect())
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn names_change_as_serde_changes_them() {
        for (rule, field, variant) in [
            ("lowercase", "max_count", "verylong"),
            ("UPPERCASE", "MAX_COUNT", "VERYLONG"),
            ("PascalCase", "MaxCount", "VeryLong"),
            ("camelCase", "maxCount", "veryLong"),
            ("snake_case", "max_count", "very_long"),
            ("SCREAMING_SNAKE_CASE", "MAX_COUNT", "VERY_LONG"),
            ("kebab-case", "max-count", "very-long"),
            ("SCREAMING-KEBAB-CASE", "MAX-COUNT", "VERY-LONG"),
        ] {
            assert_eq!(rename_field("max_count", rule), field, "{rule}");
            assert_eq!(rename_variant("VeryLong", rule), variant, "{rule}");
        }
    }
}
