//! What a Skillz tool written in Rust needs: its arguments, its result, and the server's services.
//!
//! ```no_run
//! #[skillz::tool]
//! fn run(text: String, limit: Option<u32>) -> Result<Vec<String>, String> {
//!     let limit = limit.unwrap_or(10) as usize;
//!     Ok(text.split_whitespace().take(limit).map(str::to_owned).collect())
//! }
//! ```
//!
//! Arguments are taken by name from the call. What the function returns becomes the result with its type; an `Err`
//! becomes a failure with the error's text; what it prints goes to the log. Every service answers a
//! `Result<_, skillz::Error>`.
//!
//! Whole numbers are never rounded: one that its type cannot hold, or that a `Value` would round, fails the call and is
//! named. [`Json`] holds any, and `i128` and `u128` hold theirs. Floating point types take the nearest double.

mod convert;
mod error;
mod host;
pub mod http;
mod json;
pub mod memory;
mod number;
mod reader;
pub mod resources;
mod services;
mod tool;

pub use convert::{Amount, Level, LogLevel, Seconds, Text};
pub use error::{Error, Result};
pub use host::request;
pub use json::Json;
pub use serde;
pub use serde_json;
pub use serde_json::{json, Value};
pub use services::{ask, call, call_as, log, progress, sample, tools};
pub use skillz_guest_macros::tool;

/// For the code that `#[skillz::tool]` writes.
#[doc(hidden)]
pub mod __private {
    pub use crate::tool::{run, Returned, ReturnedValue};
    pub use serde;
}
