//! Commands whose work is not part of this version.

use clap::Args;

use crate::report::{Failure, Status};

#[derive(Debug, Args)]
pub(crate) struct AbsentArguments {
    /// Taken, so that the answer is about the command and not about its arguments.
    #[arg(trailing_var_arg = true, allow_hyphen_values = true, hide = true)]
    _arguments: Vec<String>,
}

pub(crate) fn run(what: &str) -> anyhow::Result<()> {
    Err(Failure::new(Status::ToolFailed, format!("{what} from the command line: not part of this version yet")).into())
}
