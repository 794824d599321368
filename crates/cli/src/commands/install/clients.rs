//! The clients: where each keeps its config, and in which form.

use std::path::PathBuf;

use clap::ValueEnum;
use skillz_config::Environment;

use super::{
    entry::Entry,
    json::{self, Form},
    toml,
};

#[derive(Debug, Clone, Copy, PartialEq, Eq, ValueEnum)]
pub(super) enum Client {
    ClaudeDesktop,
    ClaudeCode,
    Cursor,
    Vscode,
    Windsurf,
    Zed,
    Codex,
    Gemini,
}

impl Client {
    pub(super) fn title(self) -> &'static str {
        match self {
            Self::ClaudeDesktop => "Claude Desktop",
            Self::ClaudeCode => "Claude Code",
            Self::Cursor => "Cursor",
            Self::Vscode => "VS Code",
            Self::Windsurf => "Windsurf",
            Self::Zed => "Zed",
            Self::Codex => "Codex",
            Self::Gemini => "Gemini CLI",
        }
    }

    /// The file that holds the user's servers; `None` without a home.
    pub(super) fn config_file(self, environment: &Environment) -> Option<PathBuf> {
        let home = environment.home()?;
        Some(match self {
            Self::ClaudeDesktop => application_folder(environment)?.join("Claude/claude_desktop_config.json"),
            Self::ClaudeCode => environment.path("CLAUDE_CONFIG_DIR").unwrap_or(home).join(".claude.json"),
            Self::Cursor => home.join(".cursor/mcp.json"),
            Self::Vscode => application_folder(environment)?.join("Code/User/mcp.json"),
            Self::Windsurf => home.join(".codeium/windsurf/mcp_config.json"),
            Self::Zed if cfg!(windows) => application_folder(environment)?.join("Zed/settings.json"),
            Self::Zed => environment.path("XDG_CONFIG_HOME").unwrap_or_else(|| home.join(".config")).join("zed/settings.json"),
            Self::Codex => environment.path("CODEX_HOME").unwrap_or_else(|| home.join(".codex")).join("config.toml"),
            Self::Gemini => home.join(".gemini/settings.json"),
        })
    }

    /// The config with the server in it; everything else stays as it was, comments included.
    pub(super) fn with_server(self, config: &str, name: &str, entry: &Entry) -> Result<String, String> {
        match self {
            Self::Codex => toml::with_server(config, name, entry),
            Self::Vscode => json::with_server(config, name, entry, Form { section: "servers", names_transport: true }),
            Self::ClaudeCode => json::with_server(config, name, entry, Form { section: "mcpServers", names_transport: true }),
            Self::Zed => json::with_server(config, name, entry, Form { section: "context_servers", names_transport: false }),
            Self::ClaudeDesktop | Self::Cursor | Self::Windsurf | Self::Gemini => {
                json::with_server(config, name, entry, Form { section: "mcpServers", names_transport: false })
            }
        }
    }
}

/// Where desktop programs keep their settings on this system.
fn application_folder(environment: &Environment) -> Option<PathBuf> {
    if cfg!(windows) {
        return environment.path("APPDATA");
    }
    let home = environment.home()?;
    if cfg!(target_os = "macos") {
        return Some(home.join("Library/Application Support"));
    }
    Some(environment.path("XDG_CONFIG_HOME").unwrap_or_else(|| home.join(".config")))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    #[cfg(target_os = "linux")]
    fn each_client_has_its_file() {
        let environment = Environment::of([("HOME", "/h"), ("CODEX_HOME", "/c")], "/");
        let files: Vec<String> = Client::value_variants()
            .iter()
            .map(|client| client.config_file(&environment).expect("a home").display().to_string())
            .collect();
        assert_eq!(
            files,
            [
                "/h/.config/Claude/claude_desktop_config.json",
                "/h/.claude.json",
                "/h/.cursor/mcp.json",
                "/h/.config/Code/User/mcp.json",
                "/h/.codeium/windsurf/mcp_config.json",
                "/h/.config/zed/settings.json",
                "/c/config.toml",
                "/h/.gemini/settings.json",
            ]
        );
    }
}
