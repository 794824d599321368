//! Whatever can be written can be read, and is the same.

#![allow(clippy::unwrap_used, clippy::expect_used, clippy::panic, clippy::indexing_slicing, reason = "a test fails by them")]

use proptest::prelude::*;
use skillz_json::{MOST_DEPTH, MOST_DIGITS, Value, json, parse, parse_strictly, wire};

fn number() -> impl Strategy<Value = String> {
    prop_oneof!["-?(0|[1-9][0-9]{0,40})", "-?(0|[1-9][0-9]{0,20})\\.[0-9]{1,25}", "-?[1-9](\\.[0-9]{1,5})?[eE][+-]?[0-9]{1,3}"]
}

fn text() -> impl Strategy<Value = String> {
    let leaf = prop_oneof![
        Just("null".to_owned()),
        Just("true".to_owned()),
        number(),
        any::<String>().prop_map(|text| serde_json::to_string(&text).expect("strings are written")),
    ];
    leaf.prop_recursive(6, 64, 6, |inner| {
        prop_oneof![
            prop::collection::vec(inner.clone(), 0..6).prop_map(|elements| format!("[{}]", elements.join(","))),
            prop::collection::btree_map(any::<String>(), inner, 0..6).prop_map(|members| {
                let pairs: Vec<String> = members
                    .iter()
                    .map(|(key, value)| format!("{}:{value}", serde_json::to_string(key).expect("strings are written")))
                    .collect();
                format!("{{{}}}", pairs.join(","))
            }),
        ]
    })
}

proptest! {
    #[test]
    fn what_is_read_is_written_as_it_was(text in text()) {
        let value = parse(&text).expect("is JSON");
        prop_assert_eq!(value.to_string(), text.as_str());
        prop_assert_eq!(value.written_length(), text.len());
        prop_assert_eq!(serde_json::from_str::<Value>(&text).expect("is JSON").to_string(), text.as_str());
        prop_assert_eq!(wire::leave(wire::enter(value.clone())).to_string(), text.as_str());
        prop_assert_eq!(wire::unmarked(wire::enter(value).to_string().into_bytes()), text.as_bytes());
    }

    #[test]
    fn it_reads_what_another_reader_reads(text in "[\\[\\]{}\",:0-9.eE+tfn \\\\ud-]{0,30}") {
        prop_assert_eq!(parse(&text).is_ok(), serde_json::from_str::<serde::de::IgnoredAny>(&text).is_ok(), "{}", text);
    }
}

#[test]
fn depth_digits_and_keys_are_bounded() {
    let nested = |depth: usize| format!("{}{}", "[".repeat(depth), "]".repeat(depth));
    assert!(parse(&nested(MOST_DEPTH)).is_ok());
    for text in [nested(MOST_DEPTH + 1), nested(1_000_000)] {
        assert!(parse(&text).expect_err("is too deep").is_out_of_bounds);
    }
    let digits = "9".repeat(MOST_DIGITS);
    assert!(parse(&digits).is_ok());
    for text in [format!("{digits}9"), "1e4300".to_owned(), "-1.5e99999999999999999999".to_owned()] {
        let error = parse(&format!("{{\"a\":[0,{text}]}}")).expect_err("is too long").to_string();
        assert!(error.contains("/a/1"), "{error}");
    }
    let (value, faults) = parse_strictly(r#"{"a":{"b~/":1,"b~/":2},"x":[{"k":1,"k":1}]}"#).expect("is JSON");
    assert_eq!(value, json!({"a": {"b~/": 2}, "x": [{"k": 1}]}));
    let (_, reserved) = parse_strictly(r#"{"$serde_json::private::RawValue":"1"}"#).expect("is JSON");
    assert_eq!(reserved.len(), 1);
    assert_eq!(faults.iter().map(|fault| fault.path.as_str()).collect::<Vec<_>>(), ["/a/b~0~1", "/x/0/k"]);
}

#[test]
fn half_characters_become_replacement_characters() {
    for (text, expected) in
        [(r#""\ud83d""#, "\u{fffd}"), (r#""\ud83dx\ude00""#, "\u{fffd}x\u{fffd}"), (r#""\ud83d\ude00""#, "\u{1f600}")]
    {
        assert_eq!(parse(text).expect("is JSON"), json!(expected));
        assert_eq!(serde_json::from_str::<String>(&skillz_json::repaired(text)).expect("is JSON"), expected);
    }
}

#[test]
fn the_macro_writes_what_stands_there() {
    let (key, list) = ("k", vec![1, 2]);
    let value = json!({"null": null, "a": [1, null, [], {}, {"b": -1.5}], (key): list.len(), "list": list, "t": true, "s": "x",});
    assert_eq!(value.to_string(), r#"{"null":null,"a":[1,null,[],{},{"b":-1.5}],"k":2,"list":[1,2],"t":true,"s":"x"}"#);
    assert_eq!(json!(u128::MAX).to_string(), u128::MAX.to_string());
    assert_eq!(value["a"][4]["b"], -1.5);
    assert!(value["nowhere"][7].is_null());
}
