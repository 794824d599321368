//! `execute_code`: programs in Python, JavaScript or TypeScript that call tools as functions.
//!
//! Programs run in the machine's own python3 or node, confined, by what serves function scripts; or, where there is none, in
//! interpreters that know the language and nothing of the machine (Monty and QuickJS), inside worker processes of this same
//! binary. Every inner call goes through [`skillz_tool::Host`]. Nothing here knows how tools run or what a client is.
#![warn(missing_docs)]

mod hints;
mod host;
mod message;
mod names;
mod outcome;
mod pool;
mod real;
mod request;
mod runner;
mod session;
mod wire;
mod worker;

pub use outcome::{CallRecord, CodeFailure, CodeResult};
pub use request::{CodeRequest, CodeSettings, Language, Runtime};
pub use runner::CodeRunner;
pub use worker::run_worker_if_asked;
