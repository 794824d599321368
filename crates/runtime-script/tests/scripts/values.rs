//! Values of the languages and of their libraries, as results and as arguments: exact, or refused by name.

use std::path::{Path, PathBuf};

use serde_json::from_str;
use sha2::{Digest, Sha256};
use skillz_json::{Value, json};
use skillz_tool::ErrorKind;

use crate::support::{Bench, script, value};

/// A Python with the libraries of `tests/values/requirements.txt`, which `scripts/setup test` fetches.
fn python() -> String {
    let list = std::fs::read(Path::new(env!("CARGO_MANIFEST_DIR")).join("../../tests/values/requirements.txt")).unwrap();
    let digest: String = Sha256::digest(list).iter().map(|byte| format!("{byte:02x}")).collect();
    let variable = |name: &str| std::env::var_os(name).map(PathBuf::from);
    let cache = variable("SKILLZ_DEV_CACHE")
        .or_else(|| variable("XDG_CACHE_HOME").map(|cache| cache.join("skillz-dev")))
        .or_else(|| variable("HOME").map(|home| home.join(".cache/skillz-dev")));
    let python = cache.expect("a home").join(format!("values-{}", &digest[..12])).join("bin/python");
    assert!(python.exists(), "there is no `{}`; run scripts/setup test", python.display());
    python.display().to_string()
}

#[tokio::test]
async fn values_of_libraries_become_json() {
    let (bench, python) = (Bench::new(), python());
    let head = "import numpy as np, pandas as pd, pydantic, datetime\nfrom PIL import Image\n\
                df = pd.DataFrame({'region': ['N', 'S', 'N'], 'amount': [1, 2, 4]})\n\
                class M(pydantic.BaseModel):\n    a: int\n    day: datetime.date\n\
                def run(): return ";
    let (one, south) = (json!({"region": "N", "amount": 1}), json!({"region": "S", "amount": 2}));
    for (expression, expected) in [
        ("df.groupby('region')['amount'].sum()", json!({"N": 5, "S": 2})),
        ("df.region.value_counts()", json!({"N": 2, "S": 1})),
        ("df.head(2)", json!([one, south])),
        ("df[df.region == 'S']", json!([{"index": 1, "region": "S", "amount": 2}])),
        ("df.set_index('region').head(1)", json!([one])),
        ("df.pivot_table(index='region', values='amount', aggfunc='sum')", json!([{"region": "N", "amount": 5}, south])),
        ("df.groupby(['region', 'amount']).size()", json!({"[\"N\",1]": 1, "[\"N\",4]": 1, "[\"S\",2]": 1})),
        ("[pd.NA, pd.NaT, pd.Timestamp('2026-01-02'), pd.Timedelta('90s')]", json!([null, null, "2026-01-02T00:00:00", 90])),
        ("[np.int64(5), np.bool_(True), np.str_('x'), np.float64('nan')]", json!([5, true, "x", null])),
        ("{np.int64(1): np.arange(2), 'b': np.array(['2026-01-01'], dtype='M8[D]')}", json!({"1": [0, 1], "b": ["2026-01-01"]})),
        ("np.uint64(2 ** 64 - 1)", from_str::<Value>("18446744073709551615").unwrap()),
        ("[M(a=1, day='2026-01-02')]", json!([{"a": 1, "day": "2026-01-02"}])),
    ] {
        assert_eq!(bench.once(&python, &format!("{head}{expression}"), json!({})).await, expected, "{expression}");
    }
    for expression in ["Image.new('RGB', (2, 2))", "__import__('matplotlib.figure').figure.Figure()"] {
        let block = bench.once(&python, &format!("{head}{expression}"), json!({})).await;
        assert_eq!((&block["type"], &block["mimeType"]), (&json!("image"), &json!("image/png")), "{expression}");
        assert!(block["data"].as_str().unwrap().starts_with("iVBORw0KGgo"), "{expression}");
    }
    let twice = script("twice", &python, "import pandas as pd\ndef run(): return pd.Series([1, 2], index=['a', 'a'])");
    let tool = bench.register(twice).await;
    assert!(bench.run(&tool, json!({})).await.unwrap_err().text().contains("two entries that are both `a`"));
}

#[tokio::test]
async fn numbers_are_exact_or_refused() {
    let bench = Bench::new();
    let huge = "9".repeat(4_300);
    let tool = |interpreter, code| bench.register(script("echoes", interpreter, code));
    let (python, node) = (tool("python3", "def run(n): return n").await, tool("node", "export const run = ({ n }) => n").await);
    for (text, by_python, by_node) in [
        ("9007199254740993", true, false),
        ("-9007199254740993", true, false),
        ("9007199254740992", true, true),
        ("1180591620717411303424", true, true),
        ("123456789012345678901234567890", true, false),
        (&huge, true, false),
        ("[1, {\"a\": 9007199254740993}]", true, false),
        ("1.5", true, true),
        ("0.1", true, true),
        ("1e400", false, false),
    ] {
        let number: Value = from_str(text).unwrap();
        for (tool, passes) in [(&python, by_python), (&node, by_node)] {
            let outcome = bench.run(tool, json!({"n": number.clone()})).await;
            if passes {
                assert_eq!(value(outcome), number);
            } else {
                let error = outcome.expect_err(text);
                assert_eq!(error.kind, ErrorKind::InvalidInput);
                assert!(error.text().contains("`/n"), "{error}");
            }
        }
    }
    let big = bench.once("node", "export const run = () => ({ a: 2n ** 70n, b: [1n] })", json!({})).await;
    assert_eq!(big, from_str::<Value>("{\"a\": 1180591620717411303424, \"b\": [1]}").unwrap());
    let tool = bench.register(script("long", "python3", "def run(): return {'a': [10 ** 4300]}")).await;
    assert!(bench.run(&tool, json!({})).await.unwrap_err().text().contains("result[\"a\"][0]"));
}

