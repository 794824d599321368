//! Schemas made of Python signatures, arguments made of JSON, and results made into JSON.

use crate::support::{Bench, script, value};
use skillz_json::{Value, json};
use skillz_tool::Manifest;

/// Registers a function and gives its schemas.
async fn schemas(bench: &Bench, code: &str) -> (Value, Option<Value>) {
    let (prepared, _) = bench.prepare(script("typed", "python3", code)).await.unwrap_or_else(|error| panic!("{code}: {error}"));
    (prepared.manifest.input_schema.unwrap(), prepared.manifest.output_schema)
}

#[tokio::test]
async fn types_become_schemas() {
    let bench = Bench::new();
    let head = "from typing import *\nfrom dataclasses import dataclass, field\nimport enum, datetime, pathlib, decimal\n\
                class Mode(enum.Enum):\n    FAST = 'fast'\n    SLOW = 'slow'\n\
                class Opts(TypedDict, total=False):\n    deep: bool\n\
                @dataclass\nclass P:\n    '''A point.\n\n    x: how far right\n    '''\n    x: int\n    y: float = 1.5\n";
    for (hint, schema) in [
        ("str", json!({"type": "string"})),
        ("int", json!({"type": "integer"})),
        ("float", json!({"type": "number"})),
        ("bool", json!({"type": "boolean"})),
        ("list", json!({"type": "array", "items": {}})),
        ("List[int]", json!({"type": "array", "items": {"type": "integer"}})),
        ("list[list[str]]", json!({"type": "array", "items": {"type": "array", "items": {"type": "string"}}})),
        ("dict", json!({"type": "object"})),
        ("Dict[str, float]", json!({"type": "object", "additionalProperties": {"type": "number"}})),
        ("Optional[int]", json!({"type": ["integer", "null"]})),
        ("int | str", json!({"type": ["integer", "string"]})),
        ("Union[List[int], str]", json!({"anyOf": [{"type": "array", "items": {"type": "integer"}}, {"type": "string"}]})),
        ("Literal['a', 'b']", json!({"type": "string", "enum": ["a", "b"]})),
        ("Literal[1, 'b', None]", json!({"type": ["integer", "string", "null"], "enum": [1, "b", null]})),
        ("Mode", json!({"type": "string", "enum": ["fast", "slow"]})),
        ("Any", json!({})),
        ("object", json!({})),
        ("Set[int]", json!({"type": "array", "items": {"type": "integer"}, "uniqueItems": true})),
        (
            "Tuple[int, str]",
            json!({"type": "array", "prefixItems": [{"type": "integer"}, {"type": "string"}], "items": false, "minItems": 2, "maxItems": 2}),
        ),
        ("Tuple[int, ...]", json!({"type": "array", "items": {"type": "integer"}})),
        ("Annotated[int, 'how many']", json!({"type": "integer", "description": "how many"})),
        ("datetime.date", json!({"type": "string", "format": "date"})),
        ("pathlib.Path", json!({"type": "string"})),
        ("bytes", json!({"type": "string", "contentEncoding": "base64"})),
        ("Opts", json!({"type": "object", "properties": {"deep": {"type": "boolean"}}})),
        (
            "P",
            json!({"type": "object", "properties": {"x": {"type": "integer", "description": "how far right"}, "y": {"type": "number", "default": 1.5}}, "required": ["x"], "additionalProperties": false}),
        ),
        (
            "'P'",
            json!({"type": "object", "properties": {"x": {"type": "integer", "description": "how far right"}, "y": {"type": "number", "default": 1.5}}, "required": ["x"], "additionalProperties": false}),
        ),
        ("Callable", json!({})),
        ("Iterable[int]", json!({"type": "array", "items": {"type": "integer"}})),
    ] {
        let (input, _) = schemas(&bench, &format!("{head}def run(a: {hint}): pass")).await;
        assert_eq!(
            input,
            json!({"type": "object", "properties": {"a": schema}, "required": ["a"], "additionalProperties": false}),
            "{hint}"
        );
    }
}

