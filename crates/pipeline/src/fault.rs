//! What is wrong with a pipeline: all of it at once.

use std::fmt;

use skillz_json::json;
use skillz_tool::{ErrorKind, ToolError};

/// So many faults are shown in full; the text has a bound, and a broken generator repeats itself.
const SHOWN: usize = 25;

/// One fault of a pipeline.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Fault {
    /// The step, as `1` or ``1 `name` ``; absent where the pipeline as a whole is meant.
    pub step: Option<String>,
    /// What is wrong, and what would be right.
    pub message: String,
}

/// All faults of a pipeline; never empty.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Faults(pub Vec<Fault>);

impl Fault {
    /// A fault of the pipeline as a whole.
    pub(crate) fn general(message: impl Into<String>) -> Self {
        Self { step: None, message: message.into() }
    }

    /// A fault of one step; `position` counts from 0.
    pub(crate) fn of_step(position: usize, name: Option<&str>, message: impl Into<String>) -> Self {
        let number = position + 1;
        let step = name.map_or_else(|| number.to_string(), |name| format!("{number} `{name}`"));
        Self { step: Some(step), message: message.into() }
    }
}

impl Faults {
    /// The failure that a caller sees; `kind` tells a wrong request from a broken file.
    pub fn into_error(self, name: &str, kind: ErrorKind) -> ToolError {
        let faults: Vec<_> = self.0.iter().map(|fault| json!({"step": fault.step, "message": fault.message})).collect();
        ToolError::new(kind, format!("The pipeline `{name}` is not valid. {self}")).with_data(json!({"faults": faults}))
    }
}

impl fmt::Display for Fault {
    fn fmt(&self, formatter: &mut fmt::Formatter<'_>) -> fmt::Result {
        match &self.step {
            Some(step) => write!(formatter, "Step {step}: {}", self.message),
            None => formatter.write_str(&self.message),
        }
    }
}

impl fmt::Display for Faults {
    fn fmt(&self, formatter: &mut fmt::Formatter<'_>) -> fmt::Result {
        let count = self.0.len();
        write!(formatter, "{count} {}:", if count == 1 { "fault" } else { "faults" })?;
        for fault in self.0.iter().take(SHOWN) {
            write!(formatter, "\n- {fault}")?;
        }
        if count > SHOWN {
            write!(formatter, "\n- and {} more", count - SHOWN)?;
        }
        Ok(())
    }
}

impl std::error::Error for Faults {}