#[tokio::test]
async fn javascript_values_become_json() {
    let bench = Bench::new();
    for (expression, expected) in [
        ("new Map([['a', 1], [2, new Set([3])]])", json!({"a": 1, "2": [3]})),
        (
            "[new Date(0), new Float64Array([1.5]), new Uint8Array([104, 105]), NaN]",
            json!(["1970-01-01T00:00:00.000Z", [1.5], "aGk=", null]),
        ),
        ("'\\ud800x'", json!("\u{fffd}x")),
        ("({ a: undefined, b: null, c: [undefined] })", json!({"b": null, "c": [null]})),
        ("undefined", Value::Null),
    ] {
        let code = format!("export function run() {{ return {expression} }}");
        assert_eq!(bench.once("node", &code, json!({})).await, expected, "{expression}");
    }
    for expression in ["Array(200).fill().reduce((inner) => [inner], 1)", "Promise.resolve({ a: () => 1, b: Symbol() }.b)"] {
        let tool = bench.register(script("fails", "node", &format!("export function run() {{ return {expression} }}"))).await;
        bench.run(&tool, json!({})).await.expect_err(expression);
    }
}

#[tokio::test]
async fn types_are_read_as_they_are_meant() {
    let bench = Bench::new();
    let head = "from __future__ import annotations\nfrom typing import *\nfrom typing_extensions import NotRequired, Required\nimport enum, datetime, decimal\n\
                from pydantic import Field\nclass Mode(enum.Enum):\n    A = 'a'\n\
                class O(TypedDict):\n    a: int\n    b: NotRequired[str]\nclass P(TypedDict, total=False):\n    a: Required[int]\n    b: str\n\
                class Q(O):\n    c: NotRequired[int]\n";
    let python = python();
    for (hint, part) in [
        ("O", json!({"required": ["a"]})),
        ("P", json!({"required": ["a"]})),
        ("Q", json!({"required": ["a"]})),
        ("Optional[Literal['a', 'b']]", json!({"enum": ["a", "b", null]})),
        ("Optional[Mode]", json!({"enum": ["a", null]})),
        ("Optional[Annotated[int, Field(ge=1, le=5)]]", json!({"type": ["integer", "null"], "minimum": 1, "maximum": 5})),
        ("Annotated[list[int], Field(max_length=2)]", json!({"type": "array", "maxItems": 2})),
        ("datetime.timedelta", json!({"type": ["number", "string"]})),
    ] {
        let code = format!("{head}def run(a: {hint}) -> O: return {{'a': 1}}");
        let (prepared, _) =
            bench.prepare(script("typed", &python, &code)).await.unwrap_or_else(|error| panic!("{hint}: {error}"));
        let schema = prepared.manifest.input_schema.unwrap()["properties"]["a"].clone();
        for (key, expected) in part.as_object().unwrap() {
            assert_eq!(&schema[key.as_str()], expected, "{hint}: {schema}");
        }
        assert_eq!(prepared.manifest.output_schema.unwrap()["required"], json!(["a"]), "{hint}");
    }
    let code = format!(
        "{head}def run(t: list[datetime.timedelta], by: dict[int, Mode], l: Literal[Mode.A]): return [sum(d.seconds for d in t), by[1].name, l.name]"
    );
    let arguments = json!({"t": [90, "PT1M"], "by": {"1": "a"}, "l": "a"});
    assert_eq!(bench.once(&python, &code, arguments).await, json!([150, "A", "A"]));
}

#[tokio::test]
async fn failures_say_which_permission_or_dependency_is_missing() {
    let bench = Bench::new();
    for (code, hint) in [
        ("def run(): return open('/nowhere/a').read()", "\"fs\": [{\"path\": \"/nowhere\"}]"),
        ("def run(): return open('a.txt').read()", "$ROOT"),
        ("import os\ndef run(): return os.environ['TOKEN']", "\"env\": [\"TOKEN\"]"),
        ("def run():\n    import pandas_of_nobody", "dependencies"),
        ("import socket\ndef run(): socket.create_connection(('127.0.0.1', 9))", "network"),
        ("def run(): return {}['TOKEN']", ""),
    ] {
        let tool = bench.register(script("lacks", "python3", code)).await;
        let error = bench.run(&tool, json!({})).await.expect_err(code);
        let given = error.hint.as_deref().unwrap_or_default();
        assert!(given.contains(hint) && (given.is_empty() == hint.is_empty()), "{code}: {error}");
        assert!(error.text().len() < 900, "{error}");
    }
}
