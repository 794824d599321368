//! `execute_code`: programs in Python, JavaScript or TypeScript that call tools as functions.
//!
//! Programs run in interpreters that know the language and nothing of the machine (Monty and QuickJS), inside worker
//! processes of this same binary; or, where they need more, in the machine's own python3 or node, confined. Every inner
//! call goes through [`skillz_tool::Host`]. Nothing here knows how tools run or what a client is.
#![warn(missing_docs)]

mod hints;
mod message;
mod names;
mod native;
mod outcome;
mod pool;
mod request;
mod runner;
mod session;
mod wire;
mod worker;

pub use outcome::{CallRecord, CodeFailure, CodeResult};
pub use request::{CodeRequest, CodeSettings, FindProgram, Language, Runtime};
pub use runner::CodeRunner;
pub use worker::run_worker_if_asked;
