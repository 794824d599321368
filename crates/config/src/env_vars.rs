//! Every environment variable that Skillz reads itself, with what it does.
//!
//! Variables that tools ask for by name are not listed: they are the tools' business.

/// A variable and its meaning.
#[derive(Debug, Clone, Copy)]
pub struct Variable {
    /// Its name.
    pub name: &'static str,
    /// The setting it fills, where it is a setting.
    pub key: Option<&'static str>,
    /// One sentence about it.
    pub doc: &'static str,
}

const fn setting(name: &'static str, key: &'static str, doc: &'static str) -> Variable {
    Variable { name, key: Some(key), doc }
}

const fn surroundings(name: &'static str, doc: &'static str) -> Variable {
    Variable { name, key: None, doc }
}

/// All of them. Whoever adds one adds its line here.
pub const VARIABLES: &[Variable] = &[
    setting("SKILLZ_HOME", "home", "The data folder; `~/.skillz` by default."),
    setting("TOOLS_DIR", "tools_dir", "The folder of all tools; `tools` in the data folder by default."),
    setting("SKILLZ_TRANSPORT", "transport", "`stdio` or `http`."),
    setting("SKILLZ_HOST", "host", "The address to listen on with `http`."),
    setting("SKILLZ_PORT", "port", "The port to listen on with `http`."),
    setting("SKILLZ_WATCH", "watch", "Whether the tools folder is watched for edits by hand."),
    setting("SKILLZ_LOG", "log", "What is logged: a level, or a filter such as `skillz=debug`."),
    setting("SKILLZ_LOG_FORMAT", "log_format", "`text` or `json`."),
    setting(
        "SKILLZ_SANDBOX",
        "sandbox",
        "Who confines scripts: `auto`, `builtin`, `bubblewrap`, `firejail`, `nsjail` or `none`.",
    ),
    setting("SKILLZ_SANDBOX_NETWORK", "sandbox_network", "`1` gives the network to every tool."),
    setting("SKILLZ_ROOTS", "roots", "Workspace folders, separated by colons, for clients that name none."),
    setting("SKILLZ_EXPOSE", "expose", "Which tools clients are shown: `auto`, `all` or `pinned`."),
    setting("SKILLZ_AUTH_TOKEN", "http.token", "The bearer token that HTTP clients must send. Never given to a tool."),
    setting("SKILLZ_GITHUB_API", "import.github_api", "Where gists are asked for; `https://api.github.com` by default."),
    setting("SKILLZ_MEMORY_URL", "memory.url", "A libSQL server that holds the memory instead of the file."),
    setting("SKILLZ_MEMORY_TOKEN", "memory.token", "The token for that server. Never given to a tool."),
    surroundings("PATH", "Where interpreters and toolchains are looked for first."),
    surroundings("HOME", "The user's home: interpreters in usual places, the default data folder, clients' config files."),
    surroundings("XDG_CONFIG_HOME", "Where clients keep their config files on Linux; `~/.config` by default."),
    surroundings("APPDATA", "Where clients keep their config files on Windows."),
    surroundings("CODEX_HOME", "Where Codex keeps its config file; `~/.codex` by default."),
    surroundings("CLAUDE_CONFIG_DIR", "Where Claude Code keeps its config file; the home by default."),
    surroundings("CARGO_HOME", "Where cargo keeps crates; `~/.cargo` by default."),
    surroundings("RUSTUP_HOME", "Where rustup keeps toolchains; `~/.rustup` by default."),
    surroundings("SSH_AUTH_SOCK", "The agent with ssh keys, for git over ssh."),
    surroundings("NO_COLOR", "Set to anything: no colour on the terminal."),
];

/// The server's own tokens: no tool ever gets them, by whatever name it asks.
pub(crate) const OWN_TOKENS: &[&str] = &["SKILLZ_AUTH_TOKEN", "SKILLZ_MEMORY_TOKEN"];

/// What installers and compilers of this machine are given when they fetch something, and nobody else: proxies,
/// certificates, mirrors and where rustup, pip and npm keep their own settings.
pub(crate) const DOWNLOAD_VARIABLES: &[&str] = &[
    "HTTP_PROXY",
    "HTTPS_PROXY",
    "ALL_PROXY",
    "NO_PROXY",
    "http_proxy",
    "https_proxy",
    "all_proxy",
    "no_proxy",
    "SSL_CERT_FILE",
    "SSL_CERT_DIR",
    "CURL_CA_BUNDLE",
    "REQUESTS_CA_BUNDLE",
    "NODE_EXTRA_CA_CERTS",
    "CARGO_HTTP_CAINFO",
    "CARGO_HTTP_PROXY",
    "CARGO_NET_GIT_FETCH_WITH_CLI",
    "RUSTUP_DIST_SERVER",
    "RUSTUP_UPDATE_ROOT",
    "RUSTUP_TOOLCHAIN",
    "PIP_INDEX_URL",
    "PIP_EXTRA_INDEX_URL",
    "PIP_FIND_LINKS",
    "PIP_CERT",
    "PIP_DEFAULT_TIMEOUT",
    "PIP_TRUSTED_HOST",
    "UV_INDEX_URL",
    "UV_DEFAULT_INDEX",
    "UV_INDEX",
    "NPM_CONFIG_REGISTRY",
    "npm_config_registry",
    "NPM_CONFIG_CAFILE",
    "npm_config_cafile",
];

#[cfg(test)]
mod tests {
    use super::*;
    use crate::KEYS;

    #[test]
    fn every_variable_of_a_setting_is_listed_and_leads_back_to_it() {
        for key in KEYS {
            if let Some(name) = key.variable {
                let listed = VARIABLES.iter().find(|variable| variable.name == name);
                assert_eq!(listed.and_then(|variable| variable.key), Some(key.name), "{name}");
            }
        }
        for variable in VARIABLES.iter().filter(|variable| variable.key.is_some()) {
            assert!(KEYS.iter().any(|key| key.variable == Some(variable.name)), "{}", variable.name);
        }
    }
}
