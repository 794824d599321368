//! Stored examples, run through the one call path, and what each expects.

use std::sync::Arc;

use regex::Regex;
use skillz_json::{Map, Value};
use skillz_tool::{Example, ExampleFailure, McpContent, ToolError};

use crate::{ExampleCounts, call::Invocation, callable::Callable, engine::Engine, shape::Product, tree::CallTree};

/// Longest value shown of an example that did not hold, in bytes.
const SHOWN: usize = 500;

/// What came of an example's call.
enum Came {
    Value(Value),
    /// Content without a structured value, and its text.
    Content(Value, String),
    Failure(ToolError),
}

impl Engine {
    /// Runs a tool's examples, one after the other. They are not recorded in the history.
    pub(crate) async fn try_examples(&self, callable: &Arc<Callable>, tree: &Arc<CallTree>) -> ExampleCounts {
        let mut counts = ExampleCounts::default();
        for (index, example) in callable.tool.manifest.examples.iter().enumerate() {
            let came = self.try_example(callable, example, tree).await;
            match fault(example, &came) {
                None => counts.passed += 1,
                Some(expected) => {
                    counts.failed += 1;
                    counts.failures.push(ExampleFailure {
                        index,
                        description: example.description.clone(),
                        arguments: example.arguments.clone(),
                        expected: shorten(&expected),
                        actual: shorten(&came.in_words()),
                    });
                }
            }
        }
        counts
    }

    async fn try_example(&self, callable: &Arc<Callable>, example: &Example, tree: &Arc<CallTree>) -> Came {
        let invocation = Invocation {
            callable,
            arguments: Value::Object(example.arguments.clone()),
            tree,
            caller: None,
            call_id: self.next_call_id(),
            recorded: false,
            steps: None,
        };
        match self.execute(invocation).await.map(|finished| finished.product) {
            Ok(Product::Content(content)) if content.is_error => Came::Failure(ToolError::failed(content.text())),
            Ok(Product::Value(value) | Product::Content(McpContent { structured_content: Some(value), .. })) => {
                Came::Value(value)
            }
            Ok(Product::Content(content)) => {
                let text = content.text();
                Came::Content(skillz_json::json!({"content": content.content}), text)
            }
            Err(error) => Came::Failure(error),
        }
    }
}

impl Came {
    fn text(&self) -> String {
        match self {
            Self::Value(Value::String(text)) | Self::Content(_, text) => text.clone(),
            Self::Value(value) => value.to_string(),
            Self::Failure(error) => error.text(),
        }
    }

    fn in_words(&self) -> String {
        match self {
            Self::Failure(error) => format!("a failure: {}", error.text()),
            Self::Value(value) | Self::Content(value, _) => value.to_string(),
        }
    }
}

/// What is wrong with an example as such; `None` where it can be tried.
pub(crate) fn check(example: &Example) -> Option<String> {
    if example.result.is_none() && example.contains.is_none() && example.matches.is_none() && example.is_error.is_none() {
        return Some("expects nothing; give it one of `result`, `contains`, `matches` and `is_error`".to_owned());
    }
    let pattern = example.matches.as_ref()?;
    Regex::new(pattern).err().map(|error| {
        let error = error.to_string();
        let reason = error.lines().last().unwrap_or_default().trim_start_matches("error: ");
        format!("has no valid regular expression in `matches`: {reason}")
    })
}

/// What was expected and did not come, in words; `None` where the example holds.
fn fault(example: &Example, came: &Came) -> Option<String> {
    let failed = matches!(came, Came::Failure(_));
    match example.is_error {
        Some(true) if !failed => return Some("a failure".to_owned()),
        Some(true) => {}
        _ if failed => return Some(format!("no failure, but {}", expectation(example))),
        _ => {}
    }
    if let Some(expected) = &example.result
        && !result_holds(expected, came)
    {
        return Some(format!("exactly {expected}"));
    }
    if let Some(expected) = &example.contains
        && !contains_holds(expected, came)
    {
        return Some(format!("something that contains {expected}"));
    }
    if let Some(pattern) = &example.matches
        && !Regex::new(pattern).is_ok_and(|pattern| pattern.is_match(&came.text()))
    {
        return Some(format!("a text that matches `{pattern}`"));
    }
    None
}

fn expectation(example: &Example) -> String {
    match (&example.result, &example.contains, &example.matches) {
        (Some(result), _, _) => format!("exactly {result}"),
        (_, Some(contains), _) => format!("something that contains {contains}"),
        (_, _, Some(pattern)) => format!("a text that matches `{pattern}`"),
        _ => "a result".to_owned(),
    }
}

fn result_holds(expected: &Value, came: &Came) -> bool {
    match came {
        Came::Value(value) => expected == value,
        Came::Content(value, text) => expected == value || expected.as_str() == Some(text),
        Came::Failure(error) => expected.as_str().is_some_and(|text| text == error.message || text == error.text()),
    }
}

