//! Why an environment could not be made.

use skillz_process::ProcessError;

use crate::Language;

/// Why an environment could not be made.
#[derive(Debug, thiserror::Error)]
pub enum EnvironmentError {
    /// A dependency is written in a way that is not taken.
    #[error("The dependency `{specifier}` {reason}")]
    Specifier {
        /// As it was given.
        specifier: String,
        /// What is wrong with it, and what would do.
        reason: String,
    },
    /// A block of inline metadata is broken.
    #[error("The inline metadata (`# /// script`) is broken on line {line}: {reason}")]
    InlineMetadata {
        /// Line of the source, from 1.
        line: usize,
        /// What is wrong with it, and what would do.
        reason: String,
    },
    /// The interpreter is none of those that the script asks for.
    #[error("The script asks for Python {required} (`requires-python`), and `{program}` is Python {found}")]
    PythonVersion {
        /// The versions that would do.
        required: String,
        /// The version that is there.
        found: String,
        /// The interpreter.
        program: String,
    },
    /// No program that installs for this language is there.
    #[error("Nothing on this machine installs {language} packages: {missing}")]
    NoInstaller {
        /// The language.
        language: Language,
        /// What was looked for.
        missing: String,
        /// How to get it.
        fix: String,
    },
    /// The installer ran and failed.
    #[error("{cause}")]
    Install {
        /// What went wrong, in one sentence.
        cause: String,
        /// What to do.
        fix: String,
        /// The installer's own last lines.
        output: String,
    },
    /// An installer could not be started.
    #[error("The installer could not be started. {0}")]
    Start(#[from] ProcessError),
    /// Files of the environment could not be written.
    #[error("{what} could not be written: {source}")]
    Files {
        /// Which ones.
        what: String,
        /// Why.
        source: std::io::Error,
    },
}

impl EnvironmentError {
    /// What to do about it, where there is something.
    pub fn fix(&self) -> Option<&str> {
        match self {
            Self::NoInstaller { fix, .. } | Self::Install { fix, .. } => Some(fix),
            Self::PythonVersion { .. } => {
                Some("Name another interpreter, such as `python3.13`, in `interpreter`, or loosen `requires-python`")
            }
            Self::Files { source, .. } if source.kind() == std::io::ErrorKind::StorageFull => Some("Free some space on the disk"),
            Self::Specifier { .. } | Self::InlineMetadata { .. } | Self::Start(_) | Self::Files { .. } => None,
        }
    }

    /// The installer's own last lines.
    pub fn output(&self) -> &str {
        match self {
            Self::Install { output, .. } => output,
            _ => "",
        }
    }

    pub(crate) fn files(what: impl Into<String>) -> impl FnOnce(std::io::Error) -> Self {
        let what = what.into();
        move |source| Self::Files { what, source }
    }
}
