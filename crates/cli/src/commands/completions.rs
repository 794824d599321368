//! `skillz completions SHELL`

use clap::{Args, CommandFactory};
use clap_complete::Shell;

use crate::{arguments::Arguments, context::Context};

#[derive(Debug, Args)]
pub(crate) struct CompletionsArguments {
    /// The shell.
    shell: Shell,
}

pub(crate) fn run(arguments: &CompletionsArguments, context: &Context) -> anyhow::Result<()> {
    let mut script = Vec::new();
    clap_complete::generate(arguments.shell, &mut Arguments::command(), "skillz", &mut script);
    Ok(context.printer.text(&String::from_utf8_lossy(&script))?)
}
