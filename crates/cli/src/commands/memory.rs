//! `skillz memory ...`

use clap::{Args, Subcommand};
use skillz_json::{Value, json};
use skillz_tool::{MemoryStore, StoreError};

use crate::{
    context::Context,
    report::{Failure, Status},
    table,
};

/// Keys on one page of the store.
const PAGE: usize = 1_000;

#[derive(Debug, Args)]
pub(crate) struct MemoryArguments {
    #[command(subcommand)]
    action: Action,
}

#[derive(Debug, Subcommand)]
enum Action {
    /// List the keys of a tool.
    List {
        /// The tool.
        tool: String,
        /// Only keys that start with this.
        #[arg(long, default_value = "")]
        prefix: String,
    },
    /// Print the value of a key.
    Get {
        /// The tool.
        tool: String,
        /// The key.
        key: String,
    },
    /// Store a value under a key.
    #[command(alias = "set")]
    Store {
        /// The tool.
        tool: String,
        /// The key.
        key: String,
        /// The value: JSON, or a text.
        value: String,
        /// Forget it after so many seconds.
        #[arg(long)]
        ttl: Option<f64>,
    },
    /// Merge an object into the stored object.
    Update {
        /// The tool.
        tool: String,
        /// The key.
        key: String,
        /// A JSON object.
        value: String,
        /// Forget it after so many seconds.
        #[arg(long)]
        ttl: Option<f64>,
    },
    /// Delete a key.
    Delete {
        /// The tool.
        tool: String,
        /// The key.
        key: String,
    },
    /// Delete all keys of a tool.
    Clear {
        /// The tool.
        tool: String,
    },
    /// Show how much a tool keeps, or all tools.
    Stats {
        /// The tool.
        tool: Option<String>,
    },
}

pub(crate) fn run(arguments: MemoryArguments, context: &Context) -> anyhow::Result<()> {
    context.with_engine_as_it_is(|engine| async move { act(arguments.action, engine.memory().as_ref(), context).await })
}

async fn act(action: Action, memory: &dyn MemoryStore, context: &Context) -> anyhow::Result<()> {
    let printer = context.printer;
    match action {
        Action::List { tool, prefix } => {
            let keys = all_keys(memory, &tool, &prefix).await?;
            printer.print(&keys, |keys| keys.join("\n"))?;
        }
        Action::Get { tool, key } => {
            let Some(value) = memory.get(&tool, &key).await.map_err(failure)? else {
                return Err(Failure::not_found(format!("`{tool}` remembers nothing under `{key}`")).into());
            };
            printer.print(&value, shown)?;
        }
        Action::Store { tool, key, value, ttl } => {
            let value = serde_json::from_str(&value).unwrap_or(Value::String(value));
            let expires_at = memory.set(&tool, &key, &value, ttl).await.map_err(failure)?;
            printer.print(&json!({"stored": true, "expires_at": expires_at}), |_| "Stored.".to_owned())?;
        }
        Action::Update { tool, key, value, ttl } => {
            let patch = serde_json::from_str(&value)
                .map_err(|error| Failure::wrong_use(format!("The value is no JSON object: {error}")))?;
            let merged = memory.update(&tool, &key, &patch, ttl).await.map_err(failure)?;
            printer.print(&merged, shown)?;
        }
        Action::Delete { tool, key } => {
            if !memory.delete(&tool, &key).await.map_err(failure)? {
                return Err(Failure::not_found(format!("`{tool}` remembers nothing under `{key}`")).into());
            }
            printer.print(&json!({"deleted": true}), |_| "Deleted.".to_owned())?;
        }
        Action::Clear { tool } => {
            let count = memory.clear(&tool).await.map_err(failure)?;
            printer.print(&json!({"deleted": count}), |_| format!("Deleted {count} keys."))?;
        }
        Action::Stats { tool } => {
            let stats = memory.stats(tool.as_deref()).await.map_err(failure)?;
            printer.print(&stats, |stats| {
                let rows: Vec<[String; 3]> = stats
                    .iter()
                    .map(|of| [of.tool_name.clone(), format!("{} keys", of.entries), format!("{} bytes", of.bytes)])
                    .collect();
                table::columns(&rows)
            })?;
        }
    }
    Ok(())
}

async fn all_keys(memory: &dyn MemoryStore, tool: &str, prefix: &str) -> Result<Vec<String>, Failure> {
    let mut keys: Vec<String> = Vec::new();
    loop {
        let page = memory.list(tool, prefix, keys.last().map(String::as_str), PAGE).await.map_err(failure)?;
        let done = page.len() < PAGE;
        keys.extend(page);
        if done {
            return Ok(keys);
        }
    }
}

fn shown(value: &Value) -> String {
    value.as_str().map_or_else(|| serde_json::to_string_pretty(value).unwrap_or_default(), str::to_owned)
}

fn failure(error: StoreError) -> Failure {
    match error {
        StoreError::Invalid(message) => Failure::wrong_use(message),
        error @ StoreError::Failed(_) => Failure::new(Status::Internal, error.to_string()),
    }
}
