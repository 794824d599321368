//! Why a process could not be started or followed.

/// Why a process could not be started or followed.
#[derive(Debug, thiserror::Error)]
pub enum ProcessError {
    /// The sandbox asked for cannot be had here.
    #[error("{reason}")]
    Sandbox {
        /// What is missing and the ways out.
        reason: String,
    },
    /// The program could not be started.
    #[error("`{program}` could not be started: {source}")]
    Start {
        /// The program.
        program: String,
        /// Why.
        source: std::io::Error,
    },
    /// The helper process is gone.
    #[error("The helper that starts processes is gone: {0}")]
    Launcher(String),
}
