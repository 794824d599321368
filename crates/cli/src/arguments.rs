//! The command line as typed.

use std::path::PathBuf;

use clap::{Args, Parser, Subcommand, ValueEnum};
use skillz_config::Flags;

use crate::{commands, report::Failure};

/// An MCP server with which an AI client builds its own tools.
///
/// Without a command it serves MCP over stdio.
#[derive(Debug, Parser)]
#[command(name = "skillz", version, max_term_width = 100)]
pub(crate) struct Arguments {
    #[command(flatten)]
    serve: ServeFlags,
    /// Read this file instead of `config.toml` in the data folder.
    #[arg(long, global = true, value_name = "FILE")]
    config: Option<PathBuf>,
    /// The folder of all tools.
    #[arg(long, global = true, value_name = "FOLDER")]
    tools_dir: Option<PathBuf>,
    /// Form of the log lines on stderr: `text` or `json`.
    #[arg(long, global = true, value_name = "FORMAT")]
    log_format: Option<String>,
    /// Form of what is printed.
    #[arg(long, global = true, value_enum, default_value_t = OutputFormat::Text)]
    pub(crate) output: OutputFormat,
    #[command(subcommand)]
    pub(crate) command: Option<Command>,
}

/// Form of what is printed.
#[derive(Debug, Clone, Copy, PartialEq, Eq, ValueEnum)]
pub(crate) enum OutputFormat {
    /// For people.
    Text,
    /// For programs.
    Json,
}

/// How to serve.
#[derive(Debug, Clone, Default, Args)]
pub(crate) struct ServeFlags {
    /// How clients reach the server: `stdio` or `http`.
    #[arg(long)]
    transport: Option<String>,
    /// Address to listen on with `--transport http`.
    #[arg(long)]
    host: Option<String>,
    /// Port to listen on with `--transport http`.
    #[arg(long)]
    port: Option<u16>,
    /// Notice edits by hand in the tools folder (the default).
    #[arg(long, conflicts_with = "no_watch")]
    hot_reload: bool,
    /// Do not notice edits by hand in the tools folder.
    #[arg(long)]
    no_watch: bool,
    /// Offer the resources and prompts that the protocol's conformance suite asks for by name.
    #[arg(long, hide = true)]
    conformance: bool,
}

#[derive(Debug, Subcommand)]
pub(crate) enum Command {
    /// Serve MCP (what happens without a command).
    Serve(ServeFlags),
    /// List tools, or find the best ones for a question in plain words.
    List(commands::list::ListArguments),
    /// Show all about a tool.
    Show(commands::show::ShowArguments),
    /// Call a tool.
    Call(commands::call::CallArguments),
    /// Run the stored examples of a tool, or of all tools.
    Test(commands::test::TestArguments),
    /// Move a tool to the trash; `rollback` brings it back.
    Delete(commands::delete::DeleteArguments),
    /// Start a new tool in a folder of its own, to be edited by hand.
    New(commands::new::NewArguments),
    /// Check, compile and publish a tool from a folder.
    Build(commands::build::BuildArguments),
    /// Write a tool into an archive that another machine can import.
    Export(commands::export::ExportArguments),
    /// List the versions of a tool.
    Versions(commands::versions::VersionsArguments),
    /// Make an older version of a tool the current one.
    Rollback(commands::rollback::RollbackArguments),
    /// Show what changed between two versions of a tool.
    Diff(commands::diff::DiffArguments),
    /// Show the latest calls.
    History(commands::history::HistoryArguments),
    /// Read and change what tools remember.
    Memory(commands::memory::MemoryArguments),
    /// Write the server into the config of an MCP client.
    Install(commands::install::InstallArguments),
    /// Check this machine and the tools, each fault with its fix.
    Doctor(commands::doctor::DoctorArguments),
    /// Show each setting and where it came from.
    Config,
    /// Print a completion script for a shell.
    Completions(commands::completions::CompletionsArguments),
    /// Show a real session of a client with the server, from first tool to restart.
    Demo(commands::demo::DemoArguments),
    /// Import tools and skills from a repository, gist, archive or folder.
    Import(commands::import::ImportArguments),
    /// Manage imported MCP servers.
    Servers(commands::servers::ServersArguments),
    /// Manage services that tools need.
    Services(commands::absent::AbsentArguments),
}

impl Arguments {
    /// What the command line says about settings.
    pub(crate) fn flags(&self) -> Result<Flags, Failure> {
        let serve = match &self.command {
            None => self.serve.clone(),
            Some(Command::Serve(flags)) => flags.clone().or(&self.serve),
            Some(_) if self.serve.is_empty() => ServeFlags::default(),
            Some(_) => {
                let message = "--transport, --host, --port, --hot-reload and --no-watch belong to `skillz` without a command, or to `skillz serve`";
                return Err(Failure::wrong_use(message));
            }
        };
        let watch = if serve.no_watch { Some(false) } else { serve.hot_reload.then_some(true) };
        Ok(Flags {
            config: self.config.clone(),
            tools_dir: self.tools_dir.clone(),
            transport: serve.transport,
            host: serve.host,
            port: serve.port,
            watch,
            log_format: self.log_format.clone(),
        })
    }
}

impl Arguments {
    /// Whether the server is started for the protocol's conformance suite.
    pub(crate) fn for_conformance_suite(&self) -> bool {
        self.serve.conformance || matches!(&self.command, Some(Command::Serve(flags)) if flags.conformance)
    }
}

impl ServeFlags {
    fn is_empty(&self) -> bool {
        self.transport.is_none() && self.host.is_none() && self.port.is_none() && !self.hot_reload && !self.no_watch
    }

    fn or(self, other: &Self) -> Self {
        Self {
            transport: self.transport.or_else(|| other.transport.clone()),
            host: self.host.or_else(|| other.host.clone()),
            port: self.port.or(other.port),
            hot_reload: self.hot_reload || other.hot_reload,
            no_watch: self.no_watch || other.no_watch,
            conformance: self.conformance || other.conformance,
        }
    }
}

#[cfg(test)]
mod tests {
    use clap::CommandFactory;

    use super::*;

    #[test]
    fn the_command_line_is_consistent() {
        Arguments::command().debug_assert();
    }

    #[test]
    fn flags_of_the_server_belong_to_the_server() {
        let flags = |line: &str| Arguments::try_parse_from(line.split(' ')).expect(line).flags();
        assert_eq!(flags("skillz --no-watch").expect("serves").watch, Some(false));
        assert_eq!(flags("skillz serve --hot-reload").expect("serves").watch, Some(true));
        assert_eq!(flags("skillz --port 1 serve").expect("serves").port, Some(1));
        assert!(flags("skillz --port 1 list").is_err());
        assert!(flags("skillz list --tools-dir /x").is_ok());
    }
}
