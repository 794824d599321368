//! Search over catalogues of several sizes: `cargo bench -p skillz-search`.

use criterion::{Criterion, criterion_group, criterion_main};
use skillz_search::{Document, Index};

const TOOLS: &str = include_str!("../evaluation/tools.tsv");

/// An index of `count` tools: those of the evaluation set, varied by a number in name and description.
fn index(count: usize) -> Index {
    let mut index = Index::new();
    let lines: Vec<Vec<&str>> = TOOLS.lines().map(|line| line.split('\t').collect()).collect();
    for (number, line) in (0..count).zip(lines.iter().cycle()) {
        let name = format!("{}_{number}", line.first().copied().unwrap_or_default());
        let description = format!("{} Variant {number}.", line.get(1).copied().unwrap_or_default());
        index.insert(Document { name: &name, revision: "1", description: &description, tags: &[], input_schema: None });
    }
    index
}

fn benchmark(criterion: &mut Criterion) {
    for count in [300, 1_000, 10_000] {
        let index = index(count);
        for (label, question) in [
            ("short", "how much is 250 dollars in euros"),
            (
                "long",
                "please find me the cheapest train connection from hamburg to munich for tomorrow morning and book two seats",
            ),
            ("typos", "plese trnslate ths sentense into germn lnguage"),
        ] {
            criterion.bench_function(&format!("search/{count}/{label}"), |bencher| bencher.iter(|| index.search(question, 10)));
        }
    }
    criterion.bench_function("build/1000", |bencher| bencher.iter(|| index(1_000)));
}

criterion_group!(benches, benchmark);
criterion_main!(benches);
