//! What creation refuses and what it says, many short cases.

use std::sync::Arc;

use crate::support::{TestHost, Tools};
use skillz_json::{Value, json};
use skillz_pipeline::{Pipeline, PipelineRuntime, check};
use skillz_tool::{Draft, ErrorKind, Manifest, SourceCode, ToolKind, ToolRuntime};

fn faults_with(steps: &Value, input_schema: Option<&Value>) -> Vec<String> {
    match check("new_pipeline", steps, input_schema, &Tools::standard()) {
        Ok(_) => Vec::new(),
        Err(faults) => faults.0.iter().map(ToString::to_string).collect(),
    }
}

#[test]
fn good_pipelines_are_taken() {
    for steps in [
        json!([{"tool": "echo"}]),
        json!([{"tool": "echo", "args": {}}]),
        json!([{"tool": "echo", "args": null, "name": null, "condition": null, "group": ""}]),
        json!([{"tool": "echo", "args": "$input"}]),
        json!([{"tool": "echo", "args": {"any": "$input.a.b[0]", "more": ["$input", {"deep": "${input.x}"}]}}]),
        json!([{"tool": "echo", "args": {"costs": "$5 and $$input, US$ 3, $"}}]),
        json!([{"name": "a", "tool": "echo"}, {"tool": "echo", "args": {"x": "$a.b", "y": "$prev"}}]),
        json!([{"tool": "echo"}, {"tool": "echo", "args": {"x": "$step_1.y"}}]),
        json!([{"name": "my-step", "tool": "echo"}, {"tool": "echo", "args": {"x": "${my-step.b}"}}]),
        json!([{"tool": "echo", "for_each": "$input.items", "parallel": 4, "args": {"item": "$item.name", "n": "$index"}}]),
        json!([{"tool": "echo", "for_each": [1, 2, "$input.three"], "condition": "$item != 2"}]),
        json!([{"tool": "echo", "for_each": []}]),
        json!([{"tool": "echo", "group": "g", "name": "a"}, {"tool": "echo", "group": "g", "name": "b"}, {"tool": "echo", "args": {"x": "$prev.a", "y": "$b"}}]),
        json!([{"tool": "flaky", "on_error": "retry", "retries": 5}]),
        json!([{"tool": "flaky", "on_error": "continue", "continue_on_error": false}]),
        json!([{"tool": "flaky", "on_error": "retry", "continue_on_error": true}]),
        json!([{"tool": "echo", "condition": "$input.a > 1 && !($input.b in [1, 2])"}]),
        json!([{"tool": "echo", "condition": true}]),
        json!([{"tool": "count_words", "args": {"text": "$input.text", "limit": 3}}]),
        json!([{"tool": "count_words", "args": "$input.all"}]),
        json!([{"tool": "fail", "args": {"anything": 1}}]),
        json!([{"tool": "slow", "args": {"unknown_but_open": 1}}]),
        json!([{"tool": "list_tools", "args": {"query": "x"}}]),
        json!([{"tool": "count_words", "name": "c", "args": {"text": "x"}}, {"tool": "echo", "args": {"n": "$c.words"}}]),
        Value::Array(vec![json!({"tool": "echo"}); 100]),
    ] {
        assert_eq!(faults_with(&steps, None), Vec::<String>::new(), "{steps}");
    }
}