#[tokio::test]
async fn defaults_keywords_and_docstrings_count() {
    let bench = Bench::new();
    let (input, output) = schemas(&bench, "def run(a, b=2, c: str = None, d: int = 0, *rest, **more): pass").await;
    let expected = json!({"type": "object", "properties": {
        "a": {}, "b": {"type": "integer", "default": 2}, "c": {"type": ["string", "null"]}, "d": {"type": "integer", "default": 0},
    }, "required": ["a"]});
    assert_eq!((input, output), (expected, None));
    for docstring in [
        "Does it.\n\n    a: the first\n    b: the second,\n        on two lines\n",
        "Does it.\n\n    Args:\n        a (str): the first\n        b: the second,\n            on two lines\n\n    Returns:\n        c: not a parameter\n",
        "Does it.\n\n    Parameters\n    ----------\n    a : str\n        the first\n    b : int, optional\n        the second,\n        on two lines\n\n    Returns\n    -------\n    dict\n",
        "Does it.\n\n    :param a: the first\n    :param int b: the second,\n        on two lines\n    :returns: nothing\n",
        "Does it.\n\n    - a: the first\n    - b: the second, on two lines\n",
        "Does it.\n\n    a - the first\n    b -- the second, on two lines\n",
    ] {
        let (input, _) = schemas(&bench, &format!("def run(a: str, b: int = 1):\n    '''{docstring}    '''")).await;
        let described = (input["properties"]["a"]["description"].as_str(), input["properties"]["b"]["description"].as_str());
        assert_eq!(described, (Some("the first"), Some("the second, on two lines")), "{docstring}");
    }
}

#[tokio::test]
async fn results_have_a_schema_only_where_the_type_says_all() {
    let bench = Bench::new();
    let head = "from typing import *\nfrom dataclasses import dataclass\nclass T(TypedDict):\n    n: int\n@dataclass\nclass D:\n    n: int = 1\n@dataclass\nclass R:\n    kids: 'list[R]'\n";
    for (hint, schema) in [
        ("dict", Value::Null),
        ("int", Value::Null),
        ("list[D]", Value::Null),
        ("None", Value::Null),
        ("T", json!({"type": "object", "properties": {"n": {"type": "integer"}}, "required": ["n"]})),
        (
            "D",
            json!({"type": "object", "properties": {"n": {"type": "integer", "default": 1}}, "required": ["n"], "additionalProperties": false}),
        ),
    ] {
        let (_, output) = schemas(&bench, &format!("{head}def run() -> {hint}: pass")).await;
        assert_eq!(output.unwrap_or(Value::Null), schema, "{hint}");
    }
    let (_, output) = schemas(&bench, &format!("{head}async def run() -> R: pass")).await;
    let output = output.unwrap();
    assert_eq!(output["properties"]["kids"]["items"], json!({"$ref": "#/$defs/R"}));
    assert!(output["$defs"]["R"].is_object());
    assert!(skillz_tool::CompiledSchema::new(output).unchecked_parts().is_ok());
}

#[tokio::test]
async fn a_schema_that_was_given_wins() {
    let bench = Bench::new();
    let mut given = script("given", "python3", "def run(args): return sorted(args)");
    given.manifest.input_schema = Some(json!({"type": "object", "properties": {"x": {}, "y": {}}}));
    let tool = bench.register(given).await;
    assert_eq!(tool.manifest.input_schema.as_ref().unwrap()["properties"], json!({"x": {}, "y": {}}));
    assert_eq!(value(bench.run(&tool, json!({"x": 1, "y": 2})).await), json!(["x", "y"]), "`run(args)` takes the whole object");
}

#[tokio::test]
async fn arguments_become_what_the_hints_say() {
    let bench = Bench::new();
    let code = "from typing import *\nfrom dataclasses import dataclass\nimport enum, datetime, pathlib\n\
                class Mode(enum.Enum):\n    FAST = 'fast'\n@dataclass\nclass P:\n    x: int\n    next: 'Optional[P]' = None\n\
                def run(p: P, ps: List[P], by: Dict[str, P], mode: Mode, day: datetime.date, when: Optional[datetime.datetime], s: Set[int], path: pathlib.Path, raw: bytes, either: Union[P, int]):\n\
                \x20   return [p.next.x, [q.x for q in ps], by['a'].x, mode is Mode.FAST, day.year, when.hour, sorted(s), path.name, raw.decode(), either]";
    let tool = bench.register(script("converts", "python3", code)).await;
    let point = json!({"x": 1});
    let arguments = json!({
        "p": {"x": 1, "next": {"x": 2}}, "ps": [point, {"x": 3}], "by": {"a": {"x": 4}}, "mode": "fast", "day": "2024-05-06",
        "when": "2024-05-06T07:08:09Z", "s": [2, 1, 2], "path": "/a/b.txt", "raw": "aGk=", "either": 5,
    });
    assert_eq!(value(bench.run(&tool, arguments.clone()).await), json!([2, [1, 3], 4, true, 2024, 7, [1, 2], "b.txt", "hi", 5]));
    let mut wrong = arguments;
    *wrong.pointer_mut("/ps/1").unwrap() = json!({"z": 3});
    let error = bench.run(&tool, wrong).await.expect_err("has no `z`");
    assert!(error.text().contains("ps/1"), "{error}");
}

