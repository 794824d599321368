//! The binary: parses, sets up logging, dispatches, and maps errors to exit codes. It knows every other crate,
//! and no other crate knows it.

mod arguments;
mod code;
mod commands;
mod context;
mod logging;
mod machine;
mod printer;
mod progress;
mod report;
mod table;
mod upstreams;
mod wire;

use std::process::ExitCode;

use clap::Parser;

use crate::{arguments::Arguments, commands::serve::Serves, context::Context, report::Failure};

fn main() -> ExitCode {
    // Helper and worker processes are this binary too; they take over before any thread is there.
    skillz_process::run_helper_if_asked();
    skillz_runtime_code::run_worker_if_asked();
    let arguments = Arguments::parse();
    match run(arguments) {
        Ok(()) => ExitCode::SUCCESS,
        Err(error) => report::report(&error),
    }
}

fn run(arguments: Arguments) -> anyhow::Result<()> {
    let flags = arguments.flags()?;
    let resolved = skillz_config::resolve(skillz_config::Environment::of_process(), &flags)?;
    logging::start(&resolved.settings).map_err(Failure::wrong_use)?;
    let serves = if arguments.for_conformance_suite() { Serves::ConformanceSuite } else { Serves::Clients };
    commands::run(arguments.command, serves, Context::new(resolved, arguments.output))
}