#[test]
fn every_fault_is_named() {
    let first = |step: Value| json!([step]);
    let second = |step: Value| json!([{"name": "a", "tool": "echo"}, step]);
    for (steps, expected) in [
        (json!({}), "`steps` must be an array of steps, not an empty object"),
        (json!("x"), "`steps` must be an array of steps, not a text"),
        (json!([]), "`steps` is empty"),
        (Value::Array(vec![json!({"tool": "echo"}); 101]), "There are 101 steps; a pipeline has at most 100"),
        (first(json!("echo")), "Step 1: A step is an object with `tool` and `args`, not a text"),
        (first(json!({})), "Step 1: The field `tool` is missing"),
        (first(json!({"tool": ""})), "Step 1: The field `tool` is missing"),
        (first(json!({"tool": 5})), "Step 1: `tool` must be a text, not a number"),
        (first(json!({"tool": "echo", "arguments": {}})), "Step 1: The field `arguments` is unknown; `args` is meant"),
        (first(json!({"tool": "echo", "if": "true"})), "The field `if` is unknown; `condition` is meant"),
        (first(json!({"tool": "echo", "colour": 1})), "The field `colour` is unknown; a step has name, tool, args"),
        (
            first(json!({"tool": "echo", "args": []})),
            "`args` must be an object of arguments, or one reference to an object, not an array of 0 items",
        ),
        (first(json!({"tool": "echo", "args": "text"})), "`args` must be an object of arguments"),
        (first(json!({"tool": "echo", "args": "x $input"})), "`args` must be an object of arguments"),
        (first(json!({"tool": "ecko"})), "Step 1: There is no tool `ecko`"),
        (first(json!({"tool": "count"})), "There is no tool `count`; close to it are `count_words`"),
        (first(json!({"tool": "build_tool"})), "`build_tool` is built in; a step calls tools"),
        (
            first(json!({"tool": "count_words", "args": {"text": "x", "lenght": 1}})),
            "`count_words` takes no argument `lenght`; it takes `text`, `limit`",
        ),
        (first(json!({"tool": "upper", "args": {"text": "x", "txt": 1}})), "`upper` takes no argument `txt`; it takes `text`"),
        (first(json!({"tool": "nothing", "args": {"x": 1}})), "`nothing` takes no argument `x`; it takes no arguments"),
        (first(json!({"tool": "count_words"})), "`count_words` needs the argument `text`"),
        (first(json!({"tool": "count_words", "args": {"limit": "$input.n"}})), "`count_words` needs the argument `text`"),
        (
            first(json!({"tool": "count_words", "args": {"text": "x", "limit": "many"}})),
            "`args.limit`: \"many\" is not of type \"integer\"",
        ),
        (first(json!({"tool": "echo", "args": {"x": "$prev"}})), "`$prev`: no step is before this one"),
        (first(json!({"tool": "echo", "args": {"x": "$env.HOME"}})), "pipelines cannot read environment variables"),
        (
            first(json!({"tool": "echo", "args": {"x": "$nobody.y"}})),
            "`$nobody.y` refers to no step. There are `$input`, `$prev`.",
        ),
        (first(json!({"tool": "echo", "args": {"x": "$item"}})), "`$item` has a value only inside a step with `for_each`"),
        (first(json!({"tool": "echo", "args": {"x": "$index"}})), "`$index` has a value only inside"),
        (first(json!({"tool": "echo", "name": "a", "args": {"x": "$a"}})), "Step 1 `a`: `$a` refers to the step itself"),
        (first(json!({"tool": "echo", "args": {"x": "${input.a"}})), "lacks its closing `}`"),
        (first(json!({"tool": "echo", "args": {"x": "${}"}})), "is no reference"),
        (first(json!({"tool": "echo", "name": "input"})), "`input` cannot be a step's name"),
        (first(json!({"tool": "echo", "name": "prev"})), "`prev` cannot be a step's name"),
        (first(json!({"tool": "echo", "name": "a b"})), "The name `a b` cannot be referred to"),
        (first(json!({"tool": "echo", "name": "a.b"})), "The name `a.b` cannot be referred to"),
        (first(json!({"tool": "echo", "name": 1})), "`name` must be a text, not a number"),
        (first(json!({"tool": "echo", "condition": "1 ="})), "Write `==`"),
        (first(json!({"tool": "echo", "condition": "$prev.x"})), "`$prev.x`: no step is before this one"),
        (first(json!({"tool": "echo", "condition": "$item > 1"})), "`$item` has a value only inside"),
        (first(json!({"tool": "echo", "condition": 1})), "`condition` must be a text, not a number"),
        (first(json!({"tool": "echo", "on_error": "ignore"})), "`on_error` is `stop`, `continue` or `retry`, not `ignore`"),
        (first(json!({"tool": "echo", "on_error": "stop", "continue_on_error": true})), "`continue_on_error` says the opposite"),
        (first(json!({"tool": "echo", "continue_on_error": "yes"})), "`continue_on_error` must be true or false, not a text"),
        (first(json!({"tool": "echo", "retries": -1})), "`retries` must be a whole number of at most 10, not -1"),
        (first(json!({"tool": "echo", "retries": 1000})), "`retries` must be a whole number of at most 10, not 1000"),
        (first(json!({"tool": "echo", "retries": 1.5})), "`retries` must be a whole number"),
        (first(json!({"tool": "echo", "parallel": 2})), "`parallel` says how many items of `for_each`"),
        (first(json!({"tool": "echo", "for_each": [1], "parallel": 0})), "`parallel` must be at least 1"),
        (
            first(json!({"tool": "echo", "for_each": [1], "parallel": true})),
            "`parallel` must be a whole number of at most 64, not a boolean",
        ),
        (
            first(json!({"tool": "echo", "for_each": 5})),
            "`for_each` must be an array, or one reference to an array such as `$input.items`, not a number",
        ),
        (first(json!({"tool": "echo", "for_each": "some text"})), "`for_each` must be an array"),
        (first(json!({"tool": "echo", "for_each": "$item"})), "`$item` has a value only inside"),
        (second(json!({"tool": "echo", "name": "a"})), "Step 2: The name `a` belongs to step 1 already"),
        (second(json!({"tool": "echo", "name": "step_1x", "args": {"x": "$b"}})), "There are `$input`, `$prev`, `$a`"),
        (
            json!([{"tool": "echo", "args": {"x": "$later.y"}}, {"name": "later", "tool": "echo"}]),
            "`$later.y` refers to a later step",
        ),
        (
            json!([{"tool": "echo", "group": "g", "name": "a"}, {"tool": "echo", "group": "g", "name": "b", "args": {"x": "$a"}}]),
            "`$a` refers to a step of the same group",
        ),
        (
            json!([{"tool": "echo", "group": "g"}, {"tool": "echo", "group": "g", "args": {"x": "$prev"}}]),
            "no step is before this one",
        ),
        (
            json!([{"name": "my-step", "tool": "echo"}, {"tool": "echo", "args": {"x": "$my-step.b"}}]),
            "For the step `my-step` write `${my-step}`",
        ),
        (json!([{"tool": "echo"}, {"tool": "echo", "name": "step_1"}]), "The name `step_1` belongs to step 1 already"),
        (
            json!([{"tool": "count_words", "name": "c", "args": {"text": "x"}}, {"tool": "echo", "args": {"n": "$c.count"}}]),
            "`$c.count` leads nowhere: `count` is not there; the value has `words`",
        ),
        (
            json!([{"tool": "count_words", "name": "c", "args": {"text": "x"}}, {"tool": "echo", "args": {"n": "$c.words.first"}}]),
            "`first` cannot be there; the value is of type `integer`",
        ),
    ] {
        let faults = faults_with(&steps, None);
        assert!(faults.iter().any(|fault| fault.contains(expected)), "{steps}\nexpected: {expected}\nfound: {faults:#?}");
    }
}

