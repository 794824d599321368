//! The first crates of the list of those used most: built at once, each from nothing, and run. The whole list is built by
//! `scripts/check-release`.

#![allow(
    clippy::unwrap_used,
    clippy::expect_used,
    clippy::panic,
    clippy::indexing_slicing,
    reason = "helpers of tests may fail them"
)]

#[path = "../benches/crates/list.rs"]
mod list;
mod support;

use list::{CASES, QUICK};
use skillz_json::json;
use support::{Bench, printed};

skillz_process::helper_entry!();

#[tokio::test(flavor = "multi_thread")]
async fn much_used_crates_build_as_they_come() {
    let bench = Bench::new();
    let names: std::collections::HashSet<String> = CASES.iter().map(list::Case::name).collect();
    assert!(names.len() == CASES.len() && names.len() >= 60, "{} crates", names.len());
    let builds = CASES[..QUICK].iter().map(|case| {
        let bench = &bench;
        async move {
            let built = bench.build(&case.name(), &case.program(), case.dependencies).await;
            let tool = built.map_err(|error| format!("{}: {}", case.name(), error.text()))?;
            let text = printed(bench.call(&tool, json!({})).await.unwrap());
            if text == case.prints { Ok(()) } else { Err(format!("{}: printed {text:?}, not {:?}", case.name(), case.prints)) }
        }
    });
    let faults: Vec<String> = futures::future::join_all(builds).await.into_iter().filter_map(Result::err).collect();
    assert!(faults.is_empty(), "{}", faults.join("\n\n"));
}
