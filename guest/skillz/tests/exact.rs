//! Numbers keep their digits, or their reader says where one does not fit.

use std::collections::{BTreeMap, HashMap};

use serde::{de::DeserializeOwned, Deserialize, Serialize};
use serde_json::value::RawValue;
use skillz::{Json, Value};

fn read<T: DeserializeOwned>(text: &str) -> skillz::Result<T> {
    text.parse::<Json>().expect("the text is JSON").read()
}

fn refusal<T: DeserializeOwned>(text: &str) -> String {
    read::<T>(text).err().unwrap_or_else(|| panic!("{text} was taken")).message
}

/// What a text becomes when it is read as a type and written again.
fn again<T: DeserializeOwned + Serialize>(text: &str) -> String {
    Json::new(read::<T>(text).unwrap_or_else(|error| panic!("{text}: {error}"))).unwrap().to_string()
}

const TWO_TO_THE_64TH: &str = "18446744073709551616";

#[derive(Debug, Serialize, Deserialize)]
struct Item {
    count: u32,
    total: Option<i64>,
}

#[derive(Debug, Serialize, Deserialize)]
enum Shape {
    Point,
    Circle(u8),
    Line(i16, i16),
    Square { side: u64 },
}

#[derive(Debug, Serialize, Deserialize)]
#[serde(tag = "kind")]
enum Tagged {
    Square { side: u64 },
}

#[derive(Debug, Serialize, Deserialize)]
#[serde(untagged)]
enum Either {
    Number(i64),
    Any(Value),
}

#[derive(Debug, Serialize, Deserialize)]
struct Open {
    name: String,
    #[serde(flatten)]
    more: BTreeMap<String, Value>,
}

#[derive(Debug, Serialize, Deserialize)]
struct Meters(u16);

