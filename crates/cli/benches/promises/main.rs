//! What Skillz promises about speed, measured through the real binary, each beside a bare process doing the same.
//!
//! `cargo bench --profile dev --workspace --bench promises` prints a table. It measures the dev profile, which is the only one that
//! demo, tests and benches use: dependencies are optimised in it, and the workspace is a little.
#![expect(
    clippy::expect_used,
    clippy::indexing_slicing,
    clippy::print_stdout,
    reason = "a bench that cannot go on says so by panicking, and its table is what it is for"
)]

mod bare;
mod cases;
mod peer;
mod sample;

use std::path::Path;

use crate::{cases::Bench, sample::Row};

fn main() {
    // `cargo test --benches` runs this too, and only wants to know that it can.
    let quick = std::env::args().any(|argument| argument == "--test");
    let bench = Bench::new(Path::new(env!("CARGO_BIN_EXE_skillz")), if quick { 3 } else { 100 });
    println!("{:<34} {:>10} {:>10} {:>8}  beside / promise", "medians, in ms", "skillz", "bare", "ratio");
    let mut kept = true;
    for row in bench.rows() {
        println!("{row}");
        kept &= row.is_kept();
    }
    if !kept && !quick {
        println!("\nSome promises are not kept on this machine as it is now.");
    }
}

impl Row {
    fn is_kept(&self) -> bool {
        self.limit.is_none_or(|limit| self.skillz <= limit)
    }
}
