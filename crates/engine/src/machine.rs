//! What the machine lacks, as whoever lists tools should know it.

use async_trait::async_trait;

/// Knows the machine that tools run on.
#[async_trait]
pub trait Machine: Send + Sync {
    /// A sentence for each thing that tools cannot have here, such as a sandbox. Asked whenever tools are listed, so
    /// what takes time is found out once.
    async fn warnings(&self) -> Vec<String>;
}
