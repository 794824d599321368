//! Programs as their callers see them, through real workers and real interpreters.

mod escapes;
mod javascript;
mod limits;
mod process;
mod python;
mod support;

skillz_process::helper_entry!();
skillz_runtime_code::worker_entry!();