#[test]
fn whole_numbers_reach_counting_types_in_any_form() {
    for (text, expected) in
        [("3", 3), ("3.0", 3), ("3.000", 3), ("1e3", 1000), ("1E+3", 1000), ("-0", 0), ("-0.0", 0), ("1500e-2", 15)]
    {
        assert_eq!(read::<u16>(text), Ok(expected), "{text}");
        assert_eq!(read::<i64>(text), Ok(expected.into()), "{text}");
        assert_eq!(read::<i128>(text), Ok(expected.into()), "{text}");
        assert_eq!(read::<Option<usize>>(text), Ok(Some(expected.into())), "{text}");
        assert_eq!(read::<Vec<u32>>(&format!("[{text}, {text}]")), Ok(vec![expected.into(); 2]), "{text}");
        assert_eq!(read::<(u64, f64)>(&format!("[{text}, {text}]")), Ok((expected.into(), expected.into())), "{text}");
        assert_eq!(read::<Meters>(text).unwrap().0, expected, "{text}");
    }
    assert_eq!(again::<Item>(r#"{"total": -2e0, "count": 1e0, "unknown": [1e400, {"a": "]"}]}"#), r#"{"count":1,"total":-2}"#);
}

#[test]
fn the_largest_and_the_smallest_fit() {
    macro_rules! edges {
        ($($number:ty)*) => {$(
            for edge in [<$number>::MIN, <$number>::MAX] {
                assert_eq!(read::<$number>(&edge.to_string()), Ok(edge));
            }
            let above = if <$number>::BITS == 128 { format!("{}0", <$number>::MAX) } else { (<$number>::MAX as i128).wrapping_add(1).to_string() };
            let message = refusal::<$number>(&above);
            assert!(message.contains(&above) && message.contains(stringify!($number)), "{message}");
        )*};
    }
    edges!(u8 u16 u32 u64 u128 i8 i16 i32 i64 i128);
}

#[test]
fn what_does_not_fit_is_told_with_its_place() {
    let error = |part: &str, message: String| assert!(message.contains(part), "{part:?} is not in {message:?}");
    error("`n`: invalid value: the number 18446744073709551616, expected u64", {
        refusal::<HashMap<String, u64>>(&format!(r#"{{"n": {TWO_TO_THE_64TH}}}"#))
    });
    error(
        "`[1].count`: invalid type: floating point `3.5`, expected u32",
        refusal::<Vec<Item>>(r#"[{"count": 1}, {"count": 3.5}]"#),
    );
    error("`[0].total`: invalid type: string \"3\", expected i64", refusal::<Vec<Item>>(r#"[{"count": 1, "total": "3"}]"#));
    error("missing field `count`", refusal::<Item>("{}"));
    error("`Circle`: invalid value: integer `256`, expected u8", refusal::<Shape>(r#"{"Circle": 256}"#));
    error("`Line[1]`", refusal::<Shape>(r#"{"Line": [1, 1e9]}"#));
    error("more items", refusal::<(u8, u8)>("[1, 2, 3]"));
    error("unknown variant `Cube`, expected one of `Point`", refusal::<Shape>(r#""Cube""#));
    error("invalid type: integer `1`, expected enum Shape", refusal::<Shape>("1"));
    error("beyond what a double holds", refusal::<f64>("1e400"));
    error("nested deeper than 128 levels", refusal::<Value>(&format!("{}{}", "[".repeat(129), "]".repeat(129))));
    error("(4000 characters)", refusal::<u8>(&"9".repeat(4000)));
}

#[test]
fn a_value_takes_what_it_writes_again_and_refuses_the_rest() {
    for text in [
        "0",
        "-1",
        "18446744073709551615",
        "-9223372036854775808",
        "1.5",
        "1e30",
        "-0.0",
        "0.1",
        "1e308",
        "null",
        "true",
        "\"1e999\"",
        r#"{"a":[1,2.5,{"b":"\u0000\n\"é"}],"c":{}}"#,
    ] {
        let expected: Value = serde_json::from_str(text).unwrap();
        assert_eq!(read::<Value>(text).unwrap(), expected, "{text}");
    }
    for literal in
        [TWO_TO_THE_64TH, "-9223372036854775809", "123456789012345678901234567890", "9007199254740993.0", "1e309", "1e400"]
    {
        for (text, place) in [
            (literal.to_owned(), ""),
            (format!(r#"{{"a": [0, {literal}]}}"#), "`a[1]`"),
            (format!(r#"[{{"a b": {literal}}}]"#), "`[0].a b`"),
        ] {
            let message = refusal::<Value>(&text);
            assert!(message.contains(place) && message.contains(&format!("the number {literal} would be rounded")), "{message}");
            assert!(message.contains("skillz::Json"), "{message}");
            assert_eq!(again::<Json>(&text), text, "held as it is");
        }
    }
    // What serde keeps in between cannot hold it either, and fails rather than rounds.
    for message in [
        refusal::<Tagged>(&format!(r#"{{"kind": "Square", "side": {TWO_TO_THE_64TH}}}"#)),
        refusal::<Either>(TWO_TO_THE_64TH),
        refusal::<Open>(&format!(r#"{{"name": "a", "b": {TWO_TO_THE_64TH}}}"#)),
        refusal::<HashMap<String, Value>>(&format!(r#"{{"b": {TWO_TO_THE_64TH}}}"#)),
    ] {
        assert!(message.contains(TWO_TO_THE_64TH), "{message}");
    }
}

#[test]
fn types_are_read_as_serde_json_reads_them() {
    fn same<T: DeserializeOwned + Serialize>(text: &str) {
        let expected: T = serde_json::from_str(text).unwrap_or_else(|error| panic!("{text}: {error}"));
        assert_eq!(again::<T>(text), serde_json::to_string(&expected).unwrap(), "{text}");
    }
    same::<Shape>(r#""Point""#);
    same::<Shape>(r#"{"Point": null}"#);
    same::<Shape>(r#" { "Circle" : 3 } "#);
    same::<Vec<Shape>>(r#"[{"Line": [1, -1]}, {"Square": {"side": 5}}, "Point"]"#);
    same::<Tagged>(r#"{"side": 5, "kind": "Square"}"#);
    same::<Either>("5");
    same::<Either>("5.5");
    same::<Open>(r#"{"name": "a", "b": [1], "c": {"d": null}}"#);
    same::<BTreeMap<u8, i8>>(r#"{"1": -1, "200": 3}"#);
    same::<BTreeMap<i128, ()>>(r#"{"-170141183460469231731687303715884105728": null}"#);
    same::<BTreeMap<bool, char>>(r#"{"true": "é"}"#);
    same::<Option<Vec<Option<String>>>>(r#"[null, "a\u00e9\ud83d\ude00\\", ""]"#);
    same::<Option<u8>>("null");
    same::<[u8; 2]>("[1,2]");
    same::<()>("null");
    same::<std::time::Duration>(r#"{"secs": 1, "nanos": 2}"#);
    same::<Box<RawValue>>(r#"{"a" : [1e400 , "\u0041"]}"#);
    assert!(refusal::<BTreeMap<u8, i8>>(r#"{"1": -1, "300": 3}"#).contains("`300`: invalid value: integer `300`, expected u8"));
    assert!(refusal::<BTreeMap<u8, i8>>(r#"{"x": 3}"#).contains("`x`: invalid type: string \"x\", expected u8"));
    assert!(refusal::<Item>(r#"{"count": 1, "count": 2}"#).contains("duplicate field `count`"));
    assert!("[1".parse::<Json>().is_err() && "1 2".parse::<Json>().is_err() && "".parse::<Json>().is_err());
}

#[test]
fn json_holds_anything_and_gives_it_back() {
    #[derive(Debug, Serialize, Deserialize)]
    struct Holder {
        id: Json,
        list: Vec<Json>,
        by_name: BTreeMap<String, Json>,
        none: Option<Json>,
    }
    let digits = "9".repeat(4_300);
    let text = format!(r#"{{"id":{digits},"list":[1.0,-0.0,1e400],"by_name":{{"a":{TWO_TO_THE_64TH}}},"none":null}}"#);
    assert_eq!(again::<Json>(&text), text);
    assert_eq!(again::<Holder>(&text), text);
    let holder: Holder = read(&text).unwrap();
    assert_eq!(holder.by_name["a"].read::<u128>(), Ok(1 << 64));
    assert_eq!(holder.by_name["a"].read::<f64>(), Ok(18446744073709551616.0), "a double was asked for");
    assert_eq!(holder.id.text(), digits);
    assert_eq!(serde_json::to_string(&holder).unwrap(), text);
    assert_eq!(serde_json::from_str::<Json>(&text).unwrap().text(), text);

    // A `Value` cannot hold it, and says so; what it can hold goes in.
    let error = serde_json::to_value(&holder.by_name).unwrap_err().to_string();
    assert!(error.contains("18446744073709551616 would be rounded"), "{error}");
    assert_eq!(serde_json::to_value(Json::new([1, 2]).unwrap()).unwrap(), skillz::json!([1, 2]));
    assert_eq!(Json::new((u128::MAX, i128::MIN)).unwrap().text(), format!("[{},{}]", u128::MAX, i128::MIN));
}
