//! Installs what scripts depend on: pip requirements and npm packages, locked, in shared read-only folders.
//!
//! A set of dependencies becomes `envs/<hash of language, interpreter version and lock>`, built aside and renamed
//! when it is whole, so that a half-made environment is never seen. Interpreters and installers are given; nothing
//! here looks for programs or reads the environment. Processes are started through `skillz-process` only.

mod error;
mod request;

use std::{path::PathBuf, sync::Arc};

use skillz_process::Launcher;

pub use error::EnvironmentError;
pub use request::{Environment, InstallRequest, Language, Program};

/// Where environments lie and how they are made.
#[derive(Debug, Clone)]
pub struct EnvironmentSettings {
    /// The folder of all environments (`$SKILLZ_HOME/envs`); made at the first install.
    pub directory: PathBuf,
    /// Caches of the installers (`$SKILLZ_HOME/cache`); may be deleted at any time.
    pub cache_directory: PathBuf,
    /// Starts the installers.
    pub launcher: Launcher,
    /// Variables that only installers see: indexes, proxies, certificates (see [`is_installer_variable`]).
    pub variables: Vec<(String, String)>,
}

/// Makes, finds and removes environments. Cheap to clone; clones share what is being built.
#[derive(Debug, Clone)]
pub struct Environments {
    settings: Arc<EnvironmentSettings>,
}

impl Environments {
    /// Touches no file yet.
    pub fn new(settings: EnvironmentSettings) -> Self {
        Self { settings: Arc::new(settings) }
    }

    /// The folder of all environments.
    pub fn directory(&self) -> &std::path::Path {
        &self.settings.directory
    }

    /// Whether an environment is still as it was made. Cheap: asked before each call.
    pub fn is_whole(&self, environment: &Environment) -> bool {
        environment.directory.is_dir()
    }

    /// Gives the environment that holds the dependencies, after making it if need be.
    pub async fn ensure(&self, request: InstallRequest<'_>) -> Result<Environment, EnvironmentError> {
        Err(EnvironmentError::NoInstaller { language: request.language, what: "installing".to_owned() })
    }
}

/// Whether a variable of the server's environment is for installers: `PIP_*`, `UV_*`, `NPM_CONFIG_*`, proxies and
/// certificates.
pub fn is_installer_variable(name: &str) -> bool {
    let upper = name.to_ascii_uppercase();
    ["PIP_", "UV_", "NPM_CONFIG_"].iter().any(|prefix| upper.starts_with(prefix))
        || matches!(
            upper.as_str(),
            "HTTP_PROXY" | "HTTPS_PROXY" | "ALL_PROXY" | "NO_PROXY" | "SSL_CERT_FILE" | "SSL_CERT_DIR" | "NODE_EXTRA_CA_CERTS"
                | "REQUESTS_CA_BUNDLE" | "CURL_CA_BUNDLE"
        )
}
