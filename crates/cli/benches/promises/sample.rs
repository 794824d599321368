//! Measuring, and the lines of the table.

use std::{
    fmt,
    time::{Duration, Instant},
};

/// One line of the table.
pub(crate) struct Row {
    pub(crate) name: &'static str,
    pub(crate) skillz: f64,
    pub(crate) bare: f64,
    /// What the bare process does.
    pub(crate) beside: &'static str,
    /// The most that is promised, in the table's unit.
    pub(crate) limit: Option<f64>,
    pub(crate) unit: &'static str,
}

impl Row {
    pub(crate) fn new(name: &'static str, skillz: Duration, bare: Duration, beside: &'static str) -> Self {
        Self { name, skillz: milliseconds(skillz), bare: milliseconds(bare), beside, limit: None, unit: "" }
    }

    /// A promise in milliseconds.
    pub(crate) fn within(self, limit: f64) -> Self {
        Self { limit: Some(limit), ..self }
    }
}

impl fmt::Display for Row {
    fn fmt(&self, formatter: &mut fmt::Formatter<'_>) -> fmt::Result {
        let Self { name, skillz, bare, beside, limit, unit } = self;
        write!(formatter, "{name:<34} {skillz:>10.3} {bare:>10.3} {:>7.2}x  {beside}", skillz / bare.max(0.000_001))?;
        if let Some(limit) = limit {
            let verdict = if skillz <= limit { "kept" } else { "NOT KEPT" };
            write!(formatter, "; at most {limit}{unit}: {verdict}")?;
        }
        Ok(())
    }
}

pub(crate) fn milliseconds(duration: Duration) -> f64 {
    duration.as_secs_f64() * 1_000.0
}

/// The median of `rounds` runs, after a tenth as many that do not count.
pub(crate) fn median(rounds: usize, mut run: impl FnMut()) -> Duration {
    for _ in 0..rounds.div_ceil(10) {
        run();
    }
    let mut times: Vec<Duration> = (0..rounds)
        .map(|_| {
            let started = Instant::now();
            run();
            started.elapsed()
        })
        .collect();
    times.sort();
    times[times.len() / 2]
}
