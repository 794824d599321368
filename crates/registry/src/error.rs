//! What can go wrong with tools on disk, in sentences for whoever asked.

use std::{io, path::PathBuf};

use skillz_tool::{ErrorKind, ToolError, ToolName, Version};

use crate::BrokenTool;

/// The registry could not do what was asked; nothing was changed.
#[derive(Debug, thiserror::Error)]
pub enum RegistryError {
    /// There is no such tool, not even a deleted one.
    #[error("There is no tool `{name}`")]
    UnknownTool {
        /// The name asked for.
        name: ToolName,
    },
    /// The tool has no such version.
    #[error("`{name}` has no version `{version}`; it has {known}")]
    UnknownVersion {
        /// The tool.
        name: ToolName,
        /// The version asked for.
        version: Version,
        /// The versions there are, as a list for reading.
        known: String,
    },
    /// A new tool was to be published, and the name is taken.
    #[error("There is a tool `{name}` already, at version `{current}`")]
    Exists {
        /// The tool.
        name: ToolName,
        /// Its current version.
        current: Version,
    },
    /// Somebody else changed the tool since the publisher looked at it.
    #[error("`{name}` was changed by somebody else meanwhile: {found}, where {expected} was expected. Nothing was published")]
    Conflict {
        /// The tool.
        name: ToolName,
        /// What is there, in words.
        found: String,
        /// What the publisher expected, in words.
        expected: String,
    },
    /// The tool's folder holds a manifest that cannot be read, and is not overwritten.
    #[error("`{}` is broken and was left as it is: {broken}", broken.name)]
    Broken {
        /// What is wrong with it.
        broken: Box<BrokenTool>,
    },
    /// What was to be published is not fit for it.
    #[error("{reason}")]
    Invalid {
        /// Why, in a sentence.
        reason: String,
    },
    /// The file system refused.
    #[error("{action} `{path}` failed: {source}")]
    Io {
        /// What was tried, such as `Writing`.
        action: &'static str,
        /// On what.
        path: PathBuf,
        /// Why it failed.
        source: io::Error,
    },
    /// Work in the background was cut off, as happens while the server ends.
    #[error("The registry is shutting down")]
    Stopped,
}

impl RegistryError {
    /// For `map_err` on file operations.
    pub(crate) fn io(action: &'static str, path: impl Into<PathBuf>) -> impl FnOnce(io::Error) -> Self {
        let path = path.into();
        move |source| Self::Io { action, path, source }
    }

    /// What to do next, where there is something to say.
    fn hint(&self) -> Option<String> {
        match self {
            Self::Exists { .. } => {
                Some("Look at it; sent again with `overwrite: true`, yours becomes the next version of it".to_owned())
            }
            Self::Conflict { name, .. } => Some(format!(
                "Look at it with `version(action: \"list\", tool_name: \"{name}\")` and try again if your change is still wanted"
            )),
            Self::Broken { broken } => Some(format!(
                "Repair `{}` by hand, bring an older version back with `version(action: \"rollback\", ...)`, or remove the folder with `delete_tool`",
                broken.file.display()
            )),
            Self::Io { source, .. } if source.kind() == io::ErrorKind::StorageFull => {
                Some("Free some disk space and try again; what was there before is unchanged".to_owned())
            }
            Self::Io { source, .. } if source.kind() == io::ErrorKind::PermissionDenied => {
                Some("Make the tools folder writable for the user that runs the server".to_owned())
            }
            Self::UnknownTool { .. } => Some("`list_tools` shows the tools there are".to_owned()),
            _ => None,
        }
    }
}

impl From<RegistryError> for ToolError {
    fn from(error: RegistryError) -> Self {
        let kind = match &error {
            RegistryError::UnknownTool { .. } | RegistryError::UnknownVersion { .. } => ErrorKind::NotFound,
            RegistryError::Exists { .. } | RegistryError::Conflict { .. } | RegistryError::Invalid { .. } => {
                ErrorKind::InvalidInput
            }
            RegistryError::Broken { .. } => ErrorKind::Config,
            RegistryError::Io { .. } => ErrorKind::Unavailable,
            RegistryError::Stopped => ErrorKind::Internal,
        };
        let tool_error = Self::new(kind, error.to_string());
        match error.hint() {
            Some(hint) => tool_error.with_hint(hint),
            None => tool_error,
        }
    }
}