#[test]
fn all_faults_come_at_once() {
    let steps = json!([
        {"name": "a", "tool": "ecko", "colour": 1, "args": {"x": "$later", "y": "$nobody"}},
        {"name": "a", "tool": "count_words", "args": {"txt": 1}, "on_error": "ignore", "condition": "1 = 1"},
        {"tool": "echo", "retries": "two", "for_each": 1},
        "not a step",
    ]);
    let faults = check("p", &steps, None, &Tools::standard()).expect_err("faulty");
    assert!(faults.0.len() >= 11, "{faults}");
    let error = faults.into_error("p", ErrorKind::InvalidInput);
    assert_eq!(error.kind, ErrorKind::InvalidInput);
    for part in [
        "The pipeline `p` is not valid. ",
        "Step 1 `a`: The field `colour`",
        "There is no tool `ecko`",
        "Step 2 `a`: `count_words` takes no argument `txt`",
        "Step 3: `retries`",
        "Step 4: A step is an object",
    ] {
        assert!(error.text().contains(part), "{part}\n{error}");
    }
    assert!(error.data.expect("faults as data")["faults"].as_array().map_or(0, Vec::len) >= 11);
}

#[test]
fn input_references_are_checked_where_the_schema_tells() {
    let schema = json!({"type": "object", "properties": {"text": {"type": "string"}, "list": {"type": "array"}}});
    let check = |reference: &str, schema: &Value| faults_with(&json!([{"tool": "echo", "args": {"x": reference}}]), Some(schema));
    assert!(check("$input.text", &schema).is_empty());
    assert!(check("$input.list[3].whatever", &schema).is_empty());
    assert!(
        check("$input.txt", &schema)[0].contains("`$input.txt` leads nowhere: `txt` is not there; the value has `text`, `list`")
    );
    assert!(check("$input.text.length", &schema)[0].contains("`length` cannot be there"));
    assert!(
        check("$input.txt", &json!({"type": "object", "properties": {}})).is_empty(),
        "as in Skillz 0.8, where it says nothing"
    );
    assert!(check("$input.txt", &json!({"type": "object", "additionalProperties": true, "properties": {"text": {}}})).is_empty());
}

