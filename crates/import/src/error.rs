//! Failures that several ways of fetching share.

use skillz_tool::{ErrorKind, ToolError};

use crate::limits;

/// Something that is never fetched, whoever asks.
pub(crate) fn refused(message: impl Into<String>) -> ToolError {
    ToolError::new(ErrorKind::Denied, message).with_hint(
        "Sources are git URLs (https, http, ssh, git, file) with `ref` and `path`, `gist:<id>`, folders, `.tar.gz` and `.zip` files or URLs, \
         and `SKILL.md` files or URLs",
    )
}

pub(crate) fn too_large(what: &str) -> ToolError {
    let message = format!("{what} is larger than {} MB, the most that is imported", limits::BYTES >> 20);
    ToolError::new(ErrorKind::LimitExceeded, message).with_hint("Import a smaller source, such as one folder with `path`")
}

pub(crate) fn too_slow(what: &str) -> ToolError {
    ToolError::new(ErrorKind::TimedOut, format!("{what} took more than {} s", limits::TIME.as_secs()))
        .with_hint("Try again, or download it by hand and import the file or folder")
}
