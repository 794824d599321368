//! Values of Python programs to and from JSON.

use base64::{Engine as _, prelude::BASE64_STANDARD};
use monty_types::MontyObject;
use skillz_json::{Map, Number, Value};

/// Deepest nesting of a value that is passed on; JSON's readers have the same bound.
const DEEPEST: usize = 120;

/// A JSON value as the program sees it. Whole numbers keep their digits.
pub(crate) fn from_value(value: Value) -> MontyObject {
    match value {
        Value::Null => MontyObject::None,
        Value::Bool(value) => MontyObject::Bool(value),
        Value::Number(number) => from_number(&number),
        Value::String(text) => MontyObject::String(text),
        Value::Array(items) => MontyObject::List(items.into_iter().map(from_value).collect()),
        Value::Object(members) => {
            let pairs: Vec<_> = members.into_iter().map(|(key, member)| (MontyObject::String(key), from_value(member))).collect();
            MontyObject::dict(pairs)
        }
    }
}

fn from_number(number: &Number) -> MontyObject {
    if let Some(whole) = number.as_i64() {
        return MontyObject::Int(whole);
    }
    // What is not written whole is a double to Python; the runner lets no other pass.
    match number.as_str().parse() {
        Ok(whole) => MontyObject::BigInt(whole),
        Err(_) => MontyObject::Float(number.as_f64().unwrap_or(f64::NAN)),
    }
}

/// A value of the program as JSON: tuples and sets become arrays, dates ISO 8601, dataclasses objects, bytes base64. An error
/// says what is wrong with any other.
pub(crate) fn into_value(object: &MontyObject) -> Result<Value, String> {
    convert(object, 0)
}

fn convert(object: &MontyObject, depth: usize) -> Result<Value, String> {
    if depth > DEEPEST {
        return Err(format!("The value is nested more than {DEEPEST} deep"));
    }
    let array = |items: &[MontyObject]| {
        items.iter().map(|item| convert(item, depth + 1)).collect::<Result<Vec<_>, _>>().map(Value::Array)
    };
    let object_of = |pairs: &monty_types::DictPairs| {
        let members = pairs.iter().map(|(key, value)| Ok((into_key(key)?, convert(value, depth + 1)?)));
        members.collect::<Result<Map<_, _>, String>>().map(Value::Object)
    };
    Ok(match object {
        MontyObject::None | MontyObject::Ellipsis => Value::Null,
        MontyObject::Bool(value) => Value::Bool(*value),
        MontyObject::Int(value) => Value::from(*value),
        MontyObject::BigInt(value) => skillz_json::parse(&value.to_string()).map_err(|error| error.to_string())?,
        MontyObject::Float(value) => Number::from_f64(*value).map_or(Value::Null, Value::Number),
        MontyObject::String(text) | MontyObject::Path(text) => Value::from(text.as_str()),
        MontyObject::List(items) | MontyObject::Tuple(items) | MontyObject::Set(items) | MontyObject::FrozenSet(items) => {
            array(items)?
        }
        MontyObject::NamedTuple { field_names, values, .. } => {
            let members = field_names.iter().zip(values).map(|(name, value)| Ok((name.clone(), convert(value, depth + 1)?)));
            Value::Object(members.collect::<Result<_, String>>()?)
        }
        MontyObject::Dict(pairs) => object_of(pairs)?,
        MontyObject::ClassInstance(instance) => object_of(&instance.attrs)?,
        MontyObject::Date(date) => Value::from(format!("{:04}-{:02}-{:02}", date.year, date.month, date.day)),
        MontyObject::DateTime(moment) => {
            let date = format!("{:04}-{:02}-{:02}", moment.year, moment.month, moment.day);
            let time = clock(moment.hour, moment.minute, moment.second, moment.microsecond);
            Value::from(format!("{date}T{time}{}", moment.offset_seconds.map(offset).unwrap_or_default()))
        }
        MontyObject::Time(time) => {
            let text = clock(time.hour, time.minute, time.second, time.microsecond);
            Value::from(format!("{text}{}", time.offset_seconds.map(offset).unwrap_or_default()))
        }
        MontyObject::TimeDelta(delta) => {
            let seconds = f64::from(delta.days) * 86_400.0 + f64::from(delta.seconds) + f64::from(delta.microseconds) / 1e6;
            Number::from_f64(seconds).map_or(Value::Null, Value::Number)
        }
        MontyObject::Cycle(..) => return Err("The value contains itself".to_owned()),
        MontyObject::Bytes(bytes) => Value::from(BASE64_STANDARD.encode(bytes)),
        MontyObject::Exception { .. } => Value::from(object.py_repr()),
        other => {
            let shown = other.py_repr();
            let hint = if shown.contains("coroutine") { "write `await` in front of it" } else { "return what matters in it" };
            return Err(format!("The value `{shown}` has no form as JSON; {hint}"));
        }
    })
}

/// A key as JSON spells it, the way Python's `json` does.
fn into_key(key: &MontyObject) -> Result<String, String> {
    Ok(match key {
        MontyObject::String(text) => text.clone(),
        MontyObject::None => "null".to_owned(),
        MontyObject::Bool(value) => value.to_string(),
        other => match convert(other, DEEPEST - 2)? {
            Value::String(text) => text,
            value => value.to_string(),
        },
    })
}

fn clock(hour: u8, minute: u8, second: u8, microsecond: u32) -> String {
    let fraction = if microsecond == 0 { String::new() } else { format!(".{microsecond:06}") };
    format!("{hour:02}:{minute:02}:{second:02}{fraction}")
}

fn offset(seconds: i32) -> String {
    let (sign, seconds) = if seconds < 0 { ('-', -seconds) } else { ('+', seconds) };
    format!("{sign}{:02}:{:02}", seconds / 3_600, seconds / 60 % 60)
}

#[cfg(test)]
mod tests {
    use skillz_json::json;

    use super::*;

    #[test]
    fn json_survives_the_way_there_and_back() {
        for value in [
            json!(null),
            json!(true),
            json!(0),
            json!(-5),
            json!(9_007_199_254_740_993_i64),
            json!(u64::MAX),
            json!(i64::MIN),
            json!(0.5),
            json!("é\u{0}名"),
            json!([]),
            json!({}),
            json!({"b": 1, "a": [null, {"x": [1.5]}]}),
        ] {
            assert_eq!(into_value(&from_value(value.clone())), Ok(value));
        }
    }

    #[test]
    fn what_json_lacks_becomes_the_nearest() {
        let text = |text: &str| MontyObject::String(text.to_owned());
        for (object, expected) in [
            (MontyObject::Tuple(vec![MontyObject::Int(1), text("a")]), json!([1, "a"])),
            (MontyObject::Float(f64::INFINITY), json!(null)),
            (MontyObject::Bytes(b"ab".to_vec()), json!("YWI=")),
            (MontyObject::Bytes(vec![255]), json!("/w==")),
            (
                MontyObject::dict(vec![(MontyObject::Int(1), MontyObject::None), (MontyObject::Bool(true), text("t"))]),
                json!({"1": null, "true": "t"}),
            ),
        ] {
            assert_eq!(into_value(&object), Ok(expected));
        }
        let deep = (0..300).fold(MontyObject::None, |inner, _| MontyObject::List(vec![inner]));
        assert!(into_value(&deep).is_err());
        assert!(into_value(&MontyObject::List(vec![MontyObject::Cycle(1, "[...]".to_owned())])).is_err());
    }
}
