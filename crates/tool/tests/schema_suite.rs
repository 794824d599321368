//! The public JSON-Schema-Test-Suite, draft 2020-12, against what checks arguments and results. `scripts/setup test` fetches it.

#![allow(clippy::unwrap_used, clippy::expect_used, clippy::panic, clippy::indexing_slicing, reason = "a test fails by them")]

use std::{
    collections::BTreeSet,
    fs,
    path::{Path, PathBuf},
};

use skillz_json::Value;
use skillz_tool::CompiledSchema;

/// The version in `scripts/environment.sh`.
const FOLDER: &str = "schema-suite-4.26.0";
/// Fewer tests than this are not the suite.
const LEAST: usize = 1_200;

/// What cannot pass, as file, case, and why. Nothing is fetched, so a schema that refers to another server is an error.
const NOT_FETCHED: &str = "its schema refers to a document on another server";

#[expect(clippy::disallowed_methods, reason = "where the development cache is, which is no setting of the product")]
fn suite() -> PathBuf {
    let variable = |name: &str| std::env::var_os(name).map(PathBuf::from);
    let cache = variable("SKILLZ_DEV_CACHE")
        .or_else(|| variable("XDG_CACHE_HOME").map(|cache| cache.join("skillz-dev")))
        .or_else(|| variable("HOME").map(|home| home.join(".cache").join("skillz-dev")));
    cache.expect("a home").join(FOLDER).join("tests").join("draft2020-12")
}

fn files(folder: &Path) -> BTreeSet<PathBuf> {
    let entries = fs::read_dir(folder)
        .unwrap_or_else(|error| panic!("the suite is not in `{}` ({error}); run scripts/setup test", folder.display()));
    let paths = entries.map(|entry| entry.unwrap().path());
    paths.filter(|path| path.extension().is_some_and(|extension| extension == "json")).collect()
}

/// Whether parts of a schema cannot be checked, since only a server elsewhere has them; what is left refuses nothing valid.
fn refers_elsewhere(schema: &CompiledSchema) -> bool {
    let is_named = schema.unchecked_parts().is_ok_and(|parts| !parts.is_empty());
    is_named && schema.as_value().to_string().contains("http://localhost:1234/")
}

#[test]
fn every_case_of_the_public_suite_is_judged_as_it_demands() {
    let (mut passed, mut not_fetched, mut wrong) = (0, 0, Vec::new());
    for path in files(&suite()) {
        let file = path.file_name().unwrap().to_string_lossy().into_owned();
        let cases: Value = serde_json::from_slice(&fs::read(&path).unwrap()).unwrap();
        for case in cases.as_array().unwrap() {
            let schema = CompiledSchema::new(case["schema"].clone());
            for test in case["tests"].as_array().unwrap() {
                let valid = test["valid"].as_bool().unwrap();
                match schema.violations(&test["data"]) {
                    Ok(violations) if violations.is_empty() == valid => passed += 1,
                    Ok(_) if !valid && refers_elsewhere(&schema) => not_fetched += 1,
                    // Another dialect, which does without validation, is not known either.
                    Ok(_) if file == "vocabulary.json" && refers_elsewhere(&schema) => not_fetched += 1,
                    other => wrong.push(format!("{file}: {}: {}: {other:?}", case["description"], test["description"])),
                }
            }
        }
    }
    println!("{passed} passed, {not_fetched} left out: {NOT_FETCHED}");
    assert!(wrong.is_empty(), "{} are judged wrong:\n{}", wrong.len(), wrong.join("\n"));
    assert!(passed >= LEAST, "only {passed} tests were found");
    assert!(not_fetched < passed / 10, "{not_fetched} is too much to leave out");
}
