use skillz_json::{Value, json};

use super::*;

fn input_of(code: &str) -> Value {
    of_tool(code).input.expect(code)
}

/// The schema of one parameter of a type, with definitions before it.
fn of_type(kind: &str, definitions: &str) -> Value {
    let code = format!("{definitions}\n#[skillz::tool]\nfn run(value: {kind}) {{}}");
    input_of(&code)["properties"]["value"].clone()
}

#[test]
fn a_signature_makes_a_closed_object() {
    let schema = input_of(
        "#[skillz::tool]
         fn run(
             /// The text to count in.
             text: String,
             limit: Option<u32>,
             #[serde(default)] mut deep: bool,
         ) -> Result<u32, String> { Ok(1) }",
    );
    let expected = json!({
        "type": "object",
        "properties": {
            "text": {"type": "string", "description": "The text to count in."},
            "limit": {"type": ["integer", "null"], "minimum": 0, "maximum": u32::MAX},
            "deep": {"type": "boolean"},
        },
        "required": ["text"],
        "additionalProperties": false,
    });
    assert_eq!(schema, expected);
}

#[test]
fn no_parameters_make_an_empty_object() {
    let schema = input_of("use skillz::tool;\n#[tool]\nfn run() -> u32 { 1 }");
    assert_eq!(schema, json!({"type": "object", "properties": {}, "additionalProperties": false}));
}

#[test]
fn programs_without_the_attribute_say_nothing() {
    for code in ["fn main() {}", "fn run(a: u8) {}", "not rust"] {
        assert_eq!(of_tool(code), Inferred::default(), "{code}");
    }
}

#[test]
fn types_of_the_standard_library() {
    for (kind, expected) in [
        ("&str", json!({"type": "string"})),
        ("i64", whole(i64::MIN, i64::MAX.unsigned_abs())),
        ("u64", whole(0, u64::MAX)),
        ("i8", whole(-128, 127)),
        ("usize", whole(0, u32::MAX.into())),
        ("isize", whole(i32::MIN.into(), 2_147_483_647)),
        ("NonZeroU16", whole(1, 65_535)),
        ("std::num::NonZeroI16", whole(-32_768, 32_767)),
        ("Option<Box<i16>>", json!({"type": ["integer", "null"], "minimum": -32_768, "maximum": 32_767})),
        ("Vec<Option<u16>>", json!({"type": "array", "items": {"type": ["integer", "null"], "minimum": 0, "maximum": 65_535}})),
        ("f64", json!({"type": "number"})),
        ("Vec<String>", json!({"type": "array", "items": {"type": "string"}})),
        ("&[f32]", json!({"type": "array", "items": {"type": "number"}})),
        ("[u8; 3]", json!({"type": "array", "items": whole(0, 255), "minItems": 3, "maxItems": 3})),
        (
            "(String, bool)",
            json!({"type": "array", "prefixItems": [{"type": "string"}, {"type": "boolean"}], "items": false, "minItems": 2, "maxItems": 2}),
        ),
        (
            "std::collections::HashMap<String, i32>",
            json!({"type": "object", "additionalProperties": whole(i32::MIN.into(), 2_147_483_647)}),
        ),
        (
            "BTreeMap<String, Vec<bool>>",
            json!({"type": "object", "additionalProperties": {"type": "array", "items": {"type": "boolean"}}}),
        ),
        ("serde_json::Value", json!({})),
        ("skillz::Json", json!({})),
        ("Vec<Json>", json!({"type": "array", "items": {}})),
        ("serde_json::Map<String, Value>", json!({"type": "object", "additionalProperties": {}})),
        ("Option<Vec<u8>>", json!({"type": ["array", "null"], "items": whole(0, 255)})),
        ("Option<Value>", json!({})),
        ("Box<String>", json!({"type": "string"})),
        ("chrono::NaiveDate", json!({})),
    ] {
        assert_eq!(of_type(kind, ""), expected, "{kind}");
    }
}

#[test]
fn structs_follow_serde() {
    let definitions = r#"
        #[derive(Debug, serde::Deserialize)]
        #[serde(rename_all = "camelCase")]
        /// Where to look.
        struct Place {
            /// The street.
            street_name: String,
            #[serde(rename = "no")] number: u16,
            #[serde(default = "town")] town: String,
            note: Option<String>,
            #[serde(skip)] cached: u8,
            #[serde(flatten)] more: More,
        }
        #[derive(Deserialize)] struct More { extra: bool }
        #[derive(Deserialize)] struct Meters(f64);
        #[derive(Deserialize)] #[serde(default)] struct Options { a: u8, b: u8 }
        struct Manual { a: u8 }
    "#;
    let place = json!({
        "type": "object",
        "properties": {
            "streetName": {"type": "string", "description": "The street."},
            "no": whole(0, 65_535),
            "town": {"type": "string"},
            "note": {"type": ["string", "null"]},
            "extra": {"type": "boolean"},
        },
        "required": ["streetName", "no", "extra"],
        "additionalProperties": false,
        "description": "Where to look.",
    });
    assert_eq!(of_type("Place", definitions), place);
    assert_eq!(of_type("Meters", definitions), json!({"type": "number"}));
    assert_eq!(of_type("Options", definitions).get("required"), None);
    assert_eq!(of_type("Manual", definitions), json!({}), "it reads itself in some way of its own");
    let optional = of_type("Option<Meters>", definitions);
    assert_eq!(optional, json!({"type": ["number", "null"]}));
}

