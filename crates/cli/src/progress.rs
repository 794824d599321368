//! Progress and log lines of a call that was made from the command line.

use std::{path::PathBuf, time::Duration};

use async_trait::async_trait;
use indicatif::{ProgressBar, ProgressDrawTarget, ProgressStyle};
use skillz_engine::{ClientPort, NoClient};
use skillz_json::{Value, json};
use skillz_tool::{Answer, ClientCapabilities, LogLevel, Progress, ToolError};

/// The user's terminal as the other end of a call. Without a terminal nothing is drawn.
pub(crate) struct TerminalClient {
    bar: ProgressBar,
}

impl TerminalClient {
    pub(crate) fn new(is_terminal: bool) -> Self {
        let target = if is_terminal { ProgressDrawTarget::stderr() } else { ProgressDrawTarget::hidden() };
        let bar = ProgressBar::with_draw_target(None, target);
        if let Ok(style) = ProgressStyle::with_template("{spinner} {wide_msg}") {
            bar.set_style(style);
        }
        Self { bar }
    }
}

impl Drop for TerminalClient {
    fn drop(&mut self) {
        self.bar.finish_and_clear();
    }
}

#[async_trait]
impl ClientPort for TerminalClient {
    fn capabilities(&self) -> ClientCapabilities {
        NoClient.capabilities()
    }

    fn progress_token(&self) -> Option<Value> {
        Some(json!("terminal"))
    }

    fn is_operator(&self) -> bool {
        true
    }

    async fn roots(&self) -> Option<Vec<PathBuf>> {
        None
    }

    async fn ask_user(&self, message: &str, schema: Value) -> Result<Answer, ToolError> {
        NoClient.ask_user(message, schema).await
    }

    async fn sample(&self, parameters: Value) -> Result<Value, ToolError> {
        NoClient.sample(parameters).await
    }

    fn progress(&self, progress: Progress) {
        if self.bar.is_hidden() {
            return;
        }
        self.bar.enable_steady_tick(Duration::from_millis(100));
        if let Some(message) = progress.message {
            self.bar.set_message(message);
        }
        if let (Some(total), Ok(style)) = (progress.total, ProgressStyle::with_template("{spinner} [{bar:24}] {wide_msg}")) {
            self.bar.set_style(style);
            self.bar.set_length(total as u64);
            self.bar.set_position(progress.current as u64);
        }
    }

    fn log(&self, level: LogLevel, logger: &str, message: &str, data: Option<Value>) {
        if self.bar.is_hidden() || level < LogLevel::Warning {
            tracing::info!(tool = logger, ?level, data = data.map(|data| data.to_string()), "{message}");
            return;
        }
        self.bar.println(format!("{logger}: {message}"));
    }
}
