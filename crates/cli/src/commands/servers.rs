//! `skillz servers ...`: imported MCP servers, as the built-in `import_mcp` has them.

use std::collections::BTreeMap;

use clap::{Args, Subcommand};
use skillz_engine::{ServerAction, ServerRequest};
use skillz_json::Value;
use skillz_tool::ServerDefinition;

use crate::{context::Context, report::Failure, table};

#[derive(Debug, Args)]
pub(crate) struct ServersArguments {
    #[command(subcommand)]
    action: Action,
}

#[derive(Debug, Subcommand)]
enum Action {
    /// List imported servers.
    List {
        /// Only this one.
        name: Option<String>,
    },
    /// Import a server: by a command and its arguments, or by a URL.
    Add(Box<AddArguments>),
    /// Take a server away.
    Remove {
        /// The server.
        name: String,
    },
    /// Take over what has changed at a server.
    Refresh {
        /// The server.
        name: String,
    },
}

#[derive(Debug, Args)]
struct AddArguments {
    /// What it shall be called; its tools become `<name>_<tool>`.
    name: String,
    /// Its address, if it is a remote one.
    #[arg(long)]
    url: Option<String>,
    /// A variable for it, as NAME=VALUE; `$OTHER` in the value is expanded when it is started.
    #[arg(long, value_name = "NAME=VALUE")]
    env: Vec<String>,
    /// A header of each request to it, as NAME=VALUE.
    #[arg(long, value_name = "NAME=VALUE")]
    header: Vec<String>,
    /// What it is for.
    #[arg(long)]
    description: Option<String>,
    /// Hold changed tools back until `refresh`.
    #[arg(long)]
    pin: bool,
    /// Confine it like a script.
    #[arg(long)]
    sandbox: bool,
    /// Replace a server of that name.
    #[arg(long)]
    overwrite: bool,
    /// Its command and arguments, if it is a local one.
    #[arg(last = true)]
    command: Vec<String>,
}

pub(crate) fn run(arguments: ServersArguments, context: &Context) -> anyhow::Result<()> {
    let request = request(arguments.action)?;
    context.with_engine(|engine| async move {
        let answer = engine.import_server(request, context.client()).await.map_err(Failure::from)?;
        context.printer.print(&answer, shown)?;
        Ok(())
    })
}

fn request(action: Action) -> Result<ServerRequest, Failure> {
    let plain = |action, name| ServerRequest { action, name, ..ServerRequest::default() };
    Ok(match action {
        Action::List { name } => plain(ServerAction::List, name),
        Action::Remove { name } => plain(ServerAction::Remove, Some(name)),
        Action::Refresh { name } => plain(ServerAction::Refresh, Some(name)),
        Action::Add(arguments) => {
            let mut command = arguments.command.into_iter();
            ServerRequest {
                action: ServerAction::Add,
                name: Some(arguments.name),
                definition: ServerDefinition {
                    command: command.next(),
                    args: command.collect(),
                    env: pairs(&arguments.env)?,
                    url: arguments.url,
                    headers: pairs(&arguments.header)?,
                    description: arguments.description,
                    pin: arguments.pin,
                    sandbox: arguments.sandbox,
                },
                overwrite: arguments.overwrite,
            }
        }
    })
}

fn pairs(given: &[String]) -> Result<BTreeMap<String, String>, Failure> {
    let pair = |text: &String| {
        // The value may be a secret, so it is not shown.
        text.split_once('=')
            .map(|(name, value)| (name.to_owned(), value.to_owned()))
            .ok_or_else(|| Failure::wrong_use("A variable or header is given as NAME=VALUE"))
    };
    given.iter().map(pair).collect()
}

fn shown(answer: &Value) -> String {
    if let Some(name) = answer.get("removed").and_then(Value::as_str) {
        return format!("Removed {name}.");
    }
    let servers = match answer.get("servers").and_then(Value::as_array) {
        Some(servers) => servers.clone(),
        None => vec![answer.clone()],
    };
    if servers.is_empty() {
        return "No server is imported.".to_owned();
    }
    let text = |entry: &Value, field: &str| entry.get(field).and_then(Value::as_str).unwrap_or_default().to_owned();
    let rows: Vec<[String; 4]> = servers
        .iter()
        .map(|entry| {
            let tools = entry.get("tools").and_then(Value::as_array).map_or(0, Vec::len);
            let what = [text(entry, "error"), text(entry, "note"), text(entry, "description")];
            let what = what.into_iter().find(|what| !what.is_empty()).unwrap_or_default();
            [text(entry, "name"), text(entry, "state"), format!("{tools} tools"), what]
        })
        .collect();
    table::columns(&rows)
}
