//! Why an environment could not be made.

use crate::Language;

/// Why an environment could not be made.
#[derive(Debug, thiserror::Error)]
pub enum EnvironmentError {
    /// No program that installs for this language is there.
    #[error("Nothing on this machine installs {language} packages: {what}")]
    NoInstaller {
        /// The language.
        language: Language,
        /// What was looked for, and how to get it.
        what: String,
    },
}