#[test]
fn enums_follow_serde() {
    for (attributes, variants, expected) in [
        ("#[serde(rename_all = \"snake_case\")]", "Up, VeryLow", json!({"type": "string", "enum": ["up", "very_low"]})),
        (
            "",
            "Nothing, Some(u8), Two { a: bool }",
            json!({"anyOf": [
                {"const": "Nothing"},
                {"type": "object", "properties": {"Some": whole(0, 255)}, "required": ["Some"], "additionalProperties": false},
                {"type": "object", "properties": {"Two": {"type": "object", "properties": {"a": {"type": "boolean"}}, "required": ["a"], "additionalProperties": false}}, "required": ["Two"], "additionalProperties": false},
            ]}),
        ),
        (
            "#[serde(tag = \"kind\")]",
            "Empty, Full { a: bool }",
            json!({"anyOf": [
                {"type": "object", "properties": {"kind": {"const": "Empty"}}, "additionalProperties": false, "required": ["kind"]},
                {"type": "object", "properties": {"a": {"type": "boolean"}, "kind": {"const": "Full"}}, "required": ["kind", "a"], "additionalProperties": false},
            ]}),
        ),
        ("#[serde(untagged)]", "A(String), B(f64)", json!({"anyOf": [{"type": "string"}, {"type": "number"}]})),
    ] {
        let definitions = format!("#[derive(Deserialize)] {attributes} enum Choice {{ {variants} }}");
        assert_eq!(of_type("Choice", &definitions), expected, "{variants}");
    }
}

#[test]
fn what_may_be_null_still_names_what_it_may_be() {
    let definitions = "#[derive(Deserialize)] /// How.\nenum Choice { A, B }
        #[derive(Deserialize)] enum Mixed { A, B(u8) }
        #[derive(Deserialize)] struct Point { x: u8 }
        #[derive(Deserialize)] struct Tree { next: Option<Box<Tree>> }";
    let choice = json!({"type": ["string", "null"], "enum": ["A", "B", null], "description": "How."});
    let byte = whole(0, 255);
    for (kind, expected) in [
        ("Option<Choice>", choice.clone()),
        ("Option<Option<Choice>>", choice.clone()),
        ("Option<Box<Choice>>", choice.clone()),
        ("Vec<Option<Choice>>", json!({"type": "array", "items": choice})),
        (
            "Option<Mixed>",
            json!({"anyOf": [
                {"const": "A"},
                {"type": "object", "properties": {"B": byte}, "required": ["B"], "additionalProperties": false},
                {"type": "null"},
            ]}),
        ),
        (
            "Option<Point>",
            json!({"type": ["object", "null"], "properties": {"x": byte}, "required": ["x"], "additionalProperties": false}),
        ),
        ("Option<bool>", json!({"type": ["boolean", "null"]})),
        ("Option<()>", json!({"type": "null"})),
        ("Option<Tree>", json!({"anyOf": [{"$ref": "#/$defs/Tree"}, {"type": "null"}]})),
    ] {
        assert_eq!(of_type(kind, definitions), expected, "{kind}");
    }
}

/// A whole number between two bounds.
fn whole(minimum: i64, maximum: u64) -> Value {
    json!({"type": "integer", "minimum": minimum, "maximum": maximum})
}

#[test]
fn bounds_of_128_bits_are_there() {
    let schema = of_type("i128", "");
    assert!(schema["minimum"].as_f64() < Some(-1.7e38) && schema["maximum"].as_f64() > Some(1.7e38), "{schema}");
    assert!(of_type("u128", "")["maximum"].as_f64() > Some(3.4e38));
}

#[test]
fn types_that_contain_themselves_become_definitions() {
    let schema = input_of(
        "#[derive(Deserialize)] struct Tree { name: String, children: Vec<Tree> }
         #[skillz::tool] fn run(tree: Tree) {}",
    );
    assert_eq!(schema["properties"]["tree"], json!({"$ref": "#/$defs/Tree"}));
    assert_eq!(schema["$defs"]["Tree"]["properties"]["children"]["items"], json!({"$ref": "#/$defs/Tree"}));
}

#[test]
fn a_result_has_a_schema_where_it_is_a_known_struct() {
    let code =
        |definition: &str, kind: &str| format!("#[derive(Serialize)] {definition}\n#[skillz::tool] fn run() -> {kind} {{}}");
    let counts = "struct Counts { words: usize, #[serde(skip_serializing_if = \"Option::is_none\")] first: Option<String>, last: Option<String> }";
    let schema = of_tool(&code(counts, "Result<Counts, String>")).output.unwrap();
    let expected = json!({
        "type": "object",
        "properties": {"words": whole(0, u32::MAX.into()), "first": {"type": ["string", "null"]}, "last": {"type": ["string", "null"]}},
        "required": ["words", "last"],
        "additionalProperties": false,
    });
    assert_eq!(schema, expected);
    for (definition, kind) in [
        (counts, "Vec<Counts>"),
        (counts, "Option<Counts>"),
        (counts, "u32"),
        ("struct Counts { when: chrono::NaiveDate }", "Counts"),
        ("struct Counts(u8);", "Counts"),
        ("struct Counts<T> { value: T }", "Counts<u8>"),
    ] {
        assert_eq!(of_tool(&code(definition, kind)).output, None, "{definition} {kind}");
    }
    assert_eq!(of_tool("#[skillz::tool] fn run() {}").output, None);
}
