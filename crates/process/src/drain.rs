//! Reading what a program prints, within bounds.

use std::{
    collections::VecDeque,
    sync::{
        Arc,
        atomic::{AtomicU64, Ordering},
    },
};

use tokio::io::{AsyncRead, AsyncReadExt};

/// How much is read at once; the size of a pipe on Linux.
const CHUNK: usize = 64 * 1024;

/// Which bytes of a stream are kept.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Keep {
    /// The first ones, up to this many.
    Head(usize),
    /// The last ones, up to this many.
    Tail(usize),
}

/// What a stream held.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub struct Drained {
    /// The bytes kept.
    pub bytes: Vec<u8>,
    /// How many there were in all.
    pub total: u64,
}

impl Drained {
    /// Whether bytes were dropped.
    pub fn is_cut(&self) -> bool {
        self.total > self.bytes.len() as u64
    }
}

/// Bytes that the streams of one call may carry together (`limits.max_output_bytes`). Clones share one budget.
#[derive(Debug, Clone)]
pub struct OutputBudget {
    left: Arc<AtomicU64>,
    limit: u64,
}

/// A program printed more than it may.
#[derive(Debug, Clone, Copy, PartialEq, Eq, thiserror::Error)]
#[error("It printed more than {limit} bytes (`limits.max_output_bytes`)")]
pub struct OutputExceeded {
    /// The limit, in bytes.
    pub limit: u64,
}

impl OutputBudget {
    /// A budget of `limit` bytes.
    pub fn new(limit: u64) -> Self {
        Self { left: Arc::new(AtomicU64::new(limit)), limit }
    }

    /// Takes `count` bytes off; an error once more was asked for than there is.
    pub fn take(&self, count: usize) -> Result<(), OutputExceeded> {
        let take = |left: u64| left.checked_sub(count as u64);
        match self.left.fetch_update(Ordering::Relaxed, Ordering::Relaxed, take) {
            Ok(_) => Ok(()),
            Err(_) => Err(OutputExceeded { limit: self.limit }),
        }
    }
}

/// Reads a stream to its end, keeping a part. A read error counts as the end, as a broken pipe is one.
///
/// With a budget, fails as soon as the streams that share it have carried more than it allows.
pub async fn drain<R>(mut reader: R, keep: Keep, budget: Option<&OutputBudget>) -> Result<Drained, OutputExceeded>
where
    R: AsyncRead + Unpin,
{
    let mut kept = Kept::new(keep);
    let mut buffer = vec![0; CHUNK];
    let mut total = 0;
    while let Ok(count @ 1..) = reader.read(&mut buffer).await {
        if let Some(budget) = budget {
            budget.take(count)?;
        }
        total += count as u64;
        kept.add(buffer.get(..count).unwrap_or_default());
    }
    Ok(Drained { bytes: kept.into_bytes(), total })
}

/// The part of a stream that is kept so far.
enum Kept {
    Head { bytes: Vec<u8>, limit: usize },
    Tail { bytes: VecDeque<u8>, limit: usize },
}

impl Kept {
    fn new(keep: Keep) -> Self {
        match keep {
            Keep::Head(limit) => Self::Head { bytes: Vec::new(), limit },
            Keep::Tail(limit) => Self::Tail { bytes: VecDeque::new(), limit },
        }
    }

    fn add(&mut self, chunk: &[u8]) {
        match self {
            Self::Head { bytes, limit } => {
                let room = limit.saturating_sub(bytes.len()).min(chunk.len());
                bytes.extend_from_slice(chunk.get(..room).unwrap_or_default());
            }
            Self::Tail { bytes, limit } => {
                let tail = chunk.get(chunk.len().saturating_sub(*limit)..).unwrap_or_default();
                let excess = (bytes.len() + tail.len()).saturating_sub(*limit);
                bytes.drain(..excess);
                bytes.extend(tail);
            }
        }
    }

    fn into_bytes(self) -> Vec<u8> {
        match self {
            Self::Head { bytes, .. } => bytes,
            Self::Tail { bytes, .. } => bytes.into(),
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    async fn drained(input: &[u8], keep: Keep) -> (Vec<u8>, u64, bool) {
        // Small pieces, so that joins between reads are met too.
        let reader = tokio_test_reader(input, 3);
        let drained = drain(reader, keep, None).await.expect("there is no budget");
        (drained.bytes.clone(), drained.total, drained.is_cut())
    }

    fn tokio_test_reader(input: &[u8], piece: usize) -> impl AsyncRead + Unpin {
        let (reader, mut writer) = tokio::io::duplex(piece);
        let input = input.to_vec();
        tokio::spawn(async move { tokio::io::AsyncWriteExt::write_all(&mut writer, &input).await });
        reader
    }

    #[tokio::test]
    async fn head_and_tail_keep_their_ends_and_count_everything() {
        for (keep, expected, cut) in [
            (Keep::Head(4), "0123", true),
            (Keep::Head(10), "0123456789", false),
            (Keep::Head(0), "", true),
            (Keep::Tail(4), "6789", true),
            (Keep::Tail(1), "9", true),
            (Keep::Tail(10), "0123456789", false),
            (Keep::Tail(99), "0123456789", false),
            (Keep::Tail(0), "", true),
        ] {
            assert_eq!(drained(b"0123456789", keep).await, (expected.as_bytes().to_vec(), 10, cut), "{keep:?}");
        }
        assert_eq!(drained(b"", Keep::Tail(3)).await, (Vec::new(), 0, false));
    }

    #[tokio::test]
    async fn streams_share_one_budget() {
        let budget = OutputBudget::new(10);
        assert!(drain(&b"123456"[..], Keep::Head(99), Some(&budget)).await.is_ok());
        assert!(drain(&b"1234"[..], Keep::Head(99), Some(&budget.clone())).await.is_ok());
        assert_eq!(drain(&b"1"[..], Keep::Head(99), Some(&budget)).await, Err(OutputExceeded { limit: 10 }));
    }
}
