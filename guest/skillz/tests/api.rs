//! What compiles against the crate, and what it does where there is no server.

use std::{collections::HashMap, time::Duration};

use skillz::{Amount, LogLevel, Seconds, Text};

#[test]
fn numbers_texts_and_levels_may_be_given_in_many_forms() {
    assert_eq!((3_u8.amount(), 3.5.amount(), None.amount()), (Some(3.0), Some(3.5), None));
    assert_eq!((60.seconds(), 2_u64.seconds(), Duration::from_millis(1500).seconds()), (60.0, 2.0, 1.5));
    assert_eq!(("a".text(), String::from("b").text(), None.text()), (Some("a".into()), Some("b".into()), None));
    assert_eq!(("WARN".level_name(), skillz::Level::Error.level_name()), ("warning".into(), "error".into()));
}

#[test]
fn without_a_server_every_request_is_an_error() {
    let error = skillz::memory::get("key").unwrap_err();
    assert!(error.to_string().contains("does not run as a Skillz tool"));
    assert!(skillz::log("info", 1).is_err());
    assert!(skillz::progress(1, None, None).is_err());
    assert!(skillz::call("other", skillz::json!({"a": 1})).is_err());
    assert!(skillz::memory::set_for("key", vec![1], 5).is_err());
}

#[test]
fn requests_take_headers_and_bodies_in_many_forms() {
    use skillz::http::request;
    let (name, value) = (String::from("x"), String::from("y"));
    assert!(request("GET", "http://a", (), ()).is_err());
    assert!(request("POST", "http://a", &[("a", "b")][..], "text").is_err());
    assert!(request("POST", "http://a", vec![(name, value)], skillz::json!({})).is_err());
    assert!(request("POST", "http://a", HashMap::from([("a", "b")]), b"bytes").is_err());
    assert!(request("POST", "http://a", skillz::json!({"a": 1}), None).is_err());
}
