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
            "limit": {"type": ["integer", "null"], "minimum": 0},
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
        ("i64", json!({"type": "integer"})),
        ("usize", json!({"type": "integer", "minimum": 0})),
        ("f64", json!({"type": "number"})),
        ("Vec<String>", json!({"type": "array", "items": {"type": "string"}})),
        ("&[f32]", json!({"type": "array", "items": {"type": "number"}})),
        ("[u8; 3]", json!({"type": "array", "items": {"type": "integer", "minimum": 0}, "minItems": 3, "maxItems": 3})),
        (
            "(String, bool)",
            json!({"type": "array", "prefixItems": [{"type": "string"}, {"type": "boolean"}], "items": false, "minItems": 2, "maxItems": 2}),
        ),
        ("std::collections::HashMap<String, i32>", json!({"type": "object", "additionalProperties": {"type": "integer"}})),
        (
            "BTreeMap<String, Vec<bool>>",
            json!({"type": "object", "additionalProperties": {"type": "array", "items": {"type": "boolean"}}}),
        ),
        ("skillz_json::Value", json!({})),
        ("skillz_json::Map<String, Value>", json!({"type": "object", "additionalProperties": {}})),
        ("Option<Vec<u8>>", json!({"type": ["array", "null"], "items": {"type": "integer", "minimum": 0}})),
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
            "no": {"type": "integer", "minimum": 0},
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
                {"type": "object", "properties": {"Some": {"type": "integer", "minimum": 0}}, "required": ["Some"], "additionalProperties": false},
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
    let optional = of_type("Option<Choice>", "#[derive(Deserialize)] enum Choice { A }");
    assert_eq!(optional, json!({"anyOf": [{"type": "string", "enum": ["A"]}, {"type": "null"}]}));
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
        "properties": {"words": {"type": "integer", "minimum": 0}, "first": {"type": ["string", "null"]}, "last": {"type": ["string", "null"]}},
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