#[test]
fn no_pipeline_contains_itself() {
    let mut tools = Tools::standard();
    tools.add_pipeline("one", json!([{"tool": "two"}]));
    tools.add_pipeline("two", json!([{"tool": "echo"}, {"tool": "three"}]));
    tools.add_pipeline("three", json!([{"tool": "two"}, {"tool": "echo"}]));
    let fault = |name: &str, steps: Value| check(name, &steps, None, &tools).map_err(|faults| faults.to_string());
    assert!(
        fault("mine", json!([{"tool": "mine"}]))
            .expect_err("itself")
            .contains("The pipeline would contain itself: `mine` calls `mine`")
    );
    let through = fault("three", json!([{"tool": "one"}])).expect_err("through others");
    assert!(through.contains("`three` calls `one` calls `two` calls `three`"), "{through}");
    assert!(
        fault("four", json!([{"tool": "one"}, {"tool": "three"}])).is_ok(),
        "a circle of others is not this pipeline's fault"
    );
}

#[test]
fn manifests_of_skillz_0_8_load() {
    let steps = json!([
        {"name": "a", "tool": "word_counter", "args": {"text": "$input.text"}, "continue_on_error": false},
        {"tool": "word_counter", "args": {"text": "one two three"}, "condition": "$a.words > 0", "continue_on_error": true},
    ]);
    let pipeline = Pipeline::read(&steps).expect("loads unchanged");
    assert_eq!(pipeline.steps.iter().map(|step| step.name.as_str()).collect::<Vec<_>>(), ["a", "step_2"]);
    assert!(!pipeline.steps[0].on_error.go_on);
    assert!(pipeline.steps[1].on_error.go_on);
}

async fn prepare(steps: Value, input_schema: Option<Value>) -> Result<Manifest, String> {
    let runtime = PipelineRuntime::new(Arc::new(Tools::standard()));
    let mut manifest = Manifest::new("mine", "Mine", ToolKind::Pipeline);
    manifest.pipeline_steps = Some(steps);
    manifest.input_schema = input_schema;
    let draft = Draft { manifest, source: SourceCode::Folder, directory: std::path::PathBuf::new() };
    runtime.prepare(draft, Arc::new(TestHost::default())).await.map(|prepared| prepared.manifest).map_err(|error| error.text())
}

#[tokio::test]
async fn an_input_schema_is_made_where_none_is_given() {
    let steps = json!([
        {"name": "a", "tool": "count_words", "args": {"text": "$input.text", "limit": "$input.limit"}},
        {"tool": "echo", "condition": "$input.verbose", "args": {"x": "$input.extra.deep", "a": "$a"}},
        {"tool": "echo", "for_each": "$input.items"},
    ]);
    let manifest = prepare(steps, None).await.expect("good");
    assert_eq!(
        manifest.input_schema,
        Some(json!({
            "type": "object",
            "properties": {"text": {"type": "string"}, "limit": {"type": "integer"}, "extra": {}, "verbose": {}, "items": {}},
            "required": ["text", "limit", "items"],
        }))
    );
    assert_eq!(prepare(json!([{"tool": "echo", "args": "$input"}]), None).await.expect("good").input_schema, None);
    let given = json!({"type": "object", "properties": {"text": {}}});
    assert_eq!(prepare(json!([{"tool": "echo"}]), Some(given.clone())).await.expect("good").input_schema, Some(given));
    assert!(
        prepare(json!([{"tool": "ecko"}]), None)
            .await
            .expect_err("no such tool")
            .contains("The pipeline `mine` is not valid. 1 fault:")
    );
}
