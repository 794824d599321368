//! What commands print on stdout. A reader that went away is no fault: `skillz list | head` ends quietly.

use std::io::{self, Write};

use serde::Serialize;

use crate::arguments::OutputFormat;

#[derive(Debug, Clone, Copy)]
pub(crate) struct Printer {
    format: OutputFormat,
}

impl Printer {
    pub(crate) fn new(format: OutputFormat) -> Self {
        Self { format }
    }

    pub(crate) fn is_json(self) -> bool {
        self.format == OutputFormat::Json
    }

    /// Prints a value to programs, or what `text` makes of it to people.
    pub(crate) fn print<T: Serialize>(self, value: &T, text: impl FnOnce(&T) -> String) -> io::Result<()> {
        if self.is_json() {
            return self.text(&serde_json::to_string_pretty(value)?);
        }
        self.text(&text(value))
    }

    /// Prints a text and ends its line.
    pub(crate) fn text(self, text: &str) -> io::Result<()> {
        let mut stdout = io::stdout().lock();
        stdout.write_all(text.as_bytes())?;
        if !text.is_empty() && !text.ends_with('\n') {
            stdout.write_all(b"\n")?;
        }
        stdout.flush()
    }
}