#[tokio::test]
async fn results_become_json() {
    let bench = Bench::new();
    let head = "import datetime, decimal, enum, uuid, pathlib, collections, dataclasses, fractions\n";
    for (expression, expected) in [
        ("datetime.datetime(2024, 5, 6, 7, 8)", json!("2024-05-06T07:08:00")),
        ("datetime.timedelta(seconds=1.5)", json!(1.5)),
        ("{3, 1, 2}", json!([1, 2, 3])),
        ("(1, 'a')", json!([1, "a"])),
        ("[float('nan'), float('inf'), 1.5]", json!([null, null, 1.5])),
        ("b'text'", json!("dGV4dA==")),
        ("decimal.Decimal('1.10')", json!("1.10")),
        ("decimal.Decimal('5')", json!("5")),
        ("uuid.UUID(int=1)", json!("00000000-0000-0000-0000-000000000001")),
        ("pathlib.Path('/a')", json!("/a")),
        ("enum.Enum('E', 'A').A", json!(1)),
        ("collections.Counter('aab')", json!({"a": 2, "b": 1})),
        ("collections.namedtuple('N', 'x y')(1, {2})", json!({"x": 1, "y": [2]})),
        ("{2: 'a', None: 2, True: 3}", json!({"2": "a", "null": 2, "true": 3})),
        ("{datetime.date(2024, 1, 2): 1}", json!({"2024-01-02": 1})),
        ("(i * i for i in range(3))", json!([0, 1, 4])),
        ("dataclasses.make_dataclass('D', ['a'])({1})", json!({"a": [1]})),
        ("range(3)", json!([0, 1, 2])),
        ("collections.deque([1])", json!([1])),
        ("'\\ud800x'", json!("\u{fffd}x")),
        ("2 ** 60", json!(1_152_921_504_606_846_976_i64)),
        ("{'content': [{'type': 'text', 'text': 'hi'}]}", json!({"content": [{"type": "text", "text": "hi"}]})),
    ] {
        assert_eq!(
            bench.once("python3", &format!("{head}def run(): return {expression}"), json!({})).await,
            expected,
            "{expression}"
        );
    }
}

#[tokio::test]
async fn schemas_follow_the_code_unless_they_were_given() {
    let bench = Bench::new();
    let given = json!({"type": "object", "properties": {"mine": {}}});
    let typed = "from typing import TypedDict\nclass R(TypedDict):\n    n: int\ndef run(a: int) -> R: return {'n': a}";
    let mut manifest = bench.prepare(script("follows", "python3", typed)).await.unwrap().0.manifest;
    for (code, names, has_output) in [
        (typed, vec!["a"], true),
        ("def run(a: int, b: str): return 1", vec!["a", "b"], false),
        ("def run(): return 1", vec![], false),
        (typed, vec!["a"], true),
    ] {
        // As it lies on disk, where an edit or another publish reads it.
        let text = serde_json::to_string(&manifest).unwrap();
        let on_disk: Value = serde_json::from_str(&text).unwrap();
        assert!(on_disk.get("input_schema").is_none() && on_disk.get("output_schema").is_none(), "{text}");
        let mut again = script("follows", "python3", code);
        again.manifest = Manifest::read(&text).unwrap();
        assert!(again.manifest.input_schema.is_some(), "what was inferred is there: {text}");
        manifest = bench.prepare(again).await.unwrap().0.manifest;
        let properties = manifest.input_schema.as_ref().and_then(|schema| schema.get("properties")).and_then(Value::as_object);
        let told: Vec<&str> = properties.into_iter().flatten().map(|(name, _)| name.as_str()).collect();
        assert_eq!((told, manifest.output_schema.is_some()), (names, has_output), "{code}");
    }
    // Somebody writes one into the file, beside what was inferred.
    let mut on_disk: Value = serde_json::from_str(&serde_json::to_string(&manifest).unwrap()).unwrap();
    on_disk.as_object_mut().unwrap().insert("input_schema".to_owned(), given.clone());
    for code in [typed, "def run(a: int, b: str): return 1"] {
        let mut again = script("follows", "python3", code);
        again.manifest = Manifest::read(&on_disk.to_string()).unwrap();
        let kept = bench.prepare(again).await.unwrap().0.manifest;
        assert_eq!((kept.input_schema.as_ref(), kept.inferred.input_schema.as_ref()), (Some(&given), None));
        on_disk = serde_json::from_str(&serde_json::to_string(&kept).unwrap()).unwrap();
        assert_eq!(on_disk.get("input_schema"), Some(&given));
    }
}