fn contains_holds(expected: &Value, came: &Came) -> bool {
    if let Value::String(part) = expected
        && came.text().contains(part)
    {
        return true;
    }
    match came {
        Came::Value(value) | Came::Content(value, _) => holds(value, expected),
        Came::Failure(_) => false,
    }
}

/// Whether `whole` has all of `part`: members of objects, items of arrays (in any order), or an equal value.
fn holds(whole: &Value, part: &Value) -> bool {
    match (whole, part) {
        (Value::Object(whole), Value::Object(part)) => object_holds(whole, part),
        (Value::Array(whole), Value::Array(part)) => part.iter().all(|wanted| whole.iter().any(|item| holds(item, wanted))),
        (Value::Array(whole), part) => whole.iter().any(|item| holds(item, part)),
        (whole, part) => whole == part,
    }
}

fn object_holds(whole: &Map<String, Value>, part: &Map<String, Value>) -> bool {
    part.iter().all(|(name, wanted)| whole.get(name).is_some_and(|value| holds(value, wanted)))
}

fn shorten(text: &str) -> String {
    if text.len() <= SHOWN {
        return text.to_owned();
    }
    let end = text.floor_char_boundary(SHOWN);
    format!("{} ... ({} bytes)", text.get(..end).unwrap_or_default(), text.len())
}

#[cfg(test)]
mod tests {
    use skillz_json::json;

    use super::*;

    fn example(fields: Value) -> Example {
        skillz_json::from_value(fields).expect("an example")
    }

    fn holds_for(fields: Value, came: &Came) -> bool {
        fault(&example(fields), came).is_none()
    }

    #[test]
    fn results_are_compared_exactly_numbers_by_value() {
        for (expected, value, equal) in [
            (json!({"a": 1, "b": [1.0]}), json!({"b": [1], "a": 1.0}), true),
            (json!(1), json!(1.0), true),
            (json!(0), json!(-0.0), true),
            (json!(9_007_199_254_740_993_i64), json!(9_007_199_254_740_992_i64), false),
            (json!("1"), json!(1), false),
            (json!({"a": 1}), json!({"a": 1, "b": 2}), false),
            (json!([1, 2]), json!([2, 1]), false),
            (Value::Null, Value::Null, true),
            (Value::Null, json!(0), false),
        ] {
            assert_eq!(holds_for(json!({"result": expected}), &Came::Value(value.clone())), equal, "{expected} {value}");
        }
    }

    #[test]
    fn contains_means_text_or_members() {
        for (expected, value, holds) in [
            (json!("ell"), json!("hello"), true),
            (json!("x"), json!("hello"), false),
            (json!("hello"), json!({"greeting": "hello you"}), true),
            (json!({"a": {"b": 1}}), json!({"a": {"b": 1, "c": 2}, "d": 3}), true),
            (json!({"a": {"b": 2}}), json!({"a": {"b": 1}}), false),
            (json!([2]), json!([1, 2]), true),
            (json!([{"n": 1}]), json!([{"n": 1, "m": 2}]), true),
            (json!([3]), json!([1, 2]), false),
            (json!(2), json!([1, 2]), true),
            (json!({}), json!([]), false),
            (json!({}), json!({"a": 1}), true),
        ] {
            assert_eq!(holds_for(json!({"contains": expected}), &Came::Value(value.clone())), holds, "{expected} {value}");
        }
    }

    #[test]
    fn patterns_look_at_the_text() {
        assert!(holds_for(json!({"matches": "^h.l+o$"}), &Came::Value(json!("hello"))));
        assert!(holds_for(json!({"matches": "\"n\":\\d+"}), &Came::Value(json!({"n": 12}))));
        assert!(!holds_for(json!({"matches": "^x"}), &Came::Value(json!("hello"))));
    }

    #[test]
    fn failures_fail_unless_expected() {
        let failure = Came::Failure(ToolError::failed("no such file"));
        assert!(!holds_for(json!({"contains": "such"}), &failure));
        assert!(holds_for(json!({"is_error": true}), &failure));
        assert!(holds_for(json!({"is_error": true, "contains": "such"}), &failure));
        assert!(!holds_for(json!({"is_error": true, "matches": "^x"}), &failure));
        assert!(!holds_for(json!({"is_error": false}), &failure));
        assert!(!holds_for(json!({"is_error": true}), &Came::Value(json!(1))));
        assert!(holds_for(json!({"is_error": false}), &Came::Value(json!(1))));
    }

    #[test]
    fn examples_that_expect_nothing_or_nonsense_are_refused() {
        assert!(check(&example(json!({"arguments": {}}))).is_some());
        assert!(check(&example(json!({"result": null}))).is_none());
        let reason = check(&example(json!({"matches": "("}))).expect("unclosed");
        assert!(reason.contains("unclosed group"), "{reason}");
    }
}
