//! The subcommands, a file each.

pub(crate) mod absent;
pub(crate) mod build;
pub(crate) mod call;
pub(crate) mod completions;
pub(crate) mod config;
pub(crate) mod delete;
pub(crate) mod demo;
pub(crate) mod diff;
pub(crate) mod doctor;
pub(crate) mod export;
pub(crate) mod history;
pub(crate) mod import;
pub(crate) mod install;
pub(crate) mod list;
pub(crate) mod memory;
pub(crate) mod new;
pub(crate) mod rollback;
pub(crate) mod serve;
pub(crate) mod servers;
pub(crate) mod show;
pub(crate) mod test;
pub(crate) mod versions;

use crate::{arguments::Command, context::Context};

/// Runs the command that was asked for.
pub(crate) fn run(command: Option<Command>, serves: serve::Serves, context: Context) -> anyhow::Result<()> {
    match command {
        None | Some(Command::Serve(_)) => serve::run(context, serves),
        Some(Command::List(arguments)) => list::run(arguments, &context),
        Some(Command::Show(arguments)) => show::run(&arguments, &context),
        Some(Command::Call(arguments)) => call::run(arguments, &context),
        Some(Command::Test(arguments)) => test::run(&arguments, &context),
        Some(Command::Delete(arguments)) => delete::run(&arguments, &context),
        Some(Command::New(arguments)) => new::run(&arguments, &context),
        Some(Command::Build(arguments)) => build::run(&arguments, &context),
        Some(Command::Export(arguments)) => export::run(&arguments, &context),
        Some(Command::Versions(arguments)) => versions::run(&arguments, &context),
        Some(Command::Rollback(arguments)) => rollback::run(arguments, &context),
        Some(Command::Diff(arguments)) => diff::run(arguments, &context),
        Some(Command::History(arguments)) => history::run(&arguments, &context),
        Some(Command::Memory(arguments)) => memory::run(arguments, &context),
        Some(Command::Install(arguments)) => install::run(&arguments, &context),
        Some(Command::Doctor(arguments)) => doctor::run(&arguments, &context),
        Some(Command::Config) => config::run(&context),
        Some(Command::Completions(arguments)) => completions::run(&arguments, &context),
        Some(Command::Demo(arguments)) => demo::run(&arguments, &context),
        Some(Command::Import(arguments)) => import::run(arguments, &context),
        Some(Command::Servers(arguments)) => servers::run(arguments, &context),
        Some(Command::Services(_)) => absent::run("Services"),
    }
}
