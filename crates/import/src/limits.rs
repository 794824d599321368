//! How much one import may take.

use std::time::Duration;

/// Most bytes of a download, of a repository's history, and of what is unpacked. Tools are small; more is a mistake or an attack.
pub(crate) const BYTES: u64 = 200 << 20;
/// Most files and folders.
pub(crate) const ENTRIES: usize = 10_000;
/// Longest time for fetching, downloads and git together.
pub(crate) const TIME: Duration = Duration::from_secs(120);
/// An archive may grow this much when it is unpacked, once it is larger than [`FREE_GROWTH`]. Text seldom grows tenfold.
pub(crate) const GROWTH: u64 = 200;
/// Below this many bytes nobody asks how well something was packed.
pub(crate) const FREE_GROWTH: u64 = 20 << 20;
/// Deepest folder.
pub(crate) const DEPTH: usize = 24;
