//! Values pass unchanged through every kind of tool and every way to call one, or the call fails and says why.
//!
//! Each value of a table of edges, and then random ones: `SKILLZ_CASES` says how many, `SKILLZ_SEED` repeats a failure.

mod generator;
mod json;
mod ways;

use std::collections::HashMap;

use generator::Random;
use json::{Json, cut};
use skillz_test_support::Home;
use ways::{WAYS, Way, World};

const CASES: u64 = 16;
const MOST_SHOWN: usize = 4;
/// Words of which a refusal holds one, since it says what is wrong with the number.
const REASONS: &[&str] = &["digit", "double", "exact", "integer", "number", "range", "too large"];

#[derive(Debug, PartialEq, Eq)]
enum Expected {
    Unchanged,
    UnchangedOrRefused,
    Refused,
    /// The program under test, not Skillz, would change it.
    Nothing,
}

/// What must come of a value that goes one way.
fn expected(way: &Way, value: &Json) -> Expected {
    let numbers = value.numbers();
    if numbers.iter().any(json::Number::has_too_many_digits) {
        Expected::Refused
    } else if way.reads_as_usual && !numbers.iter().all(json::Number::survives_usual_reading) {
        Expected::Nothing
    } else if numbers.iter().any(|number| number.is_beyond_doubles() || way.is_javascript && number.may_be_lost_in_javascript()) {
        Expected::UnchangedOrRefused
    } else {
        Expected::Unchanged
    }
}

/// What is wrong with the way a value went; the outcome is the value that came, or the reason of a failure.
fn fault(way: &Way, value: &Json, outcome: &Result<Json, String>) -> Option<String> {
    let refusal = |reason: &str| {
        let says_why = REASONS.iter().any(|word| reason.contains(word));
        (!says_why).then(|| format!("failed without saying what is wrong with the value: {}", cut(reason)))
    };
    match (expected(way, value), outcome) {
        (Expected::Nothing, _) => None,
        (Expected::Refused, Ok(_)) => Some("should have been refused".to_owned()),
        (Expected::Unchanged, Err(reason)) => Some(format!("failed: {}", cut(reason))),
        (_, Err(reason)) => refusal(reason),
        (_, Ok(came)) => value.difference(came, !way.is_javascript),
    }
}

fn number_from(variable: &str) -> Option<u64> {
    std::env::var(variable).ok().map(|text| text.parse().unwrap_or_else(|_| panic!("{variable} is no number: {text}")))
}

#[test]
fn values_come_back_exactly_or_the_call_says_why_not() {
    let moment = std::time::UNIX_EPOCH.elapsed().map_or(1, |elapsed| u64::from(elapsed.subsec_nanos()));
    let seed = number_from("SKILLZ_SEED").unwrap_or(moment);
    let cases = number_from("SKILLZ_CASES").unwrap_or(CASES);
    let mut random = Random(seed);
    let depths = [0, 1, 2, 3, 5, 8, 120];
    let mut values = generator::table();
    for case in 0..cases {
        let depth = depths[usize::try_from(case).unwrap() % depths.len()];
        values.push(random.value(depth));
    }

    let home = Home::new();
    let mut world = World::new(&home);
    let mut faults = std::mem::take(&mut world.unmade);
    let mut passed: HashMap<&str, u32> = HashMap::new();
    let mut failed: HashMap<&str, usize> = HashMap::new();
    for text in &values {
        let value = Json::read(text).unwrap();
        world.keep(text);
        for way in WAYS.iter().filter(|way| expected(way, &value) != Expected::Nothing) {
            let outcome = world.send(way, text);
            *passed.entry(way.name).or_default() += u32::from(outcome.is_ok());
            let Some(fault) = fault(way, &value, &outcome) else { continue };
            let count = failed.entry(way.name).or_default();
            *count += 1;
            // The first few of each way tell what is wrong with it.
            if *count <= MOST_SHOWN {
                faults.push(format!("{}: {fault}\n    of {}", way.name, cut(text)));
            }
        }
    }
    let idle: Vec<&str> =
        WAYS.iter().map(|way| way.name).filter(|name| passed.get(name).is_none_or(|count| *count == 0)).collect();
    assert!(
        faults.is_empty() && idle.is_empty(),
        "{} values, SKILLZ_SEED={seed} SKILLZ_CASES={cases} repeats them; faults by way: {failed:?}; ways that let nothing pass: {idle:?}\n{}",
        values.len(),
        faults.join("\n")
    );
}
