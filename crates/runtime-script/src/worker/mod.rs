//! Function scripts: warm workers that hold a tool's module and serve one call at a time.
//!
//! `pool` hands workers out and bounds them, `process` is one worker, `call` is one call in it.

mod call;
mod pool;
mod process;

pub(crate) use call::{CallEnd, check_numbers, load_failure, run};
pub(crate) use pool::{Lent, Pool, WorkerKey};
pub(crate) use process::Worker;
