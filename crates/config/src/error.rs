//! What can be wrong with a configuration.

use std::fmt;

/// Everything that is wrong, all at once.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
pub struct ConfigError {
    /// The faults, in the order of the layers.
    pub faults: Vec<Fault>,
}

/// One fault and its place.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Fault {
    /// A file with its line (`/home/me/.skillz/config.toml:3`), a variable, or a flag.
    pub place: String,
    /// What is wrong there, and what would be right.
    pub message: String,
}

impl ConfigError {
    pub(crate) fn one(place: impl Into<String>, message: impl Into<String>) -> Self {
        Self { faults: vec![Fault::new(place, message)] }
    }
}

impl Fault {
    pub(crate) fn new(place: impl Into<String>, message: impl Into<String>) -> Self {
        Self { place: place.into(), message: message.into() }
    }
}

impl fmt::Display for ConfigError {
    fn fmt(&self, formatter: &mut fmt::Formatter<'_>) -> fmt::Result {
        for (index, fault) in self.faults.iter().enumerate() {
            let separator = if index == 0 { "" } else { "\n" };
            write!(formatter, "{separator}{fault}")?;
        }
        Ok(())
    }
}

impl fmt::Display for Fault {
    fn fmt(&self, formatter: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(formatter, "{}: {}", self.place, self.message)
    }
}
