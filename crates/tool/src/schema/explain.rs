//! What is wrong with a value, in words that name what would be right.

use jsonschema::{
    JsonType, ValidationError,
    error::{TypeKind, ValidationErrorKind},
};
use serde_json::Value as Foreign;
use skillz_json::{Value, wire};

use super::Violation;

/// Longest text of one violation, in bytes: the checker quotes the offending value, which may be huge.
const VIOLATION_LENGTH: usize = 300;
/// Longest list of allowed values, in bytes; without it whoever chose wrongly cannot choose again.
const CHOICE_LENGTH: usize = 2_000;

/// The faults behind one error of the checker: that of the only branch that was meant where there are several.
pub(super) fn violations(error: &ValidationError<'_>, root: &Value) -> Vec<Violation> {
    if let Some(meant) = branch_meant(error) {
        return meant.iter().flat_map(|error| violations(error, root)).collect();
    }
    let path = error.instance_path().to_string();
    // The checker's own copy of the value may be rounded.
    let shown =
        root.pointer(&path).map_or_else(|| "The value".to_owned(), |value| shorten(value.to_string(), VIOLATION_LENGTH / 2));
    let message = match allowed(error) {
        Some(choice) => format!("{shown} is not one of {}", shorten(list(&choice), CHOICE_LENGTH)),
        None => match error.kind() {
            ValidationErrorKind::AnyOf { context } | ValidationErrorKind::OneOfNotValid { context } => {
                let reasons: Vec<String> =
                    context.iter().filter_map(|branch| branch.first()).map(|error| expected(error, &shown)).collect();
                format!("{shown} fits none of the alternatives: {}", shorten(reasons.join("; or "), VIOLATION_LENGTH * 2))
            }
            _ => expected(error, &shown),
        },
    };
    vec![Violation { path, message }]
}

fn expected(error: &ValidationError<'_>, shown: &str) -> String {
    shorten(error.masked_with(shown).to_string(), VIOLATION_LENGTH)
}

/// The errors of the only alternative that takes values of this type at all, if there is one such.
fn branch_meant<'a>(error: &'a ValidationError<'_>) -> Option<&'a [ValidationError<'static>]> {
    let (ValidationErrorKind::AnyOf { context } | ValidationErrorKind::OneOfNotValid { context }) = error.kind() else {
        return None;
    };
    if allowed(error).is_some() {
        return None;
    }
    let place = error.instance_path().to_string();
    let is_of_other_type = |branch: &&Vec<ValidationError<'static>>| {
        branch
            .iter()
            .any(|error| matches!(error.kind(), ValidationErrorKind::Type { .. }) && error.instance_path().to_string() == place)
    };
    let mut meant = context.iter().filter(|branch| !is_of_other_type(branch));
    match (meant.next(), meant.next()) {
        (Some(branch), None) => Some(branch),
        _ => None,
    }
}

/// All values that are allowed, where they can be listed.
fn allowed(error: &ValidationError<'_>) -> Option<Vec<Foreign>> {
    match error.kind() {
        ValidationErrorKind::Enum { options } => options.as_array().cloned(),
        ValidationErrorKind::Constant { expected_value } => Some(vec![(**expected_value).clone()]),
        ValidationErrorKind::Type { kind: TypeKind::Single(JsonType::Null) } => Some(vec![Foreign::Null]),
        ValidationErrorKind::AnyOf { context } | ValidationErrorKind::OneOfNotValid { context } => {
            let place = error.instance_path().to_string();
            let mut all = Vec::new();
            let mut lists_values = false;
            for branch in context {
                let here = branch.iter().filter(|error| error.instance_path().to_string() == place);
                let choices: Vec<Vec<Foreign>> = here.filter_map(allowed).collect();
                let choice = choices.into_iter().next()?;
                lists_values |= choice != [Foreign::Null];
                all.extend(choice);
            }
            lists_values.then_some(all)
        }
        _ => None,
    }
}

fn list(choice: &[Foreign]) -> String {
    let texts: Vec<String> = choice.iter().map(|value| wire::leave(value.clone()).to_string()).collect();
    texts.join(", ")
}

pub(super) fn shorten(mut text: String, most: usize) -> String {
    if text.len() > most {
        text.truncate(text.floor_char_boundary(most));
        text.push_str(" ...");
    }
    text
}
