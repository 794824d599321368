use serde::Serialize;

#[derive(Serialize)]
struct Count {
    words: usize,
}

/// Counts words; arguments come by name, and what is returned is the result.
#[skillz::tool]
fn run(text: String, limit: Option<usize>) -> Result<Count, String> {
    let words = text.split_whitespace().take(limit.unwrap_or(10)).count();
    Ok(Count { words })
}
