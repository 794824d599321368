//! Errors as people see them: the chain of causes, hints below, and one exit code.

use std::{
    fmt::Write as _,
    io::{self, Write as _},
    process::ExitCode,
};

use skillz_config::ConfigError;
use skillz_tool::{ErrorKind, ToolError};

/// Why a command failed; picks the exit code.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum Status {
    /// The tool ran and failed, or something that it needs is missing.
    ToolFailed = 1,
    /// The command line, the arguments or the configuration are wrong.
    WrongUse = 2,
    /// There is no such thing.
    NotFound = 3,
    /// A permission, a policy or an existing thing stands against it.
    Refused = 4,
    /// A fault of Skillz or of the machine.
    Internal = 5,
}

/// A failure with its exit code, and what to do next.
#[derive(Debug, Clone, thiserror::Error)]
#[error("{message}")]
pub(crate) struct Failure {
    status: Status,
    message: String,
    hint: Option<String>,
}

impl Failure {
    pub(crate) fn new(status: Status, message: impl Into<String>) -> Self {
        Self { status, message: message.into(), hint: None }
    }

    pub(crate) fn wrong_use(message: impl Into<String>) -> Self {
        Self::new(Status::WrongUse, message)
    }

    pub(crate) fn not_found(message: impl Into<String>) -> Self {
        Self::new(Status::NotFound, message)
    }

    pub(crate) fn gave_up() -> Self {
        Self::new(Status::ToolFailed, "Interrupted; everything that was running has been stopped")
    }

    pub(crate) fn with_hint(mut self, hint: impl Into<String>) -> Self {
        self.hint = Some(hint.into());
        self
    }
}

impl From<ToolError> for Failure {
    fn from(error: ToolError) -> Self {
        // The hint goes below, so the text is taken without it.
        let hint = error.hint.clone();
        let status = status_of(error.kind);
        let message = ToolError { hint: None, ..error }.text();
        Self { status, message, hint }
    }
}

fn status_of(kind: ErrorKind) -> Status {
    match kind {
        ErrorKind::NotFound => Status::NotFound,
        ErrorKind::InvalidInput | ErrorKind::Config => Status::WrongUse,
        ErrorKind::Denied => Status::Refused,
        ErrorKind::Failed | ErrorKind::TimedOut | ErrorKind::LimitExceeded | ErrorKind::Cancelled | ErrorKind::Unavailable => {
            Status::ToolFailed
        }
        ErrorKind::Internal => Status::Internal,
    }
}

/// Prints an error to stderr and gives the exit code.
pub(crate) fn report(error: &anyhow::Error) -> ExitCode {
    if is_closed_pipe(error) {
        return ExitCode::SUCCESS;
    }
    // Nobody may be listening on stderr either, and that is no reason to panic.
    let _ = io::stderr().write_all(text(error).as_bytes());
    ExitCode::from(status(error) as u8)
}

fn status(error: &anyhow::Error) -> Status {
    for cause in error.chain() {
        if let Some(failure) = cause.downcast_ref::<Failure>() {
            return failure.status;
        }
        if let Some(error) = cause.downcast_ref::<ToolError>() {
            return status_of(error.kind);
        }
        if cause.is::<ConfigError>() {
            return Status::WrongUse;
        }
    }
    Status::Internal
}

fn text(error: &anyhow::Error) -> String {
    let mut text = String::new();
    let mut hint = None;
    for (depth, cause) in error.chain().enumerate() {
        let prefix = if depth == 0 { "error: " } else { "  because: " };
        let _ = writeln!(text, "{prefix}{cause}");
        if let Some(failure) = cause.downcast_ref::<Failure>() {
            hint = failure.hint.clone().or(hint);
        }
    }
    if let Some(hint) = hint {
        let _ = writeln!(text, "hint: {hint}");
    }
    text
}

fn is_closed_pipe(error: &anyhow::Error) -> bool {
    error.chain().any(|cause| cause.downcast_ref::<io::Error>().is_some_and(|error| error.kind() == io::ErrorKind::BrokenPipe))
}

#[cfg(test)]
mod tests {
    use anyhow::Context;

    use super::*;

    #[test]
    fn the_deepest_known_cause_picks_the_exit_code() {
        let cases = [
            (ErrorKind::NotFound, Status::NotFound),
            (ErrorKind::InvalidInput, Status::WrongUse),
            (ErrorKind::Denied, Status::Refused),
            (ErrorKind::TimedOut, Status::ToolFailed),
            (ErrorKind::Internal, Status::Internal),
        ];
        for (kind, expected) in cases {
            let error = Err::<(), _>(Failure::from(ToolError::new(kind, "Gone"))).context("Looking").expect_err("fails");
            assert_eq!(status(&error), expected, "{kind:?}");
        }
        assert_eq!(status(&anyhow::anyhow!("unknown")), Status::Internal);
    }

    #[test]
    fn causes_and_hints_stand_on_lines_of_their_own() {
        let failure =
            Failure::from(ToolError::failed("`x` ended with exit code 3").with_output("no such file").with_hint("Create it"));
        let error = anyhow::Error::from(failure).context("The call failed");
        assert_eq!(
            text(&error),
            "error: The call failed\n  because: `x` ended with exit code 3\n\nno such file\nhint: Create it\n"
        );
    }

    #[test]
    fn a_reader_that_went_away_is_no_error() {
        let error = anyhow::Error::from(io::Error::from(io::ErrorKind::BrokenPipe)).context("Printing");
        assert!(is_closed_pipe(&error));
    }
}
