//! What may be given where a number, a text or a log level is wanted.

use std::{fmt, time::Duration};

/// Severity of a log message.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Level {
    Debug,
    Info,
    Notice,
    Warning,
    Error,
    Critical,
}

impl fmt::Display for Level {
    fn fmt(&self, formatter: &mut fmt::Formatter<'_>) -> fmt::Result {
        formatter.write_str(match self {
            Self::Debug => "debug",
            Self::Info => "info",
            Self::Notice => "notice",
            Self::Warning => "warning",
            Self::Error => "error",
            Self::Critical => "critical",
        })
    }
}

/// A log level: [`Level`], or its name.
pub trait LogLevel {
    /// The level's name in the protocol.
    fn level_name(&self) -> String;
}

impl LogLevel for Level {
    fn level_name(&self) -> String {
        self.to_string()
    }
}

impl LogLevel for &str {
    fn level_name(&self) -> String {
        match self.to_ascii_lowercase().as_str() {
            "warn" => "warning".to_owned(),
            "trace" => "debug".to_owned(),
            name => name.to_owned(),
        }
    }
}

impl LogLevel for String {
    fn level_name(&self) -> String {
        self.as_str().level_name()
    }
}

/// A number, or none.
pub trait Amount {
    /// The number.
    fn amount(self) -> Option<f64>;
}

/// A length of time: a number of seconds, or a `Duration`.
pub trait Seconds {
    /// Its seconds.
    fn seconds(self) -> f64;
}

macro_rules! numbers {
    ($($number:ty)*) => {$(
        impl Amount for $number {
            fn amount(self) -> Option<f64> {
                Some(self as f64)
            }
        }

        impl Seconds for $number {
            fn seconds(self) -> f64 {
                self as f64
            }
        }
    )*};
}

numbers!(u8 u16 u32 u64 usize i8 i16 i32 i64 isize f32 f64);

impl Amount for Option<f64> {
    fn amount(self) -> Option<f64> {
        self
    }
}

impl Seconds for Duration {
    fn seconds(self) -> f64 {
        self.as_secs_f64()
    }
}

/// A text, or none.
pub trait Text {
    /// The text.
    fn text(self) -> Option<String>;
}

impl Text for &str {
    fn text(self) -> Option<String> {
        Some(self.to_owned())
    }
}

impl Text for String {
    fn text(self) -> Option<String> {
        Some(self)
    }
}

impl Text for &String {
    fn text(self) -> Option<String> {
        Some(self.clone())
    }
}

impl Text for Option<&str> {
    fn text(self) -> Option<String> {
        self.map(str::to_owned)
    }
}
